#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""aider, a command that edits code, as its users start it: two messages of a chat in a Git repository, with two edit
formats. The model follows no instruction: a grammar that aider sends with each request forces the form of the reply,
and the model draws the words in it. INTAGLIO_AIDER is the command."""

import concurrent.futures
import json
import os
import re
import select
import socket
import subprocess
import tempfile
import threading
import time

import models
from server import Checks, Server

begun = time.time()
check = Checks()
here = os.path.dirname(os.path.abspath(__file__))
folder = tempfile.mkdtemp()
AIDER = os.environ.get("INTAGLIO_AIDER", "aider")
CONTEXT = 8192
FILE = "greet.py"
END = "# The end.\n"
CODE = 'def greet():\n    return "hello"\n\n\n' + END
MESSAGES = ("Write a greeting into greet.py.", "Write another one.")
WORDS = "[a-z]{3,8} [a-z]{3,8}"
# For each edit format the reply, and the file behind it.
FORMATS = {
    "whole": (
        f"{FILE}\n```\n{CODE.replace('hello', 'WORDS')}```\n",
        lambda before, words: CODE.replace("hello", words),
    ),
    "diff": (
        f"{FILE}\n```python\n<<<<<<< SEARCH\n{END}=======\n# WORDS\n{END}>>>>>>> REPLACE\n```\n",
        lambda before, words: before.replace(END, f"# {words}\n{END}"),
    ),
}


class Relay:
    """Passes connections on to a server, and keeps the bytes of both directions."""

    def __init__(self, port):
        self.server_port, self.connections = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.server_port))
            kept = bytearray(), bytearray()
            self.connections.append(kept)
            for source, target, bytes_kept in ((client, server, kept[0]), (server, client, kept[1])):
                threading.Thread(target=self._pass, args=(source, target, bytes_kept), daemon=True).start()

    @staticmethod
    def _pass(source, target, bytes_kept):
        try:
            while piece := source.recv(65536):
                bytes_kept += piece
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # the other side has closed the connection
            pass

    def exchanges(self):
        """(body of the request, head of the reply, body of the reply) of each request that has a whole reply."""
        for sent, received in self.connections:
            for (_, asked), (head, answer) in zip(http_messages(bytes(sent)), http_messages(bytes(received))):
                yield json.loads(asked), head, answer


def http_messages(data):
    """(head, body) of each HTTP message in the bytes of one direction."""
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        fields, body = head.decode().lower(), b""
        if "transfer-encoding: chunked" in fields:
            size = None
            while size != 0:
                line, _, data = data.partition(b"\r\n")
                size = int(line or b"0", 16)
                body, data = body + data[:size], data[size + 2 :]
        elif length := re.search(r"content-length: *(\d+)", fields):
            body, data = data[: int(length[1])], data[int(length[1]) :]
        yield head.decode(), body.decode()


def git(at, *words):
    return subprocess.run(["git", "-C", at, *words], capture_output=True, text=True, check=True).stdout


def make_repository(name):
    at = os.path.join(folder, name)
    os.mkdir(at)
    with open(os.path.join(at, FILE), "w") as file:
        file.write(CODE)
    git(at, "init", "-q")
    git(at, "config", "user.name", "Test")
    git(at, "config", "user.email", "test@localhost")
    git(at, "add", FILE)
    git(at, "commit", "-q", "-m", "Begin")
    return at


def regex_of(reply):
    return re.sub(r"([.()\[\]{}*+?|\\])", r"\\\1", reply).replace("WORDS", WORDS)


def write_settings(form):
    """Paths of aider's files of models' settings and of models' limits. One model edits, and the other one writes the
    subjects of commits."""
    settings = [
        {
            "name": "openai/editor",
            "edit_format": form,
            "weak_model_name": "openai/writer",
            "use_temperature": 1.0,
            "extra_params": {"seed": 1, "extra_body": {"guided_regex": regex_of(FORMATS[form][0])}},
        },
        {
            "name": "openai/writer",
            "use_temperature": 1.0,
            "extra_params": {"seed": 1, "extra_body": {"guided_regex": "Add " + WORDS}},
        },
    ]
    limits = {
        "max_input_tokens": CONTEXT,
        "max_output_tokens": 1024,
        "mode": "chat",
        "litellm_provider": "openai",
        "input_cost_per_token": 0,
        "output_cost_per_token": 0,
    }
    paths = []
    for name, value in (("settings", settings), ("limits", {each["name"]: limits for each in settings})):
        paths.append(os.path.join(folder, f"{form}.{name}.json"))  # JSON is YAML
        with open(paths[-1], "w") as file:
            json.dump(value, file)
    return paths


def environment_of(home, proxy):
    """No settings of the user's: without those of Python, aider's bytecode is kept for the next start. A request for an
    outside host goes to the proxy."""
    dropped = ("AIDER_", "OPENAI_", "GIT_", "PYTHON")
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(dropped)},
        **{key: proxy for key in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")},
        **{key: "127.0.0.1" for key in ("no_proxy", "NO_PROXY")},
        "HOME": home,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "WARNING",
        "PYTHONWARNINGS": "ignore::SyntaxWarning",  # Python 3.12 has some about a package that aider needs
    }


def run_aider(form, port):
    """Path of a repository in which aider has run with MESSAGES as its input, its exit code and output, what it asked
    the server, and whether it asked for an outside host."""
    at = make_repository(form)
    settings, limits = write_settings(form)
    home = os.path.join(folder, form + ".home")
    os.mkdir(home)
    relay = Relay(port)
    with socket.create_server(("127.0.0.1", 0)) as outside:
        ran = subprocess.run(
            [
                *(AIDER, "--model", "openai/editor", "--openai-api-base", relay.url + "/v1"),
                *("--openai-api-key", "none", "--model-settings-file", settings, "--model-metadata-file", limits),
                *("--analytics-disable", "--no-check-update", "--no-show-release-notes", "--no-gitignore"),
                *("--no-fancy-input", "--yes-always", FILE),
            ],
            cwd=at,
            env=environment_of(home, f"http://127.0.0.1:{outside.getsockname()[1]}"),
            input="".join(each + "\n" for each in (*MESSAGES, "/exit")),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )
        asked_outside = bool(select.select([outside], [], [], 0)[0])
    return at, ran.returncode, ran.stdout, list(relay.exchanges()), asked_outside


def read_stream(body):
    """(text, finish reason) of a stream of chunks."""
    events = [each.removeprefix("data: ") for each in body.split("\n\n") if each.startswith("data: ")]
    check.equal(events[-1:], ["[DONE]"], "the last event of a stream")
    choices = [each for event in events[:-1] for each in json.loads(event)["choices"]]
    check(len(choices) > 20, f"a stream: expected more than 20 pieces, found {len(choices)}")
    return "".join(each["delta"].get("content") or "" for each in choices), choices[-1]["finish_reason"]


def check_replies(form, exchanges):
    for asked, head, _ in exchanges:
        kind = "text/event-stream" if asked["model"] == "editor" else "application/json"
        check(head.startswith("HTTP/1.1 200 ") and f"Content-Type: {kind}" in head, f"{form}: a reply, found {head}")
        check.equal(bool(asked.get("stream")), asked["model"] == "editor", f"{form}: a stream of edits")


def check_edits(form, at, edits):
    """Each edit follows from the file before it, and the second request has the first message and its reply."""
    text, replies, words = CODE, [], []
    for i, (asked, _, answer) in enumerate(edits):
        reply, reason = read_stream(answer)
        found = re.fullmatch(regex_of(FORMATS[form][0]).replace(WORDS, f"({WORDS})"), reply)
        check(found and reason == "stop", f"{form}: the form of the edit, found {reply} {reason}")
        replies.append(reply)
        words.append(found[1] if found else "")
        said = [each["content"] for each in asked["messages"]]
        check(text in said[-3], f"{form}: the file in the prompt, found {said}")
        check(MESSAGES[i] in said[-1], f"{form}: the message, found {said[-1]}")
        text = FORMATS[form][1](text, words[-1])
        check.equal(git(at, "show", f"HEAD~{1 - i}:{FILE}"), text, f"{form}: the file of commit {i + 1}")
    with open(os.path.join(at, FILE)) as file:
        check.equal(file.read(), text, f"{form}: the file")
    check(words[0] != words[1], f"{form}: the edits differ, found {words}")
    history = [(each["role"], each["content"].strip()) for each in edits[1][0]["messages"]]
    for before in (("user", MESSAGES[0]), ("assistant", replies[0].strip())):
        check(before in history, f"{form}: expected {before} in the history, found {history}")


def check_run(form, at, code, output, exchanges, asked_outside):
    check.equal(code, 0, f"{form}: exit code of aider, which wrote {output}")
    check(not re.search("(?i)warning|error|litellm|retry|traceback", output), f"{form}: no warnings, found {output}")
    check(not asked_outside, f"{form}: aider asked for an outside host")
    check_replies(form, exchanges)
    asked = [each[0]["model"] for each in exchanges]
    check.equal(asked, ["editor", "writer"] * 2, f"{form}: the models of the requests of aider, which wrote {output}")
    if asked == ["editor", "writer"] * 2:
        subjects = [json.loads(exchanges[i][2])["choices"][0]["message"]["content"] for i in (3, 1)]
        check.equal(git(at, "log", "--format=%s").splitlines(), [*subjects, "Begin"], f"{form}: the commits")
        check_edits(form, at, [exchanges[0], exchanges[2]])


# One layer, for the time of prompts: those of the format diff have 4,500 tokens.
model = os.path.join(folder, "fable.gguf")
models.write(os.path.join(here, "../../examples/tool/fable.gguf"), model, context=CONTEXT, layers=1)
server = Server("--model", model, "--model-name", "editor", "--model-alias", "writer", "--slots", "2")
with concurrent.futures.ThreadPoolExecutor() as pool:
    runs = list(pool.map(lambda form: run_aider(form, server.port), FORMATS))
for form, run in zip(FORMATS, runs):
    check_run(form, *run)
check.equal(server.stop(), 0, "exit code")
check.end("coding_agent", begun)
