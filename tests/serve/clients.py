#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frameworks' own clients, unmodified, each in the mode that it takes by default: text, stream, forms, tools. Arguments
are the clients to try. Fable follows no instruction: calls and forms are well formed because the grammar demands
it."""

import json
import os
import subprocess
import sys
import tempfile
import time
import typing

import pydantic

from server import Checks, Server

begun = time.time()
check = Checks()
STORY = "Once upon a time, there was a brave mouse named Pepper."
QUESTION = "Tell me a story about a brave mouse."
NAME = "fable"


class Mouse(pydantic.BaseModel):
    name: typing.Annotated[str, pydantic.Field(max_length=8)]
    age: typing.Annotated[int, pydantic.Field(ge=1, le=9)]
    brave: bool


def weather(city: typing.Annotated[str, pydantic.Field(max_length=8)], unit: typing.Literal["C", "F"]) -> str:
    """Weather of a town."""
    return f"21 {unit} in {city}"


def holds(call, arguments, what):
    check(call == "weather" and isinstance(arguments["city"], str) and arguments["unit"] in ("C", "F"),
          f"{what}: expected a call of weather, found {call} {arguments}")


def langchain(url):
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    model = ChatOpenAI(base_url=url, api_key="none", model=NAME, temperature=0, max_tokens=120)
    check(model.invoke(QUESTION).content.startswith(STORY), "langchain: a text")
    pieces = [each.content for each in model.stream(QUESTION)]
    check("".join(pieces).startswith(STORY) and len(pieces) > 5, f"langchain: a stream, found {pieces}")
    check(isinstance(model.with_structured_output(Mouse).invoke(QUESTION), Mouse), "langchain: a form")
    by_call = model.with_structured_output(Mouse, method="function_calling").invoke(QUESTION)
    check(isinstance(by_call, Mouse), f"langchain: a form by a call, found {by_call!r}")
    call = model.bind_tools([tool(weather)], tool_choice="any").invoke(QUESTION).tool_calls[0]
    holds(call["name"], call["args"], "langchain")
    # Not token ids, which OpenAI's servers alone share with this client.
    vectors = OpenAIEmbeddings(base_url=url, api_key="none", model=NAME, check_embedding_ctx_length=False)
    found = vectors.embed_documents(["a mouse", "a cat"])
    check(len(found) == 2 and len(found[0]) == len(found[1]) > 0 and found[0] != found[1], "langchain: vectors")


def litellm(url):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no outside host
    import litellm as client

    ask = lambda **more: client.completion(**{
        "model": "openai/" + NAME, "api_base": url, "api_key": "none", "temperature": 0, "max_tokens": 120,
        "messages": [{"role": "user", "content": QUESTION}], **more})
    check(ask().choices[0].message.content.startswith(STORY), "litellm: a text")
    text = "".join(each.choices[0].delta.content or "" for each in ask(stream=True))
    check(text.startswith(STORY), f"litellm: a stream, found {text}")
    check(isinstance(Mouse.model_validate_json(ask(response_format=Mouse).choices[0].message.content), Mouse),
          "litellm: a form")
    call = ask(tools=[{"type": "function", "function": {"name": "weather", "parameters": schema_of_weather()}}],
               tool_choice="required").choices[0].message.tool_calls[0].function
    holds(call.name, json.loads(call.arguments), "litellm")
    try:
        ask(messages=[{"role": "user", "content": "mouse " * 4000}])
        check(False, "litellm: a text longer than the context: expected ContextWindowExceededError, found an answer")
    except client.ContextWindowExceededError:
        check(True, "")
    # Ollama's and Anthropic's ways of the same client.
    ollama = ask(model="ollama_chat/" + NAME, api_base=url.removesuffix("/v1"))
    check(ollama.choices[0].message.content.startswith(STORY), "litellm: Ollama's API")
    # A model that litellm does not know is taken for one that has no temperature but 1.
    claude = ask(model="anthropic/" + NAME, api_base=url.removesuffix("/v1"), temperature=1)
    check(claude.choices[0].message.content.strip() and claude.usage.completion_tokens > 1, "litellm: Anthropic's API")


def llama_index(url):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(api_base=url, api_key="none", model=NAME, is_chat_model=True, temperature=0, max_tokens=120,
                       context_window=512, is_function_calling_model=True, should_use_structured_outputs=True)
    asked = [ChatMessage(role="user", content=QUESTION)]
    check(model.chat(asked).message.content.startswith(STORY), "llama-index: a text")
    pieces = [each.delta or "" for each in model.stream_chat(asked)]
    check("".join(pieces).startswith(STORY) and len(pieces) > 5, f"llama-index: a stream, found {pieces}")
    check(isinstance(model.as_structured_llm(Mouse).chat(asked).raw, Mouse), "llama-index: a form")


def pydantic_ai(url):
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.settings import ModelSettings

    by = OpenAIProvider(base_url=url, api_key="none")
    settings = ModelSettings(temperature=0, max_tokens=120)
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model, name = kind(NAME, provider=by), f"pydantic-ai, {kind.__name__}"
        check(Agent(model, model_settings=settings).run_sync(QUESTION).output.startswith(STORY), f"{name}: a text")
        check(isinstance(Agent(model, output_type=Mouse, model_settings=settings).run_sync(QUESTION).output, Mouse),
              f"{name}: a form by a tool, its default")
        form = Agent(model, output_type=NativeOutput(Mouse), model_settings=settings).run_sync(QUESTION).output
        check(isinstance(form, Mouse), f"{name}: a form, found {form!r}")


def instructor(url):
    import instructor as client
    import openai

    by = openai.OpenAI(base_url=url, api_key="none")
    for mode in (client.Mode.TOOLS, client.Mode.JSON_SCHEMA):
        found = client.from_openai(by, mode=mode).chat.completions.create(
            model=NAME, response_model=Mouse, max_tokens=120, temperature=0, max_retries=0,
            messages=[{"role": "user", "content": QUESTION}])
        check(isinstance(found, Mouse), f"instructor, {mode}: found {found!r}")


def llm(url):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "extra-openai-models.yaml"), "w") as file:
            file.write(f"- model_id: here\n  model_name: {NAME}\n  api_base: {url}\n  supports_schema: true\n")
        run = lambda *more: subprocess.run(
            [
                os.path.join(os.path.dirname(sys.executable), "llm"),
                "-m",
                "here",
                "-o",
                "temperature",
                "0",
                "-o",
                "max_tokens",
                "60",
                *more,
                QUESTION,
            ],
            env={**os.environ, "LLM_USER_PATH": folder, "OPENAI_API_KEY": "none"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        for more in ((), ("--no-stream",)):
            found = run(*more)
            check(found.stdout.startswith(STORY), f"llm {' '.join(more)}: found {found.stdout} {found.stderr[-400:]}")
        form = run("--schema", json.dumps(Mouse.model_json_schema()))
        try:
            check(isinstance(Mouse.model_validate_json(form.stdout), Mouse), "llm: a form")
        except pydantic.ValidationError as problem:
            check(False, f"llm: a form: {problem} {form.stderr[-400:]}")


def schema_of_weather():
    return {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "unit": {"enum": ["C", "F"]}},
            "required": ["city", "unit"], "additionalProperties": False}


def main():
    server = Server()
    for each in (langchain, litellm, llama_index, pydantic_ai, instructor, llm):
        if sys.argv[1:] and each.__name__ not in sys.argv[1:]:
            continue
        began = time.time()
        try:
            each(server.url + "/v1")
        except Exception as problem:  # a client that breaks is one failure, and the next is tried
            check(False, f"{each.__name__}: {type(problem).__name__}: {str(problem)[:600]}")
        print(f"{each.__name__}: {time.time() - began:.1f} s", flush=True)
    check.equal(server.stop(), 0, "exit code")
    check.end("frameworks", begun)


main()
