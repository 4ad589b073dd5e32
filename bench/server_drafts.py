#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What drafts gain in intaglio-serve, on code and on JSON that follows a schema: servers without drafts, with a draft
model and with prompt lookup answer the same requests by turns. Prints medians, and fails unless all texts are equal.

  bench/server_drafts.py FOLDER --shape mistral_7b --codec q8_0 --head q8_0 --draft-layers 4

The models are of true shape and say texts (synthetic_gguf.Speech). They are written to FOLDER, and stay there. The
draft model has fewer layers, and says another token behind a share of the tokens (--wrong). For prompt lookup the
prompt has the text with another token instead of every --edited-th one."""

import argparse
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/serve")]
os.environ.setdefault("INTAGLIO_SERVE", str(ROOT / "build/bin/intaglio-serve"))

import synthetic_gguf  # noqa: E402
from server import Server  # noqa: E402

RECORD = {"id": "integer", "name": "string", "size": "number", "tags": "array"}
SCHEMA = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    name: {"type": kind} | ({"items": {"type": "string"}} if kind == "array" else {})
                    for name, kind in RECORD.items()
                },
                "required": list(RECORD),
                "additionalProperties": False,
            },
        }
    },
    "required": ["rows"],
    "additionalProperties": False,
}


def json_pieces(records):
    """Pieces of about the length of a large vocabulary's tokens, each there once."""
    out = ["<json>", '{"rows": [']
    for i in range(1000, 1000 + records):
        begin = "}, {" if i > 1000 else "{"
        out += [f'{begin}"id": {i}', f', "name": "n{i}', f'_x{i}"', f', "size": {i}', f".{i}", f', "tags": ["t{i}"',
                f', "u{i}"]']
    return out + ["}]}"]


def code_pieces(functions):
    out = ["<code>"]
    for i in range(functions):
        out += [f"def f{i}", f"(a{i}", f", b{i}", f"):  # {i}\n", f"    c{i}", f" = a{i}", f" + g{i}", f"(b{i})\n",
                f"    return c{i}", f" * {i}\n\n"]
    return out


def edited(tokens, every):
    """The tokens with one that is in no text instead of every `every`-th."""
    return [3 + 32 if i % every == every - 1 else token for i, token in enumerate(tokens)]


def models(wanted):
    """Writes the models where they are not there. @return their paths, and of both texts the tokens and the pieces"""
    wanted.folder.mkdir(parents=True, exist_ok=True)
    speech = synthetic_gguf.Speech()
    pieces = {"code": code_pieces(wanted.pieces // 10), "JSON": json_pieces(wanted.pieces // 7)}
    texts = {name: (speech.add(list_, goes_round=name == "code"), list_) for name, list_ in pieces.items()}
    paths, wrong = [], speech.with_errors(wanted.wrong)
    layers = synthetic_gguf.SHAPES[wanted.shape][1]
    for number, says in ((layers, speech), (wanted.draft_layers, wrong)):
        kind = f"{wanted.shape}-{wanted.codec}-{number}-{wanted.pieces}" + (f"-{wanted.wrong}" if says is wrong else "")
        paths.append(wanted.folder / f"{kind}.gguf")
        if not paths[-1].exists():
            shape = synthetic_gguf.spoken(wanted.shape, number)
            synthetic_gguf.write(shape, wanted.codec, wanted.head, paths[-1], speech=says)
    return paths, texts


def measure(server, request):
    """The text, tokens a second, and drafts: those that were right and all."""
    begun = time.perf_counter()
    status, _, answer = server.ask("POST", "/v1/completions", request, seconds=600)
    took = time.perf_counter() - begun
    if status != 200:
        raise SystemExit(f"expected an answer, found {status}: {answer}")
    usage = answer["usage"]
    details = usage.get("completion_tokens_details", {})
    right, not_right = (details.get(f"{kind}_prediction_tokens", 0) for kind in ("accepted", "rejected"))
    choice = answer["choices"][0]
    return (choice["text"], choice["finish_reason"], usage["completion_tokens"]), usage["completion_tokens"] / took, (
        right, right + not_right)


def compare(name, request, expected, plain, other, turns):
    """@return whether the texts are equal, and what the model says"""
    for each in (plain, other):
        measure(each, request)
    found = [[measure(each, request) for each in (plain, other)] for _ in range(turns)]
    rates = [statistics.median(turn[which][1] for turn in found) for which in (0, 1)]
    right, drafted = found[-1][1][2]
    same = all(each[0] == found[0][0][0] for turn in found for each in turn) and expected.startswith(found[0][0][0][0])
    tokens = found[0][0][0][2]
    print(f"{name:24}{tokens:5} tokens  {rates[0]:8.1f} tok/s without, {rates[1]:8.1f} with: "
          f"{rates[1] / rates[0]:5.2f} times; {right} of {drafted} drafts right; "
          f"{'same text' if same else 'OTHER TEXT'}", flush=True)
    return same


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--shape", default="mistral_7b", choices=synthetic_gguf.SHAPES)
    options.add_argument("--codec", default="q8_0", choices=synthetic_gguf.CODECS, help="of the layers' matrices")
    options.add_argument("--head", default="q8_0", choices=synthetic_gguf.CODECS, help="of embedding and head")
    options.add_argument("--draft-layers", type=int, default=4)
    options.add_argument("--wrong", type=float, default=0.1)
    options.add_argument("--edited", type=int, default=12)
    options.add_argument("--pieces", type=int, default=480, help="tokens of each text")
    options.add_argument("--drafts", type=int, default=7)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--flags", default="", help="of all servers")
    wanted = options.parse_args()
    (served, draft), texts = models(wanted)
    request = {"temperature": 0, "max_tokens": wanted.pieces - 2}
    form = {"json_schema": SCHEMA, "max_tokens": 2 * wanted.pieces}
    start = lambda *flags: Server("--model", str(served), *flags, *wanted.flags.split(), wait=False)
    servers = [start(), start("--draft", str(draft), "--draft-max", str(wanted.drafts)),
               start("--prompt-lookup", str(wanted.drafts))]
    for each in servers:
        ready = each.event("ready", seconds=300)["detail"]
        print(ready, f"{time.process_time():.0f} s", flush=True)
    plain, drafted, looked = servers
    good = True
    for name, (tokens, pieces) in texts.items():
        asked, expected = request | (form if name == "JSON" else {}), "".join(pieces[1:])
        prompts = {"draft model": (tokens[:1], drafted),
                   "prompt lookup": (edited(tokens[1:], wanted.edited) + tokens[:1], looked)}
        for kind, (prompt, other) in prompts.items():
            good &= compare(f"{name}, {kind}", asked | {"prompt": prompt}, expected, plain, other, wanted.turns)
    for each in servers:
        each.stop()
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
