#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models with recurrent layers: answers that are drawn together are those of each alone, and what prompts share is not
fed again."""

import os
import subprocess
import sys
import tempfile
import threading
import time

from server import Checks, Server

begun = time.time()
check = Checks()
shared = os.environ.get("INTAGLIO_SHARED", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared"))
folder = tempfile.mkdtemp()


def trial(model, form):
    subprocess.run(
        [
            os.environ.get("INTAGLIO_PYTHON", sys.executable),
            os.path.join(shared, "conformance2/confgen2.py"),
            "expand",
            os.path.join(shared, "conformance2"),
            folder,
            "--model",
            model,
            "--match",
            form,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    server = Server("--model", os.path.join(folder, model, form), "--slots", "4", "--context", "80")
    ask = lambda prompt, **more: server.ask(
        "POST", "/v1/completions", {"prompt": prompt, "max_tokens": 24, "ignore_eos": True, "temperature": 0.8, **more}
    )[2]
    prompts = [[3 + (37 * i * i + 11 * i + seed) % 250 for i in range(50)] for seed in range(3)]
    alone = [ask(prompt, seed=seed) for seed, prompt in enumerate(prompts)]
    check(all(each["usage"]["completion_tokens"] == 24 for each in alone), f"{model}: {alone}")
    together = [None] * 6
    threads = [
        threading.Thread(target=lambda i=i: together.__setitem__(i, ask(prompts[i % 3], seed=i % 3))) for i in range(6)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for i, each in enumerate(together):
        check.equal(
            each["choices"][0]["text"], alone[i % 3]["choices"][0]["text"], f"{model}: what is drawn beside others"
        )
        check.equal(
            each["usage"]["prompt_tokens_details"]["cached_tokens"], 48, f"{model}: what was fed before, in pages of 8"
        )
    parted = prompts[0][:40] + prompts[1][40:]
    check(
        0 < ask(parted)["usage"]["prompt_tokens_details"]["cached_tokens"] <= 40,
        f"{model}: a prompt that parts goes on from the last state before",
    )
    # Behind a shift the states are those of a fresh prompt. All drawn tokens are 7, and their chances tell.
    forced = {"logit_bias": {"7": 100}, "temperature": 0, "logprobs": 2}
    chances = lambda answer: answer["choices"][0]["logprobs"]["token_logprobs"]
    whole = ask(prompts[0], max_tokens=50, context_shift=True, n_keep=8, **forced)
    left = prompts[0][:8] + (prompts[0] + 30 * [7])[8 + 36 :]
    check.equal(
        whole["usage"]["completion_tokens_details"],
        {"context_shifts": 1, "discarded_tokens": 36},
        f"{model}: tokens that were dropped",
    )
    check.equal(chances(whole)[30:], chances(ask(left, max_tokens=20, **forced)), f"{model}: what is behind a shift")
    check.equal(server.stop(), 0, f"{model}: the end")


for model, form in (
    ("lfm2-tiny", "gguf/lfm2-tiny-bf16.gguf"),
    ("qwen35-tiny", "gguf/qwen35-tiny-bf16.gguf"),
    ("qwen3next-tiny", "gguf/qwen3next-tiny-bf16.gguf"),
):
    trial(model, form)
check.end("recurrent", begun)
