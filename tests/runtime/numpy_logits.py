# SPDX-License-Identifier: MIT
"""Logits of a folder's model for prompts of its conformance model, by the conformance set's own numpy in float64.

  numpy_logits.py CONFORMANCE2 MODEL FOLDER PROMPT...    writes FOLDER/PROMPT.logits, f32 [tokens, vocab_size]
"""
import json
import os
import sys


def main(conformance, model, folder, *prompts):
    sys.path.insert(0, conformance)
    import reference2

    of = reference2.load_ref(folder)
    manifest = json.load(open(os.path.join(conformance, model, "manifest.json")))
    for prompt in prompts:
        logits, _ = of.forward(manifest["prompts"][prompt]["ids"])
        logits.astype("<f4").tofile(os.path.join(folder, prompt + ".logits"))


if __name__ == "__main__":
    main(*sys.argv[1:])
