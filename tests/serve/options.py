#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Options that change how requests are read: --ignore-unknown passes over unknown fields and names in a
query, and over nothing else;
--chat-template takes a file, chatml or a family in place of the model's own; a model without a template gets ChatML,
which the log warns of."""

import os
import subprocess
import tempfile
import time

import models
from server import PROGRAM, Checks, Server

begun = time.time()
check = Checks()
shared = os.environ.get("INTAGLIO_SHARED", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared"))
without_template = os.path.join(shared, "models/stories260k/stories260K-f32.gguf")
CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
TALK = [{"role": "system", "content": "Be kind."}, USER, {"role": "assistant", "content": "Hello."}, USER]
folder = tempfile.TemporaryDirectory()


def written(name, text):
    path = os.path.join(folder.name, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def prompt_of(server, messages=TALK):
    status, _, answer = server.ask("POST", "/apply-template", {"messages": messages})
    return answer["prompt"] if status == 200 else answer


def warnings_of(server):
    return [each["detail"] for each in server.log if each["event"] == "warning"]


# Requests with an unknown field, at every depth, and the field's name.
good = {"messages": [USER], "max_tokens": 4, "temperature": 0}
form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "boolean"}, "strength": 3}}
CASES = [
    (CHAT, {**good, "temprature": 1}, "temprature"),
    (CHAT, {**good, "messages": [{**USER, "mood": "fine"}]}, "mood"),
    (CHAT, {**good, "stream_options": {"include_use": True}, "stream": True}, "include_use"),
    (CHAT, {**good, "response_format": form}, "strength"),
    (CHAT, {**good, "chat_template_kwargs": {"enable_thinkin": True}}, "enable_thinkin"),
    ("/v1/completions", {"prompt": "Once", "max_tokens": 4, "promt": 1}, "promt"),
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 4, "reasoning": {"efort": "low"}}, "efort"),
    ("/v1/messages", {"messages": [USER], "max_tokens": 4, "thinkng": {}}, "thinkng"),
    ("/v1/embeddings", {"input": "Hi", "dimension": 8}, "dimension"),
    ("/api/chat", {"messages": [USER], "stream": False, "options": {"num_predict": 4}, "keep": 1}, "keep"),
    ("/apply-template", {"messages": [USER], "templat": "x"}, "templat"),
    ("/tokenize", {"content": "Hi", "specal": True}, "specal"),
]


def texts(answer):
    return [each["message"]["content"] for each in answer["choices"]]


jinja = "{% for m in messages %}[{{ m.role | upper }}] {{ m.content }};{% endfor %}{% if add_generation_prompt %}>"
with_template = os.path.join(folder.name, "own.gguf")
models.write(without_template, with_template, "{{ messages[0].content }}")
strict = Server("--model", os.path.dirname(without_template))  # a folder with one GGUF file
talk = written("talk.jinja", jinja + "{% endif %}")
loose = Server("--model", with_template, "--ignore-unknown", "--chat-template", talk)
for path, unknown, name in CASES:
    status, _, answer = strict.ask("POST", path, unknown)
    check(status == 400 and name in str(answer), f"{path} with {name}: expected a 400 that names it, found {answer}")
    status, _, answer = loose.ask("POST", path, unknown)
    check.equal(status, 200, f"{path} with {name}, ignored ({answer})")
for method, path, body, name in [
    ("POST", CHAT + "?temprature=1", good, "temprature"),
    ("GET", "/v1/models?modle=x", None, "modle"),
    ("GET", "/slots?fail=1", None, "fail"),
]:
    status, _, answer = strict.ask(method, path, body)
    check(status == 400 and name in str(answer), f"{path}: expected a 400 that names {name}, found {answer}")
    check.equal(loose.ask(method, path, body)[0], 200, f"{path}, ignored")
check.equal(
    texts(loose.ask("POST", CHAT, {**good, "temprature": 1})[2]),
    texts(loose.ask("POST", CHAT, good)[2]),
    "an ignored field changes nothing",
)
# What is known is held to its range, and what promises a form is not passed over.
for body, name in [
    ({**good, "temperature": 99}, "temperature"),
    ({**good, "max_tokens": "four"}, "max_tokens"),
    ({**good, "response_format": {"type": "json_shema"}}, "response_format"),
    ({**good, "messages": 7}, "messages"),
    ({**good, "model": "nobody"}, "model"),
]:
    status, _, answer = loose.ask("POST", CHAT, body)
    check(status in (400, 404) and name in str(answer), f"{name}: refused though unknown fields are not: {answer}")

# Templates: that of no model, of a file in place of the model's own, and by name.
CHATML = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
)
check.equal(prompt_of(strict), CHATML, "a conversation by the fallback")
check(
    any("no chat template" in each and "ChatML" in each and "--chat-template" in each for each in warnings_of(strict)),
    f"the fallback is warned of, with the way out, found {strict.log}",
)
check.equal(strict.ask("POST", CHAT, good)[0], 200, "an answer by the fallback")
check.equal(
    (prompt_of(loose), warnings_of(loose)),
    ("[SYSTEM] Be kind.;[USER] Hi;[ASSISTANT] Hello.;[USER] Hi;>", []),
    "a conversation by a template's file",
)
check.equal((strict.stop(), loose.stop()), (0, 0), "exit codes")
BITNET = "System: Be kind.<|eot_id|>User: Hi<|eot_id|>Assistant: Hello.<|eot_id|>User: Hi<|eot_id|>Assistant: "
for chosen, expected in [("chatml", CHATML), ("bitnet", BITNET)]:
    server = Server("--model", with_template, "--chat-template", chosen)
    check.equal((prompt_of(server), warnings_of(server)), (expected, []), f"a conversation by --chat-template {chosen}")
    check.equal(server.stop(), 0, "exit code")
for flags, code, words in [
    (["--chat-template", os.path.join(folder.name, "none.jinja")], 1, ["--chat-template", "chatml", "none.jinja"]),
    (["--chat-template", "chatlm"], 1, ["--chat-template", "chatml", "chatlm"]),
    (["--chat-template", written("long.jinja", "x" * (2**20 + 1))], 1, ["--chat-template", "1 MiB"]),
    (["--chat-template", "chatml", "--models", folder.name], 1, ["--chat-template", "--models"]),
    (["--chat-template", written("broken.jinja", jinja)], 3, ["chat template", "line 1", "found the end"]),
]:
    run = subprocess.run([PROGRAM, "--port", "0", *flags], capture_output=True, text=True, timeout=60)
    check.equal(run.returncode, code, f"exit code of {flags}")
    check(all(each in run.stderr for each in words), f"{flags}: expected {words}, found {run.stderr!r}")
check.end("options", begun)
