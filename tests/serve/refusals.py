#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A raw client against intaglio-serve: every field, body and HTTP request that is refused, and with which words."""

import json
import time

from server import Checks, Server, parse

begun = time.time()
check = Checks()
refused = check.refused
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "Tell me a story about a brave mouse."}]

# Fields of requests -------------------------------------------------------------------------------
server = Server("--max-body-bytes", "200000")
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
    ("repetition_penalty", 0, "0.01 .. 10"),
    ("repetition_penalty", 1e-45, "0.01 .. 10"),
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
    ("suppress_tokens", [4096], "0 .. 4095"),
    ("suppress_tokens", 5, "at most 1024 token ids"),
    ("suppress_tokens", list(range(1025)), "at most 1024"),
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
        None,
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

# The other APIs: what they do not know, and the names that they have for fields.
RESPONSES, CLAUDE, OLLAMA, GENERATE = "/v1/responses", "/v1/messages", "/api/chat", "/api/generate"
BLOCK = {"type": "text", "text": "Rome?"}
CALLED = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
other = {
    RESPONSES: {"input": "Once", "max_output_tokens": 4},
    CLAUDE: {"messages": MESSAGES, "max_tokens": 4},
    OLLAMA: {"messages": MESSAGES, "stream": False, "options": {"num_predict": 4}},
    GENERATE: {"prompt": "Once", "stream": False, "options": {"num_predict": 4}},
    "/infill": {"input_prefix": "a", "input_suffix": "b"},
    "/v1/rerank": {"query": "a", "documents": ["b"]},
    "/api/embeddings": {"prompt": "a"},
    "/slots/0?action=erase&action=save": {},
    CHAT: {**good, "tools": [{"type": "function", "function": {"name": "f"}}]},
}
for path, more, has in [
    (RESPONSES, {"max_output_tokens": -5}, "max_output_tokens: expected"),
    (RESPONSES, {"input": "mouse " * 600}, "input: expected at most"),
    (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input, as a chat's"),
    (RESPONSES, {"include": ["message.output_text.logprobs"]}, "include[0]"),
    (RESPONSES, {"include": "all"}, "include: expected an array"),
    (RESPONSES, {"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
    (RESPONSES, {"text": {"format": {"type": "xml"}}}, "text.format.type"),
    (RESPONSES, {"text": {"format": {"type": "json_schema", "schema": {"enum": []}}}}, "text.format.schema"),
    (RESPONSES, {"reasoning": {"effort": "most"}}, "reasoning.effort"),
    (RESPONSES, {"input": [{"type": "reasoning", "summary": [], "content": "so"}]}, "input[0].content"),
    (RESPONSES, {"input": [{"type": "reasoning", "content": [{"type": "reasoning_text", "txt": ""}]}]}, "content[0]"),
    (CLAUDE, {"system": [{**BLOCK, "txt": "x"}]}, "system[0].txt"),
    (CLAUDE, {"stop_sequences": ["a", ""]}, "stop_sequences[1]"),
    (CLAUDE, {"thinking": {"type": "enabled", "budget_tokens": 5}}, "thinking"),
    (OLLAMA, {"options": {"temperature": "hot"}}, "options.temperature"),
    (OLLAMA, {"options": {"num_predict": 0}}, "options.num_predict"),
    (OLLAMA, {"think": "much"}, "think: expected"),
    (OLLAMA, {"format": "xml"}, "format: expected a JSON schema"),
    ("/api/embeddings", {"prompt": ["a", "b"]}, "prompt: expected a string"),
    ("/slots/0?action=erase&action=save", {}, "action: expected one value"),
    (OLLAMA, {"messages": [{"role": "assistant", "content": "a", "tool_calls": {}}]}, "messages[0].tool_calls"),
    (OLLAMA, {"messages": [CALLED, {"role": "tool", "content": "a", "tool_name": "g"}]}, "messages[1].role"),
    (GENERATE, {"prompt": "mouse " * 600}, "prompt: expected at most"),
    (GENERATE, {"context": [1, 2]}, "context: expected nothing"),
    ("/infill", {"n_predict": "all"}, "n_predict"),
    ("/infill", {}, "input_suffix: expected nothing"),
    ("/v1/rerank", {"documents": [{"text": "b", "title": "c"}]}, "documents[0].title"),
    (CHAT, {"json_schema": {"type": "boolean"}}, "json_schema"),
    (CHAT, {"messages": [{"role": "tool", "content": "a", "tool_call_id": ""}]}, "messages[0].tool_call_id"),
    (CHAT, {"min_tokens": 5}, "min_tokens: expected at most max_tokens, 4"),
    (CHAT, {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "f"}], "x": 1}}, "tools.x"),
]:
    status, _, body = ask("POST", path, {**other[path], **more})
    error = body.get("error") if isinstance(body, dict) else None
    message = str(error.get("message") if isinstance(error, dict) else error)
    what = f"{path}, {str(more)[:60]}"
    check(status == 400 and has in message, f"{what}: expected a 400 with '{has}', found {status} {body}")
# A response goes back as input, as its clients send it.
response = ask("POST", RESPONSES, other[RESPONSES])[2]
items = [{"role": "user", "content": "Once"}, *response["output"], {"role": "user", "content": "And then?"}]
check.equal(ask("POST", RESPONSES, {**other[RESPONSES], "input": items})[0], 200, "the items of a response as input")
refused(ask("GET", f"{RESPONSES}/{response['id']}?stream=true"), 400, "a stored response as a stream", "stream")
STORED = f"{RESPONSES}/{response['id']}"
refused(ask("GET", f"{STORED}?include[]=message.output_text.logprobs"), 400, "log probabilities of it", "include[0]")
# A name in the query that the path does not know, and names that clients send.
for method, path, body, name, has in [
    ("POST", CHAT + "?temprature=0", good, "temprature", "a name that this path's query may have"),
    ("POST", CHAT + "?beta=true", good, "beta", "found another"),
    ("POST", CHAT + "?api-verson=1", good, "api-verson", "(api-version?)"),
    ("GET", "/props?x%79=1", None, "xy", "found another"),
    ("GET", "/props?%zz=1", None, "query", "a name with %XX"),
    ("GET", "/props?model=%00", None, "model", "a value with %XX"),
    ("GET", "/v1/models?modle=1", None, "modle", "found another"),
    ("GET", STORED + "?streem=true", None, "streem", "(stream?)"),
    ("DELETE", STORED + "?stream=true", None, "stream", "found another"),
    ("GET", "/props?modl=fable", None, "modl", "(model?)"),
    ("GET", "/slots?fail_on_no_slots=1", None, "fail_on_no_slots", "(fail_on_no_slot?)"),
    ("POST", "/slots/0?actoin=erase", {}, "actoin", "(action?)"),
    ("POST", "/slots/0?action=erase&model=fable", {}, "model", "found another"),
    ("GET", "/health?deep", None, "deep", "found another"),
    ("GET", "/metrics?name[]=x", None, "name[]", "found another"),
    ("HEAD", "/plan?mode=fable", None, None, ""),
    ("POST", "/tokenize?add_special=true", {"content": "a"}, "add_special", "found another"),
    ("POST", "/v1/embeddings?dimensions=4", {"input": "a"}, "dimensions", "found another"),
]:
    found = ask(method, path, body, {"Connection": "close"})
    check.equal(found[0], 400, path) if method == "HEAD" else refused(found, 400, path, name, has)
refusal = "x: expected a name that this path's query may have, found another"
check.equal(ask("POST", OLLAMA + "?x=0", other[OLLAMA])[2], {"error": refusal}, "in Ollama's form")
claudes = {"type": "error", "error": {"type": "invalid_request_error", "message": refusal}}
check.equal(ask("POST", CLAUDE + "?beta=true&x", other[CLAUDE])[2], claudes, "in Anthropic's form")
for method, path, body in [
    ("POST", CHAT + "?api-version=2024-10-21", good),
    ("POST", CLAUDE + "?beta=true", other[CLAUDE]),
    ("POST", CLAUDE + "/count_tokens?beta=true", {"messages": MESSAGES}),
    ("GET", "/v1/models?limit=20&after_id=a&beta=true", None),
    ("GET", "/v1/models?client_version=0.133.0", None),
    ("GET", "/v1/models/fable?beta=true", None),
    ("GET", STORED + "?include[]=reasoning.encrypted_content&include%5B%5D=file_search_call.results", None),
    ("GET", STORED + "?stream=false", None),
    ("GET", "/props?model=fable", None),
    ("GET", "/lora-adapters?model=fable", None),
    ("POST", "/slots/0?action=erase", {}),
    ("GET", "/health?verbose", None),
    ("GET", "/?utm_source=x", None),
    ("GET", "/tldr.js?v=2", None),
    ("GET", "/v1/models?", None),
]:
    found = ask(method, path, body)
    check.equal(found[0], 200, f"{path}, found {found[2]}")
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
status, fields, body = ask("HEAD", "/v1/models", fields={"Connection": "close"})
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
INSIDE = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
CODINGS = [("1.1", each) for each in ("identity", "gzip", "xchunked", "chunked, identity", "gzip, chunked")]
for version, coding in [*CODINGS, ("1.0", "chunked")]:
    for asked in ("GET /health", "POST /tokenize"):
        head = f"{asked} HTTP/{version}\r\nHost: localhost\r\n{json_type}Connection: keep-alive\r\n"
        found = server.raw(f"{head}Transfer-Encoding: {coding}\r\n\r\n".encode() + INSIDE)
        refused(parse(found), 501, f"{asked} in HTTP/{version} with a body in {coding}, which is a request")
check.equal(server.stop(), 0, "exit code")
check.end("refusals", begun)
