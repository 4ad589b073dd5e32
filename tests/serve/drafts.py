#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--draft: a second model drafts for the first. The texts are those without it, whatever is asked for, drafts are
counted, and a model of other tokens ends the start."""

import json
import os
import socket
import subprocess
import threading
import time

from server import PROGRAM, Checks, Server

begun = time.time()
check = Checks()
here = os.path.dirname(os.path.abspath(__file__))
fable = os.path.join(here, "../../examples/tool/fable.gguf")
story = "Once upon a time, there was a little fox who"
pets = {
    "type": "object",
    "properties": {"pets": {"type": "array", "items": {"enum": ["a little fox", "a little dog"]}, "maxItems": 5}},
    "required": ["pets"],
    "additionalProperties": False,
}
asked = [
    {"max_tokens": 60, "temperature": 0},
    {"max_tokens": 60, "temperature": 0.8, "seed": 5},
    {"max_tokens": 40, "temperature": 1, "top_p": 0.9, "seed": 7, "n": 2},
    {"max_tokens": 60, "temperature": 0, "stop": ["."]},
    {"max_tokens": 1, "temperature": 0},
    {"max_tokens": 20, "temperature": 0, "logit_bias": {"300": 5}},
    {"max_tokens": 20, "temperature": 0.7, "seed": 3, "guided_regex": "[a-z ]{5,30}"},
    {"max_tokens": 480, "temperature": 0.5, "seed": 11},
    {"max_tokens": 40, "temperature": 0, "logprobs": 2},
    {"max_tokens": 60, "temperature": 0.8, "seed": 2, "ignore_eos": True, "frequency_penalty": 0.2},
    {"max_tokens": 60, "temperature": 0, "json_schema": pets, "logprobs": 1},
    {"max_tokens": 90, "temperature": 0.9, "seed": 4, "json_schema": pets},
    {"max_tokens": 60, "temperature": 0, "grammar": 'root ::= ("fox" | "dog") (" and a " root)?'},
    {"max_tokens": 60, "temperature": 0, "guided_regex": "([ ]?[a-zA-Z',]+[.]?)+"},
]
HOST = [i for i, each in enumerate(asked) if {"logit_bias", "guided_regex", "logprobs", "ignore_eos", "json_schema",
                                              "grammar"} & set(each)]


def texts(of):
    """Texts of all requests one by one, then of all at once."""
    out = [None] * len(asked)

    def ask(i):
        status, _, answer = of.ask("POST", "/v1/completions", {"prompt": story, **asked[i]})
        good = status == 200
        compared = lambda each: (each["text"], each["logprobs"], each["finish_reason"])
        out[i] = (status, [compared(each) for each in answer["choices"]] if good else answer, answer.get("usage", {}))

    for i in range(len(asked)):
        ask(i)
    alone = [each[:2] for each in out]
    usage = [each[2] for each in out]
    threads = [threading.Thread(target=ask, args=[i]) for i in range(len(asked))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return alone, [each[:2] for each in out], usage


plain = Server("--model", fable, "--slots", "8")
drafted = Server("--model", fable, "--slots", "8", "--draft", fable, "--draft-max", "4")
ready = drafted.event("ready")["detail"]
check("drafts by " + fable in ready and "of weights" in ready and "of caches" in ready, f"what it takes: {ready}")
check("ternary " in ready and " a token; " in ready, f"what it computes in: {ready}")
loading = plain.event("loading")["detail"]
check(" takes " in loading and "(weights " in loading and ", KV cache " in loading, f"what it will take: {loading}")
expected, found = texts(plain), texts(drafted)
check.equal(found[0], expected[0], "one by one")
check.equal(found[1], expected[1], "all at once")
details = [each.get("completion_tokens_details", {}) for each in found[2]]
check(any(each.get("accepted_prediction_tokens", 0) > 0 for each in details), f"usage counts drafts: {details}")
counted = lambda each: "accepted_prediction_tokens" in each
check(not any(counted(each.get("completion_tokens_details", {})) for each in expected[2]), "none without a draft model")
for i in HOST:
    check(counted(details[i]), f"{asked[i]}: drafts of who is drawn on the host are counted: {details[i]}")
saved = [details[i]["accepted_prediction_tokens"] for i in HOST if "frequency_penalty" not in asked[i]]
check(max(saved) > 0, f"and some are right: {saved}")


def gauges_of(server):
    lines = [line.split() for line in server.ask("GET", "/metrics")[2].splitlines() if line.startswith("intaglio_")]
    return {line[0]: float(line[1]) for line in lines if len(line) == 2 and "{" not in line[0]}


gauges, others = gauges_of(drafted), gauges_of(plain)
check(0 < gauges["intaglio_accepted_tokens"] <= gauges["intaglio_drafted_tokens"], f"metrics count drafts: {gauges}")
# What the host draws is often not what the model would draw, so the draft model is held to the other requests.
of_device = [each for i, each in enumerate(details) if i not in HOST and counted(each)]
accepted = sum(each["accepted_prediction_tokens"] for each in of_device)
right = accepted / (accepted + sum(each["rejected_prediction_tokens"] for each in of_device))
check(right >= 0.8, f"the same model is right: {right}")
check.equal(gauges["intaglio_weights_bytes"], 2 * others["intaglio_weights_bytes"], "weights of both are counted")
check(gauges["intaglio_kv_cache_bytes"] > others["intaglio_kv_cache_bytes"], "caches of both are counted")

# A client that goes away: the next one gets its text.
body = json.dumps({"prompt": story, "max_tokens": 400, "stream": True}).encode()
with socket.create_connection(("127.0.0.1", drafted.port), 10) as link:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    link.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    link.recv(2000)
again = drafted.ask("POST", "/v1/completions", {"prompt": story, **asked[1]})[2]
check.equal(again["choices"][0]["text"], expected[0][1][1][0][0], "behind a client that went away")
check.equal(drafted.stop(), 0, "the end")

# Drafts from earlier text, in forms too.
looked = Server("--model", fable, "--slots", "8", "--prompt-lookup", "6")
check.equal([each[:2] for each in texts(looked)[0]], [each[:2] for each in expected[0]], "prompt lookup, one by one")
records = ", ".join('{"name": "fox", "home": "wood"}' for _ in range(4))
table = {
    "prompt": f"[{records}]\n[",
    "max_tokens": 90,
    "temperature": 0,
    "guided_regex": r'(\{"name": "[a-z]{2,5}", "home": "[a-z]{2,6}"\}, ){3}',
}
answers = [of.ask("POST", "/v1/completions", table)[2] for of in (plain, looked)]
check.equal(answers[1]["choices"], answers[0]["choices"], "a form that says again what the prompt said")
details = answers[1]["usage"].get("completion_tokens_details", {})
# The first drafts are always tried; whether more pay depends on what wider passes take on this device.
check(details.get("accepted_prediction_tokens", 0) > 0, f"its drafts: {details}")
check.equal((plain.stop(), looked.stop()), (0, 0), "the ends")

# What cannot draft ends the start with one sentence.
def refused(*flags):
    return subprocess.run([PROGRAM, "--port", "0", *flags], capture_output=True, text=True, timeout=120)



shared = os.environ.get("INTAGLIO_SHARED", os.path.join(here, "../../../shared"))
other = os.path.join(shared, "models/stories260k/stories260K-f32.gguf")
end = refused("--model", fable, "--draft", other)
line = next(json.loads(each)["detail"] for each in end.stderr.splitlines() if "load_failed" in each)
good = other in line and "those of fable" in line and "token 0: " in line and len(line) <= 400
check(end.returncode == 3 and good, f"other tokens: {end.returncode} {line}")
end = refused("--model", fable, "--draft", "/nowhere.gguf")
check(end.returncode == 3 and "/nowhere.gguf" in end.stderr, f"no such file: {end.returncode} {end.stderr}")
end = refused("--draft-max", "4")
check(end.returncode == 1 and "--draft" in end.stderr, f"a number alone: {end.returncode} {end.stderr}")
end = refused("--models", os.path.dirname(fable), "--draft", fable)
check(end.returncode == 1 and "--draft" in end.stderr, f"beside --models: {end.returncode} {end.stderr}")
for name, value in (("--draft", fable), ("--prompt-lookup", "4")):
    end = refused(name, value, "--batch-products", "f16")
    good = f"--batch-products: expected exact beside {name}," in end.stderr
    check(end.returncode == 1 and good, f"products whose bits depend on others: {end.returncode} {end.stderr}")
check.end("a model drafts for another", begun)
