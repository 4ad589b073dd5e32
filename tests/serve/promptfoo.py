#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""promptfoo, unmodified: an evaluation of chats, completions and responses of fable, of a form by a JSON schema and of
a call of a tool, with assertions that promptfoo itself checks. INTAGLIO_PROMPTFOO is its entrypoint.js, INTAGLIO_NODE
the node that runs it (22.22 or newer)."""

import json
import os
import subprocess
import tempfile
import time

from server import Checks, Server

begun = time.time()
check = Checks()
STORY = "Once upon a time, there was a brave mouse named Pepper."
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 1, "maximum": 9},
        "brave": {"type": "boolean"},
    },
    "required": ["name", "age", "brave"],
    "additionalProperties": False,
}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": CITY}}


def provider(name, url, **more):
    config = {"apiBaseUrl": url, "apiKey": "none", "temperature": 0, "max_tokens": 120, **more}
    return {"id": name, "label": f"{name} {sorted(more)}", "config": config}


def evaluation(url):
    story = [{"type": "starts-with", "value": STORY}]
    form = {"type": "json_schema", "json_schema": {"name": "mouse", "strict": True, "schema": SCHEMA}}
    chat, called = "openai:chat:fable", [{"type": "is-valid-openai-tools-call"}]
    cases = [
        (provider(chat, url), story),
        (provider(chat, url, stream=True), story),
        (provider("openai:responses:fable", url, max_output_tokens=120), story),
        (provider("openai:completion:fable", url), [{"type": "contains", "value": "brave"}]),
        (provider(chat, url, response_format=form), [{"type": "is-json", "value": SCHEMA}]),
        (provider(chat, url, tools=[TOOL], tool_choice="required"), called),
    ]
    tests = [{"vars": {}, "assert": asserts, "providers": [of["label"]]} for of, asserts in cases]
    return {
        "prompts": ["Tell me a story about a brave mouse."],
        "providers": [of for of, _ in cases],
        "tests": tests,
        "sharing": False,
    }


with tempfile.TemporaryDirectory() as folder:
    server = Server()
    with open(f"{folder}/evaluation.json", "w") as file:
        json.dump(evaluation(server.url + "/v1"), file)
    command = [os.environ.get("INTAGLIO_NODE", "node"), os.environ["INTAGLIO_PROMPTFOO"], "eval", "-c"]
    run = subprocess.run(
        [*command, f"{folder}/evaluation.json", "--no-cache", "--no-table", "-o", f"{folder}/results.json"],
        env={
            **os.environ,
            "PROMPTFOO_CONFIG_DIR": f"{folder}/config",
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
            "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    check.equal(run.returncode, 0, f"exit code: {run.stdout[-600:]} {run.stderr[-600:]}")
    with open(f"{folder}/results.json") as file:
        results = json.load(file)["results"]["results"]
    check.equal(len(results), 6, "results")
    for each in results:
        said = f"{each['provider']}: {each.get('error')} {str(each.get('response', {}).get('output'))[:200]}"
        check(each["success"], said)
        print(said[:200], flush=True)
    check.equal(server.stop(), 0, "exit code of the server")
check.end("promptfoo", begun)
