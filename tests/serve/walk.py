#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/v1/infer in its three modes and /v1/trace, over an index that the server makes on its first start and reads on its
second."""

import os
import tempfile
import time

from server import Checks, Server

begun = time.time()
check = Checks()
with tempfile.TemporaryDirectory() as folder:
    index = os.path.join(folder, "index")
    for start in ("made", "read"):
        server = Server("--index", index)
        server.event("walk_ready")
        ask = server.ask
        check.equal(ask("GET", "/health")[2]["walk"], True, f"health with an index that was {start}")
        walk, dense, both = (
            ask("POST", "/v1/infer", {"prompt": "Once upon a", "top": 4, "mode": mode})[2]
            for mode in ("walk", "dense", "compare")
        )
        check.equal(
            (set(walk), walk["mode"], walk["prompt"]),
            ({"prompt", "predictions", "mode", "latency_ms"}, "walk", "Once upon a"),
            "shape of a walk",
        )
        check.equal(walk["predictions"][0]["token"], " time", "a walk")
        # The walk is the CPU's arithmetic: equal to the fourth decimal place but for its rounding.
        for a, b in zip(walk["predictions"], dense["predictions"]):
            check(
                a["token"] == b["token"] and abs(a["probability"] - b["probability"]) <= 2e-4,
                f"walk and dense: {a} {b}",
            )
        check.equal((both["walk"], both["dense"]), (walk["predictions"], dense["predictions"]), "compare has both")
        check.equal(both["agreement"], {"same_first": True, "shared": 4, "of": 4}, "agreement")
        check(
            both["walk_ms"] > 0
            and both["dense_ms"] > 0
            and both["latency_ms"] >= max(both["walk_ms"], both["dense_ms"]) - 0.1,
            f"times: {both}",
        )
        if start == "made":
            server.stop()
    one = ask("POST", "/v1/infer", {"prompt": "The mouse", "mode": "walk", "features": 1})[2]["predictions"]
    check(
        one != ask("POST", "/v1/infer", {"prompt": "The mouse", "mode": "walk"})[2]["predictions"],
        "one feature a layer is not all of them",
    )
    for body, field in [
        ({"prompt": "x", "mode": "walk", "features": 0}, "features"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x", "top": 101}, "top"),
    ]:
        status, _, found = ask("POST", "/v1/infer", body)
        check(status == 400 and found["error"]["param"] == field, f"{body}: {status} {found}")

    text = "Once upon a time, there was a brave mouse."
    traced = ask("POST", "/v1/trace", {"prompt": text, "top": 3})[2]
    check("".join(each["piece"] for each in traced["tokens"]).endswith(text), f"tokens: {traced['tokens']}")
    layers = len(traced["tokens"][0]["added_by_layer"])
    check(
        layers > 1
        and all(len(each["added_by_layer"]) == layers and min(each["added_by_layer"]) > 0 for each in traced["tokens"]),
        "sizes by layer",
    )
    cells = {}
    for each in traced["fired"]:
        cells.setdefault((each["token"], each["layer"]), []).append(each["contribution"])
    check(
        all(0 < len(each) <= 3 and each == sorted(each, reverse=True) for each in cells.values())
        and len(cells) >= layers,
        "the largest contributions, in order",
    )
    check(
        {(each["layer"], each["feature"]) for each in traced["fired"]}
        == {(each["layer"], each["feature"]) for each in traced["promotes"]}
        and all(len(each["tokens"]) == 5 for each in traced["promotes"]),
        "what they promote",
    )
    chat = ask(
        "POST",
        "/v1/trace",
        {"messages": [{"role": "user", "content": "Tell me a story."}], "reply": "Once upon a time"},
    )[2]
    check.equal(
        "".join(each["piece"] for each in chat["tokens"][chat["reply_from"] :]),
        "Once upon a time",
        "where the reply begins",
    )
    for body in (
        {},
        {"messages": [], "reply": "x"},
        {"messages": [{"role": "user", "content": "x"}]},
        {"prompt": "x", "top": 33},
        {"prompt": "x " * 2000},
    ):
        check.equal(ask("POST", "/v1/trace", body)[0], 400, f"trace of {str(body)[:60]}")
    check.equal(server.stop(), 0, "exit code")
    # An index of something else is reported, and the server goes on without.
    with open(os.path.join(index, next(each for each in os.listdir(index) if each.endswith(".json"))), "w") as file:
        file.write("{}")
    server = Server("--index", index)
    server.event("walk_failed")
    status, _, found = server.ask("POST", "/v1/infer", {"prompt": "x", "mode": "walk"})
    check(status == 503 and "cannot be walked" in found["error"]["message"], f"a broken index: {status} {found}")
    check.equal(
        (server.ask("GET", "/health")[2]["walk"], server.ask("POST", "/v1/infer", {"prompt": "x"})[0]),
        (False, 200),
        "and what goes on",
    )
check.end("walk", begun)
