#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Encoders: embeddings of texts and scores of pairs are numpy's (tests/runtime/encoder.py), and what wants a next token
is refused."""

import json
import os
import subprocess
import sys
import tempfile
import time

from server import Checks, Server

begun = time.time()
check = Checks()
here = os.path.dirname(os.path.abspath(__file__))
folder = tempfile.mkdtemp()
subprocess.run(
    [os.environ.get("INTAGLIO_PYTHON", sys.executable), os.path.join(here, "../runtime/encoder.py"), folder], check=True
)
of = lambda model, name: json.load(open(os.path.join(folder, model, name)))


def apart(found, expected):
    """1 less the cosine."""
    product = lambda a, b: sum(x * y for x, y in zip(a, b))
    return 1 - product(found, expected) / (product(found, found) * product(expected, expected)) ** 0.5


server = Server("--model", os.path.join(folder, "cross/model.gguf"))
texts = [each for each in of("cross", "embeddings.json") if each["text"]]
status, _, reply = server.ask("POST", "/v1/embeddings", {"input": [each["text"] for each in texts]})
check.equal(status, 200, f"embeddings: {reply}")
check.equal([each["index"] for each in reply["data"]], list(range(len(texts))), "a vector each")
check(all(apart(one["embedding"], each["first"]) < 1e-6 for one, each in zip(reply["data"], texts)), "numpy's vectors")
check.equal(reply["usage"]["prompt_tokens"], sum(len(each["ids"]) for each in texts), "with [CLS] and [SEP]")
message = server.ask("POST", "/v1/embeddings", {"input": "cat " * 400})[2]["error"]["message"]
check("at most 320 tokens" in message and "402" in message, f"too long a text: {message}")
for path, body in (
    ("/v1/completions", {"prompt": "the cat", "max_tokens": 4}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "cat"}]}),
):
    status, _, reply = server.ask("POST", path, body)
    check(status == 400 and len(reply["error"]["message"]) < 400, f"{path}: {status} {reply}")

pairs = [each for each in of("cross", "scores.json") if each["first"] == "the cat"]
score = pairs[0]["score"]
documents = [pairs[0]["second"], {"text": "hello world"}, pairs[0]["second"]]
for path in ("/v1/rerank", "/rerank", "/v1/reranking", "/reranking"):
    status, _, reply = server.ask("POST", path, {"query": "the cat", "documents": documents, "return_documents": True})
    check.equal(status, 200, f"{path}: {reply}")
    results = reply["results"]
    check.equal(
        [each["relevance_score"] for each in results],
        sorted((each["relevance_score"] for each in results), reverse=True),
        "the best first",
    )
    found = {each["index"]: each["relevance_score"] for each in results}
    check(abs(found[0] - score) < 1e-4 and found[0] == found[2] != found[1], f"numpy's score {score}, found {found}")
    check.equal(
        {each["index"]: each["document"]["text"] for each in results}[1],
        "hello world",
        "documents come back where they are asked for",
    )
status, _, reply = server.ask("POST", "/v1/rerank", {"query": "the cat", "documents": documents, "top_n": 1})
check(len(reply["results"]) == 1 and "document" not in reply["results"][0], f"the best alone: {reply}")
for body, field in (
    ({"query": "x"}, "documents"),
    ({"documents": ["x"]}, "query"),
    ({"query": "x", "documents": []}, "documents"),
    ({"query": "x", "documents": [3]}, "documents[0]"),
    ({"query": "x", "documents": ["x"], "top_n": 0}, "top_n"),
    ({"query": "x", "documents": ["x"], "tops": 1}, "tops"),
    ({"query": "x", "documents": ["y", "cat " * 400]}, "documents[1]"),
):
    status, _, reply = server.ask("POST", "/v1/rerank", body)
    check(status == 400 and reply["error"]["message"].startswith(field), f"{field}: {status} {reply}")
check.equal(server.stop(), 0, "the end")

server = Server("--model", os.path.join(folder, "nomic"))
reply = server.ask("POST", "/v1/embeddings", {"input": texts[0]["text"]})[2]
check(
    apart(reply["data"][0]["embedding"], [each for each in of("nomic", "embeddings.json") if each["text"]][0]["mean"])
    < 1e-6,
    "a Nomic BERT from a folder",
)
status, _, reply = server.ask("POST", "/v1/rerank", {"query": "x", "documents": ["y"]})
check(status == 501 and "/v1/embeddings" in reply["error"]["message"], f"no head, no scores: {reply}")
check.equal(server.stop(), 0, "the end")
check.end("encoders", begun)
