#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenAI's own client, unmodified, against intaglio-serve: chat, text, streams, log probabilities, forms, errors,
cancelling."""

import json
import math
import time

import jsonschema
import openai
from pydantic import BaseModel

from server import Checks, Server

begun = time.time()
check = Checks()
server = Server()
client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
story = [{"role": "user", "content": "Tell me a story about a brave mouse."}]
model = client.models.list().data[0].id
check.equal(client.models.retrieve(model).id, "fable", "the model")

greedy = client.chat.completions.create(model=model, messages=story, temperature=0, max_tokens=60)
text = greedy.choices[0].message.content
check(text.startswith("Once upon a time, there was a brave mouse named Pepper."), f"README's story, found {text!r}")
check.equal(
    (greedy.choices[0].finish_reason, greedy.usage.completion_tokens, greedy.usage.total_tokens),
    ("length", 60, 60 + greedy.usage.prompt_tokens),
    "its end and counts",
)

pieces = list(
    client.chat.completions.create(
        model=model, messages=story, temperature=0, max_tokens=60, stream=True, stream_options={"include_usage": True}
    )
)
check.equal(
    "".join(each.choices[0].delta.content or "" for each in pieces if each.choices), text, "the same text as a stream"
)
check.equal(pieces[0].choices[0].delta.role, "assistant", "the first piece")
check.equal(pieces[-1].usage.completion_tokens, 60, "usage at the end")
check.equal(
    [each.choices[0].finish_reason for each in pieces if each.choices and each.choices[0].finish_reason],
    ["length"],
    "one end",
)
check(len(pieces) > 5, f"a stream in pieces, found {len(pieces)}")

# Seeds, choices, what is drawn on the host and on the device.
sampled = dict(
    model=model,
    messages=story,
    temperature=0.9,
    top_p=0.9,
    max_tokens=40,
    extra_body={"top_k": 50, "min_p": 0.02, "repetition_penalty": 1.1},
)
a, b = (client.chat.completions.create(**sampled, seed=7).choices[0].message.content for _ in range(2))
check.equal(a, b, "the same seed")
check(a != client.chat.completions.create(**sampled, seed=8).choices[0].message.content, "another seed")
on_host = client.chat.completions.create(**sampled, seed=7, logprobs=True, top_logprobs=3)
check.equal(on_host.choices[0].message.content, a, "drawn on the host as on the device")
several = client.chat.completions.create(**sampled, seed=7, n=3)
check.equal([each.index for each in several.choices], [0, 1, 2], "choices")
check.equal(several.choices[0].message.content, a, "the first choice")
check.equal(len({each.message.content for each in several.choices}), 3, "different choices")
streamed = {}
for each in client.chat.completions.create(**sampled, seed=7, n=3, stream=True):
    streamed[each.choices[0].index] = streamed.get(each.choices[0].index, "") + (each.choices[0].delta.content or "")
check.equal([streamed[i] for i in range(3)], [each.message.content for each in several.choices], "choices as a stream")

# Log probabilities.
entries = on_host.choices[0].logprobs.content
check.equal("".join(bytes(each.bytes).decode() for each in entries), a, "tokens' bytes are the text")
for each in entries:
    check(
        each.logprob <= 0
        and len(each.top_logprobs) == 3
        and all(x.logprob >= y.logprob for x, y in zip(each.top_logprobs, each.top_logprobs[1:])),
        f"{each.token!r} in order",
    )
top = (
    client.chat.completions.create(
        model=model, messages=story, temperature=0, max_tokens=1, logprobs=True, top_logprobs=20
    )
    .choices[0]
    .logprobs.content[0]
)
check(0.5 < sum(math.exp(each.logprob) for each in top.top_logprobs) <= 1 + 1e-6, "probabilities")
check.equal(top.token, top.top_logprobs[0].token, "greedy takes the likeliest")
old = client.completions.create(model=model, prompt="Once upon a time", max_tokens=5, temperature=0, logprobs=2)
check.equal(
    (
        "".join(old.choices[0].logprobs.tokens),
        len(old.choices[0].logprobs.top_logprobs[0]),
        old.choices[0].logprobs.text_offset[0],
    ),
    (old.choices[0].text, 2, 0),
    "log probabilities of a text",
)

# Texts, stop strings across tokens, biases, penalties.
whole = client.completions.create(model=model, prompt="Once upon a time", max_tokens=40, temperature=0).choices[0].text
at = whole.index("e", 10)
for stop in (whole[at:at + 9], [whole[at + 3:at + 20], whole[at:at + 9]]):
    ended = client.completions.create(model=model, prompt="Once upon a time", max_tokens=40, temperature=0, stop=stop)
    check.equal(
        (ended.choices[0].text, ended.choices[0].finish_reason),
        (whole[: whole.index(whole[at : at + 9])], "stop"),
        f"stop {stop!r}",
    )
    check.equal(
        "".join(
            each.choices[0].text
            for each in client.completions.create(
                model=model, prompt="Once upon a time", max_tokens=40, temperature=0, stop=stop, stream=True
            )
        ),
        ended.choices[0].text,
        "stop in a stream",
    )
check.equal(
    len(client.completions.create(model=model, prompt=["Once", "The mouse"], n=2, max_tokens=3).choices),
    4,
    "prompts and choices",
)
ids = client.post("/tokenize".replace("/", server.url + "/", 1), body={"content": " mouse"}, cast_to=object)["tokens"]
check.equal(
    client.post(server.url + "/detokenize", body={"tokens": ids}, cast_to=object)["content"],
    " mouse",
    "tokens and back",
)
check.equal(
    client.completions.create(model=model, prompt=ids, max_tokens=2, temperature=0).usage.prompt_tokens,
    len(ids),
    "a prompt of tokens",
)
forced = client.completions.create(
    model=model, prompt="Once upon a time", max_tokens=3, temperature=0, logit_bias={str(ids[0]): 100}
)
check.equal(forced.choices[0].text, " mouse" * 3 if len(ids) == 1 else forced.choices[0].text, "a bias")
for penalty in ("frequency_penalty", "presence_penalty"):
    other = (
        client.completions.create(model=model, prompt="Once upon a time", max_tokens=60, temperature=0, **{penalty: 2})
        .choices[0]
        .text
    )
    plain = (
        client.completions.create(model=model, prompt="Once upon a time", max_tokens=60, temperature=0).choices[0].text
    )
    check(other != plain, penalty)
same = (
    client.completions.create(
        model=model, prompt="Once upon a time", max_tokens=60, temperature=0, presence_penalty=1e-9
    )
    .choices[0]
    .text
)
check.equal(same, plain, "a penalty of next to nothing, drawn on the host")


# Forms: what comes always parses and holds to the schema, hot, cut short or not.
class Mouse(BaseModel):
    name: str
    age: int
    brave: bool
    friends: list[str]


parsed = client.chat.completions.parse(
    model=model, messages=story, response_format=Mouse, temperature=0, max_tokens=120
)
check(isinstance(parsed.choices[0].message.parsed, Mouse), f"a pydantic model, found {parsed.choices[0].message}")
schemas = [
    Mouse.model_json_schema(),
    {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": -17, "maximum": 250},
            "b": {"type": ["string", "null"], "minLength": 2, "maxLength": 5},
            "ü": {"const": "Grüße"},
        },
        "required": ["a", "ü"],
    },
    {
        "type": "array",
        "items": {"anyOf": [{"type": "number"}, {"enum": ["x", None, {"y": [1]}]}]},
        "minItems": 2,
        "maxItems": 4,
    },
    {
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                },
                "required": ["value", "children"],
            }
        },
        "$ref": "#/$defs/tree",
    },
    {"type": "object", "additionalProperties": {"type": "boolean"}},
    {"type": "array", "prefixItems": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "string"}], "minItems": 2},
    {},
]
for schema in schemas:
    for seed, temperature, most in ((1, 2.0, 50), (3, 0.0, 80)):
        found = (
            client.chat.completions.create(
                model=model,
                messages=story,
                seed=seed,
                temperature=temperature,
                max_tokens=most,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "form", "schema": schema, "strict": True},
                },
            )
            .choices[0]
            .message.content
        )
        try:
            jsonschema.validate(json.loads(found), schema)
            check(True, "")
        except (ValueError, jsonschema.ValidationError) as problem:
            check(False, f"{schema} at temperature {temperature}: {found!r}: {problem}")
for seed in range(3):
    found = (
        client.chat.completions.create(
            model=model,
            messages=story,
            seed=seed,
            temperature=2,
            max_tokens=20 + seed,
            response_format={"type": "json_object"},
        )
        .choices[0]
        .message.content
    )
    check(isinstance(json.loads(found), dict), f"an object, found {found!r}")

# Errors are the client's own classes.
for kind, call in [
    (openai.NotFoundError, lambda: client.chat.completions.create(model="gpt-9", messages=story)),
    (openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=story, temperature=9)),
    (
        openai.BadRequestError,
        lambda: client.chat.completions.create(model=model, messages=[{"role": "user", "content": "x " * 3000}]),
    ),
    (openai.NotFoundError, lambda: client.moderations.create(model=model, input="x")),
]:
    try:
        call()
        check(False, f"expected {kind.__name__}, found an answer")
    except kind as error:
        check(isinstance(error.body, dict) and error.body["message"], f"{kind.__name__}: {error.body}")

# Who goes away stops the generation; the next one is served.
stream = client.chat.completions.create(model=model, messages=story, stream=True, temperature=1, logit_bias={"0": -1})
next(iter(stream))
stream.close()
check.equal(
    client.chat.completions.create(model=model, messages=story, temperature=0, max_tokens=60)
    .choices[0]
    .message.content,
    text,
    "the same text after a stream that was left",
)
check.equal(
    client.chat.completions.create(
        model=model, messages=story, temperature=0, max_tokens=60
    ).usage.prompt_tokens_details.cached_tokens,
    (greedy.usage.prompt_tokens - 1) // 8 * 8,
    "cached tokens, in pages of 8",
)
infer = client.post(server.url + "/v1/infer", body={"prompt": "Once upon a", "top": 3}, cast_to=object)
check(
    infer["predictions"][0]["token"] == " time"
    and len(infer["predictions"]) == 3
    and infer["mode"] == "dense"
    and infer["latency_ms"] > 0,
    f"infer: {infer}",
)
client.close()
check.equal(server.stop(), 0, "exit code")
check.end("openai", begun)
