#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two hundred connections, a tenth of which are hostile: ambiguous recursive schemas, huge ones, patterns, bodies
beyond every limit, readers that do not read and senders that do not end. The others' 99th percentile stays within twice
of what it is beside a tenth that asks for as many tokens in an ordinary form; both are measured in one run, in turns.
Before that each hostile request alone: what it costs the server in CPU time and memory beyond the ordinary one."""

import argparse
import asyncio
import json
import os
import random
import time

from server import Checks, Server
from spread import Spread

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--connections", type=int, default=200)
options.add_argument("--window", type=float, default=3, help="seconds beside one tenth, then beside the other")
options.add_argument("--turns", type=int, default=4, help="at most")
options.add_argument("--texts", type=int, default=30, help="times of short texts that are enough, beside either tenth")
options.add_argument("--share", type=float, default=0.15, help="of what the machine can answer, that is asked for")
wanted = options.parse_args()
begun = time.time()
check = Checks()
random.seed(1)
shared = os.environ.get("INTAGLIO_SHARED", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared"))
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
TOKENS = 4  # of a request in a form, hostile or not


def post(path, body):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    ).encode() + text


def formed(form, seed=3):
    return post(
        CHAT,
        {
            "messages": [{"role": "user", "content": "Tell me."}],
            "temperature": 1,
            "seed": seed,
            "max_tokens": TOKENS,
            **form,
        },
    )


def of_schema(schema):
    return formed({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})


items = {"type": "array", "items": {"$ref": "#"}}
ORDINARY = formed({"guided_regex": "[a-z ]*"})
SCHEMAS = {
    "two ways at each depth": of_schema({"anyOf": [items, items, {"type": "null"}]}),
    "twenty ways": of_schema({"anyOf": [items] * 20 + [{"type": "null"}]}),
    "300 ways with counts": of_schema(
        {
            "anyOf": [{"type": "array", "items": {"anyOf": [{"$ref": "#"}] * 2}, "maxItems": 2}] * 300
            + [{"type": "null"}]
        }
    ),
    "an exponential pattern": of_schema({"type": "string", "pattern": "(a|b)*a(a|b){12}"}),
    "a thousand optional members": of_schema(
        {"type": "object", "properties": {str(i): {"type": "string"} for i in range(1000)}}
    ),
    "a doubling chain of references": of_schema(
        {
            "$defs": {
                **{str(i): {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2} for i in range(900)},
                "900": {"type": "null"},
            },
            "$ref": "#/$defs/0",
        }
    ),
    "20,000 texts": of_schema({"enum": [f"text {i}" for i in range(20_000)]}),
    "counts of counts": of_schema(
        {
            "type": "array",
            "maxItems": 2000,
            "items": {"type": "array", "maxItems": 2000, "items": {"type": "string", "maxLength": 2000}},
        }
    ),
    "an ambiguous grammar": formed({"grammar": 'root ::= root root | "a" | ""'}),
    "a regex of nested stars": formed({"guided_regex": "((a*)*b*)*c{1,500}"}),
    "nesting beyond the limit": post(CHAT, b'{"messages":' + b"[" * 50_000),
    "a body beyond the limit": f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000000\r\n\r\n".encode(),
}
STREAM = post(TEXT, {"prompt": "Once", "max_tokens": TOKENS, "n": 8, "logprobs": 20, "stream": True})
HALF = b"POST /v1/completions HTTP/1.1\r\nHost: loc"


class Link:
    """A connection that is kept for the next request."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def ask(self, data):
        """The status; 0: the server closed the connection."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
            self.writer.write(data)
            status = 102
            while status == 102:
                head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
                status = int(head.split()[1])
            size = int(head.split("content-length:")[1].split("\r\n")[0])
            await self.reader.readexactly(size)
            if "connection: close" in head:
                self.close()
            return status
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            return 0

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
            self.writer = None


class State:
    """State of all clients together."""

    hostile = False  # the tenth sends what it should not
    measured = over = False
    pause = 1.0  # seconds between two requests of a connection, about


def pause():
    return asyncio.sleep(State.pause * random.uniform(0.5, 1.5))


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
SHORT = post(TEXT, {"prompt": "Once upon a time", "max_tokens": 3, "temperature": 0})


async def good(port, times):
    link = Link(port)
    await asyncio.sleep(State.pause * random.random())
    while not State.over:
        which = int(random.random() < 0.25)
        state, sent = State.hostile, time.perf_counter()
        status = await link.ask((HEALTH, SHORT)[which])
        check(status == 200, f"a good request beside {'hostile' if state else 'ordinary'} ones: {status}")
        if State.measured and state == State.hostile:
            times[state][which].add(time.perf_counter() - sent)
        await pause()
    link.close()


async def bad(port, statuses):
    link = Link(port)
    kinds = [*SCHEMAS.items(), ("a stream that nobody reads", STREAM), ("a request that does not end", HALF)]
    await asyncio.sleep(State.pause * random.random())
    while not State.over:
        if not State.hostile:
            status = await link.ask(ORDINARY)
            check(status == 200, f"an ordinary form: {status}")
        else:
            name, data = random.choice(kinds)
            if data in (STREAM, HALF):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(data)
                await pause()
                writer.transport.abort()
                continue
            statuses.setdefault(name, set()).add(await asyncio.wait_for(link.ask(data), 60))
        await pause()
    link.close()


async def timer(late):
    """How late this process's timers are beside hostile requests: what the system delays is not the server's."""
    while not State.over:
        sent = time.perf_counter()
        await asyncio.sleep(0.01)
        if State.measured and State.hostile:
            late.add(time.perf_counter() - sent - 0.01)


async def capacity(port):
    """Short texts that the server answers in a second."""
    until, count = time.perf_counter() + 1.5, 0

    async def ask_on():
        nonlocal count
        link = Link(port)
        while time.perf_counter() < until:
            await link.ask(SHORT)
            count += 1
        link.close()

    begin = time.perf_counter()
    await asyncio.gather(*(ask_on() for _ in range(16)))
    return count / (time.perf_counter() - begin)


async def crowd(port, times, statuses, late):
    texts = await capacity(port)
    State.pause = min(30, wanted.connections / 4 / (wanted.share * texts))
    print(f"{texts:.0f} short texts a second; a connection asks every {State.pause:.1f} s", flush=True)
    State.over = State.measured = State.hostile = False
    tenth = wanted.connections // 10
    all_of_them = [asyncio.ensure_future(good(port, times)) for _ in range(wanted.connections - tenth)]
    all_of_them += [asyncio.ensure_future(bad(port, statuses)) for _ in range(tenth)]
    all_of_them.append(asyncio.ensure_future(timer(late)))
    for turn in range(2 * wanted.turns):
        State.hostile = turn % 2 == 1
        await asyncio.sleep(0.5)  # what of the other turn is still under way
        State.measured = True
        await asyncio.sleep(wanted.window)
        State.measured = False
        if State.hostile and min(of[1].count for of in times.values()) >= wanted.texts:
            break
    State.over = True
    for each in all_of_them:
        each.cancel()
    for each in await asyncio.gather(*all_of_them, return_exceptions=True):
        check(isinstance(each, asyncio.CancelledError), f"a connection: {each!r}")


def milliseconds(of):
    return f"p50 {1000 * of.part(0.5):.1f} ms, p99 {1000 * of.part(0.99):.1f} ms of {of.count}"


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat") as file:
        return sum(int(each) for each in file.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def peak_bytes(process):
    with open(f"/proc/{process.pid}/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def cost(data, times=4):
    """(status, CPU seconds of one, bytes by which the process grew at most)"""
    with open(f"/proc/{server.process.pid}/clear_refs", "w") as file:
        file.write("5")  # the peak is from here on
    before, held = cpu_seconds(server.process), server.memory_bytes()
    for _ in range(times):
        answer = server.raw(data)
    spent = (cpu_seconds(server.process) - before) / times
    return int(answer.split()[1]), spent, peak_bytes(server.process) - held


server = Server("--model", os.path.join(shared, "models/stories260k/stories260K-f32.gguf"))
for _ in range(3):
    for data in (HEALTH, SHORT, ORDINARY):
        server.raw(data)

# One hostile request beyond an ordinary one: other work of the machine comes and goes, so the least of three counts.
MOST_SECONDS, MOST_BYTES = 0.05, 16 << 20
status, usual, _ = min((cost(ORDINARY) for _ in range(3)), key=lambda each: each[1])
check.equal(status, 200, "an ordinary form")
for name, data in SCHEMAS.items():
    found = []
    while len(found) < 3 and (not found or found[-1][1] - usual > MOST_SECONDS / 2):
        found.append(cost(data))
    status, seconds, grown = min(found, key=lambda each: each[1])
    print(f"{name}: {status}, {1000 * (seconds - usual):.1f} ms, {grown / 2**20:.1f} MiB", flush=True)
    check(status in (200, 400, 413), f"{name}: expected an answer or a refusal, found {status}")
    check(seconds - usual < MOST_SECONDS, f"{name}: {1000 * (seconds - usual):.1f} ms of CPU time more than usual")
    check(grown < MOST_BYTES, f"{name}: {grown / 2**20:.1f} MiB")

# All of them at once. Delays by the system are not the server's: some milliseconds are allowed, or as many as timers
# of this process are late.
times, statuses = {False: (Spread(), Spread()), True: (Spread(), Spread())}, {}
SLACK = 0.02
for attempt in range(3):
    times = {False: (Spread(), Spread()), True: (Spread(), Spread())}
    timers = Spread()
    asyncio.run(crowd(server.port, times, statuses, timers))
    slack = max(SLACK, timers.part(0.99))
    late = []
    for which, name in enumerate(("/health", "a short text")):
        usual, beside = (times[state][which] for state in (False, True))
        summary = f"{name}: usually {milliseconds(usual)}; beside hostile ones {milliseconds(beside)}"
        print(summary, flush=True)
        if beside.part(0.99) > 2 * usual.part(0.99) + slack:
            late.append(summary)
    if not late:
        break
check(
    not late,
    f"the 99th percentile beside hostile requests: expected at most twice the usual and {1000 * slack:.0f} ms,"
    f" found {late}",
)
check(
    len(statuses) > 3 and all(each <= {0, 200, 400, 413} for each in statuses.values()),
    f"hostile requests are followed, refused or cut off: {statuses}",
)
check.equal(server.ask("POST", TEXT, {"prompt": "Once", "max_tokens": 4})[0], 200, "the server behind them")
check.equal(server.stop(), 0, "exit code")
check.end("hostile", begun)
