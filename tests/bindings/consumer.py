# SPDX-License-Identifier: MIT
"""Usage: consumer.py MODEL

Does with the wheel what a program from outside does, and prints what it found (tests/bindings/run).
"""

import sys

import numpy

import intaglio

print("version", intaglio.version)
try:
    intaglio.Model("/no/such/model.gguf")
except intaglio.FileError as problem:
    print("no file:", problem)
with intaglio.Model(sys.argv[1]) as model:
    ids = model.tokenize("Once upon a time")
    print(
        ids,
        repr(model.detokenize(ids)),
        repr(model.detokenize(model.tokenize("h\u00e9 \U0001f600 " * 40, special=False)))[:12],
    )
    stream = model.generate("Once upon a time", max_tokens=8)
    pieces = list(stream)
    print(len(pieces) > 1, repr("".join(pieces)), stream.finish, stream.generated_tokens)
    again = model.generate(ids, max_tokens=8, temperature=0.7, top_k=40, seed=2**40 + 1)
    try:
        model.reset()
    except intaglio.ArgumentError:
        print("a call while a stream runs is refused")
    first = "".join(again)
    print(
        "same seed, same text:",
        first == "".join(model.generate(ids, max_tokens=8, temperature=0.7, top_k=40, seed=2**40 + 1)),
        again.cached_tokens,
    )
    with model.generate([{"role": "user", "content": "Tell me a story."}], max_tokens=40) as story:
        print("chat:", len(next(story)) > 0, story.finish)
    for options in ({"temperature": -1.0}, {"top_k": -1}, {"seed": -1}, {"stop": ["x"] * 17}):
        try:
            model.generate("x", **options)
            print("NOT REFUSED", options)
        except ValueError as problem:
            print("refused:", problem)
    model.reset()
    logits = model.logits(ids)
    greedy = model.tokenize("Once upon a time" + pieces[0], special=True)[len(ids)]
    print(logits.shape, logits.dtype, int(numpy.argmax(logits[-1])) == greedy, model.position)
    vector = model.embed("a mouse")
    print(vector.shape, round(float(numpy.linalg.norm(vector)), 3))
try:
    model.tokenize("closed")
except intaglio.ArgumentError as problem:
    print(problem)
