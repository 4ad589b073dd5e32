#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The other APIs of the server by their own clients, unmodified: OpenAI's responses, Anthropic's messages, Ollama's;
and what other servers' clients ask for."""

import json
import re
import time

import anthropic
import ollama
import openai

from server import Checks, Server

begun = time.time()
check = Checks()
server = Server("--api-key", "secret key")
key = {"Authorization": "Bearer secret key"}
story = "Tell me a story about a brave mouse."
expected = "Once upon a time, there was a brave mouse named Pepper."
schema = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}


def refused(kind, status, what, call):
    try:
        check(False, f"{what}: expected a refusal, found {call()}")
    except kind as problem:
        check.equal(getattr(problem, "status_code", None), status, f"{what}: the status of {problem}")
        return str(problem)
    return ""


# OpenAI's responses.
client = openai.OpenAI(base_url=server.url + "/v1", api_key="secret key", max_retries=0)
ask = lambda **more: client.responses.create(
    **{"model": "fable", "input": story, "temperature": 0, "max_output_tokens": 20, **more}
)
first = ask()
check(first.output_text.startswith(expected[:40]), f"a response, found {first.output_text!r}")
check.equal(
    (first.status, first.incomplete_details.reason, first.usage.output_tokens),
    ("incomplete", "max_output_tokens", 20),
    "its end",
)
events = list(ask(stream=True))
check.equal(
    "".join(each.delta for each in events if each.type == "response.output_text.delta"),
    first.output_text,
    "the same as a stream",
)
check.equal(
    (events[0].type, events[-1].type, events[-1].response.output_text),
    ("response.created", "response.incomplete", first.output_text),
    "its first and last events",
)
check.equal([each.sequence_number for each in events], list(range(len(events))), "events in order")
with client.responses.stream(
    model="fable", input=story, temperature=0, text={"format": {"type": "json_schema", "name": "x", "schema": schema}}
) as stream:
    check.equal(
        sorted(json.loads(stream.until_done().get_final_response().output_text)),
        ["city", "unit"],
        "the client's own collector",
    )
after = ask(input="And then?", previous_response_id=first.id)
written = ask(
    input=[
        {"role": "user", "content": story},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "And then?"},
    ]
)
check.equal(
    (after.output_text, after.usage.input_tokens),
    (written.output_text, written.usage.input_tokens),
    "gone on from a response",
)
# The client writes include[]= into the query.
for more in ({}, {"include": ["reasoning.encrypted_content", "file_search_call.results"]}):
    stored = client.responses.retrieve(first.id, **more)
    check.equal(stored.output_text, first.output_text, f"a response that is stored, {more}")
parts = ["message.output_text.logprobs"]
refused(openai.BadRequestError, 400, "its parts", lambda: client.responses.retrieve(first.id, include=parts))
client.responses.delete(first.id)
refused(openai.NotFoundError, 404, "a response that is gone", lambda: client.responses.retrieve(first.id))
refused(openai.NotFoundError, 404, "a previous response that is gone", lambda: ask(previous_response_id=first.id))
refused(
    openai.NotFoundError, 404, "one that was not to be stored", lambda: client.responses.retrieve(ask(store=False).id)
)
tool = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": schema, "strict": True}
called = ask(
    input="Rome?", tools=[tool], tool_choice="required", parallel_tool_calls=False, max_output_tokens=120, temperature=1
)
check.equal([each.type for each in called.output], ["function_call"], "a call")
check.equal(sorted(json.loads(called.output[0].arguments)), ["city", "unit"], "its arguments")
with_result = ask(
    input=[{"type": "function_call_output", "call_id": called.output[0].call_id, "output": "sunny"}],
    previous_response_id=called.id,
    tools=[tool],
    tool_choice="none",
)
check.equal([each.type for each in with_result.output], ["message"], "an answer behind the result")
events = list(
    ask(
        input="Rome?",
        tools=[tool],
        tool_choice={"type": "function", "name": "get_weather"},
        max_output_tokens=120,
        stream=True,
    )
)
done = next(each for each in events if each.type == "response.function_call_arguments.done")
check.equal(
    "".join(each.delta for each in events if each.type == "response.function_call_arguments.delta"),
    done.arguments,
    "arguments as a stream",
)
form = ask(
    input="Rome?", text={"format": {"type": "json_schema", "name": "x", "schema": schema}}, max_output_tokens=100
)
check.equal(sorted(json.loads(form.output_text)), ["city", "unit"], "a form")
long = [
    {"role": role, "content": f"{i} mouse and a cat went home." * 12}
    for i in range(3)
    for role in ("user", "assistant")
] + [{"role": "user", "content": story}]
refused(openai.BadRequestError, 400, "a conversation over the context", lambda: ask(input=long))
cut = ask(input=long, truncation="auto", instructions="Be kind.")
check(
    (cut.truncation, cut.status) == ("auto", "incomplete")
    and cut.usage.input_tokens_details.truncated_messages in (2, 4),
    f"the oldest turns are left out, found {cut.usage}",
)
check.equal(
    cut.output_text,
    ask(input=long[cut.usage.input_tokens_details.truncated_messages :], instructions="Be kind.").output_text,
    "as if they had never been",
)
for more, field in [
    ({"truncation": "middle"}, "truncation"),
    ({"background": True}, "background"),
    ({"input": [{"type": "web_search_call", "id": "1"}]}, "input[0].type"),
    ({"extra_body": {"temprature": 1}}, "temprature"),
    ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
]:
    check(field in refused(openai.BadRequestError, 400, field, lambda: ask(**more)), f"{field} is named")

# Anthropic's messages.
claude = anthropic.Anthropic(base_url=server.url, api_key="secret key", max_retries=0)
# Its newest clients have no argument for the temperature.
say = lambda temperature=0, extra_body=None, **more: claude.messages.create(
    **{
        "model": "fable",
        "max_tokens": 20,
        "messages": [{"role": "user", "content": story}],
        "extra_body": {"temperature": temperature, **(extra_body or {})},
        **more,
    }
)
message = say()
check.equal(
    (message.content[0].text, message.stop_reason, message.usage.output_tokens),
    (first.output_text, "max_tokens", 20),
    "a message",
)
# These put ?beta=true behind the path, and what they list by into a query.
beta = claude.beta.messages.create(
    model="fable", max_tokens=20, extra_body={"temperature": 0}, messages=[{"role": "user", "content": story}]
)
check.equal(beta.content[0].text, message.content[0].text, "a message of the client's beta part")
check.equal([each.id for each in claude.models.list(limit=5)], ["fable"], "models as Anthropic's client lists them")
check.equal(claude.beta.models.retrieve("fable").id, "fable", "a model by the client's beta part")
with claude.messages.stream(
    model="fable", max_tokens=20, extra_body={"temperature": 0}, messages=[{"role": "user", "content": story}]
) as stream:
    check.equal("".join(stream.text_stream), message.content[0].text, "the same as a stream")
    check.equal(stream.get_final_message().stop_reason, "max_tokens", "its end")
stopped = say(stop_sequences=["mouse", "never"], max_tokens=60)
check.equal((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", "mouse"), "a stop sequence")
counted = claude.messages.count_tokens(model="fable", system="Be brief.", messages=[{"role": "user", "content": story}])
usage = say(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]).usage
check.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens, "tokens counted")
going_on = say(
    messages=[
        {"role": "user", "content": story},
        {"role": "assistant", "content": "Once upon a time, there was a brave"},
    ]
)
check(
    going_on.content[0].text.startswith(" mouse named Pepper"),
    f"the assistant's words are gone on with, found {going_on.content}",
)
claude_tool = {"name": "get_weather", "description": "Weather.", "input_schema": schema}
used = say(tools=[claude_tool], tool_choice={"type": "tool", "name": "get_weather"}, max_tokens=120, temperature=1)
check.equal(
    (used.stop_reason, [each.type for each in used.content], sorted(used.content[0].input)),
    ("tool_use", ["tool_use"], ["city", "unit"]),
    "a call",
)
with claude.messages.stream(
    model="fable",
    max_tokens=120,
    messages=[{"role": "user", "content": "Rome?"}],
    tools=[claude_tool],
    tool_choice={"type": "any", "disable_parallel_tool_use": True},
) as stream:
    last = stream.get_final_message()
    check.equal((last.stop_reason, sorted(last.content[0].input)), ("tool_use", ["city", "unit"]), "a call as a stream")
answer = say(
    tools=[claude_tool],
    messages=[
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": used.content},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": used.content[0].id,
                    "content": [{"type": "text", "text": "sunny"}],
                },
                {"type": "text", "text": "Well?"},
            ],
        },
    ],
    tool_choice={"type": "none"},
)
check.equal([each.type for each in answer.content], ["text"], "an answer behind the result")
refused(
    anthropic.AuthenticationError,
    401,
    "another key",
    lambda: anthropic.Anthropic(base_url=server.url, api_key="other", max_retries=0).messages.create(
        model="fable", max_tokens=5, messages=[{"role": "user", "content": "a"}]
    ),
)
for more, field in [
    (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}],
                }
            ]
        },
        "messages[0].content[0].type",
    ),
    ({"extra_body": {"max_token": 5}}, "max_token"),
    ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking.type"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
]:
    check(field in refused(anthropic.BadRequestError, 400, field, lambda: say(**more)), f"{field} is named")
check.equal(
    server.ask("POST", "/v1/messages", {"max_tokens": 5, "messages": []}, key)[2]["type"],
    "error",
    "Anthropic's shape of errors",
)

# Embeddings, by OpenAI's client and Ollama's.
embed = lambda text, **more: client.embeddings.create(
    **{"model": "fable", "input": text, "encoding_format": "float", **more}
)
length = lambda vector: sum(each * each for each in vector) ** 0.5
alone, both = embed(story), embed([story, "Rome is a city."])
check(
    abs(length(alone.data[0].embedding) - 1) < 1e-5 and alone.usage.prompt_tokens == alone.usage.total_tokens > 5,
    f"a vector of length 1, found {alone.usage}",
)
check(
    both.data[0].embedding == alone.data[0].embedding != both.data[1].embedding
    and [each.index for each in both.data] == [0, 1],
    "two texts",
)
coded = client.embeddings.create(model="fable", input=story)  # the client asks for base64 by itself
check(max(abs(x - y) for x, y in zip(coded.data[0].embedding, alone.data[0].embedding)) < 1e-7, "base64")
ids = server.ask("POST", "/tokenize", {"content": story, "add_special": True}, key)[2]["tokens"]
check.equal(embed(ids).data[0].embedding, alone.data[0].embedding, "token ids")
short = embed(story, dimensions=8).data[0].embedding
check(
    len(short) == 8
    and abs(length(short) - 1) < 1e-5
    and abs(short[0] / short[1] - alone.data[0].embedding[0] / alone.data[0].embedding[1]) < 1e-4,
    "the first dimensions",
)
beside = ask(stream=True)
next(iter(beside))
check.equal(embed(story).data[0].embedding, alone.data[0].embedding, "beside a generation")
check.equal(
    "".join(each.delta for each in beside if each.type == "response.output_text.delta"),
    first.output_text,
    "which says what it would",
)
for more, field in [
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": [1 << 40]}, "input[0]"),
    ({"input": "mouse " * 600}, "input"),
    ({"dimensions": 100_000}, "dimensions"),
    ({"extra_body": {"pool": 1}}, "pool"),
    ({"encoding_format": "int8"}, "encoding_format"),
]:
    check(
        field in refused(openai.BadRequestError, 400, field, lambda: embed(more.pop("input", story), **more)),
        f"{field} is named",
    )
local = ollama.Client(host=server.url, headers=key)
check.equal(
    list(local.embed(model="fable", input=[story, "x"]).embeddings[0]), alone.data[0].embedding, "Ollama's client"
)
check.equal(list(local.embeddings(model="fable", prompt=story).embedding), alone.data[0].embedding, "its older path")
check(
    local.embed(model="fable", input="mouse " * 600).prompt_eval_count == 512,
    "texts are cut where nothing else is asked for",
)
refused(
    ollama.ResponseError,
    400,
    "but not always",
    lambda: local.embed(model="fable", input="mouse " * 600, truncate=False),
)
check(
    "/v1/embeddings" in server.ask("POST", "/v1/rerank", {"query": "x", "documents": ["y"]}, key)[2]["error"][
        "message"
    ],
    "what to do in place of ranking",
)

# Forms of other servers' clients.
text = (
    lambda **more: client.completions.create(
        model="fable", prompt=story, max_tokens=40, seed=1, temperature=1, extra_body=more
    )
    .choices[0]
    .text
)
check(
    re.fullmatch(r"[A-Z][a-z]{2,6} is \d\d\.", text(guided_regex=r"[A-Z][a-z]{2,6} is \d\d\.")), "a regular expression"
)
check(
    re.fullmatch(r"(yes|no)( \u00fc+)?!", text(grammar='root ::= ("yes" | "no") (" " [\\u00fc]+)? "!"')),
    "a grammar of llama.cpp",
)
check(text(structured_outputs={"regex": "a|b"}) in ("a", "b"), "vLLM's field")
for more, words in [
    ({"guided_regex": "("}, "guided_regex"),
    ({"grammar": "root ::= x"}, "definition of the rule 'x'"),
    ({"guided_regex": "a", "grammar": 'root ::= "a"'}, "second form"),
]:
    check(words in refused(openai.BadRequestError, 400, words, lambda: text(**more)), f"{words} is reported")

check(
    "suffix: expected nothing: the model has no tokens around a gap" in refused(
        openai.BadRequestError, 400, "a gap", lambda: client.completions.create(model="fable", prompt="a", suffix="b")
    ),
    "a gap is for models that know one",
)
check.equal(
    server.ask("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"}, key)[0], 400, "by llama.cpp's path"
)

# Ollama's.
local = ollama.Client(host=server.url, headers=key)
check.equal([each.model for each in local.list().models], ["fable:latest"], "models")
check("tools" in local.show("fable:latest").capabilities, "capabilities")
options = {"temperature": 0, "num_predict": 20, "num_ctx": 512}
chat = local.chat("fable:latest", [{"role": "user", "content": story}], options=options)
check.equal(
    (chat.message.content, chat.done_reason, chat.eval_count), (message.content[0].text, "length", 20), "a chat"
)
parts = list(local.chat("fable", [{"role": "user", "content": story}], options=options, stream=True))
check.equal("".join(each.message.content or "" for each in parts), chat.message.content, "the same as a stream")
check(parts[-1].done and not parts[0].done and parts[-1].eval_duration > 0, f"its end, found {parts[-1]}")
check.equal(local.generate("fable", story, options=options).response, chat.message.content, "a text for a prompt")
check(local.generate("fable", "Once upon a time", raw=True, options=options).response, "a raw prompt")
check.equal(local.generate("fable").done_reason, "load", "nothing but to load it")
made = local.chat(
    "fable", [{"role": "user", "content": "Rome?"}], format=schema, options={**options, "num_predict": 100}
)
check.equal(sorted(json.loads(made.message.content)), ["city", "unit"], "a form")
with_tools = local.chat(
    "fable",
    [
        {"role": "user", "content": "Rome?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Rome", "unit": "C"}}}],
        },
        {"role": "tool", "content": "sunny", "tool_name": "get_weather"},
    ],
    tools=[{"type": "function", "function": {"name": "get_weather", "parameters": schema}}],
    options=options,
)
check(with_tools.message.content is not None, "an answer behind a result")
status, _, text = server.ask(
    "POST", "/api/chat", {"model": "other", "messages": [{"role": "user", "content": "a"}]}, key
)
check.equal((status, "model" in text["error"]), (404, True), "Ollama's shape of errors")
check.equal(
    server.ask(
        "POST",
        "/api/chat",
        {"model": "fable", "messages": [{"role": "user", "content": "a"}], "options": {"mirostat": 2}},
        key,
    )[0],
    400,
    "an option that is not done",
)

# What clients of other servers ask for.
raw = lambda body, path="/v1/completions": server.ask("POST", path, body, key)[2]
once = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 8}
plain = raw(once)["choices"][0]["text"]
check.equal(raw({**once, "echo": True})["choices"][0]["text"], once["prompt"] + plain, "the prompt repeated")
ids = raw({"content": plain}, "/tokenize")["tokens"]
ended = raw({**once, "stop_token_ids": [ids[2]]})["choices"][0]
check.equal(
    (ended["finish_reason"], ended["text"]),
    ("stop", raw({"tokens": ids[:2]}, "/detokenize")["content"]),
    "a token that ends it",
)
other = raw({**once, "suppress_tokens": [ids[2]]})["choices"][0]["text"]
check(
    other != plain and ids[2] not in raw({"content": other}, "/tokenize")["tokens"],
    f"a token that is not drawn: {other!r} in place of {plain!r}",
)
check.equal(
    raw({**once, "max_tokens": 490, "ignore_eos": True})["usage"]["completion_tokens"], 490, "on beyond the end"
)
short = raw({**once, "max_tokens": 490})["usage"]["completion_tokens"]
check(
    short < 490
    and raw({**once, "max_tokens": 490, "min_tokens": short + 5})["usage"]["completion_tokens"] >= short + 5,
    "as many tokens at least",
)
letters = {**once, "max_tokens": 60, "guided_regex": "[a-z]{1,30}"}
least = raw({**letters, "min_tokens": 12})
check(
    least["usage"]["completion_tokens"] >= 12 or len(least["choices"][0]["text"]) == 30,
    f"as many tokens of a form at least: {least}",
)
check.equal(len(raw({**letters, "ignore_eos": True})["choices"][0]["text"]), 30, "a form that is full ends the text")
check(
    "User: " + story in raw({"messages": [{"role": "user", "content": story}]}, "/apply-template")["prompt"],
    "the template applied",
)
props = server.ask("GET", "/props", None, key)[2]
check.equal(
    (props["default_generation_settings"]["n_ctx"], props["tool_calls"], props["thinks"]),
    (512, "prompted", False),
    "properties",
)
for path in ("/api/tags", "/props", "/v1/responses/none"):
    check.equal(server.ask("GET", path)[0], 401, f"{path} without the key")
check.end("apis", begun)
