# SPDX-License-Identifier: MIT
"""Writes a tiny embedding model whose vector is the last token's state, as Qwen3-Embedding is published, as a folder
and as GGUF, and the vectors of some texts by numpy in float64.

  last_token.py OUT

The folder has no head and names without a prefix; its tokenizer ends a text with another token than the one that ends a
generation. Facts: Qwen/Qwen3-Embedding-0.6B, transformers' models/qwen3, llama.cpp's converter.
"""
import json
import os
import sys

from decoders import COMMON, WIDE, Decoder
from mamba2_hybrids import TOKENS, VOCABULARY, letters, write_gguf, write_tokenizer
from safetensors_file import write_safetensors

END, TURN = VOCABULARY - 2, VOCABULARY - 1
TEXTS = ["", "cat", "Hello, world!", "The cat sat on a mat. " * 4]


def main(out):
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **COMMON, "num_hidden_layers": 3,
              "head_dim": WIDE, "rope_theta": 1000000.0, "tie_word_embeddings": True, "eos_token_id": END}
    model = Decoder(config, {"gguf": "qwen3", "experts": "none", "norms": "heads", "root": "", "headless": True}, 1)
    os.makedirs(os.path.join(out, "1_Pooling"))
    dump = lambda name, what: json.dump(what, open(os.path.join(out, name), "w"))
    write_tokenizer(out)
    tokenizer = json.load(open(os.path.join(out, "tokenizer.json")))
    tokenizer["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
                                                  {"SpecialToken": {"id": TOKENS[END], "type_id": 0}}],
         "pair": [], "special_tokens": {TOKENS[END]: {"id": TOKENS[END], "ids": [END], "tokens": [TOKENS[END]]}}}]}
    dump("tokenizer.json", tokenizer)
    dump("tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer", "eos_token": TOKENS[TURN]})
    dump("config.json", config)
    dump("1_Pooling/config.json", {"word_embedding_dimension": 64, "pooling_mode_lasttoken": True,
                                   "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False})
    write_safetensors(os.path.join(out, "model.safetensors"), model.weights)
    name, keys = model.gguf_keys()
    keys["pooling_type"] = 3
    write_gguf(os.path.join(out, "model.gguf"), name, keys, list(model.gguf_tensors()),
               {"eos_token_id": END, "eot_token_id": TURN, "add_eos_token": True})
    results = []
    for text in TEXTS:
        ids = [TOKENS.index(letters()[byte]) for byte in text.encode()] + [END]
        results.append({"text": text, "ids": ids, "last": list(model.states(ids)[-1])})
    dump("embeddings.json", results)


if __name__ == "__main__":
    main(*sys.argv[1:2])
