#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Load: many connections at once, mixed requests, some that go away and some that are malformed. Every accepted request has to be answered, with the text
that the same request gets alone; memory has to stay flat. Prints times to the first token and between tokens; --svg draws them."""

import argparse
import asyncio
import bisect
import json
import math
import random
import statistics
import time

from server import Checks, Server

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--seconds", type=float, default=10)
options.add_argument("--connections", type=int, default=200)
options.add_argument("--memory-percent", type=float, default=2, help="by which resident memory may grow between the first third of the run and its end")
options.add_argument("--seed", type=int, default=1)
options.add_argument("--svg")
options.add_argument("--title", default="")
wanted = options.parse_args()
begun = time.time()
check = Checks()
server = Server()
random.seed(wanted.seed)
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


def kinds():
    """Requests whose answers are known from when they ran alone."""
    topics = ["a brave mouse", "a cat and a kite", "the old oak tree", "a lost button", "rain"]
    for i in range(24):
        draws = {"temperature": 0} if i % 4 == 0 else {"temperature": 0.9, "seed": i, "top_p": 0.95, "top_k": 60} if i % 4 != 3 else {"temperature": 1.2, "seed": i, "repetition_penalty": 1.2}
        most = (1, 6, 16, 40)[i % 4] if i % 6 else 24
        if i % 3 == 0:
            body = {"prompt": [(41 * i * j + 7 * j + i) % 4000 + 60 for j in range((5, 60, 200, 420)[i // 3 % 4])], **draws, "max_tokens": most}
            path = TEXT
        else:
            body = {"messages": [{"role": "user", "content": f"Tell me a story about {topics[i % 5]}." + " Please." * (i % 7)}], **draws, "max_tokens": most}
            path = CHAT
            if i % 8 == 1:
                body |= {"logprobs": True, "top_logprobs": 3}
            if i % 8 == 2:
                body |= {"response_format": {"type": "json_object"}, "max_tokens": 24}
            if i % 8 == 5:
                body |= {"n": 2}
        yield path, body, i % 2 == 0


def request(path, body, stream):
    text = json.dumps({**body, "stream": stream}).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


MALFORMED = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", b"\r\n\r\n\r\n \r\n\r\n",
             request(CHAT, {"messages": 7}, True), request(TEXT, {"prompt": [10**9]}, False), request(CHAT, {}, False).replace(b"{", b"[", 1), request(TEXT, {"prompt": "x", "temperature": 99}, True),
             b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\":\xff\xfe}", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"]


async def head_of(reader):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), fields


async def ask(path, body, stream, times=None, leave_after=None):
    """(status, texts by choice, whether all of it came); times gets (first token, [between tokens])."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 22)
    try:
        sent = time.perf_counter()
        writer.write(request(path, body, stream))
        if leave_after is not None and leave_after < 0.5:
            await asyncio.sleep(leave_after)
            return 0, None, False
        status, fields = await head_of(reader)
        texts, last, gaps, whole = {}, sent, [], False
        if status != 200 or not stream:
            content = json.loads(await reader.readexactly(int(fields["content-length"])))
            return status, {each["index"]: each["message"]["content"] if path == CHAT else each["text"] for each in content.get("choices", [])} if status == 200 else fields, True
        while size := int(await reader.readline(), 16):
            piece = (await reader.readexactly(size + 2)).decode()
            now = time.perf_counter()
            new = 0
            for line in piece.split("\n\n"):
                if line == "data: [DONE]":
                    whole = True
                elif line.startswith("data: "):
                    told = json.loads(line[6:])
                    if "error" in told:
                        return 500, told, False
                    for each in told["choices"]:
                        text = (each["delta"].get("content") or "") if path == CHAT else each["text"]
                        texts[each["index"]] = texts.get(each["index"], "") + text
                        new += text != ""
            if new:
                gaps.append(now - last)
                last = now
                if leave_after is not None:
                    return 0, None, False
        await reader.readline()
        if times is not None and gaps and body.get("n", 1) == 1:
            times.append((gaps[0], gaps[1:]))
        return status, texts, whole
    finally:
        writer.transport.abort()


async def send_malformed(data):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        writer.write_eof()
        answer = await reader.read(65536)
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0
    except ConnectionResetError:
        return 0
    finally:
        writer.transport.abort()


count = {"answered": 0, "left": 0, "malformed": 0, "full": 0}
times, memory, free = [], [], []
KINDS = list(kinds())


async def client(until, alone):
    while time.time() < until:
        dice = random.random()
        which = random.randrange(len(KINDS))
        path, body, stream = KINDS[which]
        try:
            if dice < 0.05:
                status = await asyncio.wait_for(send_malformed(random.choice(MALFORMED)), 60)
                check(status == 0 or 400 <= status < 500, f"a malformed request: expected 400 and up or a closed connection, found {status}")
                count["malformed"] += 1
            elif dice < 0.15:
                await asyncio.wait_for(ask(path, body, stream, None, random.random()), 300)
                count["left"] += 1
            else:
                status, texts, whole = await asyncio.wait_for(ask(path, body, stream, times), 300)
                if status == 429:
                    check("retry-after" in texts, "a full queue tells when to come again")
                    count["full"] += 1
                    await asyncio.sleep(1)
                    continue
                check(status == 200 and whole, f"an accepted request is answered: found {status} {texts}")
                check(status != 200 or texts == alone[which], f"request {which}: expected what it gives alone, {alone[which]}, found {texts}")
                count["answered"] += 1
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.TimeoutError) as problem:
            check(False, f"request {which} (leaving {0.05 <= dice < 0.15}): {problem!r}")


async def watch(until):
    while time.time() < until:
        memory.append((time.time(), server.memory_bytes()))
        text = (await asyncio.to_thread(server.ask, "GET", "/metrics", seconds=120))[2]
        free.append(next(float(line.split()[1]) for line in text.splitlines() if line.startswith("intaglio_device_free_bytes ")))
        await asyncio.sleep(min(1.0, wanted.seconds / 20))


def part(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def milliseconds(values):
    return f"p50 {1000 * part(values, 0.5):.1f} ms, p99 {1000 * part(values, 0.99):.1f} ms"


async def run():
    alone, lonely = [], []
    for path, body, stream in KINDS:
        status, texts, whole = await ask(path, body, stream, lonely)
        check(status == 200 and whole, f"alone: expected 200, found {status} {texts}")
        alone.append(texts)
    start = time.time()
    until = start + wanted.seconds
    await asyncio.gather(watch(until), *(client(until, alone) for _ in range(wanted.connections)))
    return lonely, start, time.time() - start


lonely, start, took = asyncio.run(run())
until = time.time() + 20
while time.time() < until:
    gauges = {line.split()[0]: float(line.split()[1]) for line in server.ask("GET", "/metrics")[2].splitlines() if not line.startswith("#")}
    if gauges["intaglio_running"] == gauges["intaglio_queue"] == 0:
        break
    time.sleep(0.1)
check.equal((gauges["intaglio_running"], gauges["intaglio_queue"], gauges["intaglio_device_restarts_total"]), (0, 0, 0), "nothing is left running, and the device was well")
check.equal(gauges["intaglio_kv_pages_free"], gauges["intaglio_kv_pages"], "all pages are free")
check.equal(server.ask("GET", "/health")[0], 200, "health behind the load")
third = [bytes for at, bytes in memory if wanted.seconds / 3 <= at - start <= wanted.seconds / 2]
last = [bytes for at, bytes in memory if at - start >= wanted.seconds * 5 / 6]
grown = 100 * (statistics.median(last) / statistics.median(third) - 1)
check(grown <= wanted.memory_percent, f"resident memory: expected to grow by {wanted.memory_percent} % at most, found {grown:.1f} %")
check(min(free) >= 0.98 * max(free), f"the device's free memory: expected flat to 2 %, found {min(free):.0f} .. {max(free):.0f}")
check.equal(server.stop(), 0, "exit code")

firsts, gaps = [first for first, _ in times], [gap for _, each in times for gap in each]
print(f"{wanted.connections} connections, {took:.0f} s: {count['answered']} answered ({count['answered'] / took:.1f}/s), {count['left']} went away, {count['malformed']} malformed, {count['full']} were told to come again; "
      f"{gauges['intaglio_completion_tokens_total'] / took:.0f} tokens/s; memory {statistics.median(last) / 2**20:.0f} MiB ({grown:+.2f} %)")
print(f"first token: {milliseconds(firsts)}; between tokens: {milliseconds(gaps)}; alone: first {milliseconds([first for first, _ in lonely])}, between {milliseconds([gap for _, each in lonely for gap in each])}")


def drawing():
    """Shares of all times that are below one, over a logarithmic axis."""
    width, height, left, top = 720, 320, 60, 40
    low, high = 1e-3, 10 ** math.ceil(math.log10(max(firsts)))
    across = lambda seconds: left + (width - left - 20) * (math.log10(max(low, seconds)) - math.log10(low)) / (math.log10(high) - math.log10(low))
    up = lambda share: height - 40 - (height - 40 - top) * share
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="20" font-size="14">{wanted.title}</text>']
    at = low
    while at <= high * 1.01:
        out.append(f'<path d="M{across(at):.1f} {top}V{height - 40}" stroke="#ddd"/><text x="{across(at):.1f}" y="{height - 24}" text-anchor="middle">{f"{at * 1000:g} ms" if at < 1 else f"{at:g} s"}</text>')
        at *= 10
    for share in (0, 0.5, 0.99):
        out.append(f'<path d="M{left} {up(share):.1f}H{width - 20}" stroke="#ddd"/><text x="{left - 6}" y="{up(share) + 4:.1f}" text-anchor="end">{100 * share:g} %</text>')
    for name, values, colour, y in [("between tokens", gaps, "#1f6feb", 60), ("to the first token", firsts, "#c2410c", 76)]:
        values = sorted(values)
        steps = [low * (high / low) ** (i / 200) for i in range(201)]
        line = " ".join(f"{across(each):.1f},{up(bisect.bisect_right(values, each) / len(values)):.1f}" for each in steps)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/><text x="{left + 10}" y="{y}" fill="{colour}">{name}: {milliseconds(values)}</text>')
    return "\n".join(out) + "\n</svg>\n"


if wanted.svg:
    with open(wanted.svg, "w") as file:
        file.write(drawing())
check.end("load", begun)
