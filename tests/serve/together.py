#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generations side by side: the texts that each has alone, a device that rests, and a long prompt beside others'
tokens."""

import socket
import threading
import time

from server import Checks, Server

begun = time.time()
check = Checks()
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "Tell me a story about a brave mouse."}]
good = {"messages": MESSAGES, "max_tokens": 4, "temperature": 0}
server = Server()
ask = server.ask

# Those that decode together give what they give alone, drawn on the device or on the host.
def drawn_with(seed):
    more = {"logprobs": True} if seed % 3 == 2 else {}
    return ask("POST", CHAT, {**good, "temperature": 0.9, "max_tokens": 40 + 15 * seed, "seed": seed, **more})[2][
        "choices"
    ][0]["message"]["content"]


alone = [drawn_with(seed) for seed in range(6)]
together, threads = [None] * 6, []
for seed in range(6):
    def one(seed=seed):
        time.sleep(0.1 * seed)
        together[seed] = drawn_with(seed)
    threads.append(threading.Thread(target=one))
    threads[-1].start()
for each in threads:
    each.join()
check.equal(together, alone, "the same texts side by side as one by one")

# A server that leaves the device idle three quarters of the time: the same text. Times by kernel of a short answer are
# reported although no second request comes.
resting = Server("--gpu-idle", "0.75", "--batch-products", "f16")
check.equal(resting.ask("POST", CHAT, {**good, "max_tokens": 6, "logit_bias": {}})[0], 200, "a short answer")
check.wait_until(
    lambda: 'intaglio_kernel_seconds_total{pass="' in resting.ask("GET", "/metrics")[2],
    10,
    "times by kernel behind a short answer",
)
resting_busy = lambda: resting.gauge("intaglio_device_busy_seconds_total")
before_it, begin = resting_busy(), time.time()
text = resting.ask("POST", CHAT, {**good, "temperature": 0.9, "max_tokens": 55, "seed": 1})[2]["choices"][0]["message"][
    "content"
]
share = (resting_busy() - before_it) / (time.time() - begin)
check.equal((text, resting.stop()), (alone[1], 0), "the text of a server that rests, and its exit code")
# The answer does not wait for the idle time behind its last submission, one of several.
check(0 < share <= 0.32, f"share of the time that the device was busy: expected at most 0.32, found {share:.3f}")

# A long prompt is fed chunk by chunk between the others' tokens: 32 of its tokens for each of theirs.
link = server.send(
    CHAT,
    {**good, "max_tokens": 490, "temperature": 1, "seed": 5, "stream": True, "logit_bias": {"0": -100}},
)
got = b""
while b"content" not in got and not got.startswith(b"HTTP/1.1 4"):
    got += link.recv(65536)
pieces, over = [], threading.Event()


def follow():
    while not over.is_set():
        piece = link.recv(65536)
        if not piece:
            return
        pieces.append((time.time(), piece.count(b"data: ")))


follower = threading.Thread(target=follow)
follower.start()
prompt = [(37 * i * i + 11 * i) % 4000 + 50 for i in range(450)]
sent = time.time()
status, _, answer = ask("POST", TEXT, {"prompt": prompt, "max_tokens": 1, "temperature": 0})
fed = time.time()
over.set()
beside = sum(count for at, count in pieces if sent <= at <= fed)
check(
    status == 200 and beside >= 12,
    f"tokens beside a prompt of {len(prompt) // 32} chunks: expected at least 12, found {beside}",
)
link.shutdown(socket.SHUT_RDWR)
follower.join()
link.close()
status, _, again = ask("POST", TEXT, {"prompt": prompt, "max_tokens": 1, "temperature": 0})
page = int(server.gauge("intaglio_kv_page_positions"))
check.equal(
    (again["usage"]["prompt_tokens_details"]["cached_tokens"], again["choices"][0]["text"]),
    ((len(prompt) - 1) // page * page, answer["choices"][0]["text"]),
    "pages of a prompt are shared",
)
check.equal(server.stop(), 0, "exit code")
check.end("together", begun)
