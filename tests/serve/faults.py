#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A raw client against intaglio-serve: every refusal, what slow, rude and vanishing clients get, and the way out."""

import json
import os
import resource
import socket
import subprocess
import tempfile
import threading
import time

from server import PROGRAM, Checks, Server, parse, read_answer
from spread import Spread

begun = time.time()
check = Checks()
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "Tell me a story about a brave mouse."}]


def refused(answer, status, what, param=None, has=None):
    """An error in OpenAI's shape."""
    found, fields, body = answer
    check.equal(found, status, what)
    error = body.get("error") if isinstance(body, dict) else None
    check(
        isinstance(error, dict)
        and set(error) == {"message", "type", "param", "code"}
        and error["message"]
        and error["type"],
        f"{what}: expected OpenAI's shape, found {body!r}",
    )
    if error and param is not None:
        check.equal(error["param"], param, what + ": param")
    if error and has is not None:
        check(has in error["message"], f"{what}: expected '{has}' in the message, found {error['message']!r}")
    return fields


# Fields of requests -------------------------------------------------------------------------------
server = Server("--queue", "4", "--max-body-bytes", "200000", "--idle-seconds", "2", "--drain-seconds", "5")
ask = server.ask
good = {"messages": MESSAGES, "max_tokens": 4, "temperature": 0}
status, _, first = ask("POST", CHAT, good)
check.equal(status, 200, "a request")

for name, value, has in [
    ("temperature", -0.1, "0 .. 2"),
    ("temperature", 3, "0 .. 2"),
    ("temperature", "hot", "0 .. 2"),
    ("top_p", -0.1, "0 .. 1"),
    ("top_p", 1.1, "0 .. 1"),
    ("top_k", -2, "-1 .. 4096"),
    ("top_k", 5000, "-1 .. 4096"),
    ("top_k", 1.5, "integer"),
    ("min_p", 2, "0 .. 1"),
    ("n", 0, "1 .. 8"),
    ("n", 9, "1 .. 8"),
    ("n", 10**30, "1 .. 8"),
    ("frequency_penalty", 2.5, "-2 .. 2"),
    ("presence_penalty", -3, "-2 .. 2"),
    ("repetition_penalty", 0, "over 0"),
    ("repeat_last_n", 513, "0 .. 512"),
    ("max_tokens", 0, "1 .."),
    ("max_tokens", -5, "1 .."),
    ("max_completion_tokens", "9", "integer"),
    ("seed", 1.5, "integer"),
    ("seed", 2**63, "integer"),
    ("stop", ["a"] * 17, "at most 16"),
    ("stop", "", "1 .. 1024 bytes"),
    ("stop", "x" * 1025, "1025"),
    ("stop", 5, "a string"),
    ("stream", "yes", "true or false"),
    ("stream_options", 3, "an object"),
    ("top_logprobs", 21, "0 .. 20"),
    ("top_logprobs", 2, "logprobs: true"),
    ("logprobs", 1, "true or false"),
    ("logit_bias", {"4096": 1}, "0 .. 4095"),
    ("logit_bias", {"x": 1}, "token ids"),
    ("logit_bias", {str(i): 1 for i in range(1025)}, "at most 1024"),
    ("logit_bias", [1], "an object"),
    ("logit_bias", {"05": 1}, "token ids"),
    ("tools", [{"type": "function"}], "a string"),
    ("tools", {}, "an array"),
    ("tool_choice", "required", "tools beside it"),
    ("temprature", 0, "temperature?"),
    ("guided_regex", "(", "a regular expression"),
    ("options", {"num_ctx": 5}, "knows"),
    ("stream_options", {"x": 1}, "knows"),
    ("store", True, "nothing is stored"),
    ("messages", [], "1 .. 1024"),
    ("messages", "hi", "1 .. 1024"),
    ("messages", None, "an array"),
    ("response_format", {"type": "xml"}, "json_schema"),
    ("response_format", {"type": "json_schema"}, "an object"),
    ("model", 5, "a string"),
]:
    refused(
        ask("POST", CHAT, {**good, name: value}),
        400,
        f"{name} = {str(value)[:40]}",
        None if name == "response_format" or name == "stream_options" else None,
        has,
    )
refused(ask("POST", CHAT, {**good, "logit_bias": {"5": 101}}), 400, "logit_bias", "logit_bias.5", "-100 .. 100")
refused(ask("POST", CHAT, {**good, "messages": [{"role": "king", "content": ""}]}), 400, "role", "messages[0].role")
refused(
    ask(
        "POST",
        CHAT,
        {
            **good,
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}
            ],
        },
    ),
    400,
    "image",
    "messages[0].content[0].type",
)
refused(
    ask("POST", CHAT, {**good, "messages": [{"role": "user", "content": "x " * 2000}]}),
    400,
    "prompt too long",
    "messages",
    "at most 511 tokens",
)
refused(ask("POST", CHAT, {**good, "model": "gpt-9"}), 404, "another model", "model")
check.equal(
    ask("POST", CHAT, {**good, "response_format": {"type": "json_object"}, "stop": "x"})[0], 200, "stop beside a form"
)
for more in [
    {"top_p": 0, "temperature": 1},
    {"seed": -1, "temperature": 1},
    {"max_tokens": -1, "stop": "."},
    {"guided_choice": ["yes", "no"]},
]:
    check.equal(ask("POST", CHAT, {**good, **more})[0], 200, f"{more}")
check(
    ask("POST", CHAT, {**good, "guided_choice": ["yes", "no"]})[2]["choices"][0]["message"]["content"] in ("yes", "no"),
    "a choice",
)
empty = {
    "type": "object",
    "properties": {"empty": {"type": "boolean"}},
    "required": ["empty"],
    "additionalProperties": False,
}
text = ask(
    "POST",
    CHAT,
    {
        **good,
        "max_tokens": 60,
        "temperature": 1,
        "seed": 1,
        "response_format": {"type": "json_object", "schema": empty},
    },
)[2]["choices"][0]["message"]["content"]
check.equal(list(json.loads(text)), ["empty"], "json_object with a schema")
refused(
    ask("POST", CHAT, {**good, "response_format": {"type": "json_object"}, "max_tokens": 1}),
    400,
    "no room for the form",
    "max_tokens",
    "shortest text has 2 bytes",
)
for schema, has in [
    ({"type": "string", "pattern": "a(?!b)"}, "pattern"),
    ({"type": "string", "format": "phone"}, "format"),
    ({"oneOf": [{}, True]}, "oneOf"),
    ({"not": {}}, "not"),
    ({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}, "$ref"),
    ({"$ref": "#"}, "no text fits"),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "begins with itself"),
    ({"enum": []}, "no value"),
    (False, "no text fits"),
    ({"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 0}}}, "schema.properties.a"),
]:
    refused(
        ask(
            "POST",
            CHAT,
            {**good, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}},
        ),
        400,
        f"schema {schema}",
        "response_format",
        has,
    )
for name, value, has in [
    ("prompt", [], "token ids"),
    ("prompt", ["a"] * 65, "at most 64"),
    ("prompt", [4096], "0 .. 4095"),
    ("prompt", [-1], "0 .. 4095"),
    ("prompt", None, "a string"),
    ("best_of", 3, "the same as n"),
    ("echo", 1, "true or false"),
    ("parse_special", 1, "true or false"),
    ("suffix", "x", "around a gap"),
    ("logprobs", 21, "0 .. 20"),
    ("prompt", [[1], "x", 5], "a string or token ids"),
]:
    refused(
        ask("POST", TEXT, {"prompt": "Once", "max_tokens": 2, name: value}),
        400,
        f"completions: {name} = {str(value)[:40]}",
        None,
        has,
    )
refused(ask("POST", "/v1/infer", {"prompt": "Once", "mode": "walk"}), 400, "a walk without an index", "mode")
refused(ask("POST", "/v1/infer", {"prompt": "Once", "mode": "fly"}), 400, "no such mode", "mode")
refused(ask("POST", "/detokenize", {"tokens": [1, 99999]}), 400, "detokenize", "tokens[1]")

# JSON ---------------------------------------------------------------------------------------------
for body, what in [
    (b"", "nothing"),
    (b"{", "cut"),
    (b"[]", "an array"),
    (b"nul", "a word"),
    (b'{"messages": NaN}', "NaN"),
    (b'{"a":1e999}', "a huge number"),
    (b'{"a":"\xff"}', "no UTF-8"),
    (b'{"a":"\\ud800"}', "half a surrogate"),
    (b'{"a":1,"a":2}', "a key twice"),
    (b"[" * 100_000, "deep"),
    (b'{"a":"\x00"}', "NUL"),
    (b'{"a":' + b"[" * 70 + b"]" * 70 + b"}", "70 deep"),
    (b'{"a":[' + b"0," * 99_000 + b"0]}", "many values, and no messages"),
]:
    answer = ask("POST", CHAT, body)
    refused(answer, 400, f"a body that is {what}")
    check(
        "\\xff" not in str(answer[2]) and len(str(answer[2])) < 400,
        f"{what}: the answer is short and has nothing of the input",
    )

# HTTP ---------------------------------------------------------------------------------------------
refused(ask("GET", "/nowhere"), 404, "no such path")
for path in [
    "/../../etc/passwd",
    "/%2e%2e/etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/chat.js/../chat.html",
    "//etc/passwd",
]:
    refused(ask("GET", path), 404, path)
check.equal(refused(ask("GET", CHAT), 405, "GET of chat").get("allow"), "POST", "Allow")
refused(ask("DELETE", "/v1/models"), 405, "DELETE of models")
refused(ask("POST", CHAT, good, {"Content-Type": "text/plain"}), 415, "text/plain")
check.equal(ask("POST", CHAT, good, {"Content-Type": None})[0], 200, "no type at all")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
check.equal(ask("POST", "/api/show", {"model": "fable"}, FORM)[0], 200, "Ollama's API, as curl asks it")
for each in (FORM, {"Content-Type": None}):
    foreign = {**each, "Origin": "https://elsewhere.example"}
    check.equal(ask("POST", "/api/show", {"model": "fable"}, foreign)[0], 403, "a page of elsewhere")
refused(ask("POST", CHAT, good, {"Content-Encoding": "gzip"}), 415, "gzip")
refused(ask("POST", CHAT, "x" * 200_001), 413, "a large body", None, "200000")
refused(
    parse(
        server.raw(
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding:"
            " chunked\r\n\r\n".encode()
            + b"10000\r\n"
            + b"x" * 65536
            + b"\r\n"
            + b"10000\r\n"
            + b"x" * 65536
            + b"\r\n10000\r\n"
            + b"x" * 65536
            + b"\r\n10000\r\n"
            + b"x" * 65536
            + b"\r\n0\r\n\r\n"
        )
    ),
    413,
    "a large body in chunks",
)
refused(ask("GET", "/" + "a" * 9000), 414, "a long address")
refused(ask("GET", "/health", fields={"X-Large": "a" * 20_000}), 431, "a large field")
refused(ask("GET", "/health", fields={f"X-{i}": "a" for i in range(120)}), 431, "many fields")
json_type = "Content-Type: application/json\r\n"
for head, what in [
    ("GARBAGE\r\n\r\n", "no request"),
    ("GET / HTTP/9.9\r\n\r\n", "another version"),
    ("POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + json_type + "Content-Length: -2\r\n\r\n", "a negative length"),
    (
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
        + json_type
        + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths",
    ),
    (
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
        + json_type
        + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        "two other lengths",
    ),
    (
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
        + json_type
        + "Transfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n",
        "a negative chunk",
    ),
    (
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
        + json_type
        + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n",
        "a chunk past 2^64",
    ),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nBad Field: x\r\n\r\n", "a field with a blank"),
    ("GET http://x/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "no path"),
    ("GET /health HTTP/1.1\r\n\r\n", "no Host"),
    ("GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", "two Hosts"),
]:
    refused(parse(server.raw(head)), 400, what)
refused(ask("GET", "/health", fields={"Host": "evil.example"}), 403, "a foreign Host")
refused(ask("GET", "/health", fields={"Host": "127.0.0.1.evil.example:80"}), 403, "a Host that looks like an address")
for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8080"]:
    check.equal(ask("GET", "/health", fields={"Host": host})[0], 200, f"Host: {host}")
refused(ask("POST", CHAT, good, {"Origin": "https://evil.example"}), 403, "a foreign Origin")
check.equal(ask("POST", CHAT, good, {"Origin": server.url})[0], 200, "the server's own page")
status, fields, _ = ask(
    "OPTIONS", CHAT, fields={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
)
check(
    status == 403 and not any(name.startswith("access-control") for name in fields),
    f"no CORS unless asked for: {status} {fields}",
)
status, fields, body = ask("HEAD", "/v1/models")
check(status == 200 and body == "" and int(fields["content-length"]) > 0, f"HEAD: {status} {fields} {body!r}")
two = server.raw(
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection:"
    b" close\r\n\r\n"
)
check.equal(two.count(b"HTTP/1.1 200"), 1 if b'"object":"list"' not in two else 2, "requests one behind the other")
check.equal(
    parse(
        server.raw(
            b'POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding:'
            b' chunked\r\n\r\n9\r\n{"content\r\n9\r\n":"mice"}\r\n0\r\n\r\n'
        )
    )[0],
    200,
    "a body in chunks",
)

# Slow, rude and vanishing clients -----------------------------------------------------------------
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


def gauge(name):
    text = ask("GET", "/metrics")[2]
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def start_long(stream, **more):
    link = socket.create_connection(("127.0.0.1", server.port), 30)
    body = json.dumps({**LONG, "stream": stream, **more}).encode()
    link.sendall(
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
        f" {len(body)}\r\n\r\n".encode()
        + body
    )
    return link


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
resting_busy = lambda: float(
    next(
        line.split()[1]
        for line in resting.ask("GET", "/metrics")[2].splitlines()
        if line.startswith("intaglio_device_busy_seconds_total ")
    )
)
before_it, begin = resting_busy(), time.time()
text = resting.ask("POST", CHAT, {**good, "temperature": 0.9, "max_tokens": 55, "seed": 1})[2]["choices"][0]["message"][
    "content"
]
share = (resting_busy() - before_it) / (time.time() - begin)
check.equal((text, resting.stop()), (alone[1], 0), "the text of a server that rests, and its exit code")
# The answer does not wait for the idle time behind its last submission, one of several.
check(0 < share <= 0.32, f"share of the time that the device was busy: expected at most 0.32, found {share:.3f}")

# A long prompt is fed chunk by chunk between the others' tokens: 32 of its tokens for each of theirs.
link = start_long(True, response_format={"type": "text"}, max_tokens=490, logit_bias={"0": -100})
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
page = int(gauge("intaglio_kv_page_positions"))
check.equal(
    (again["usage"]["prompt_tokens_details"]["cached_tokens"], again["choices"][0]["text"]),
    ((len(prompt) - 1) // page * page, answer["choices"][0]["text"]),
    "pages of a prompt are shared",
)

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

# Access, files, the way out -----------------------------------------------------------------------
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

with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/key", "w") as file:
        file.write("secret-key\r\n")
    with open(f"{folder}/config", "w") as file:
        file.write('max-n = 3\nmodel-name = "from-file"\ncors-origin = "https://chat.example"\n')
    made = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    subprocess.run(
        ["openssl", "req", *made, "-keyout", f"{folder}/tls.key", "-out", f"{folder}/tls.pem"],
        check=True,
        capture_output=True,
    )
    with_key = Server(
        "--config",
        f"{folder}/config",
        environment={"INTAGLIO_SERVE_API_KEY_FILE": f"{folder}/key", "INTAGLIO_SERVE_MAX_N": "2"},
        wait=False,
    )
    for key in (None, "Bearer", "Bearer secret-ke", "Bearer secret-key2", "Bearer " + "x" * 9000, "Basic c2VjcmV0"):
        refused(with_key.ask("GET", "/v1/models", fields={"Authorization": key}), 401, f"key {str(key)[:30]}")
    check.equal(with_key.ask("GET", "/health")[0] in (200, 503), True, "health asks for no key")
    refused(with_key.ask("POST", CHAT, b'{"x":', {"Content-Length": "100000"}), 401, "before the body is read")
    with_key.event("ready")
    key = {"Authorization": "Bearer secret-key"}
    check.equal(with_key.ask("GET", "/v1/models", fields=key)[2]["data"][0]["id"], "from-file", "an option of the file")
    check.equal(
        with_key.ask("GET", "/v1/models", fields={"Authorization": "Basic dXNlcjpzZWNyZXQta2V5"})[0],
        200,
        "the key as a password",
    )
    for path in ("/", "/chat.css", "/key.js", "/tldr.js"):
        check.equal(with_key.ask("GET", path)[0], 200, f"the page asks for the key itself: {path}")
    for path in ("/plan", "/metrics", "/props", "/slots", "/nowhere"):
        refused(with_key.ask("GET", path), 401, f"without a key: {path}")
    check.equal(
        with_key.ask("GET", "/plan")[1].get("www-authenticate"), 'Bearer realm="intaglio"', "no login of the browser"
    )
    refused(with_key.ask("POST", CHAT, {**good, "n": 3}, key), 400, "the environment wins over the file", "n", "1 .. 2")
    of_client = ["arch", "lang", "os", "package-version", "retry-count", "runtime", "runtime-version", "timeout"]
    asked = ",".join(["authorization", "content-type", *(f"x-stainless-{each}" for each in of_client)])
    _, fields, _ = with_key.ask(
        "OPTIONS",
        CHAT,
        fields={
            "Origin": "https://chat.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
        },
    )
    check.equal(fields.get("access-control-allow-headers"), asked, "a preflight gives back what is asked for")
    check.equal(
        with_key.ask("GET", "/v1/models", fields={"Authorization": "bearer secret-key", "X-Request-Id": "mine-1"})[
            1
        ].get("x-request-id"),
        "mine-1",
        "the client's name of a request",
    )
    status, fields, _ = with_key.ask("OPTIONS", CHAT, fields={"Origin": "https://chat.example"})
    check(
        status == 204 and fields.get("access-control-allow-origin") == "https://chat.example",
        f"CORS where asked for: {status} {fields}",
    )
    check.equal(with_key.stop(), 0, "exit code")
    if (
        "this build has no TLS" not in subprocess.run(
            [PROGRAM, "--port", "0", "--tls-certificate", "x", "--tls-key", "y"], capture_output=True, text=True
        ).stderr
    ):
        import ssl
        secure = Server("--tls-certificate", f"{folder}/tls.pem", "--tls-key", f"{folder}/tls.key", wait=False)
        with ssl.create_default_context(cafile=f"{folder}/tls.pem").wrap_socket(
            socket.create_connection(("127.0.0.1", secure.port)), server_hostname="localhost"
        ) as link:
            link.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(read_answer(link).startswith(b"HTTP/1.1 "), "an answer over TLS")
        check(
            not secure.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP"),
            "no answer without TLS",
        )
        check.equal(secure.stop(), 0, "exit code with TLS")
    else:
        print("WARNING: this build has no TLS (libssl-dev): not tested", flush=True)

    # Twelve hundred idle ones do not keep the next client out: the oldest of them goes.
    crowded = Server("--max-connections", "40", "--max-connections-per-address", "40")
    crowd = [socket.create_connection(("127.0.0.1", crowded.port)) for _ in range(60)]
    begin = time.time()
    check.equal(crowded.ask("POST", CHAT, good)[0], 200, "a request in a crowd of idle connections")
    check(time.time() - begin < 5, f"in time, found {time.time() - begin:.2f} s")
    check(crowd[0].recv(1) == b"", "the oldest was closed")
    for link in crowd:
        link.close()
    check.equal(crowded.stop(), 0, "exit code")
    local = Server("--host", "localhost", wait=False)
    check(local.event("listening")["url"] == f"http://127.0.0.1:{local.port}/", "the address in the log")
    local.stop()

    taken = socket.create_server(("127.0.0.1", 0))
    for name, content in [
        ("misspelt", "api-key-flie = x\n"),
        ("underscores", 'api_key = "x"\n'),
        ("section", '[serve]\napi-key = "x"\n'),
    ]:
        with open(f"{folder}/{name}", "w") as file:
            file.write(content)
    for flags, variables, has in [
        (["--config", f"{folder}/misspelt"], {}, "api-key-flie"),
        (["--config", f"{folder}/underscores"], {}, "api_key"),
        (["--config", f"{folder}/section"], {}, "serve"),
        ([], {"INTAGLIO_SERVE_API_KEYFILE": "x"}, "INTAGLIO_SERVE_API_KEYFILE"),
        (["--api-key", ""], {}, "--api-key"),
        (["--config", f"{folder}/nowhere"], {}, "nowhere"),
    ]:
        run = subprocess.run(
            [PROGRAM, "--port", "0", *flags],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **variables},
        )
        check.equal(run.returncode, 1, f"exit code of {flags} {variables}")
        check(has in run.stderr + run.stdout, f"{flags} {variables}: expected '{has}', found {run.stderr!r}")
    for flags, code, has in [
        (["--port", str(taken.getsockname()[1])], 1, str(taken.getsockname()[1])),
        (["--host", "0.0.0.0", "--port", "0"], 1, "--api-key-file"),
        (["--host", "here"], 1, "IP address"),
        (["--model", f"{folder}/none.gguf", "--port", "0"], 3, "none.gguf"),
        (["--unknown"], 1, "--unknown"),
        (["--api-key-file", f"{folder}/none"], 1, "none"),
        (["--queue", "0"], 1, "--queue"),
    ]:
        run = subprocess.run([PROGRAM, *flags], capture_output=True, text=True, timeout=60)
        check.equal(run.returncode, code, f"exit code of {flags}")
        check(has in run.stderr + run.stdout, f"{flags}: expected '{has}', found {run.stderr!r}")
    # A full disk takes the log, not the server.
    with open("/dev/full", "w") as full:
        port = socket.create_server(("127.0.0.1", 0))
        number = port.getsockname()[1]
        port.close()
        process = subprocess.Popen([PROGRAM, "--port", str(number)], stderr=full)
        status = 0
        for _ in range(200):
            time.sleep(0.1)
            try:
                status = int(
                    subprocess.run(
                        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{number}/health"],
                        capture_output=True,
                        text=True,
                    ).stdout
                )
            except ValueError:
                continue
            if status == 200:
                break
        check.equal(status, 200, "a server whose log goes nowhere")
        process.terminate()
        check.equal(process.wait(20), 0, "its exit code")
check.end("faults", begun)
