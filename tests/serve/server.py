# SPDX-License-Identifier: MIT
"""The server as its tests run it: on a free port of this machine, with fable."""

import atexit
import json
import os
import signal
import socket
import subprocess
import threading
import time

PROGRAM = os.environ.get("INTAGLIO_SERVE", "build/bin/intaglio-serve")
STARTED = []


class Server:
    """A running server; its log is read to the end, and kept but for the lines of single requests."""

    def __init__(self, *flags, environment=None, wait=True, port=0, start=()):
        """start: what starts the program, whose own lines are kept as events called "text"."""
        self.process = subprocess.Popen(
            [*start, PROGRAM, "--port", str(port), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if start else None,
            stderr=subprocess.STDOUT if start else subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        STARTED.append(self.process)
        self.log, self.events, self.is_alone = [], threading.Condition(), not start
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.port = self.event("listening")["port"]
        self.url = f"http://127.0.0.1:{self.port}"
        if wait:
            self.event("ready")

    def _read(self):
        for line in self.process.stdout or self.process.stderr:
            if line.startswith("{") or self.is_alone:
                event = json.loads(line)  # each line is an object
            else:
                event = {"event": "text", "detail": line}
            if event["event"] == "request":
                continue
            with self.events:
                self.log.append(event)
                self.events.notify_all()
        with self.events:
            self.log.append({"event": "end"})
            self.events.notify_all()

    def event(self, name, seconds=60):
        return self.event_of(name, seconds=seconds)

    def event_of(self, *names, seconds=60):
        """The first of these events."""
        found = lambda: next((each for each in self.log if each["event"] in (*names, "end")), None)
        with self.events:
            assert self.events.wait_for(
                lambda: found() is not None, seconds
            ), f"expected {names} within {seconds} s, found {self.log}"
            assert found()["event"] in names, f"expected {names}, found the end: {self.log}"
            return found()

    def stop(self, seconds=20):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def raw(self, data, seconds=30):
        """The reply to these bytes until the server closes, or until one whole answer of known length has come."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as link:
            link.sendall(data if isinstance(data, bytes) else data.encode())
            return read_answer(link)

    def request(self, method, path, body=None, fields=None):
        """The bytes of a request."""
        text = (
            body
            if isinstance(body, (bytes, type(None)))
            else (body if isinstance(body, str) else json.dumps(body)).encode()
        )
        head = {
            "Host": f"127.0.0.1:{self.port}",
            **({"Content-Type": "application/json", "Content-Length": str(len(text))} if text is not None else {}),
            **(fields or {}),
        }
        lines = [f"{method} {path} HTTP/1.1"] + [
            f"{name}: {value}" for name, value in head.items() if value is not None
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + (text or b"")

    def ask(self, method, path, body=None, fields=None, seconds=60):
        """(status, fields, body as JSON or text)"""
        return parse(self.raw(self.request(method, path, body, fields), seconds))

    def send(self, path, body, seconds=30):
        """A connection on which this body was posted, and whose answer was not read."""
        link = socket.create_connection(("127.0.0.1", self.port), seconds)
        link.sendall(self.request("POST", path, body))
        return link

    def gauge(self, name):
        """A number of /metrics."""
        text = self.ask("GET", "/metrics")[2]
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def read_answer(link):
    out = b""
    while True:
        head, found, body = out.partition(b"\r\n\r\n")
        if found:
            if head.startswith(b"HTTP/1.1 204"):
                return out
            length = [
                line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            ]
            if length and len(body) >= int(length[0]) and not head.startswith(b"HTTP/1.1 1"):
                return out
            if b"transfer-encoding: chunked" in head.lower() and body.endswith(b"0\r\n\r\n"):
                return out
        try:
            piece = link.recv(65536)
        except ConnectionResetError:
            return out
        if not piece:
            return out
        out += piece


def parse(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 1"):  # interim
        head, _, body = body.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    if not first:
        return 0, {}, ""
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    text = body.decode()
    return (
        int(first.split()[1]),
        fields,
        json.loads(text) if fields.get("content-type") == "application/json" and text else text,
    )


def stop_all():
    for each in STARTED:
        if each.poll() is None:
            each.kill()
            each.wait()


atexit.register(stop_all)


class Checks:
    """Counts, and goes on after a failure."""

    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, good, what):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"FAILED: {what}", flush=True)

    def equal(self, found, expected, what):
        self(found == expected, f"{what}: expected {expected!r}, found {found!r}")

    def wait_until(self, found, seconds, what):
        """Asks until it is so. What is so for a moment alone (a client more, one less) counts."""
        until = time.time() + seconds
        while not (good := found()) and time.time() < until:
            time.sleep(0.02)
        self(good, what)

    def refused(self, answer, status, what, param=None, has=None):
        """An error in OpenAI's shape; its fields."""
        found, fields, body = answer
        self.equal(found, status, what)
        error = body.get("error") if isinstance(body, dict) else None
        self(
            isinstance(error, dict)
            and set(error) == {"message", "type", "param", "code"}
            and error["message"]
            and error["type"],
            f"{what}: expected OpenAI's shape, found {body!r}",
        )
        if error and param is not None:
            self.equal(error["param"], param, what + ": param")
        if error and has is not None:
            self(has in error["message"], f"{what}: expected '{has}' in the message, found {error['message']!r}")
        return fields

    def end(self, name, since):
        print(f"{name}: {self.passed} passed, {self.failed} failed ({time.time() - since:.1f} s)", flush=True)
        stop_all()
        raise SystemExit(1 if self.failed else 0)
