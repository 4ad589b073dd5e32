#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""POST /pdf-text: the text of a PDF that is written here; what is no PDF, damaged, too large, or without end is refused
in time; no key, no answer; a machine without pdftotext says what is missing."""

import tempfile
import time

from server import Checks, Server

begun = time.time()
check = Checks()
PDF = {"Content-Type": "application/pdf"}
KEY = {"Authorization": "Bearer secret"}


def pdf(*texts, pages=1):
    """A PDF with pages of each text; the pages of one text have the same drawing."""
    drawings, leaves, first = [], [], 4 + len(texts)
    for i, text in enumerate(texts):
        lines = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        drawn = f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET"
        drawings.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
        leaves += [f"<< /Type /Page /Parent 2 0 R /Contents {4 + i} 0 R >>"] * pages
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(leaves)} /Kids [{' '.join(f'{first + i} 0 R' for i in range(len(leaves)))}] "
        "/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *drawings,
        *leaves,
    ]
    out, offsets = "%PDF-1.4\n", []
    for i, each in enumerate(objects):
        offsets.append(len(out))
        out += f"{i + 1} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{at:010} 00000 n \n" for at in offsets)
    size = len(objects) + 1
    return (
        f"{out}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    ).encode()


def refused(found, status, what, *words):
    message = found[2]["error"]["message"] if isinstance(found[2], dict) else str(found[2])
    check(found[0] == status and all(word in message for word in words), f"{what}: found {found[0]} {message!r}")


server = Server("--api-key", "secret", "--max-body-bytes", "50000", wait=False)
ask = lambda body, fields=PDF: server.ask("POST", "/pdf-text", body, {**KEY, **fields})
status, _, found = ask(pdf("Pip the mouse\nlives in a mill.", "The end."))
text = "Pip the mouse\nlives in a mill.\n\n\nThe end.\n\n\n"
check.equal((status, found), (200, {"text": text, "pages": 2}), "a text")
check.equal(ask(pdf(""))[2]["pages"], 1, "a page without text")
check.equal(server.ask("GET", "/health")[2]["pdf_bytes"], 50000, "what a PDF may have")
refused(server.ask("POST", "/pdf-text", pdf("x"), PDF), 401, "no key", "Bearer")
refused(ask(pdf("x"), {"Content-Type": "application/json"}), 415, "another type", "application/pdf")
refused(ask(b"Hello"), 400, "no PDF", "%PDF-")
refused(ask(b""), 400, "nothing", "%PDF-")
refused(ask(b"%PDF-1.7\nnothing else"), 400, "a damaged one", "pdftotext", "status 1")
refused(ask(pdf("x" * 60000)), 413, "a large one", "50000")
# More text than is allowed, of few bytes.
start = time.time()
refused(ask(pdf("\n".join(["word " * 20] * 50), pages=300)), 400, "much text", "more than 1048576 bytes")
check(time.time() - start < 8, f"within its time, found {time.time() - start:.1f} s")
check.equal(ask(pdf("Still here."))[0], 200, "and the next one is read")
check.equal(server.ask("GET", "/pdf-text", None, KEY)[0], 405, "another method")
server.process.kill()

with tempfile.TemporaryDirectory() as nothing:
    without = Server(environment={"PATH": nothing}, wait=False)
    refused(without.ask("POST", "/pdf-text", pdf("x"), PDF), 501, "no program", "pdftotext", "poppler-utils")
    check.equal(without.ask("GET", "/health")[2]["pdf_bytes"], 0, "a server that reads none")
    without.process.kill()
check.end("pdf", begun)
