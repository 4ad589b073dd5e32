# SPDX-License-Identifier: MIT
"""Writes a tiny ModernBERT as a folder of sentence-transformers and as GGUF, and what it makes of texts by numpy in
float64.

  modern_encoder.py OUT

The forward pass is written from the paper (Warner et al. 2024) and from transformers' models/modernbert; names and keys
of GGUF are those of llama.cpp's converter.
"""
import json
import math
import os
import sys

import numpy as np

from encoder import TEXTS, softmax
from mamba2_hybrids import TOKENS, VOCABULARY, write_gguf, write_tokenizer
from safetensors_file import write_safetensors
from windowed_encoder import BEGIN, END, ids_of

HIDDEN, HEADS, WIDE, INNER, LAYERS, POSITIONS, WINDOW, EVERY = 64, 4, 16, 96, 5, 320, 12, 3
GLOBAL_BASE, LOCAL_BASE, EPS = 160000.0, 10000.0, 1e-5
PARTS = {"attn_norm": "attn_norm", "attn.Wqkv": "attn_qkv", "attn.Wo": "attn_output", "mlp_norm": "ffn_norm",
         "mlp.Wi": "ffn_up", "mlp.Wo": "ffn_down"}
OUTER = {"embeddings.tok_embeddings": "token_embd", "embeddings.norm": "token_embd_norm", "final_norm": "output_norm"}


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def rotated(x, base):
    """Rotates each channel of [tokens, heads, channels] with the channel half a head behind it."""
    half = x.shape[-1] // 2
    angles = np.outer(np.arange(len(x)), base ** -(np.arange(half) / half))[:, None]
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * np.cos(angles) - high * np.sin(angles),
                           high * np.cos(angles) + low * np.sin(angles)], -1)


def layer_norm(x, weight):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def attended(h, w, p, local):
    q, k, v = (h @ w[p + "attn.Wqkv.weight"].T).reshape(len(h), 3, HEADS, WIDE).swapaxes(0, 1)
    q, k = (rotated(x, LOCAL_BASE if local else GLOBAL_BASE) for x in (q, k))
    scores = np.einsum("qhc,khc->hqk", q, k) / math.sqrt(WIDE)
    if local:
        where = np.arange(len(h))
        scores[:, np.abs(where[:, None] - where) > WINDOW // 2] = -np.inf
    return np.einsum("hqk,khc->qhc", softmax(scores), v).reshape(len(h), -1) @ w[p + "attn.Wo.weight"].T


def forward(w, ids):
    x = layer_norm(w["embeddings.tok_embeddings.weight"][ids], w["embeddings.norm.weight"])
    for layer in range(LAYERS):
        p = f"layers.{layer}."
        h = x if layer == 0 else layer_norm(x, w[p + "attn_norm.weight"])
        x = x + attended(h, w, p, layer % EVERY != 0)
        gate, up = np.split(layer_norm(x, w[p + "mlp_norm.weight"]) @ w[p + "mlp.Wi.weight"].T, 2, -1)
        x = x + (gelu(gate) * up) @ w[p + "mlp.Wo.weight"].T
    return layer_norm(x, w["final_norm.weight"])


def make_weights(random):
    matrix = lambda rows, columns: (1.5 * random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
    near_one = lambda: random.uniform(0.5, 1.5, HIDDEN).astype(np.float32)
    # Away from 0 in the mean, so that norms have something to take off.
    w = {"embeddings.tok_embeddings.weight": (0.5 + random.standard_normal((VOCABULARY, HIDDEN))).astype(np.float32),
         "embeddings.norm.weight": near_one(), "final_norm.weight": near_one()}
    for layer in range(LAYERS):
        p = f"layers.{layer}."
        if layer != 0:
            w[p + "attn_norm.weight"] = near_one()
        w[p + "attn.Wqkv.weight"], w[p + "attn.Wo.weight"] = matrix(3 * HIDDEN, HIDDEN), matrix(HIDDEN, HIDDEN)
        w[p + "mlp_norm.weight"] = near_one()
        w[p + "mlp.Wi.weight"], w[p + "mlp.Wo.weight"] = matrix(2 * INNER, HIDDEN), matrix(HIDDEN, INNER)
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
        "model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS, "hidden_activation": "gelu", "norm_eps": EPS, "norm_bias": False,
        "attention_bias": False, "mlp_bias": False, "global_attn_every_n_layers": EVERY, "local_attention": WINDOW,
        "global_rope_theta": GLOBAL_BASE, "local_rope_theta": LOCAL_BASE, "classifier_pooling": "mean",
        "decoder_bias": True, "reference_compile": False, "tie_word_embeddings": True})
    dump("modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])
    dump("1_Pooling/config.json", {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": True,
                                   "pooling_mode_mean_tokens": False})
    write_safetensors(os.path.join(out, "model.safetensors"), w)


def main(out):
    w = make_weights(np.random.default_rng(23))
    write_folder(out, w)
    write_gguf(os.path.join(out, "model.gguf"), "modern-bert", {
        "context_length": POSITIONS, "embedding_length": HIDDEN, "block_count": LAYERS, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.layer_norm_epsilon": EPS, "attention.causal": False,
        "attention.sliding_window": WINDOW, "attention.sliding_window_pattern": EVERY, "rope.freq_base": GLOBAL_BASE,
        "rope.freq_base_swa": LOCAL_BASE, "rope.scaling.type": "none", "vocab_size": VOCABULARY, "pooling_type": 2},
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
