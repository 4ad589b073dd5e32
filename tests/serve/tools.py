#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tools and thoughts by OpenAI's own client, of models that follow nothing: calls are well formed because the grammar
has them so."""

import json
import os
import subprocess
import sys
import tempfile
import time

import jsonschema
import openai

import models
from server import Checks, Server

begun = time.time()
check = Checks()
shared = os.environ.get("INTAGLIO_SHARED", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared"))
folder = tempfile.mkdtemp()
templates = json.load(open(os.path.join(shared, "conformance2/chat/goldens.json")))["templates"]
subprocess.run(
    [
        os.environ.get("INTAGLIO_PYTHON", sys.executable),
        os.path.join(shared, "conformance2/confgen2.py"),
        "expand",
        os.path.join(shared, "conformance2"),
        folder,
        "--model",
        "qwen3-tiny",
        "--match",
        "qwen3-tiny-bf16.gguf",
    ],
    check=True,
    stdout=subprocess.DEVNULL,
)
tiny = os.path.join(folder, "qwen3-tiny/gguf/qwen3-tiny-bf16.gguf")
weather = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a town.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 12},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
                "unit": {"enum": ["C", "F"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
now = {"type": "function", "function": {"name": "now"}}
schemas = {"get_weather": weather["function"]["parameters"], "now": {"type": "object", "maxProperties": 0}}
question = [{"role": "user", "content": "Weather in Rome?"}]


def good(calls, what):
    for each in calls:
        try:
            check(each.type == "function" and len(each.id) == 9, f"{what}: {each}")
            jsonschema.validate(json.loads(each.function.arguments), schemas[each.function.name])
        except (ValueError, KeyError, jsonschema.ValidationError) as problem:
            check(False, f"{what}: {each}: {problem}")


def trial(client, model, name):
    ask = lambda **more: client.chat.completions.create(
        **{"model": model, "messages": question, "tools": [weather, now], "max_tokens": 200, **more}
    )
    for seed, temperature in enumerate([0, 1, 2, 2]):
        reply = ask(tool_choice="required", seed=seed, temperature=temperature).choices[0]
        check(
            reply.finish_reason == "tool_calls" and reply.message.content is None and reply.message.tool_calls,
            f"{name}: a call that has to be, found {reply}",
        )
        good(reply.message.tool_calls or [], name)
    one = ask(tool_choice={"type": "function", "function": {"name": "get_weather"}}, seed=3)
    check.equal(
        [each.function.name for each in one.choices[0].message.tool_calls],
        ["get_weather"],
        f"{name}: the one that is named",
    )
    good(one.choices[0].message.tool_calls, name)
    check.equal(
        len(
            ask(tool_choice="required", parallel_tool_calls=False, seed=5, temperature=1.5)
            .choices[0]
            .message.tool_calls
        ),
        1,
        f"{name}: one call",
    )
    # The same as a stream, call by call.
    calls, text, ends, ids = {}, "", [], set()
    for each in ask(tool_choice="required", seed=1, temperature=1, stream=True):
        choice = each.choices[0]
        text += choice.delta.content or ""
        ends += [choice.finish_reason] if choice.finish_reason else []
        for part in choice.delta.tool_calls or []:
            if part.id:
                check(
                    part.index not in calls and part.type == "function" and part.function.name,
                    f"{name}: how a call begins, found {part}",
                )
                calls[part.index] = [part.function.name, ""]
                ids.add(part.id)
            calls[part.index][1] += part.function.arguments or ""
    whole = ask(tool_choice="required", seed=1, temperature=1).choices[0].message.tool_calls
    check.equal(
        [calls[i] for i in sorted(calls)],
        [[each.function.name, each.function.arguments] for each in whole],
        f"{name}: a stream",
    )
    check.equal((text, ends, len(ids)), ("", ["tool_calls"], len(whole)), f"{name}: its end")
    # Left to the model: what it writes is a text, or a good call, and no mark of one leaks.
    for seed in range(4):
        free = ask(seed=seed, temperature=2, max_tokens=60).choices[0]
        good(free.message.tool_calls or [], name)
        check(
            not any(
                mark in (free.message.content or "")
                for mark in ("<tool_call>", "[TOOL_CALLS]", "\N{REPLACEMENT CHARACTER}[TOOL")
            ),
            f"{name}: no mark, found {free}",
        )
        check(
            free.finish_reason in (("tool_calls",) if free.message.tool_calls else ("stop", "length")),
            f"{name}: its end, found {free.finish_reason}",
        )
    # A conversation goes on behind calls.
    call = one.choices[0].message.tool_calls[0]
    conversation = question + [
        one.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "{\"sky\": \"blue\"}"},
    ]
    after = ask(messages=conversation, tool_choice="none", max_tokens=8)
    check(
        after.choices[0].message.content is not None and not after.choices[0].message.tool_calls, f"{name}: an answer"
    )
    check(
        after.usage.prompt_tokens > ask(tool_choice="none", max_tokens=8).usage.prompt_tokens + 10,
        f"{name}: call and result are part of the prompt",
    )
    # Bounds: a call that could not end is refused, unknown functions and results too.
    for more, field in [
        ({"tool_choice": "required", "max_tokens": 5}, "max_tokens"),
        ({"tool_choice": {"type": "function", "function": {"name": "none"}}}, "tool_choice.function.name"),
        ({"messages": conversation[:2] + [{**conversation[2], "tool_call_id": "other"}]}, "messages[2].tool_call_id"),
    ]:
        try:
            check(False, f"{name}: {field}: expected a refusal, found {ask(**more)}")
        except openai.BadRequestError as refusal:
            check.equal(refusal.param, field, f"{name}: the field")


def served(path=None, *flags):
    server = Server(*(("--model", path) if path else ()), *flags)
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=200)
    return server, client, client.models.list().data[0].id


server, client, model = served()
trial(client, model, "prompted")  # fable's template knows no tools
server.stop()
gap = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
for name, control in (
    ("qwen3", gap),
    ("mistral-nemo", ["[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]),
):
    path = os.path.join(folder, name + ".gguf")
    models.write(tiny, path, templates[name]["template"], control, context=4096)
    server, client, model = served(path)
    trial(client, model, name)
    if name == "qwen3":
        ask = lambda **more: client.chat.completions.create(model=model, messages=question, **more)
        # A thought that the prompt has begun, or that a bias makes it begin, is recognised; a budget ends it.
        think = client.post(
            server.url + "/tokenize", body={"content": "<think>", "parse_special": True}, cast_to=object
        )["tokens"]
        close = client.post(
            server.url + "/tokenize", body={"content": "</think>", "parse_special": True}, cast_to=object
        )["tokens"]
        check.equal((len(think), len(close)), (1, 1), "marks of thoughts are tokens")
        begin = {str(think[0]): 100}
        limited = ask(
            max_tokens=40, temperature=0, logit_bias={**begin, str(close[0]): -100}, extra_body={"thinking_budget": 5}
        )
        message = limited.choices[0].message
        check(
            message.reasoning_content.startswith("<think>") or message.reasoning_content, f"a thought, found {message}"
        )
        check(1 <= limited.usage.completion_tokens_details.reasoning_tokens <= 7, f"its budget, found {limited.usage}")
        check(
            "</think>" not in (message.content or "") + message.reasoning_content, f"no mark in either, found {message}"
        )
        parts = list(
            ask(
                max_tokens=40,
                temperature=0,
                logit_bias={**begin, str(close[0]): -100},
                extra_body={"thinking_budget": 5},
                stream=True,
            )
        )
        check.equal(
            "".join(getattr(each.choices[0].delta, "reasoning_content", None) or "" for each in parts),
            message.reasoning_content,
            "the thought as a stream",
        )
        check.equal(
            "".join(each.choices[0].delta.content or "" for each in parts),
            message.content or "",
            "the text behind it as a stream",
        )
        form = ask(
            max_tokens=60,
            temperature=1,
            seed=1,
            response_format={
                "type": "json_schema",
                "json_schema": {
                    "name": "x",
                    "schema": {
                        "type": "object",
                        "properties": {"a": {"type": "boolean"}},
                        "required": ["a"],
                        "additionalProperties": False,
                    },
                },
            },
        )
        check("a" in json.loads(form.choices[0].message.content), f"a form beside thoughts, found {form.choices[0]}")
        # Texts around a gap, by three paths.
        count = lambda text: server.ask("POST", "/tokenize", {"content": text})[2]["count"]
        filled = client.completions.create(model=model, prompt="def f(", suffix="return 1", max_tokens=6, temperature=0)
        check.equal(
            filled.usage.prompt_tokens - count("def f(") - count("return 1") in (3, 4),
            True,
            "two texts, three marks, and a BOS where there is one",
        )
        filled_too = server.ask(
            "POST",
            "/infill",
            {"input_prefix": "def ", "prompt": "f(", "input_suffix": "return 1", "n_predict": 6, "temperature": 0},
        )[2]
        check.equal(
            (filled_too["content"], filled_too["tokens_predicted"]),
            (filled.choices[0].text, filled.usage.completion_tokens),
            "by llama.cpp's path",
        )
        check.equal(
            server.ask(
                "POST",
                "/api/generate",
                {
                    "model": model,
                    "prompt": "def f(",
                    "suffix": "return 1",
                    "stream": False,
                    "options": {"num_predict": 6, "temperature": 0},
                },
            )[2]["response"],
            filled.choices[0].text,
            "by Ollama's",
        )
        short = ask(max_tokens=4, extra_body={"chat_template_kwargs": {"enable_thinking": False}}).usage.prompt_tokens
        check(short > ask(max_tokens=4).usage.prompt_tokens, "thoughts switched off are in the prompt")
        check.equal(ask(max_tokens=4, reasoning_effort="none").usage.prompt_tokens, short, "by OpenAI's field")
    server.stop()
check.end("tools", begun)
