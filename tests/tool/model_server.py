#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: model_server.py FILE PORT_FILE LOG

Serves FILE on a free port of this machine, by paths that are faulty each in its own way, and logs
each request as PATH RANGE IF_RANGE. Files of the folder `hub` beside PORT_FILE are a repository someone/tales as the
Hugging Face hub has it: a list, and addresses that redirect to where the files are; its list wants the token `secret`
where the folder has a file `private`.
"""

import base64
import hashlib
import http.server
import json
import pathlib
import socket
import sys
import time

CONTENT = pathlib.Path(sys.argv[1]).read_bytes()
DIGEST = hashlib.sha256(CONTENT).digest()
seen = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def begin(self, status, length, **fields):
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def end_now(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def redirect(self, to, **fields):
        self.begin(302, 0, Location=to, **fields)

    def do_GET(self):
        kind = self.path.strip("/").split(".")[0]
        seen[kind] = seen.get(kind, 0) + 1
        asked, condition = self.headers.get("Range"), self.headers.get("If-Range")
        with open(sys.argv[3], "a") as log:
            log.write(f"{self.path} {asked} {condition}\n")
        tag = '"%s"' % ("second" if kind == "changes" and seen[kind] > 1 else "first")
        body, first = CONTENT, 0
        hub = pathlib.Path(sys.argv[2]).with_name("hub")
        if self.path.startswith(("/api/models/", "/someone/")) and (hub / "private").exists():
            if self.headers.get("Authorization") != "Bearer secret":
                return self.begin(401, 0)
        if self.path == "/api/models/someone/tales":
            answer = json.dumps(
                {"id": "someone/tales", "siblings": [{"rfilename": each.name} for each in sorted(hub.iterdir())]}
            ).encode()
            self.begin(200, len(answer), Content_Type="application/json")
            return self.wfile.write(answer)
        if self.path.startswith("/api/"):
            return self.begin(404, 0)
        if self.path.startswith(("/someone/tales/resolve/main/", "/stored/")):
            name = self.path.rsplit("/", 1)[1]
            if not (hub / name).exists():
                return self.begin(404, 0)
            body = (hub / name).read_bytes()
            tag = '"%s"' % hashlib.sha256(body).hexdigest()
            if self.path.startswith("/someone/"):
                return self.redirect("/stored/" + name, X_Linked_Size=str(len(body)), X_Linked_Etag=tag)
            kind = "stored"
            if self.headers.get("Authorization"):  # the token is the hub's, not that of who keeps the files
                return self.begin(400, 0)
        if kind == "missing":
            return self.begin(404, 0)
        if kind == "busy" and seen[kind] < 3:
            return self.begin(503, 0)
        if kind == "circle":
            return self.redirect("/circle.gguf")
        if kind == "away":
            return self.redirect("http://192.0.2.1/model.gguf")
        if kind == "linked":
            return self.redirect("/good.gguf", X_Linked_Size=str(len(CONTENT)), X_Linked_Etag='"%s"' % DIGEST.hex())
        if kind == "lies":
            return self.redirect("/good.gguf", X_Linked_Size=str(len(CONTENT) + 1))
        if kind == "plain":  # HTTP/1.0: neither length nor ranges
            self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + CONTENT)
            return self.end_now()
        if kind == "short":  # more is promised than there is
            self.begin(200, len(CONTENT) + 1000, ETag=tag)
            self.wfile.write(CONTENT)
            return self.end_now()
        if asked and condition == tag and kind != "deaf":
            first = int(asked[len("bytes="):-1])
        fields = {"ETag": tag}
        if kind == "digest":
            fields["Repr_Digest"] = "sha-256=:%s:" % base64.b64encode(hashlib.sha256(b"another").digest()).decode()
        if first:
            total = len(body) + (7 if kind == "grows" else 0)
            self.begin(206, len(body) - first, Content_Range=f"bytes {first}-{len(body) - 1}/{total}", **fields)
        else:
            self.begin(200, len(body), **fields)
        part = body[first:]
        if (
            kind in ("breaks", "grows", "changes")
            and seen[kind] < (4 if kind == "breaks" else 2)
            or kind in ("deaf", "crawls")
        ):
            self.wfile.write(part[: min(len(part), 1_000_000)])
            if kind == "crawls":
                self.wfile.flush()
                time.sleep(20)
            return self.end_now()
        if kind == "holds":  # until it is let go
            self.wfile.write(part[:2_000_000])
            self.wfile.flush()
            while not pathlib.Path(sys.argv[2]).with_name("let_go").exists():
                time.sleep(0.01)
            part = part[2_000_000:]
        if kind == "stalls" and seen[kind] == 1:
            self.wfile.write(part[:500_000])
            self.wfile.flush()
            time.sleep(4)
            return self.end_now()
        self.wfile.write(part)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
port_file = pathlib.Path(sys.argv[2])
port_file.with_suffix(".new").write_text(str(server.server_port))
port_file.with_suffix(".new").rename(port_file)
server.serve_forever()
