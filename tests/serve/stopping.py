#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SIGTERM and SIGINT while a model is loaded on a driver that takes long for each pipeline and each submission, in a
cache folder that has nothing: the server and the tool end behind what is under way, whatever is left to do."""

import os
import signal
import subprocess
import tempfile
import time

from server import PROGRAM, Checks, Server
from vulkan_layer import Layer

begun = time.time()
check = Checks()
layer = Layer()
layer.fault("slow", "100")
TOOL = os.path.join(os.path.dirname(PROGRAM), "intaglio")
SHARES = (0.05, 0.3, 0.55, 0.8)  # of the time that a whole load takes


def cold(folder):
    return {**layer.environment, "XDG_CACHE_HOME": folder}


def most(whole):
    """Seconds that an end may take: a few units of the many that a load has, on a machine that does other work too."""
    return max(3, whole / 3)


with tempfile.TemporaryDirectory() as folder:
    start = time.time()
    server = Server(environment=cold(folder), wait=False)
    server.event("ready", 200)
    whole = time.time() - start
    check.equal(server.stop(), 0, "exit code")
    print(f"a load of {whole:.1f} s", flush=True)
check(whole > 8, f"a slow load: expected more than 8 s, found {whole:.1f} s")
for i, share in enumerate(SHARES):
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        server = Server(environment=cold(folder), wait=False)
        time.sleep(max(0, share * whole - (time.time() - start)))
        state = server.ask("GET", "/health")[2]
        server.process.send_signal((signal.SIGTERM, signal.SIGINT)[i % 2])
        start = time.time()
        code = server.process.wait(60)
        took = time.time() - start
        print(f"a signal at {share} of it ({state}): the end in {took:.2f} s", flush=True)
        check.equal(code, 0, f"exit code of a load that ended at {share}")
        check(took < most(whole), f"a signal at {share} of a load: the end in {took:.1f} s")

for name, flags in (("run", ["--prompt", "Once", "-n", "400"]), ("chat", [])):
    for share in (0.1, 0.3):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [TOOL, name, *flags],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **cold(folder), "INTAGLIO_DRIVER_TRIAL": "off"},
            )
            time.sleep(share * whole)
            running = process.poll() is None
            process.send_signal(signal.SIGINT)
            start = time.time()
            code = process.wait(60)
            took = time.time() - start
            process.stdin.close()
            print(f"{name}: SIGINT at {share}: {code} in {took:.2f} s", flush=True)
            check(running and code == 130, f"{name}, SIGINT at {share}: expected 130, found {code}")
            check(took < most(whole), f"{name}, SIGINT at {share}: the end in {took:.1f} s")
check.end("stopping", begun)
