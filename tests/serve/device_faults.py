#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The device is lost, its memory is full, the wall clock jumps, clients do not read: the server answers or refuses,
/health tells the truth, and it recovers."""

import os
import subprocess
import threading
import time

from server import PROGRAM, Checks, Server, read_answer
from vulkan_layer import Layer

begun = time.time()
check = Checks()
layer = Layer()
fault, folder, library = layer.fault, layer.folder, layer.library
LAYER = layer.environment
TEXT = "/v1/completions"
good = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}


def start_stream(server, **more):
    body = {"prompt": "Once upon a time", "max_tokens": 480, "temperature": 1, "logit_bias": {"0": -100}}
    return server.send(TEXT, {**body, "stream": True, **more}, 60)


# A driver that ends the process is met by another one, and one that did not is remembered.
def try_driver():
    return subprocess.run(
        [os.path.join(os.path.dirname(PROGRAM), "intaglio"), "run", "--prompt", "Once", "-n", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **LAYER, "INTAGLIO_DRIVER_TRIAL": "always", "XDG_CACHE_HOME": f"{folder}/cache"},
    )


fault("crash")
refused = try_driver()
check.equal(refused.returncode, 3, f"a driver that ends the process: {refused.stderr}")
check("signal 6 (abort) ended it" in refused.stderr.splitlines()[0], f"it is said how: {refused.stderr}")
os.remove(f"{folder}/crash")
taken = try_driver()
check.equal(taken.returncode, 0, f"a driver that does not: {taken.stderr}")
check("in a process of its own" in taken.stderr, f"it was tried: {taken.stderr}")
check("in a process of its own" not in try_driver().stderr, "and is not tried again")

server = Server("--drain-seconds", "2", "--read-seconds", "600", environment=LAYER)
ask = server.ask
status, _, before = ask("POST", TEXT, good)
check.equal(status, 200, "through the layer")

# The device is lost under three streams and a question.
links = [start_stream(server) for _ in range(3)]
check.wait_until(lambda: ask("GET", "/health")[2]["running"] == 3, 10, "three run")
fault("lost")
answers = [read_answer(link) for link in links]
for answer in answers:
    check(
        b"generation_failed" in answer and b"[DONE]" not in answer and answer.endswith(b"0\r\n\r\n"),
        f"a stream ends with the error, found {answer[-300:]!r}",
    )
found = server.event("device_failed")
check("lost" in found["detail"].lower(), f"the log tells why: {found}")
status, _, after = ask("POST", TEXT, good)  # waits for the new device
check.equal(
    (status, after["choices"] if status == 200 else after),
    (200, before["choices"]),
    "the same answer from the device that came back",
)
check.equal(ask("GET", "/health")[0], 200, "health behind it")
check("intaglio_device_restarts_total 1\n" in ask("GET", "/metrics")[2], "a restart is counted")

# Lost again while its memory is full: health reports it meanwhile, and requests are answered when it is over.
fault("full")
fault("lost")
status, _, found = ask("POST", TEXT, good)
check.equal((status, found["error"]["code"]), (503, "generation_failed"), "who ran then")
check.wait_until(lambda: any(each["event"] == "recovery_failed" for each in server.log), 20, "a recovery fails")
status, fields, found = ask("GET", "/health")
check(status == 503 and found["status"] == "recovering" and found["detail"], f"health meanwhile: {status} {found}")
check(
    "memory" in next(each for each in server.log if each["event"] == "recovery_failed")["detail"],
    "the log names the memory",
)
waiting = {}
asker = threading.Thread(target=lambda: waiting.update(answer=ask("POST", TEXT, good)))
asker.start()
time.sleep(0.3)
os.unlink(f"{folder}/full")
asker.join(60)
check.equal(waiting["answer"][0] and waiting["answer"][2].get("choices"), before["choices"], "who waited is answered")
check.equal(ask("GET", "/health")[0], 200, "health behind that")

# Clients that do not read delay no other client: 8 choices with 20 alternatives a token are more than sockets hold. A
# server that waited for their reading would wait as long as --read-seconds lets it. An answer takes as long as the
# machine needs for the others' tokens.
slow = [start_stream(server, n=8, logprobs=20) for _ in range(2)]
start = time.time()
answer = ask("POST", TEXT, good, seconds=300)[2]
check.equal(answer["choices"], before["choices"], "an answer beside slow readers")
check(time.time() - start < 200, f"in time, found {time.time() - start:.1f} s")
for link in slow:
    link.close()
check.wait_until(lambda: ask("GET", "/health")[2]["running"] == 0, 20, "they end when they are gone")
check.equal(server.stop(), 0, "exit code")

# The wall clock jumps by two hours at every look.
server = Server(environment={"LD_PRELOAD": library, "INTAGLIO_CLOCK_JUMPS": "1"})
times = [server.ask("POST", TEXT, good) for _ in range(4)]
check.equal([each[2]["choices"] for each in times], [before["choices"]] * 4, "answers while the clock jumps")
check(max(each[2]["created"] for each in times) - min(each[2]["created"] for each in times) > 3000, "it does")
check.equal((server.ask("GET", "/health")[0], server.stop()), (200, 0), "health and exit code")

# No memory at one allocation after the other while the model is loaded: a clear end.
number, seen = 1, 0
while number < 200:
    fault("allocation", str(number))
    process = Server("--drain-seconds", "1", environment=LAYER, wait=False)
    process.event_of("ready", "load_failed")
    if os.path.exists(f"{folder}/allocation"):  # fewer allocations than that
        check.equal(process.stop(), 0, "a start with memory")
        break
    failed = [each for each in process.log if each["event"] == "load_failed"]
    if failed:
        check("memory" in failed[0]["detail"], f"allocation {number}: {failed[0]}")
        check.equal(process.process.wait(20), 3, f"allocation {number}: exit code")
    else:  # done without, such as a cache
        process.stop()
    seen += 1
    number += 1 if os.environ.get("INTAGLIO_ALL_ALLOCATIONS") else 1 + number // 2
check(seen >= 4, f"allocations: expected some, found {seen}")
check.end(f"device_faults ({seen} allocations refused)", begun)
