#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Load: many connections at once, mixed requests, some that go away and some that are malformed. Every accepted request
has to be answered, with the text that the same request gets alone; memory of the process and of the device has to stay
flat. Prints times to the first token and between tokens; --svg draws them and the memory."""

import argparse
import asyncio
import json
import multiprocessing
import random
import statistics
import subprocess
import threading
import time

from load_drawing import drawing
from server import Checks, Server
from spread import Spread

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--seconds", type=float, default=10)
options.add_argument("--connections", type=int, default=200)
options.add_argument(
    "--processes",
    type=int,
    default=1,
    help="of clients, that these are not what is measured; they share the connections",
)
options.add_argument(
    "--memory-percent",
    type=float,
    default=2,
    help="by which memory may grow between the first third of the run and its end",
)
options.add_argument("--seed", type=int, default=1)
options.add_argument("--tell", type=float, default=0, help="seconds from a line of progress to the next; 0: none")
options.add_argument("--svg")
options.add_argument("--title", default="")
wanted = options.parse_args()
begun = time.time()
check = Checks()
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
MOST_FAILURES = 50  # more say nothing new


def kinds():
    """Requests whose answers are known, since each ran without others before."""
    topics = ["a brave mouse", "a cat and a kite", "the old oak tree", "a lost button", "rain"]
    for i in range(24):
        draws = (
            {"temperature": 0}
            if i % 4 == 0
            else (
                {"temperature": 0.9, "seed": i, "top_p": 0.95, "top_k": 60}
                if i % 4 != 3
                else {"temperature": 1.2, "seed": i, "repetition_penalty": 1.2}
            )
        )
        most = (1, 6, 16, 40)[i % 4] if i % 6 else 24
        if i % 3 == 0:
            body = {
                "prompt": [(41 * i * j + 7 * j + i) % 4000 + 60 for j in range((5, 60, 200, 420)[i // 3 % 4])],
                **draws,
                "max_tokens": most,
            }
            path = TEXT
        else:
            body = {
                "messages": [
                    {"role": "user", "content": f"Tell me a story about {topics[i % 5]}." + " Please." * (i % 7)}
                ],
                **draws,
                "max_tokens": most,
            }
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
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
        f" {len(text)}\r\n\r\n".encode()
        + text
    )


MALFORMED = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"\r\n\r\n\r\n \r\n\r\n",
    request(CHAT, {"messages": 7}, True),
    request(TEXT, {"prompt": [10**9]}, False),
    request(CHAT, {}, False).replace(b"{", b"[", 1),
    request(TEXT, {"prompt": "x", "temperature": 99}, True),
    (
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
        b" 9\r\n\r\n{\"a\":\xff\xfe}"
    ),
    b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
]
KINDS = list(kinds())


class Link:
    """A connection that is kept from one answer to the next, as clients of OpenAI's keep theirs."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def open(self):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        return self.reader, self.writer

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
            self.writer = None


async def head_of(reader):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), fields


async def ask(link, path, body, stream, times=None, leave_after=None):
    """(status, texts by choice, whether all of it came); times get (first token, between tokens)."""
    reader, writer = await link.open()
    kept = False
    try:
        sent = time.perf_counter()
        writer.write(request(path, body, stream))
        if leave_after is not None and leave_after < 0.5:
            await asyncio.sleep(leave_after)
            return 0, None, False
        status, fields = await head_of(reader)
        while status == 102:
            status, fields = await head_of(reader)
        texts, last, gaps, whole = {}, sent, [], False
        if status != 200 or not stream:
            content = json.loads(await reader.readexactly(int(fields["content-length"])))
            kept = status == 200 and fields.get("connection") == "keep-alive"
            return (
                status,
                (
                    {
                        each["index"]: each["message"]["content"] if path == CHAT else each["text"]
                        for each in content.get("choices", [])
                    }
                    if status == 200
                    else fields
                ),
                True,
            )
        while size := int(await reader.readline(), 16):
            piece = (await reader.readexactly(size + 2)).decode()
            now = time.perf_counter()
            new = 0
            for line in piece.split("\n\n"):
                if line == "data: [DONE]":
                    whole = True
                elif line.startswith("data: "):
                    event = json.loads(line[6:])
                    if "error" in event:
                        return 500, event, False
                    for each in event["choices"]:
                        text = (each["delta"].get("content") or "") if path == CHAT else each["text"]
                        texts[each["index"]] = texts.get(each["index"], "") + text
                        new += text != ""
            if new:
                gaps.append(now - last)
                last = now
                if leave_after is not None:
                    return 0, None, False
        await reader.readline()
        kept = True
        if times is not None and gaps and body.get("n", 1) == 1:
            times[0].add(gaps[0])
            for gap in gaps[1:]:
                times[1].add(gap)
        return status, texts, whole
    finally:
        if not kept:
            link.close()


async def send_malformed(port, data):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        answer = await reader.read(65536)
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0
    except ConnectionResetError:
        return 0
    finally:
        writer.transport.abort()


COUNTED = ("answered", "left", "malformed", "full")


def add(counted, which, more=1):
    """Adds to a counter that processes share."""
    with counted.get_lock():
        if which is None:
            counted.value += more
        else:
            counted[which] += more


async def client(port, until, alone, counts, times, check, failures):
    link = Link(port)
    while time.time() < until and failures.value < MOST_FAILURES:
        dice = random.random()
        which = random.randrange(len(KINDS))
        path, body, stream = KINDS[which]
        failed = check.failed
        try:
            if dice < 0.05:
                status = await asyncio.wait_for(send_malformed(port, random.choice(MALFORMED)), 60)
                check(
                    status == 0 or 400 <= status < 500,
                    f"a malformed request: expected 400 and up or a closed connection, found {status}",
                )
                add(counts, 2)
            elif dice < 0.15:
                await asyncio.wait_for(ask(link, path, body, stream, None, random.random()), 300)
                add(counts, 1)
            else:
                status, texts, whole = await asyncio.wait_for(ask(link, path, body, stream, times), 300)
                if status == 429:
                    check("retry-after" in texts, "a full queue tells when to come again")
                    add(counts, 3)
                    await asyncio.sleep(1)
                    continue
                check(status == 200 and whole, f"an accepted request is answered: found {status} {texts}")
                check(
                    status != 200 or texts == alone[which],
                    f"request {which}: expected what it gives alone, {alone[which]}, found {texts}",
                )
                add(counts, 0)
                if random.random() < 0.2:
                    link.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.TimeoutError) as problem:
            check(False, f"request {which} (leaving {0.05 <= dice < 0.15}): {problem!r}")
            link.close()
        if check.failed != failed:
            add(failures, None, check.failed - failed)
    link.close()


def clients(seed, connections, port, until, alone, counts, failures, results):
    """A process of its own."""
    random.seed(seed)
    own, times = Checks(), (Spread(), Spread())

    async def all_of_them():
        await asyncio.gather(*(client(port, until, alone, counts, times, own, failures) for _ in range(connections)))

    asyncio.run(all_of_them())
    results.put((own.passed, own.failed, *times))


def numbers(text):
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}


def gauges():
    return numbers(server.ask("GET", "/metrics", seconds=120)[2])


def memory_of_card():
    """What all programs have of the first card, as NVIDIA's tool tells: bytes; None where there is none."""
    try:
        printed = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        return float(printed.stdout.strip()) * 2**20
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


class Watch(threading.Thread):
    """Memory over time: of the process, of the device as the server tells (used by it, and free), and of the whole
    card."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples = {"resident": [], "device": [], "free": [], "card": []}
        self.over = threading.Event()
        self.start_time = time.time()

    def run(self):
        printed_at, card = time.time(), 0
        while not self.over.wait(min(1.0, wanted.seconds / 20)):
            at = time.time() - self.start_time
            try:
                now, resident = gauges(), server.memory_bytes()
            except (OSError, IndexError, ValueError):
                continue  # what the server did not answer is reported by its clients
            self.samples["resident"].append((at, resident))
            self.samples["device"].append((at, now["intaglio_device_used_bytes"]))
            self.samples["free"].append((at, now["intaglio_device_free_bytes"]))
            if at >= card:
                card = at + wanted.seconds / 100
                of_card = memory_of_card()
                if of_card is not None:
                    self.samples["card"].append((at, of_card))
            if wanted.tell and time.time() - printed_at >= wanted.tell:
                printed_at = time.time()
                of_card = f"{self.samples['card'][-1][1] / 2**20:.0f} MiB" if self.samples["card"] else "unknown"
                print(
                    f"{at:.0f} s: {' '.join(f'{name} {count}' for name, count in zip(COUNTED, counts))} failures"
                    f" {failures.value}; {now['intaglio_completion_tokens_total']:.0f} tokens, running"
                    f" {now['intaglio_running']:.0f}, queue {now['intaglio_queue']:.0f}; resident"
                    f" {resident / 2**20:.1f} MiB, device {now['intaglio_device_used_bytes'] / 2**20:.1f} MiB, card"
                    f" {of_card}",
                    flush=True,
                )


def milliseconds(of):
    return f"p50 {1000 * of.part(0.5):.1f} ms, p99 {1000 * of.part(0.99):.1f} ms" if of.count else "none"


def growth(name):
    """(median of the run's end in bytes, percent by which that is above the median behind the first third)."""
    samples = watch.samples[name]
    third = [bytes for at, bytes in samples if wanted.seconds / 3 <= at <= wanted.seconds / 2]
    last = [bytes for at, bytes in samples if at >= wanted.seconds * 5 / 6]
    if not third or not last or not statistics.median(third):
        return None
    return statistics.median(last), 100 * (statistics.median(last) / statistics.median(third) - 1)


async def ask_alone(port, times):
    """The answer to each request without others beside it; choices one by one, since choice i has seed + i."""
    out, link = [], Link(port)
    for path, body, stream in KINDS:
        texts = {}
        for choice in range(body.get("n", 1)):
            single = {**body, "n": 1, **({"seed": body["seed"] + choice} if "seed" in body else {})}
            status, found, whole = await ask(link, path, single, stream, times)
            check(status == 200 and whole, f"alone: expected 200, found {status} {found}")
            texts[choice] = found.get(0)
        out.append(texts)
    link.close()
    return out


server = Server()
lonely = (Spread(), Spread())
alone = asyncio.run(ask_alone(server.port, lonely))
before = gauges()["intaglio_completion_tokens_total"]
processes = multiprocessing.get_context("fork")
counts, failures, results = processes.Array("Q", len(COUNTED)), processes.Value("Q"), processes.SimpleQueue()
start = time.time()
shares = [
    wanted.connections // wanted.processes + (i < wanted.connections % wanted.processes)
    for i in range(wanted.processes)
]
workers = [
    processes.Process(
        target=clients,
        args=(wanted.seed + i, share, server.port, start + wanted.seconds, alone, counts, failures, results),
    )
    for i, share in enumerate(shares)
]
for each in workers:
    each.start()
watch = Watch()
watch.start()
firsts, gaps = Spread(), Spread()
for _ in workers:
    passed, failed, first, between = results.get()
    check.passed += passed
    check.failed += failed
    firsts.join(first)
    gaps.join(between)
took = time.time() - start
watch.over.set()
watch.join()
for each in workers:
    each.join()

until = time.time() + 20
while time.time() < until:
    after = gauges()
    if after["intaglio_running"] == after["intaglio_queue"] == 0:
        break
    time.sleep(0.1)
check.equal(
    (after["intaglio_running"], after["intaglio_queue"], after["intaglio_device_restarts_total"]),
    (0, 0, 0),
    "nothing is left running, and the device was well",
)
check.equal(after["intaglio_kv_pages_free"], after["intaglio_kv_pages"], "all pages are free")
check.equal(server.ask("GET", "/health")[0], 200, "health behind the load")
summaries = []
for name, what in [
    ("resident", "resident memory"),
    ("device", "the device's memory that the server uses"),
    ("card", "the card's memory in use"),
]:
    grown = growth(name)
    if grown is None:
        summaries.append(f"{what}: not reported here")
        check(name != "resident", "resident memory: expected samples, found none")
        continue
    check(
        abs(grown[1]) <= wanted.memory_percent if name != "resident" else grown[1] <= wanted.memory_percent,
        f"{what}: expected flat to {wanted.memory_percent} %, found {grown[1]:+.2f} %",
    )
    summaries.append(f"{what} {grown[0] / 2**20:.1f} MiB ({grown[1]:+.2f} %)")
free = [bytes for _, bytes in watch.samples["free"]]
check(
    min(free) >= 0.98 * max(free),
    f"the device's free memory: expected flat to 2 %, found {min(free):.0f} .. {max(free):.0f}",
)
check.equal(server.stop(), 0, "exit code")

print(
    f"{wanted.connections} connections, {took:.0f} s: "
    + ", ".join(
        f"{count} {what}" for what, count in zip(("answered", "went away", "malformed", "asked to come again"), counts)
    )
    + f" ({counts[0] / took:.1f} answers/s); {(after['intaglio_completion_tokens_total'] - before) / took:.0f}"
    f" tokens/s; {after['intaglio_slots']:.0f} slots"
)
print("; ".join(summaries))
print(
    f"first token: {milliseconds(firsts)}; between tokens: {milliseconds(gaps)}; alone: first"
    f" {milliseconds(lonely[0])}, between {milliseconds(lonely[1])}"
)
if wanted.svg and firsts.count and gaps.count:
    with open(wanted.svg, "w") as file:
        file.write(
            drawing(
                wanted.title,
                {"between tokens": gaps, "to the first token": firsts},
                {
                    "resident memory": watch.samples["resident"],
                    "device memory": watch.samples["device"],
                    "card": watch.samples["card"],
                },
            )
        )
check.end("load", begun)
