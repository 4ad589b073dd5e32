#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--devices: a model over two and three stages, all on one device of this machine, with the answers of the server
without stages, to the byte; and what is refused."""

import concurrent.futures
import json
import os
import subprocess
import time

from server import PROGRAM, Checks, Server

begun = time.time()
check = Checks()
GREEDY = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}
DRAWN = {"prompt": "The mouse said " * 20, "max_tokens": 24, "temperature": 0.9, "top_k": 40, "seed": 7}


def whole(server, body):
    status, _, answer = server.ask("POST", "/v1/completions", body, seconds=120)
    return (status, answer["choices"], answer["usage"]) if status == 200 else (status, answer)


def text_of_stream(server, body):
    answer = server.ask("POST", "/v1/completions", {**body, "stream": True}, seconds=120)[2]
    found = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
    return "".join(each["choices"][0]["text"] for each in found if each.get("choices")), "data: [DONE]" in answer


def answers(server):
    """What clients get one after the other, by stream, and together."""
    bodies = [GREEDY, DRAWN] + [{**DRAWN, "seed": seed} for seed in range(8, 14)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return {
            "greedy": whole(server, GREEDY),
            "drawn": whole(server, DRAWN),
            "stream": text_of_stream(server, DRAWN),
            "together": list(pool.map(lambda body: whole(server, body), bodies)),
            "form": whole(server, {**GREEDY, "grammar": 'root ::= [a-z ]+ "."'}),
            "embedding": server.ask("POST", "/v1/embeddings", {"input": "A brave mouse"})[2].get("data"),
        }


server = Server()
slots, device = server.gauge("intaglio_slots"), server.ask("GET", "/health")[2]["device"]
expected = answers(server)
check.equal((expected["greedy"][0], expected["stream"][1]), (200, True), f"answers on one device: {expected}")
check.equal(server.stop(), 0, "exit code on one device")
for devices, cut in (("0,0", ("--cut", "3")), ("0,0,0", ())):
    server = Server("--devices", devices, *cut)
    count = devices.count("0")
    check.equal(server.gauge("intaglio_slots"), count * slots, f"slots of {count} stages")
    check.equal(server.ask("GET", "/health")[2]["device"], ", ".join([device] * count), f"devices of {count} stages")
    found = answers(server)
    for name, answer in expected.items():
        check.equal(found[name], answer, f"{name} of {count} stages")
    check.equal(server.stop(), 0, f"exit code of {count} stages")

fable = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/tool/fable.gguf")
for code, flags, words in (
    (3, ("--devices", "0,0", "--cut", "9"), "cut: expected rising numbers of layers"),
    (3, ("--devices", "0,0", "--cut", "3,5"), "cut: expected as many stages as devices, 2, found 3"),
    (3, ("--devices", ",".join("0" * 9)), "devices: expected at most one for each of 8 layers, found 9"),
    (3, ("--devices", "0,nothing"), "choose a device: no device matches 'nothing'"),
    (3, ("--devices", "0,0", "--draft", fable), "--draft: expected a model whose passes take drafts"),
    (1, ("--devices", "0,0", "--slot-save-path", "."), "--slot-save-path: expected nothing beside --devices"),
    (1, ("--devices", "0,0", "--lora-by-request", "x.gguf"), "--lora-by-request: expected nothing beside --devices"),
    (1, ("--cut", "3"), "--cut: expected --devices or --mpi beside it"),
):
    refused = subprocess.run([PROGRAM, *flags, "--port", "0"], capture_output=True, text=True, timeout=60)
    check(refused.returncode == code and words in refused.stderr,
          f"{flags}: found {refused.returncode} {refused.stderr}")
check.end("devices", begun)
