#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Slots of one server saved and restored in another: the same text, nothing fed anew that the file has, and no file of
elsewhere taken."""

import os
import tempfile
import threading
import time

from server import Checks, Server

begun = time.time()
check = Checks()
folder = tempfile.mkdtemp()
story = (
    "Once upon a time, there was a little fox who lived in a big, dark forest with his mother. One day he found a red"
    " ball under a tree."
)
ask = lambda server, prompt, **more: server.ask(
    "POST",
    "/v1/completions",
    {"prompt": prompt, "max_tokens": 24, "ignore_eos": True, "temperature": 0.8, "seed": 5, **more},
)[2]
cached = lambda answer: answer["usage"]["prompt_tokens_details"]["cached_tokens"]
act = lambda server, slot, action, body=None: server.ask("POST", f"/slots/{slot}?action={action}", body)

for cache in ([], ["--cache-type", "q8_0"]):
    one = Server("--slots", "4", "--slot-save-path", folder, *cache)
    first = ask(one, story)
    turn = story + first["choices"][0]["text"] + " The fox"
    status, _, saved = act(one, 0, "save", {"filename": "fox.bin"})
    check(
        (status, saved["id_slot"], saved["filename"]) == (200, 0, "fox.bin")
        and set(saved) == {"id_slot", "filename", "n_saved", "n_written", "timings"},
        f"saved: {saved}",
    )
    check(
        saved["n_saved"] >= 40 and saved["n_written"] == os.path.getsize(os.path.join(folder, "fox.bin")),
        f"its size: {saved}",
    )
    expected = ask(one, turn)
    check(cached(expected) > 0, f"found in the first server: {expected['usage']}")
    check.equal(one.stop(), 0, "the end of the first")

    other = Server("--slots", "4", "--slot-save-path", folder, *cache)
    before = ask(other, "The end of a tale", max_tokens=4)
    status, _, found = act(other, 3, "restore", {"filename": "fox.bin"})
    check(
        (status, found["id_slot"], found["n_restored"], found["n_read"])
        == (200, 3, saved["n_saved"], saved["n_written"])
        and "restore_ms" in found["timings"],
        f"restored: {found}",
    )
    again = ask(other, turn)
    check.equal(again["choices"][0]["text"], expected["choices"][0]["text"], "the text of the next turn")
    check.equal(cached(again), saved["n_saved"], "what is not fed again")
    status, _, gone = act(other, 0, "erase")
    check(status == 200 and gone["n_erased"] > 0, f"erased: {gone}")
    anew = ask(other, turn)
    check(
        cached(anew) < saved["n_saved"] and anew["choices"][0]["text"] == expected["choices"][0]["text"],
        f"fed anew: {anew}",
    )
    if not cache:
        check.equal(other.stop(), 0, "the end of the other")

# The list, while a request decodes and all slots are taken.
status, _, slots = other.ask("GET", "/slots")
check(
    status == 200
    and [each["id"] for each in slots] == [0, 1, 2, 3]
    and not any(each["is_processing"] for each in slots),
    f"idle slots: {slots}",
)
plain = Server("--slots", "2")
threads = [threading.Thread(target=lambda: ask(plain, story, max_tokens=200)) for _ in range(2)]
for each in threads:
    each.start()
busy = []
while any(each.is_alive() for each in threads) and len(busy) < 2:
    busy = [each for each in plain.ask("GET", "/slots")[2] if each["is_processing"]]
check(
    len(busy) == 2
    and busy[0]["id_task"] != busy[1]["id_task"]
    and busy[0]["params"]["temperature"] == 0.8
    and busy[0]["next_token"]["n_remain"] <= 200,
    f"busy slots: {busy}",
)
check.equal(plain.ask("GET", "/slots?fail_on_no_slot=1")[0], 503, "no slot is free")
for each in threads:
    each.join()
check.equal(plain.ask("GET", "/slots?fail_on_no_slot=1")[0], 200, "slots are free")
check.equal(act(plain, 0, "save", {"filename": "fox.bin"})[0], 501, "no folder was named")

# Refusals.
sound = open(os.path.join(folder, "fox.bin"), "rb").read()
write = lambda name, data: open(os.path.join(folder, name), "wb").write(data)
write("cut.bin", sound[: len(sound) // 2])
write("flipped.bin", sound[:-100] + bytes([sound[-100] ^ 1]) + sound[-99:])
write("alien.bin", b"GGUF" + bytes(200))
for name, words in (
    ("cut.bin", "size of the file (cut short?): expected"),
    ("flipped.bin", "checksum of the file: expected"),
    ("alien.bin", "magic: expected"),
    ("none.bin", "none.bin"),
):
    status, _, refusal = act(other, 0, "restore", {"filename": name})
    check(
        status == 400 and words in refusal["error"]["message"] and folder not in refusal["error"]["message"],
        f"{name}: {status} {refusal}",
    )
for name in ("../fox.bin", "/etc/passwd", "", ".hidden", "a b", "a\\b", "x" * 200):
    status, _, refusal = act(other, 0, "save", {"filename": name})
    check(status == 400 and refusal["error"]["param"] == "filename", f"{name!r}: {status} {refusal}")
for status, path, body in (
    (404, "/slots/4?action=save", {"filename": "a"}),
    (404, "/slots/x?action=save", {"filename": "a"}),
    (400, "/slots/0?action=copy", {"filename": "a"}),
    (400, "/slots/0", {"filename": "a"}),
    (400, "/slots/0?action=save", {}),
    (400, "/slots/0?action=save", {"filename": "a", "file": "b"}),
    (400, "/slots/0?action=save", {"filename": 3}),
    (405, "/slots", {}),
):
    check.equal(other.ask("POST", path, body)[0], status, path)
os.mkdir(os.path.join(folder, "taken"))
check.equal(act(other, 0, "save", {"filename": "taken"})[0], 500, "a folder has the name")
check(ask(other, story)["choices"][0]["text"] == first["choices"][0]["text"], "it goes on")
check.equal(
    sorted(os.listdir(folder)), ["alien.bin", "cut.bin", "flipped.bin", "fox.bin", "taken"], "no other files are left"
)
bad = Server("--slots", "8", "--slot-save-path", folder)
status, _, refusal = act(bad, 0, "restore", {"filename": "fox.bin"})
check(status == 400 and "engraving: expected" in refusal["error"]["message"], f"of another plan: {refusal}")
check.end("slots", begun)
