#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may ask intaglio-serve and by what: keys, files, the environment, TLS, ports, a full disk, and how a start with
wrong options ends."""

import os
import socket
import ssl
import subprocess
import tempfile
import time

from server import PROGRAM, Checks, Server, read_answer

begun = time.time()
check = Checks()
CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Tell me a story about a brave mouse."}]
good = {"messages": MESSAGES, "max_tokens": 4, "temperature": 0}
refused = check.refused

with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/key", "w") as file:
        file.write("secret-key\r\n")
    with open(f"{folder}/config", "w") as file:
        file.write('max-n = 3\nmodel-name = "from-file"\ncors-origin = "https://chat.example"\n')
    made = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    subprocess.run(
        ["openssl", "req", *made, "-keyout", f"{folder}/tls.key", "-out", f"{folder}/tls.pem"],
        check=True,
        capture_output=True,
    )
    with_key = Server(
        "--config",
        f"{folder}/config",
        environment={"INTAGLIO_SERVE_API_KEY_FILE": f"{folder}/key", "INTAGLIO_SERVE_MAX_N": "2"},
        wait=False,
    )
    for key in (None, "Bearer", "Bearer secret-ke", "Bearer secret-key2", "Bearer " + "x" * 9000, "Basic c2VjcmV0"):
        refused(with_key.ask("GET", "/v1/models", fields={"Authorization": key}), 401, f"key {str(key)[:30]}")
    check.equal(with_key.ask("GET", "/health")[0] in (200, 503), True, "health asks for no key")
    refused(with_key.ask("POST", CHAT, b'{"x":', {"Content-Length": "100000"}), 401, "before the body is read")
    with_key.event("ready")
    key = {"Authorization": "Bearer secret-key"}
    check.equal(with_key.ask("GET", "/v1/models", fields=key)[2]["data"][0]["id"], "from-file", "an option of the file")
    check.equal(
        with_key.ask("GET", "/v1/models", fields={"Authorization": "Basic dXNlcjpzZWNyZXQta2V5"})[0],
        200,
        "the key as a password",
    )
    check.equal(with_key.ask("GET", "/v1/models", fields={"X-Api-Key": "secret-key"})[0], 200, "Anthropic's field")
    refused(with_key.ask("GET", "/v1/models", fields={"X-Api-Key": "secret-ke"}), 401, "another key in it")
    for path in ("/", "/chat.css", "/key.js", "/tldr.js"):
        check.equal(with_key.ask("GET", path)[0], 200, f"the page asks for the key itself: {path}")
    for path in ("/plan", "/metrics", "/props", "/slots", "/nowhere"):
        refused(with_key.ask("GET", path), 401, f"without a key: {path}")
    check.equal(
        with_key.ask("GET", "/plan")[1].get("www-authenticate"), 'Bearer realm="intaglio"', "no login of the browser"
    )
    refused(with_key.ask("POST", CHAT, {**good, "n": 3}, key), 400, "the environment wins over the file", "n", "1 .. 2")
    of_client = ["arch", "lang", "os", "package-version", "retry-count", "runtime", "runtime-version", "timeout"]
    asked = ",".join(["authorization", "content-type", *(f"x-stainless-{each}" for each in of_client)])
    _, fields, _ = with_key.ask(
        "OPTIONS",
        CHAT,
        fields={
            "Origin": "https://chat.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
        },
    )
    check.equal(fields.get("access-control-allow-headers"), asked, "a preflight gives back what is asked for")
    check.equal(
        with_key.ask("GET", "/v1/models", fields={"Authorization": "bearer secret-key", "X-Request-Id": "mine-1"})[
            1
        ].get("x-request-id"),
        "mine-1",
        "the client's name of a request",
    )
    status, fields, _ = with_key.ask("OPTIONS", CHAT, fields={"Origin": "https://chat.example"})
    check(
        status == 204 and fields.get("access-control-allow-origin") == "https://chat.example",
        f"CORS where asked for: {status} {fields}",
    )
    check.equal(with_key.stop(), 0, "exit code")
    if (
        "this build has no TLS" not in subprocess.run(
            [PROGRAM, "--port", "0", "--tls-certificate", "x", "--tls-key", "y"], capture_output=True, text=True
        ).stderr
    ):
        secure = Server("--tls-certificate", f"{folder}/tls.pem", "--tls-key", f"{folder}/tls.key", wait=False)
        with ssl.create_default_context(cafile=f"{folder}/tls.pem").wrap_socket(
            socket.create_connection(("127.0.0.1", secure.port)), server_hostname="localhost"
        ) as link:
            link.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(read_answer(link).startswith(b"HTTP/1.1 "), "an answer over TLS")
        check(
            not secure.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP"),
            "no answer without TLS",
        )
        check.equal(secure.stop(), 0, "exit code with TLS")
    else:
        print("WARNING: this build has no TLS (libssl-dev): not tested", flush=True)

    # Twelve hundred idle ones do not keep the next client out: the oldest of them goes.
    crowded = Server("--max-connections", "40", "--max-connections-per-address", "40")
    crowd = [socket.create_connection(("127.0.0.1", crowded.port)) for _ in range(60)]
    begin = time.time()
    check.equal(crowded.ask("POST", CHAT, good)[0], 200, "a request in a crowd of idle connections")
    check(time.time() - begin < 5, f"in time, found {time.time() - begin:.2f} s")
    check(crowd[0].recv(1) == b"", "the oldest was closed")
    for link in crowd:
        link.close()
    check.equal(crowded.stop(), 0, "exit code")
    local = Server("--host", "localhost", wait=False)
    check(local.event("listening")["url"] == f"http://127.0.0.1:{local.port}/", "the address in the log")
    local.stop()

    taken = socket.create_server(("127.0.0.1", 0))
    for name, content in [
        ("misspelt", "api-key-flie = x\n"),
        ("underscores", 'api_key = "x"\n'),
        ("section", '[serve]\napi-key = "x"\n'),
    ]:
        with open(f"{folder}/{name}", "w") as file:
            file.write(content)
    for flags, variables, has in [
        (["--config", f"{folder}/misspelt"], {}, "api-key-flie"),
        (["--config", f"{folder}/underscores"], {}, "api_key"),
        (["--config", f"{folder}/section"], {}, "serve"),
        ([], {"INTAGLIO_SERVE_API_KEYFILE": "x"}, "INTAGLIO_SERVE_API_KEYFILE"),
        (["--api-key", ""], {}, "--api-key: expected a text"),
        (["--api-key-file", ""], {}, "--api-key-file: expected a text"),
        (["-m", ""], {}, "--model: expected a text"),
        (["--models", ""], {}, "--models: expected a text"),
        (["--config", f"{folder}/nowhere"], {}, "nowhere"),
    ]:
        run = subprocess.run(
            [PROGRAM, "--port", "0", *flags],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **variables},
        )
        check.equal(run.returncode, 1, f"exit code of {flags} {variables}")
        check(has in run.stderr + run.stdout, f"{flags} {variables}: expected '{has}', found {run.stderr!r}")
    for flags, code, has in [
        (["--port", str(taken.getsockname()[1])], 1, str(taken.getsockname()[1])),
        (["--host", "0.0.0.0", "--port", "0"], 1, "--api-key-file"),
        (["--host", "here"], 1, "IP address"),
        (["--model", f"{folder}/none.gguf", "--port", "0"], 3, "none.gguf"),
        (["--unknown"], 1, "--unknown"),
        (["--api-key-file", f"{folder}/none"], 1, "none"),
        (["--queue", "0"], 1, "--queue"),
    ]:
        run = subprocess.run([PROGRAM, *flags], capture_output=True, text=True, timeout=60)
        check.equal(run.returncode, code, f"exit code of {flags}")
        check(has in run.stderr + run.stdout, f"{flags}: expected '{has}', found {run.stderr!r}")
    # A full disk takes the log, not the server.
    with open("/dev/full", "w") as full:
        port = socket.create_server(("127.0.0.1", 0))
        number = port.getsockname()[1]
        port.close()
        process = subprocess.Popen([PROGRAM, "--port", str(number)], stderr=full)
        status = 0
        for _ in range(200):
            time.sleep(0.1)
            try:
                status = int(
                    subprocess.run(
                        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{number}/health"],
                        capture_output=True,
                        text=True,
                    ).stdout
                )
            except ValueError:
                continue
            if status == 200:
                break
        check.equal(status, 200, "a server whose log goes nowhere")
        process.terminate()
        check.equal(process.wait(20), 0, "its exit code")
check.end("access", begun)
