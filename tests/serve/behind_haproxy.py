#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two servers behind HAProxy (examples/serve/haproxy.cfg) on loopback, one killed under load. Each request ends with
the whole answer, or with an error or a break that its client sees; behind the kill all requests are answered again, and
one that stops on SIGTERM loses none.
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from server import Checks, Server

started = time.time()
check = Checks()
HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
if not os.path.exists(HAPROXY):
    sys.exit("behind_haproxy: expected haproxy (Debian, Ubuntu: haproxy), found none")
CONFIG = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/serve/haproxy.cfg"
TOKENS = 24


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def complete(port, number, stream, conversation=None):
    """'whole', 'refused' (a status that is no 200), or 'broken' (the answer ended before its end)."""
    body = {
        "prompt": f"Once upon a time, number {number}",
        "max_tokens": TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "stream": stream,
    }
    fields = {"Content-Type": "application/json", **({"X-Conversation": conversation} if conversation else {})}
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        link.request("POST", "/v1/completions", json.dumps(body), fields)
        answer = link.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            return "refused"
        if stream:
            return "whole" if text.rstrip().endswith("data: [DONE]") else "broken"
        return "whole" if json.loads(text)["usage"]["completion_tokens"] == TOKENS else "wrong"
    except (OSError, http.client.HTTPException, ValueError):
        return "broken"
    finally:
        link.close()


def healthy(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        link.request("GET", "/health")
        return link.getresponse().status == 200
    except OSError:
        return False
    finally:
        link.close()


class Load:
    """Clients that ask again as soon as they are answered."""

    def __init__(self, port, clients):
        self.port, self.ends, self.lock, self.going = port, [], threading.Lock(), True
        self.threads = [threading.Thread(target=self._run, args=(index,)) for index in range(clients)]
        for each in self.threads:
            each.start()

    def _run(self, index):
        number = 0
        while self.going:
            begun = time.monotonic()
            end = complete(self.port, f"{index} {number}", number % 2 == 0, f"talk {index}" if index % 2 else None)
            with self.lock:
                self.ends.append((begun, time.monotonic(), end))
            number += 1

    def wait(self, answers, since=0.0):
        """Waits until this number of answers that began after `since` have ended, for at most a minute."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with self.lock:
                if sum(1 for begun, *_ in self.ends if begun > since) >= answers:
                    return
            time.sleep(0.1)

    def stop(self):
        self.going = False
        for each in self.threads:
            each.join()
        return self.ends


DRAIN_SECONDS = 100  # a busy machine takes long for the answers that are under way


def start(port=0):
    return Server("--drain-seconds", str(DRAIN_SECONDS), port=port)


servers = [start(), start()]
port = free_port()
environment = {
    **os.environ,
    "INTAGLIO_FRONT": f"127.0.0.1:{port}",
    "INTAGLIO_ONE": f"127.0.0.1:{servers[0].port}",
    "INTAGLIO_TWO": f"127.0.0.1:{servers[1].port}",
}
check.equal(subprocess.run([HAPROXY, "-c", "-q", "-f", CONFIG], env=environment).returncode, 0, "haproxy -c")
proxy = subprocess.Popen([HAPROXY, "-db", "-q", "-f", CONFIG], env=environment)
try:
    begun = time.monotonic()
    while not healthy(port):
        check(proxy.poll() is None and time.monotonic() - begun < 30, "expected HAProxy to answer within 30 s")
        time.sleep(0.1)

    load = Load(port, 8)
    time.sleep(2)
    load.wait(2)
    for each in servers:
        status, _, metrics = each.ask("GET", "/metrics")
        scaled_by = "intaglio_queue ", "intaglio_first_token_seconds_bucket{"
        check(status == 200 and all(name in metrics for name in scaled_by), "metrics of each server, to scale by")
    killed = time.monotonic()
    servers[0].process.kill()
    time.sleep(4)
    load.wait(2, killed + 2)
    ends = load.stop()
    kinds = {kind: sum(1 for *_, end in ends if end == kind) for kind in ("whole", "refused", "broken", "wrong")}
    check.equal(kinds["wrong"], 0, "answers of another length")
    before = [end for _, done, end in ends if done < killed]
    after = [end for start, _, end in ends if start > killed + 2]
    check(before and all(end == "whole" for end in before), f"before the kill: expected whole answers, found {before}")
    check(
        len(after) >= 2 and all(end == "whole" for end in after),
        f"2 s behind the kill: expected whole answers, found {after}",
    )
    lost = [end for start, done, end in ends if end != "whole"]
    check(len(lost) <= 16, f"expected at most two lost requests a client, each with an error, found {lost}")

    # A server that is asked to end takes no new requests and ends those that it has.
    servers[0] = start(servers[0].port)
    time.sleep(2)
    load = Load(port, 6)
    time.sleep(2)
    check.equal(servers[1].stop(DRAIN_SECONDS + 20), 0, "exit behind SIGTERM")
    time.sleep(3)
    drained = [end for *_, end in load.stop()]
    check(drained and all(end == "whole" for end in drained), f"SIGTERM: expected whole answers, found {drained}")
finally:
    proxy.terminate()
    proxy.wait(20)
    for each in servers:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGKILL)
print(
    f"{len(ends)} requests by 8 clients, one server killed: {kinds['whole']} whole, {kinds['refused']} refused,"
    f" {kinds['broken']} broken off; {drained.count('whole')} of {len(drained)} more whole while one drained"
)
check.end("behind_haproxy", started)
