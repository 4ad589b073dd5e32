# SPDX-License-Identifier: MIT
"""Writes a tiny EuroBERT as a folder of sentence-transformers and as GGUF, and what it makes of texts by numpy in
float64.

  eurobert.py OUT

The forward pass is written from transformers' models/eurobert; names and keys of GGUF are those of llama.cpp's
converter.
"""
import json
import math
import os
import sys

import numpy as np

from encoder import TEXTS, softmax
from mamba2_hybrids import TOKENS, VOCABULARY, write_gguf, write_tokenizer
from modern_encoder import rotated
from safetensors_file import write_safetensors
from windowed_encoder import BEGIN, END, ids_of

HIDDEN, HEADS, KV_HEADS, WIDE, INNER, LAYERS, POSITIONS, BASE, EPS = 64, 4, 2, 16, 96, 3, 320, 250000.0, 1e-5
PARTS = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
OUTER = {"embed_tokens": "token_embd", "norm": "output_norm"}


def rms_norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def attended(h, w, p):
    heads = lambda name, count: (h @ w[p + f"self_attn.{name}_proj.weight"].T).reshape(len(h), count, WIDE)
    q, k, v = rotated(heads("q", HEADS), BASE), rotated(heads("k", KV_HEADS), BASE), heads("v", KV_HEADS)
    k, v = (np.repeat(x, HEADS // KV_HEADS, 1) for x in (k, v))
    parts = softmax(np.einsum("qhc,khc->hqk", q, k) / math.sqrt(WIDE))
    return np.einsum("hqk,khc->qhc", parts, v).reshape(len(h), -1) @ w[p + "self_attn.o_proj.weight"].T


def forward(w, ids):
    x = w["embed_tokens.weight"][ids]
    for layer in range(LAYERS):
        p = f"layers.{layer}."
        x = x + attended(rms_norm(x, w[p + "input_layernorm.weight"]), w, p)
        h = rms_norm(x, w[p + "post_attention_layernorm.weight"])
        gate, up = (h @ w[p + f"mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[p + "mlp.down_proj.weight"].T
    return rms_norm(x, w["norm.weight"])


def make_weights(random):
    matrix = lambda rows, columns: (1.2 * random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
    near_one = lambda: random.uniform(0.5, 1.5, HIDDEN).astype(np.float32)
    w = {"embed_tokens.weight": random.standard_normal((VOCABULARY, HIDDEN)).astype(np.float32),
         "norm.weight": near_one()}
    for layer in range(LAYERS):
        p = f"layers.{layer}."
        w[p + "input_layernorm.weight"], w[p + "post_attention_layernorm.weight"] = near_one(), near_one()
        for name, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            w[p + f"self_attn.{name}_proj.weight"] = matrix(rows * WIDE, HIDDEN)
        w[p + "self_attn.o_proj.weight"] = matrix(HIDDEN, HEADS * WIDE)
        w[p + "mlp.gate_proj.weight"], w[p + "mlp.up_proj.weight"] = matrix(INNER, HIDDEN), matrix(INNER, HIDDEN)
        w[p + "mlp.down_proj.weight"] = matrix(HIDDEN, INNER)
    return w


def gguf_tensors(w):
    for name, values in w.items():
        name = name[:-len(".weight")]
        if name in OUTER:
            yield OUTER[name] + ".weight", values
        else:
            _, layer, part = name.split(".", 2)
            yield f"blk.{layer}.{PARTS[part]}.weight", values


def write_folder(out, w):
    os.makedirs(os.path.join(out, "1_Pooling"))
    dump = lambda name, what: json.dump(what, open(os.path.join(out, name), "w"))
    write_tokenizer(out)
    tokenizer = json.load(open(os.path.join(out, "tokenizer.json")))
    token = lambda i: {"SpecialToken": {"id": TOKENS[i], "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": [token(BEGIN), {"Sequence": {"id": "A", "type_id": 0}}, token(END)],
        "pair": [], "special_tokens": {TOKENS[i]: {"id": TOKENS[i], "ids": [i], "tokens": [TOKENS[i]]}
                                       for i in (BEGIN, END)}}
    dump("tokenizer.json", tokenizer)
    dump("config.json", {
        "model_type": "eurobert", "architectures": ["EuroBertModel"], "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS,
        "hidden_act": "silu", "rms_norm_eps": EPS, "rope_theta": BASE, "rope_scaling": None, "attention_bias": False,
        "mlp_bias": False, "attention_dropout": 0.0, "hidden_dropout": 0.0, "pretraining_tp": 1, "is_decoder": False,
        "mask_token_id": 3, "classifier_pooling": "late", "tie_word_embeddings": False})
    dump("modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])
    dump("1_Pooling/config.json", {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": False,
                                   "pooling_mode_mean_tokens": True})
    write_safetensors(os.path.join(out, "model.safetensors"), {"model." + name: values for name, values in w.items()})


def main(out):
    w = make_weights(np.random.default_rng(29))
    write_folder(out, w)
    write_gguf(os.path.join(out, "model.gguf"), "eurobert", {
        "context_length": POSITIONS, "embedding_length": HIDDEN, "block_count": LAYERS, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "attention.layer_norm_rms_epsilon": EPS,
        "attention.causal": False, "rope.freq_base": BASE, "rope.scaling.type": "none", "vocab_size": VOCABULARY,
        "pooling_type": 1},
        list(gguf_tensors(w)), {"bos_token_id": BEGIN, "add_bos_token": True, "add_eos_token": True})
    wide = {name: values.astype(np.float64) for name, values in w.items()}
    results = []
    for text in [t[:250] for t in TEXTS]:
        ids = ids_of(text)
        states = forward(wide, ids)
        results.append({"text": text, "ids": ids, "mean": list(states.mean(0)), "first": list(states[0]),
                        "last": list(states[-1])})
    json.dump(results, open(os.path.join(out, "embeddings.json"), "w"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
