#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""context_shift: a text goes on behind the context's end. Its tokens are those of fresh requests with the tokens that
are kept, drawn on the device or on the host, alone and beside others, streamed or not; a form holds over a shift."""

import json
import os
import re
import socket
import threading
import time

from server import Checks, Server
from shifting import Vocabulary, expected

begun = time.time()
check = Checks()
here = os.path.dirname(os.path.abspath(__file__))
shared = os.environ.get("INTAGLIO_SHARED", os.path.join(here, "../../../shared"))
llama = os.path.join(shared, "models/stories260k/stories260K-f32.gguf")
CONTEXT = 48
TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
server = Server("--model", llama, "--context", str(CONTEXT), "--slots", "4")
words = Vocabulary(server, 512)
prompt = server.ask("POST", "/tokenize", {"content": "Once upon a time there was", "add_special": True})[2]["tokens"]
details = lambda answer: answer["usage"].get("completion_tokens_details", {})
shifts_of = lambda answer: tuple(details(answer).get(each, 0) for each in ("context_shifts", "discarded_tokens"))
text_of = lambda answer: answer["choices"][0]["text"]


def ask(body, of=server, path=TEXT):
    status, _, answer = of.ask("POST", path, body)
    assert status == 200, f"{body}: {answer}"
    return answer


# What is drawn, and which tokens stay.
CASES = [
    ({"max_tokens": 68, "temperature": 0}, 0, 0),
    ({"max_tokens": 54, "temperature": 0.9, "seed": 5}, 4, 10),
    ({"max_tokens": 46, "temperature": 0.7, "seed": 6, "repetition_penalty": 1.2}, -1, 3),
    ({"max_tokens": CONTEXT - len(prompt), "temperature": 0}, -1, 0),
    ({"max_tokens": CONTEXT - len(prompt) + 1, "temperature": 0}, -1, 0),
]
wanted, bodies = [], []
for body, keep, discard in CASES:
    wanted.append(expected(server, words, prompt, CONTEXT, body, keep, discard))
    bodies.append({**body, "prompt": prompt, "context_shift": True, "n_keep": keep, "n_discard": discard})
check.equal([each[1] > 1 for each in wanted[:3]], [True] * 3, f"some shifts: {[each[1:] for each in wanted]}")
check.equal([each[1] for each in wanted[3:]], [0, 1], "a token that fills the context, and one behind it")
for i, (body, (texts, shifts, dropped)) in enumerate(zip(bodies, wanted)):
    answer = ask({**body, "logprobs": 0})  # on the host
    check.equal(answer["choices"][0]["logprobs"]["tokens"], texts, f"case {i}: its tokens")
    check.equal(text_of(answer), "".join(texts), f"case {i}: its text")
    check.equal(shifts_of(answer), (shifts, dropped), f"case {i}: what was dropped")
    check.equal(answer["usage"]["prompt_tokens"], len(prompt), f"case {i}: tokens of the prompt")
together = [None] * len(bodies)
threads = [threading.Thread(target=lambda i=i: together.__setitem__(i, ask(bodies[i]))) for i in range(len(bodies))]
for each in threads:
    each.start()
for each in threads:
    each.join()
for i, each in enumerate(together):
    check.equal(text_of(each), "".join(wanted[i][0]), f"case {i}: beside others, on the device")
    check.equal(shifts_of(each), wanted[i][1:], f"case {i}: what was dropped beside others")

# Streams, chats, Ollama's name.
stream = server.ask("POST", TEXT, {**bodies[1], "stream": True, "stream_options": {"include_usage": True}})[2]
events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
check.equal("".join(text_of(each) for each in events[:-1]), "".join(wanted[1][0]), "a stream")
check.equal(shifts_of(events[-1]), wanted[1][1:], "a stream's usage")
talk = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 60, "temperature": 0}
chat = ask({**talk, "context_shift": True}, path=CHAT)
rendered = server.ask("POST", "/apply-template", {"messages": talk["messages"]})[2]["prompt"]
chat_ids = server.ask("POST", "/tokenize", {"content": rendered, "add_special": True, "parse_special": True})[2]
check.equal(chat["usage"]["prompt_tokens"], chat_ids["count"], "the chat's prompt")
texts, shifts, dropped = expected(server, words, chat_ids["tokens"], CONTEXT, {"max_tokens": 60, "temperature": 0})
check.equal(chat["choices"][0]["message"]["content"], "".join(texts), "a chat")
check.equal(shifts_of(chat), (shifts, dropped), "a chat's usage")
piece_of = lambda delta: delta if isinstance(delta, str) else delta["text"]  # of responses, of messages
reported_shifts = {"context_shifts": shifts, "discarded_tokens": dropped}
for path, body, text, usage in (
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 60},
     lambda of: of["output"][0]["content"][0]["text"], lambda of: of["output_tokens_details"]),
    ("/v1/messages", {"messages": talk["messages"], "max_tokens": 60},
     lambda of: of["content"][0]["text"], lambda of: of),
):
    answer = ask({**body, "temperature": 0, "context_shift": True}, path=path)
    check.equal(text(answer), "".join(texts), f"{path}: its text")
    check.equal({**usage(answer["usage"]), **reported_shifts}, usage(answer["usage"]), f"{path}: its usage")
    stream = ask({**body, "temperature": 0, "context_shift": True, "stream": True}, path=path)
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    pieces = [each["delta"] for each in events if each["type"] in ("response.output_text.delta", "content_block_delta")]
    check.equal("".join(piece_of(each) for each in pieces), "".join(texts), f"{path}: a stream")
    last = next(each for each in events if each["type"] in ("response.incomplete", "message_delta"))
    end = usage(last.get("response", last)["usage"])
    check.equal({**end, **reported_shifts}, end, f"{path}: a stream's usage")
    few = ask({**body, "temperature": 0, "context_shift": True, "n_keep": 2, "n_discard": 5}, path=path)
    kept = expected(server, words, chat_ids["tokens"], CONTEXT, {"max_tokens": 60, "temperature": 0}, 2, 5)
    check.equal(text(few), "".join(kept[0]), f"{path}: n_keep and n_discard")
    check.equal(usage(few["usage"])["context_shifts"], kept[1], f"{path}: shifts of n_discard")
# A conversation over the context is cut first, and what is left of it goes on behind the context's end.
turns = [{"role": role, "content": "A cat and a dog sat in it."} for role in ("user", "assistant") * 2]
turns += talk["messages"]
more = {"temperature": 0, "truncation": "auto", "context_shift": True}
cut = ask({"input": turns, "max_output_tokens": 60, "store": True, **more}, path="/v1/responses")
check.equal(
    (cut["output"][0]["content"][0]["text"], cut["truncation"], cut["usage"]["input_tokens_details"]),
    ("".join(texts), "auto", {**cut["usage"]["input_tokens_details"], "truncated_messages": 4}),
    "truncation: auto beside it",
)
check.equal(cut["usage"]["output_tokens_details"]["context_shifts"], shifts, "truncation: auto beside it: shifts")
again = {"previous_response_id": cut["id"], "input": "Hi", "max_output_tokens": 60, "temperature": 0}
status, _, answer = server.ask("POST", "/v1/responses", {**again, "context_shift": True})
check.equal((status, answer["error"]["code"]), (400, "context_length_exceeded"), "it is no reason to cut a prompt")
again = ask({**again, **more}, path="/v1/responses")
check.equal(
    (again["output"][0]["content"][0]["text"], again["usage"]["input_tokens_details"]["truncated_messages"]),
    ("".join(texts), 6),
    "a response that was shifted is gone on from",
)
ollama = {"prompt": "Once upon a time there was", "raw": True, "stream": False, "shift": True}
generated = ask({**ollama, "options": {"num_predict": 50, "temperature": 0}}, path="/api/generate")
check.equal((generated["response"], generated["eval_count"]), ("".join(wanted[0][0][:50]), 50), "Ollama's shift")

# A form holds from the first token to the last.
form = "([a-z]{1,9} ){22}[a-z]{2}\\."
letters = {"prompt": prompt, "guided_regex": form, "max_tokens": 200, "temperature": 0.8}
answer = ask({**letters, "seed": 3, "context_shift": True, "n_keep": -1})
check(re.fullmatch(form, text_of(answer)), f"a form over shifts: {text_of(answer)!r}")
check(shifts_of(answer)[0] > 0 and answer["choices"][0]["finish_reason"] == "stop", f"its shifts: {answer}")

# Refusals, each of which names the field.
fine = {"prompt": "Once", "context_shift": True, "max_tokens": 60}
for path, body, field in (
    (CHAT, {"messages": talk["messages"], "context_shift": True}, "context_shift"),
    ("/v1/responses", {"input": "Hi", "context_shift": True}, "context_shift"),
    ("/v1/messages", {"messages": talk["messages"], "max_tokens": 9, "n_keep": 4}, "n_keep"),
    (TEXT, {**fine, "max_tokens": -1}, "context_shift"),
    (TEXT, {**fine, "max_tokens": (1 << 20) + 1}, "context_shift"),
    (TEXT, {**fine, "context_shift": "yes"}, "context_shift"),
    (TEXT, {**fine, "suffix": "The end."}, "context_shift"),
    (TEXT, {**fine, "context_shift": False, "n_keep": 4}, "n_keep"),
    (TEXT, {**fine, "context_shift": False, "n_discard": 4}, "n_discard"),
    (TEXT, {**fine, "n_keep": -2}, "n_keep"),
    (TEXT, {**fine, "n_keep": CONTEXT - 3}, "n_keep"),
    (TEXT, {**fine, "n_discard": CONTEXT + 1}, "n_discard"),
    (TEXT, {**fine, "prompt": [5] * CONTEXT}, "prompt"),
    ("/api/generate", {**ollama, "options": {}}, "shift: expected"),
):
    status, _, answer = server.ask("POST", path, body)
    check(status == 400 and field in str(answer["error"]), f"{body}: expected a 400 that names {field}, found {answer}")

# Who goes away in the middle leaves the slot to others.
body = json.dumps({**fine, "max_tokens": 1 << 20, "stream": True, "temperature": 1}).encode()
with socket.create_connection(("127.0.0.1", server.port), 10) as link:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    link.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    for _ in range(20):
        link.recv(2000)
check.equal(text_of(ask(bodies[2])), "".join(wanted[2][0]), "behind a client that went away")
for _ in range(100):
    if not any(each["is_processing"] for each in server.ask("GET", "/slots")[2]):
        break
    time.sleep(0.1)
check(not any(each["is_processing"] for each in server.ask("GET", "/slots")[2]), "its slot is free")
check.equal(server.stop(), 0, "the end")

# Drafts change nothing.
flags = ["--prompt-lookup", "3", "--draft", llama, "--draft-max", "3"]
other = Server("--model", llama, "--context", str(CONTEXT), "--slots", "4", *flags)
answer = ask(bodies[0], other)
check.equal(text_of(answer), "".join(wanted[0][0]), "with drafts")
check.equal(shifts_of(answer), wanted[0][1:], "with drafts: what was dropped")
check.equal(other.stop(), 0, "the end")
check.end("shift", begun)
