#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients that do not read, or read a little now and then, of streams larger than sockets hold: they are dropped when a
piece of their answer is not taken in time, their generations end, others' tokens come as fast as without them, and
memory stays bounded."""

import json
import socket
import statistics
import threading
import time

from server import Checks, Server

begun = time.time()
check = Checks()
LIMIT = 2  # seconds
TEXT = "/v1/completions"
server = Server("--read-seconds", str(LIMIT), "--drain-seconds", "2")


def gauge(name):
    text = server.ask("GET", "/metrics")[2]
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def start(path=TEXT, **more):
    """A client with a very small receive buffer."""
    body = json.dumps(
        {
            "prompt": "Once upon a time",
            "max_tokens": 480,
            "temperature": 1,
            "seed": 3,
            "logit_bias": {"0": -100},
            **more,
        }
    ).encode()
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.settimeout(60)
    link.connect(("127.0.0.1", server.port))
    link.sendall(
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
        f" {len(body)}\r\n\r\n".encode()
        + body
    )
    return link


LARGE = {"n": 8, "logprobs": 20}  # some 2 KiB a token


def gaps(count):
    """Seconds between the tokens of a stream."""
    link, times, got = start(stream=True, max_tokens=count), [], b""
    while b"[DONE]" not in got[-2000:]:
        piece = link.recv(65536)
        assert piece, got[-300:]
        times += [time.perf_counter()] * piece.count(b"data: {")
        got += piece
    link.close()
    return [b - a for a, b in zip(times, times[1:])]


# How fast tokens come beside eight choices that are read, and beside eight that are not.
def read_all(link, into):
    while piece := link.recv(1 << 20):
        into.append(len(piece))
        if piece.endswith(b"0\r\n\r\n"):
            return


taken = []
reader = threading.Thread(target=read_all, args=(start(stream=True, **LARGE), taken))
reader.start()
check.wait_until(lambda: gauge("intaglio_running") == 8, 10, "eight run")
beside_reader = gaps(60)
reader.join()
check(sum(taken) > 1 << 20, f"a stream that sockets do not hold: expected more than 1 MiB, found {sum(taken)}")

cancelled, memory = gauge("intaglio_cancelled_total"), server.memory_bytes()
slow = start(stream=True, **LARGE)
check.wait_until(lambda: gauge("intaglio_running") == 8, 10, "eight run that nobody reads")
for _ in range(4):  # other work of the machine comes and goes
    beside_slow = gaps(60)
    if statistics.median(beside_slow) <= 1.5 * statistics.median(beside_reader) + 0.002:
        break
check(
    statistics.median(beside_slow) <= 1.5 * statistics.median(beside_reader) + 0.002,
    "tokens beside a slow reader: expected as often as beside one that reads"
    f" ({1000 * statistics.median(beside_reader):.1f} ms), found {1000 * statistics.median(beside_slow):.1f} ms",
)
check.wait_until(
    lambda: gauge("intaglio_cancelled_total") == cancelled + 1 and gauge("intaglio_running") == 0,
    60,
    "it is dropped, and its generations end",
)
got = 0
try:
    while piece := slow.recv(65536):
        got += len(piece)
        check(b"[DONE]" not in piece, "it did not have the whole answer")
except ConnectionResetError:
    pass
check(got < sum(taken), f"what came until then: expected less than {sum(taken)} bytes, found {got}")
slow.close()

# One that takes a piece now and then keeps its connection: it is slow, but there.
link = start(stream=True, n=1, logprobs=20, max_tokens=300)
got, begin = b"", time.time()
while not got.endswith(b"0\r\n\r\n"):
    piece = link.recv(16384)
    assert piece, got[-300:]
    got += piece
    time.sleep(0.02)
check(b"[DONE]" in got, "who reads slowly, but does, gets all of it")
link.close()

# A whole answer, not a stream, that the client does not read.
open_before = gauge("intaglio_connections")
link = start(stream=False, **LARGE)
check.wait_until(lambda: gauge("intaglio_running") == 8, 10, "they run")
check.wait_until(lambda: gauge("intaglio_running") == 0, 60, "they are through")
check.wait_until(
    lambda: gauge("intaglio_connections") <= open_before, LIMIT + 8, "who does not take its answer is dropped"
)
link.close()

# Many of them: neither their answers nor their connections pile up.
links = [start(stream=True, **LARGE) for _ in range(12)]
behind = start(stream=True, max_tokens=4)  # waits for its first token longer than it may take to read a piece
most = 0
until = time.time() + 90
while time.time() < until:
    most = max(most, server.memory_bytes())
    if gauge("intaglio_running") == 0 and gauge("intaglio_queue") == 0:
        break
    time.sleep(0.05)
check(gauge("intaglio_running") == gauge("intaglio_queue") == 0, "all of them end")
check(
    most - memory < 64 << 20,
    f"memory beside twelve: expected less than 64 MiB more, found {(most - memory) / 2**20:.1f} MiB",
)
check.equal(gauge("intaglio_kv_pages_free"), gauge("intaglio_kv_pages"), "their pages are free")
got = b""
while piece := behind.recv(65536):
    got += piece
    if got.endswith(b"0\r\n\r\n"):
        break
check(b"[DONE]" in got, f"a client that reads and waits for the first token: expected all of its stream, found {got}")
behind.close()
check.equal(server.ask("POST", TEXT, {"prompt": "Once", "max_tokens": 4})[0], 200, "the server behind them")
for link in links:
    link.close()
check.equal(server.stop(), 0, "exit code")
check.end("slow_readers", begun)
