#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adapters that requests choose among (--lora-by-request): beside others each text is what it is alone, by the name of
a model and by llama.cpp's number, or by the default of all; prompts of several adapters share nothing, nor do saved
slots; one that is merged says nearly the same."""

import math
import os
import struct
import tempfile
import threading
import time

import shifting
from server import Checks, Server

begun = time.time()
check = Checks()
folder = tempfile.mkdtemp()
shared = os.environ.get("INTAGLIO_SHARED", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared"))
llama = os.path.join(shared, "models/stories260k/stories260K-f32.gguf")


def shapes_of(path):
    """{tensor: (columns, rows)} of a GGUF file."""
    data = open(path, "rb").read()
    at = 8

    def number(kind):
        nonlocal at
        at += struct.calcsize(kind)
        return struct.unpack_from("<" + kind, data, at - struct.calcsize(kind))[0]

    def text():
        nonlocal at
        size = number("Q")
        at += size
        return data[at - size : at].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner = number("I")
            return [value(inner) for _ in range(number("Q"))]
        return number({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])

    tensors, keys, out = number("Q"), number("Q"), {}
    for _ in range(keys):
        text(), value(number("I"))
    for _ in range(tensors):
        name = text()
        out[name] = tuple(number("Q") for _ in range(number("I")))
        number("I"), number("Q")
    return out


def write_adapter(path, matrices, seed, rank=4):
    """An adapter of rank 4 and alpha 4, with values as large as the model's."""
    text = lambda each: struct.pack("<Q", len(each)) + each.encode()
    keys = [("general.type", "adapter"), ("adapter.type", "lora"), ("general.architecture", "llama")]
    head = b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in keys)
    head += text("adapter.lora.alpha") + struct.pack("<If", 6, rank)
    infos, body = b"", b""
    for i, (name, (columns, rows)) in enumerate(matrices.items()):
        for end, shape in ((".lora_a", (columns, rank)), (".lora_b", (rank, rows))):
            infos += text(name + end) + struct.pack("<IQQIQ", 2, *shape, 0, len(body))
            count = shape[0] * shape[1]
            body += struct.pack(f"<{count}f", *(math.sin(1.7 * j + seed + i + len(end)) * 0.12 for j in range(count)))
            body += bytes(-len(body) % 32)
    file = b"GGUF" + struct.pack("<IQQ", 3, 2 * len(matrices), len(keys) + 1) + head + infos
    with open(path, "wb") as out:
        out.write(file + bytes(-len(file) % 32) + body)
    return path


shapes = shapes_of(llama)
poet = write_adapter(
    os.path.join(folder, "poet.gguf"),
    {name: shapes[name] for name in ("blk.0.attn_q.weight", "blk.1.ffn_down.weight")},
    1,
)
judge = write_adapter(
    os.path.join(folder, "judge.gguf"),
    {name: shapes[name] for name in ("blk.0.ffn_up.weight", "blk.1.attn_output.weight")},
    2,
)

saved = os.path.join(folder, "slots")
os.mkdir(saved)
CONTEXT = 64
BASE = ["--model", llama, "--slots", "4", "--slot-save-path", saved, "--context", str(CONTEXT)]
WITH = [*BASE, "--lora-by-request", "poet=" + poet, "--lora-by-request", judge]
server = Server(*WITH)
PROMPT = "Once upon a time there was a little mouse who lived in a house behind the hill and"
BODY = {"prompt": PROMPT, "max_tokens": 20, "temperature": 0}
ask = lambda **more: server.ask("POST", "/v1/completions", {**BODY, **more})
text = lambda answer: answer[2]["choices"][0]["text"] if answer[0] == 200 else answer

ways = [{}, {"model": "poet"}, {"model": "judge"}]
alone = [text(ask(**way)) for way in ways]
check(len(set(alone)) == 3, f"three texts by three choices, found {alone}")
cached = lambda answer: answer[2]["usage"]["prompt_tokens_details"]["cached_tokens"]
for way, expected in zip(ways, alone):
    again = ask(**way)
    check.equal(text(again), expected, f"{way}: the same again, from its own pages")
    check(cached(again) > 0, f"{way}: what it fed before is found, found {again[2]}")
fresh = ask(lora=[{"id": 0, "scale": 0.5}])
check.equal(cached(fresh), 0, "another scale shares nothing")
check(text(fresh) not in ("", None), "a text at half of its scale")

for way, expected in (
    ({"lora": [{"id": 0}]}, alone[1]),
    ({"lora": [{"id": 1, "scale": 1}, {"id": 0, "scale": 0}]}, alone[2]),
    ({"model": "poet", "lora": []}, alone[0]),
    ({"model": server.ask("GET", "/v1/models")[2]["data"][0]["id"]}, alone[0]),
):
    answer = ask(**way)
    check.equal(text(answer), expected, f"{way}")

together = [None] * 6
threads = [
    threading.Thread(target=lambda i=i: together.__setitem__(i, text(ask(**ways[i % 3])))) for i in range(len(together))
]
for each in threads:
    each.start()
for each in threads:
    each.join()
for i, each in enumerate(together):
    check.equal(each, alone[i % 3], f"{ways[i % 3]}: beside others")

# Behind the context's end it goes on with its adapter.
long = {"model": "poet", "max_tokens": 50, "temperature": 0, "ignore_eos": True}
ids = server.ask("POST", "/tokenize", {"content": PROMPT, "add_special": True})[2]["tokens"]
texts, shifts, dropped = shifting.expected(server, shifting.Vocabulary(server, 512), ids, CONTEXT, long)
shifted = ask(**long, context_shift=True)
check.equal(
    (text(shifted), shifted[2]["usage"]["completion_tokens_details"]),
    ("".join(texts), {"context_shifts": shifts, "discarded_tokens": dropped}),
    "a shift with an adapter",
)

# A form is drawn on the host, and its session leaves and comes back.
form = {"guided_regex": "[a-z]{3,8} [a-z]{3,8}"}
check(ask(model="poet", **form)[0] == 200, "a form with an adapter")

listed = server.ask("GET", "/v1/models")[2]["data"]
check.equal([each["id"] for each in listed[1:]], ["poet", "judge"], "names of adapters as models")
check.equal({each["parent"] for each in listed[1:]}, {listed[0]["id"]}, "whose parent is the model")
adapters = server.ask("GET", "/lora-adapters")[2]
check.equal([(each["id"], each["path"]) for each in adapters], [(0, "poet.gguf"), (1, "judge.gguf")], "adapters")

# The default of requests that choose none.
choose = lambda body: server.ask("POST", "/lora-adapters", body)
scales = lambda: [each["scale"] for each in server.ask("GET", "/lora-adapters")[2]]
for body, expected, by_default in (
    ([{"id": 0, "scale": 1}], alone[1], [1, 0]),
    ([{"id": 1}, {"id": 0, "scale": 0}], alone[2], [0, 1]),
    ([{"id": 0, "scale": 0.5}], text(fresh), [0.5, 0]),
):
    check.equal(choose(body)[::2], (200, {"success": True}), f"{body}: set")
    check.equal((text(ask()), scales()), (expected, by_default), f"{body}: the text and the scales")
for way, own in zip(({"lora": []}, *ways[1:]), alone):
    check.equal(text(ask(**way)), own, f"{way}: a request's own choice")
for body, field in (
    ([{"id": 2}], "id"),
    ([{"id": 0}, {"id": 1}], "body"),
    ([{"id": 0, "scale": "much"}], "scale"),
    ([{"id": 0, "weight": 1}], "weight"),
    ([3], "body[0]"),
    ({"id": 0}, "body"),
):
    status, _, answer = choose(body)
    check(status == 400 and field in answer["error"]["message"], f"{body}: refused by name, found {answer}")
check.equal(scales(), [0.5, 0], "what is refused changes nothing")
check.equal((choose([])[0], text(ask()), scales()), (200, alone[0], [0, 0]), "none again")

for body, field in (
    ({"model": "nobody"}, "model"),
    ({"lora": [{"id": 2}]}, "id"),
    ({"lora": [{"scale": 1}]}, "id"),
    ({"lora": [{"id": 0, "scale": "much"}]}, "scale"),
    ({"lora": [{"id": 0, "weight": 1}]}, "weight"),
    ({"lora": [{"id": 0}, {"id": 1}]}, "lora"),
    ({"lora": {"id": 0}}, "lora"),
):
    status, _, answer = ask(**body)
    check(status in (400, 404) and field in answer["error"]["message"], f"{body}: refused by name, found {answer}")

for path, body in (
    ("/v1/embeddings", {"input": "mouse"}),
    ("/api/embed", {"input": "mouse"}),
    ("/v1/infer", {"prompt": "mouse"}),
):
    status, _, answer = server.ask("POST", path, {"model": "poet", **body})
    check(status == 400 and "adapter" in str(answer["error"]), f"{path}: an adapter's name, found {answer}")
check.equal(server.ask("GET", "/v1/models/poet")[2]["id"], "poet", "an adapter alone")

# A saved slot has its adapter in the file: a request with another adapter, or none, does not find it.
act = lambda of, action, name: of.ask("POST", f"/slots/0?action={action}", {"filename": name})
kept = {}
for name, way, adapter in (
    ("plain", {}, None),
    ("poet", {"model": "poet"}, [{"id": 0, "scale": 1}]),
    ("half", {"lora": [{"id": 0, "scale": 0.5}]}, [{"id": 0, "scale": 0.5}]),
):
    own = text(ask(**way, max_tokens=8))
    status, _, answer = act(server, "save", name)
    check.equal((status, answer.get("lora")), (200, adapter), f"{name}: saved with its adapter")
    check(answer["n_saved"] > 0, f"{name}: positions of it: {answer}")
    kept[name] = (way, own, answer["n_saved"], adapter)
status, _, gone = server.ask("POST", "/slots/0?action=erase")
check(status == 200 and gone["n_erased"] >= kept["half"][2], f"erased: {gone}")
found = [cached(ask(**kept[name][0], max_tokens=1)) for name in ("half", "poet")]
check.equal([each > 0 for each in found], [False, True], "of one scale alone")
other = Server(*WITH)
of_other = lambda **more: other.ask("POST", "/v1/completions", {**BODY, **more})
for name, (way, own, positions, adapter) in kept.items():
    check.equal(cached(of_other(**way, max_tokens=1)), 0, f"{name}: nothing of it yet")
    other.ask("POST", "/slots/0?action=erase")
    status, _, answer = act(other, "restore", name)
    check.equal((status, answer.get("n_restored"), answer.get("lora")), (200, positions, adapter), f"{name}: restored")
    again = of_other(**way, max_tokens=8)
    check(cached(again) > 0 and text(again) == own, f"{name}: found by its own choice: {again[2]['usage']}")
check.equal(other.stop(), 0, "exit code")
# A request's list has no order: its adapter at its scale is what finds the pages.
server.ask("POST", "/slots/0?action=erase")
check.equal(act(server, "restore", "half")[0], 200, "half: restored")
for choice, shares in (
    ([{"id": 1, "scale": 0}, {"id": 0, "scale": 0.5}], True),
    ([{"id": 0, "scale": 0.5}, {"id": 1, "scale": 0}], True),
    ([{"id": 0, "scale": 0}, {"id": 1, "scale": 0.5}], False),
    ([{"id": 1, "scale": 0.25}, {"id": 0, "scale": 0}], False),
):
    answer = ask(lora=choice, max_tokens=1)
    check.equal(cached(answer) > 0, shares, f"{choice}: finds pages of adapter 0 at 0.5: {answer[2]['usage']}")


def check_refused(of, name):
    status, _, answer = act(of, "restore", name)
    message = answer["error"]["message"] if status == 400 else ""
    other_plan = "weights: expected" in message or "engraving: expected" in message
    check(other_plan, f"{name}: refused by a server of other adapters, found {answer}")


# The same adapters in another order: number 0 is another one there.
turned = Server(*BASE, "--lora-by-request", judge, "--lora-by-request", "poet=" + poet)
check.equal([each["path"] for each in turned.ask("GET", "/lora-adapters")[2]], ["judge.gguf", "poet.gguf"], "turned")
of_turned = lambda **more: turned.ask("POST", "/v1/completions", {**BODY, **more})
for name, (way, own, positions, adapter) in kept.items():
    check_refused(turned, name)
    if "model" in way:
        answer = of_turned(**way, max_tokens=8)
        check.equal((text(answer), cached(answer)), (own, 0), f"{name}: by its name, and nothing of the file")
check.equal(text(of_turned(lora=[{"id": 0}])), alone[2], "number 0 is the judge there")
check.equal(turned.stop(), 0, "exit code")

# Merged, sums have another order: the same chances within that.
chance = lambda answer: answer[2]["choices"][0]["logprobs"]["token_logprobs"][0]
beside = chance(ask(model="poet", max_tokens=1, logprobs=1))
check.equal(server.stop(), 0, "exit code")
server = Server(*BASE, "--lora", poet)
check_refused(server, "poet")
merged = chance(ask(max_tokens=1, logprobs=1))
check(abs(beside - merged) < 0.02, f"merged: expected {beside}, found {merged}")
status, _, answer = ask(lora=[{"id": 0}])
check(status == 400 and "--lora-by-request" in answer["error"]["message"], f"no adapters by request, found {answer}")
status, _, answer = server.ask("POST", "/lora-adapters", [{"id": 0}])
check(status == 400 and "--lora-by-request" in answer["error"]["message"], f"none for all either, found {answer}")
check.equal(server.ask("POST", "/lora-adapters", [])[0], 200, "none of none")
check.equal(server.stop(), 0, "exit code")
refused = Server("--model", llama, "--model-name", "poet", "--lora-by-request", poet, wait=False)
check("--lora-by-request" in refused.event("load_failed")["detail"], "an adapter with the model's name")
refused.process.wait(20)
check.end("adapters", begun)
