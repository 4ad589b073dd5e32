#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--models: a folder of models in one server. The request's model picks, models are loaded on demand while others chat,
and unloaded within --memory."""

import json
import os
import subprocess
import tempfile
import threading
import time

from server import PROGRAM, Checks, Server

begun = time.time()
check = Checks()
with open(PROGRAM, "rb") as file:
    HAS_MPI = b"MPI_Init_thread" in file.read()
here = os.path.dirname(os.path.abspath(__file__))
folder = tempfile.mkdtemp()
for name in ("fable", "second", "third"):
    os.symlink(os.path.join(here, "../../examples/tool/fable.gguf"), os.path.join(folder, name + ".gguf"))
with open(os.path.join(folder, "broken.gguf"), "w") as file:
    file.write("no model")
question = [{"role": "user", "content": "Tell me a story about a brave mouse."}]
server = Server("--models", folder)
ask = server.ask


def chat(model, **more):
    return ask(
        "POST",
        "/v1/chat/completions",
        {**({"model": model} if model else {}), "messages": question, "max_tokens": 8, "temperature": 0, **more},
        seconds=120,
    )


def states():
    return {each["id"]: each["status"]["value"] for each in ask("GET", "/v1/models")[2]["data"]}


check.equal(states(), dict.fromkeys(("broken", "fable", "second", "third"), "unloaded"), "the list at first")
check.equal(
    [each["name"] for each in ask("GET", "/api/tags")[2]["models"]],
    ["broken:latest", "fable:latest", "second:latest", "third:latest"],
    "Ollama's list",
)
check.equal(
    (ask("GET", "/api/ps")[2], ask("GET", "/health")[0]),
    ({"models": []}, 200),
    "nothing is loaded, and the server is well",
)
shown = ask("POST", "/api/show", {"model": "second:latest"})[2]
check.equal(
    (shown["details"]["family"], shown["model_info"]["bitnet-b1.58.context_length"], states()["second"]),
    ("bitnet-b1.58", 512, "unloaded"),
    "what a file says without being loaded",
)
for model, status, code in (
    (None, 400, "model_not_found"),
    ("gpt-4", 404, "model_not_found"),
    ("broken", 500, "model_load_failed"),
    ("broken", 500, "model_load_failed"),
):
    found, _, body = chat(model)
    check.equal(
        (found, body["error"]["param"], body["error"]["code"]), (status, "model", code), f"model {model}: {body}"
    )
    check(len(body["error"]["message"]) <= 400, f"a short line: {body}")
check("'broken' could not be loaded" in chat("broken")[2]["error"]["message"], "why it was not loaded")
check.equal(
    ask("POST", "/api/chat", {"model": "gpt-4", "messages": question, "stream": False})[0],
    404,
    "Ollama: an unknown model",
)

status, _, first = chat("fable")
check.equal((status, first.get("model")), (200, "fable"), f"the first model, found {first}")
check.equal(
    [each["name"] for each in ask("GET", "/api/ps")[2]["models"]], ["fable:latest"], "Ollama's list of those that run"
)
check.equal(ask("POST", "/tokenize", {"model": "fable", "content": "a mouse"})[0], 200, "tokens of a named model")
check.equal(
    (ask("GET", "/props?model=fable")[2]["model_alias"], ask("GET", "/props")[0], ask("GET", "/plan?model=fable")[0]),
    ("fable", 400, 200),
    "pages of a named model",
)

# Others chat while a model is loaded.
came = []


def stream():
    with subprocess.Popen(
        [
            "curl",
            "-sN",
            server.url + "/v1/chat/completions",
            "-H",
            "Content-Type: application/json",
            "-d",
            json.dumps({"model": "fable", "messages": question, "max_tokens": -1, "ignore_eos": True, "stream": True}),
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as curl:
        for line in curl.stdout:
            if line.startswith("data: {"):
                came.append(time.time())


talk = threading.Thread(target=stream)
talk.start()
while len(came) < 3:
    time.sleep(0.01)
asked = time.time()
status, _, second = ask(
    "POST",
    "/api/chat",
    {"model": "second", "messages": question, "stream": False, "options": {"num_predict": 8, "temperature": 0}},
    seconds=120,
)
answered = time.time()
talk.join()
check.equal(
    (status, second.get("message", {}).get("content")),
    (200, first["choices"][0]["message"]["content"]),
    "the second model, by Ollama's API",
)
check(
    sum(asked < each < answered for each in came) > 3,
    f"tokens of the first while the second was loaded for {answered - asked:.1f} s, found {len(came)} in all",
)
check(len(came) > 300, f"the whole of its text, found {len(came)} pieces")
health = ask("GET", "/health")[2]
check.equal(
    {each["model"]: each["status"] for each in health["models"]},
    {"broken": "failed", "fable": "loaded", "second": "loaded", "third": "unloaded"},
    "health",
)
metrics = ask("GET", "/metrics")[2]
check('intaglio_ready{model="second"} 1' in metrics and 'intaglio_slots{model="fable"} ' in metrics, "gauges by model")
check.equal(server.stop(), 0, "exit code")

# Two of three have room.
each_bytes = health["memory_bytes"] // 2
server = Server("--models", folder, "--memory", str(each_bytes * 5 // 2), "--any-model-name")
ask = server.ask
for name in ("fable", "second", "fable", "third"):
    check.equal(
        chat(name)[2]["choices"][0]["message"]["content"],
        first["choices"][0]["message"]["content"],
        f"{name}, of two that have room",
    )
check.equal(
    states(),
    {"broken": "unloaded", "fable": "loaded", "second": "unloaded", "third": "loaded"},
    "the least recently used is unloaded",
)
check(ask("GET", "/health")[2]["memory_bytes"] <= each_bytes * 5 // 2, "the memory that they take")
# All three at once: each is answered in turn.
found = []
clients = [
    threading.Thread(target=lambda name=name: found.append(chat(name)[0])) for name in ("fable", "second", "third") * 2
]
for each in clients:
    each.start()
for each in clients:
    each.join()
check.equal(found, [200] * 6, "three models on room for two")
check.equal(chat("gpt-4")[0], 404, "any name is not for several models")
for name in ("broken", "second", "third"):
    os.remove(os.path.join(folder, name + ".gguf"))
check.equal(server.stop(), 0, "exit code of the second")
server = Server("--models", folder, "--memory", "1K", "--any-model-name")
status, _, body = server.ask("POST", "/v1/chat/completions", {"model": "gpt-4", "messages": question})
check.equal((status, "--memory" in body["error"]["message"]), (500, True), f"a model that has no room, found {body}")
server.stop()
for flags, words in (
    (("--models", folder, "--model", "x.gguf"), "--model: expected nothing beside --models"),
    (("--memory", "1G"), "--memory: expected --models"),
    (("--models", folder + "/none"), "expected a folder"),
    (("--mpi", "--models", folder), "--models: expected nothing beside --mpi"),
    (("--cut", "4"), "--cut: expected --devices or --mpi beside it"),
    (("--mpi",), "two ranks or more" if HAS_MPI else "--mpi: expected a server that is built with INTAGLIO_MPI=ON"),
):
    refused = subprocess.run([PROGRAM, *flags, "--port", "0"], capture_output=True, text=True, timeout=20)
    check(refused.returncode == 1 and words in refused.stderr, f"{flags}: found {refused.returncode} {refused.stderr}")
check.end("several", begun)
