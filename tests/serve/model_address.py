#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--model with an address: fetched while /health tells how far, kept for the next start, ended by a signal, and a clear
end where there is nothing."""

import http.server
import os
import tempfile
import threading
import time

from server import Checks, Server

begun = time.time()
check = Checks()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/tool/fable.gguf"), "rb") as file:
    FABLE = file.read()
served = {"pieces": 40, "count": 0}


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/fable.gguf":
            return self.send_error(404)
        served["count"] += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(FABLE)))
        self.end_headers()
        step = len(FABLE) // served["pieces"] + 1
        try:
            for at in range(0, len(FABLE), step):
                self.wfile.write(FABLE[at:at + step])
                time.sleep(0.05)
        except OSError:
            pass

    def log_message(self, *_):
        pass


files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
threading.Thread(target=files.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{files.server_address[1]}"
with tempfile.TemporaryDirectory() as folder:
    kept = {"XDG_CACHE_HOME": folder}
    server = Server("--model", f"{address}/fable.gguf", environment=kept, wait=False)
    seen = []
    while not seen or (seen[-1][0] == 503 and len(seen) < 2000):
        status, _, health = server.ask("GET", "/health")
        seen.append((status, health.get("detail", ""), health.get("progress", 0)))
        time.sleep(0.02)
    far = [progress for status, detail, progress in seen if detail.startswith("downloading the model")]
    check(len(far) >= 5 and far == sorted(far) and 0 < far[-1] <= 1, f"/health tells how far: {far[:3]} .. {far[-3:]}")
    text = server.ask("POST", "/v1/completions", {"prompt": "Once upon a", "max_tokens": 1, "temperature": 0})[2][
        "choices"
    ][0]["text"]
    check.equal((text, server.stop(), served["count"]), (" time", 0, 1), "the model from the net")
    server = Server("--model", f"{address}/fable.gguf", environment=kept)
    check.equal(
        (server.ask("GET", "/health")[0], server.stop(), served["count"]), (200, 0, 1), "the same from the cache"
    )

    nothing = Server("--model", f"{address}/none.gguf", environment=kept, wait=False)
    found = nothing.event("load_failed")
    check("404" in found["detail"], f"an address of nothing: {found}")
    check.equal(nothing.process.wait(20), 3, "its exit code")

    # A signal ends a download at once.
    served["pieces"] = 4000
    slow = Server(
        "--model",
        f"{address}/fable.gguf",
        "--index",
        os.path.join(folder, "index"),
        environment={"XDG_CACHE_HOME": os.path.join(folder, "other")},
        wait=False,
    )
    time.sleep(1)
    start = time.time()
    check.equal(slow.stop(), 0, "exit code in the middle of a download")
    check(time.time() - start < 5, f"at once, found {time.time() - start:.1f} s")
check.end("model_address", begun)
