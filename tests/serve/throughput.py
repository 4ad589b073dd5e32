#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokens a second of all connections together, for several numbers of them: each asks again as soon as it is answered.
By turns, medians."""

import argparse
import json
import random
import socket
import statistics
import threading
import time

from server import Checks, Server, read_answer

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--connections", type=int, nargs="+", default=[1, 16])
options.add_argument("--seconds", type=float, default=2, help="of each measurement")
options.add_argument("--turns", type=int, default=3)
options.add_argument("--max-tokens", type=int, default=400)
wanted = options.parse_args()
begun = time.time()
check = Checks()
server = Server()


def tokens():
    text = server.ask("GET", "/metrics")[2]
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}


def asks(until, seed, done):
    random.seed(seed)
    while time.time() < until:
        body = json.dumps(
            {
                "prompt": "Once upon a time",
                "max_tokens": wanted.max_tokens,
                "temperature": 1,
                "seed": random.randrange(1 << 30),
            }
        ).encode()
        with socket.create_connection(("127.0.0.1", server.port), 60) as link:
            link.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
                b" %d\r\n\r\n"
                % len(body)
                + body
            )
            answer = read_answer(link)
        check(answer.startswith(b"HTTP/1.1 200"), f"expected an answer, found {answer[:200]!r}")
        done.append((time.time(), json.loads(answer.partition(b"\r\n\r\n")[2])["usage"]["completion_tokens"]))


def rate(connections):
    """The rate of the answers that came while all clients were asking."""
    begin, done = time.time(), []
    threads = [threading.Thread(target=asks, args=(begin + wanted.seconds, i, done)) for i in range(connections)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(count for _, count in done) / (max(at for at, _ in done) - begin)


rates = {each: [] for each in wanted.connections}
for turn in range(wanted.turns + 1):
    for each in wanted.connections:
        found = rate(each)
        if turn != 0:  # the first is for warmth
            rates[each].append(found)
for each in wanted.connections:
    middle = statistics.median(rates[each])
    print(
        f"{each:3} connections: {middle:9.0f} tokens/s, {middle / statistics.median(rates[wanted.connections[0]]):5.2f}"
        f" times; all turns: {' '.join(f'{one:.0f}' for one in rates[each])}",
        flush=True,
    )
between = tokens()
print(
    "between tokens (server):"
    f" {1000 * between['intaglio_token_seconds_sum'] / between['intaglio_token_seconds_count']:.3f} ms on average"
)
check.equal(server.stop(), 0, "exit code")
check.end("throughput", begun)
