#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Slow, rude and vanishing clients of intaglio-serve, a crowd of idle ones and hostile schemas: each is ended, refused
or followed, others are answered meanwhile, and a stream ends with a reason when the server stops."""

import resource
import socket
import threading
import time

from server import Checks, Server, parse, read_answer
from spread import Spread

begun = time.time()
check = Checks()
CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Tell me a story about a brave mouse."}]
good = {"messages": MESSAGES, "max_tokens": 4, "temperature": 0}
LONG = {
    "messages": MESSAGES,
    "max_tokens": 480,
    "temperature": 1,
    "seed": 5,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "string", "minLength": 450}},
    },
}
server = Server("--queue", "4", "--idle-seconds", "2", "--drain-seconds", "5")
ask, gauge, refused = server.ask, server.gauge, check.refused


def start_long(stream, **more):
    return server.send(CHAT, {**LONG, "stream": stream, **more})


for stream in (True, False):
    cancelled = gauge("intaglio_cancelled_total")
    link = start_long(stream)
    check.wait_until(lambda: gauge("intaglio_running") == 1, 5, "a generation runs")
    link.close()
    left = time.time()
    check.wait_until(
        lambda: gauge("intaglio_cancelled_total") == cancelled + 1 and gauge("intaglio_running") == 0,
        5,
        f"a client that goes (stream {stream}) ends its generation",
    )
    check(time.time() - left < 2, f"within a submission, found {time.time() - left:.2f} s")
link = start_long(False, max_tokens=20, response_format={"type": "text"})
link.shutdown(socket.SHUT_WR)
check.equal(parse(read_answer(link))[0], 200, "who only stops sending still gets the answer")
link.close()

# The queue has room for 4 besides those that run.
slots = int(gauge("intaglio_slots"))
links = [start_long(True) for _ in range(slots + 4)]
check.wait_until(
    lambda: gauge("intaglio_running") == slots and gauge("intaglio_queue") >= 4,
    20,
    "as many generations as run and wait",
)
check.equal(gauge("intaglio_running"), slots, "all slots are taken")
full = ask("POST", CHAT, good)
check(int(refused(full, 429, "a full queue").get("retry-after", 0)) >= 1, "Retry-After")
refused(ask("POST", CHAT, {**good, "n": 8}), 429, "more choices than the queue has room for")
check.equal(ask("GET", "/health")[0], 200, "health under load")
for link in links:
    link.close()
check.wait_until(lambda: gauge("intaglio_queue") == 0 and gauge("intaglio_running") == 0, 10, "all are gone")

check.equal(gauge("intaglio_kv_pages_free"), gauge("intaglio_kv_pages"), "their pages are free")

# One schema delays no other request: ambiguous schemas are followed or refused, and tokens of others come meanwhile.
inner = {"type": "array", "items": {"$ref": "#"}}
doubled = {str(i): {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2} for i in range(900)} | {"900": {"type": "null"}}
hostile = [
    {"anyOf": [inner, inner, {"type": "null"}]},
    {"anyOf": [inner] * 20 + [{"type": "null"}]},
    {
        "anyOf": (
            [{"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "maxItems": 2}] * 300
            + [{"type": "null"}]
        )
    },
    {"type": "string", "pattern": "(a|b)*a(a|b){12}"},
    {"type": "object", "properties": {str(i): {"type": "string"} for i in range(1000)}},
    {"$defs": doubled, "$ref": "#/$defs/0"},
]
asked, late, over, statuses = Spread(), Spread(), threading.Event(), []


def watch():
    while not over.is_set():
        for path in ("/health", "/metrics"):
            sent = time.perf_counter()
            ask("GET", path)
            asked.add(time.perf_counter() - sent)
        sent = time.perf_counter()
        time.sleep(0.005)
        late.add(time.perf_counter() - sent - 0.005)


def hurt(schema):
    body = {
        **good,
        "temperature": 1,
        "seed": 3,
        "max_tokens": 120,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }
    statuses.append(ask("POST", CHAT, body, seconds=120)[0])


watcher = threading.Thread(target=watch)
watcher.start()
beside_hostile, begin = 0, time.time()
while asked.count < 200 and time.time() - begin < 20:
    hurting = [threading.Thread(target=hurt, args=(each,)) for each in hostile * 2]
    for each in hurting:
        each.start()
    sent = time.time()
    check.equal(ask("POST", CHAT, good)[0], 200, "a request beside hostile schemas")
    beside_hostile = max(beside_hostile, time.time() - sent)
    for each in hurting:
        each.join()
    right = set(statuses) <= {200, 400, 429} and len(statuses) == len(hurting)
    check(right, f"hostile schemas are followed or refused: {statuses}")
    statuses.clear()
over.set()
watcher.join()
check(beside_hostile < 5, f"a request beside hostile schemas: {beside_hostile:.2f} s")
# What the machine's other work delays is not the server's: as much as it delays a timer of this process is allowed.
for part, limit in ((0.95, 0.1), (1, 0.5)):
    found = f"{1000 * asked.part(part):.0f} ms, timers late by {1000 * late.part(part):.0f} ms"
    check(asked.part(part) <= limit + late.part(part), f"{part} of /health and /metrics in {limit} s, found {found}")

# Idle and slow clients delay no other client, and are dropped.
files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)  # this process's; the server sees to its own
resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, min(4096, most_files)), most_files))
idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(1000)]
slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
for link in slow:
    link.sendall(b"POST /v1/completions HTTP/1.1\r\nHos")
begin = time.time()
check.equal(ask("POST", CHAT, good)[0], 200, "a request beside a thousand idle connections")
check(time.time() - begin < 5, f"in time, found {time.time() - begin:.2f} s")
check(gauge("intaglio_connections") <= 600, "an address has its share of the connections")
check.wait_until(lambda: gauge("intaglio_connections") <= 60, 8, "idle connections are closed")
check(all(link.recv(1) == b"" for link in idle[:50]), "closed for the client too")
for link in idle + slow:
    link.close()

# The way out.
link = start_long(True)
check.wait_until(lambda: gauge("intaglio_running") == 1, 5, "a generation runs")
server.process.terminate()
server.event("draining")
answer = read_answer(link)
check(
    b"data: [DONE]" in answer or b"the server is stopping" in answer,
    "a stream ends with a reason when the server stops",
)
check.equal(server.process.wait(20), 0, "exit code after SIGTERM")
check.end("rude clients", begun)
