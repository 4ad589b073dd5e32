# SPDX-License-Identifier: MIT
"""Writes a tiny encoder whose windows see both ways, an EmbeddingGemma, as a folder of sentence-transformers and as
GGUF, and what it makes of texts by numpy in float64.

  windowed_encoder.py OUT

The forward pass is written from the models' reports and from transformers' models/gemma3 (use_bidirectional_attention)
and sentence-transformers' Dense; names and keys of GGUF are those of llama.cpp's converter.
"""
import json
import os
import sys

import numpy as np

from encoder import TEXTS, softmax
from mamba2_hybrids import TOKENS, VOCABULARY, letters, write_gguf, write_tokenizer
from safetensors_file import write_safetensors

HIDDEN, HEADS, KV_HEADS, WIDE, INNER, LAYERS, POSITIONS, WINDOW, FEATURES = 64, 3, 1, 32, 96, 3, 320, 12, 160
BEGIN, END = VOCABULARY - 2, VOCABULARY - 1
PARTS = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "post_attention_norm",
         "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def ids_of(text):
    """A token a byte, but for the pair that became one."""
    ids = [TOKENS.index(letters()[byte]) for byte in text.encode()]
    pair, out = [TOKENS.index("a"), TOKENS.index("b")], []
    for token in ids:
        out.append(token)
        if out[-2:] == pair:
            out[-2:] = [TOKENS.index("ab")]
    return [BEGIN] + out + [END]


def turned(x, base):
    """Channels i and i + WIDE / 2 of [tokens, heads, WIDE] turn together."""
    angles = np.arange(len(x))[:, None] * base ** (-np.arange(WIDE // 2) * 2 / WIDE)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attention(q, k, v, window):
    """All heads with the one key and value head; a token sees those up to half a window away."""
    scores = np.einsum("qhc,kc->hqk", q, k[:, 0]) / np.sqrt(WIDE)
    if window:
        apart = np.abs(np.arange(len(q))[:, None] - np.arange(len(q)))
        scores = np.where(apart > window // 2, -np.inf, scores)
    return np.einsum("hqk,kc->qhc", softmax(scores), v[:, 0]).reshape(len(q), -1)


def forward(w, c, ids):
    norm = lambda x, n: x / np.sqrt((x * x).mean(-1, keepdims=True) + c["rms_norm_eps"]) * (1 + w[n + ".weight"])
    lin = lambda x, n: x @ w[n + ".weight"].T
    gelu = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    x = w["embed_tokens.weight"][ids] * np.sqrt(HIDDEN)
    for i, kind in enumerate(c["layer_types"]):
        p, local = f"layers.{i}.", kind == "sliding_attention"
        h = norm(x, p + "input_layernorm")
        q, k, v = (lin(h, p + f"self_attn.{n}_proj").reshape(len(x), -1, WIDE) for n in "qkv")
        base = c["rope_local_base_freq"] if local else c["rope_theta"]
        q, k = (turned(norm(y, p + f"self_attn.{n}_norm"), base) for y, n in ((q, "q"), (k, "k")))
        y = lin(attention(q, k, v, c["sliding_window"] if local else 0), p + "self_attn.o_proj")
        x = x + norm(y, p + "post_attention_layernorm")
        h = norm(x, p + "pre_feedforward_layernorm")
        y = lin(gelu(lin(h, p + "mlp.gate_proj")) * lin(h, p + "mlp.up_proj"), p + "mlp.down_proj")
        x = x + norm(y, p + "post_feedforward_layernorm")
    return norm(x, "norm")


def make_weights(random):
    matrix = lambda rows, columns: (1.5 * random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
    near_zero = lambda n: random.uniform(-0.5, 0.5, n).astype(np.float32)
    w = {"embed_tokens.weight": random.standard_normal((VOCABULARY, HIDDEN)).astype(np.float32)}
    for i in range(LAYERS):
        p = f"layers.{i}."
        for name, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            w[p + f"self_attn.{name}_proj.weight"] = matrix(rows * WIDE, HIDDEN)
        for name in "qk":
            w[p + f"self_attn.{name}_norm.weight"] = near_zero(WIDE)
        w[p + "self_attn.o_proj.weight"] = matrix(HIDDEN, HEADS * WIDE)
        for name in ("gate", "up"):
            w[p + f"mlp.{name}_proj.weight"] = matrix(INNER, HIDDEN)
        w[p + "mlp.down_proj.weight"] = matrix(HIDDEN, INNER)
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            w[p + name + "_layernorm.weight"] = near_zero(HIDDEN)
    w["norm.weight"] = near_zero(HIDDEN)
    return w, [matrix(FEATURES, HIDDEN), matrix(HIDDEN, FEATURES)]


def gguf_tensors(w, dense):
    for name, values in w.items():
        values = values + np.float32(1) if name.endswith("norm.weight") else values
        if not name.startswith("layers."):
            yield {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}[name], values
            continue
        _, layer, part = name.split(".", 2)
        yield f"blk.{layer}.{PARTS[part[:-len('.weight')]]}.weight", values
    yield "dense_2.weight", dense[0]
    yield "dense_3.weight", dense[1]


def main(out):
    c = {"model_type": "gemma3_text", "architectures": ["Gemma3TextModel"], "hidden_size": HIDDEN,
         "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
         "num_key_value_heads": KV_HEADS, "head_dim": WIDE, "query_pre_attn_scalar": WIDE, "vocab_size": VOCABULARY,
         "max_position_embeddings": POSITIONS, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
         "rope_scaling": None, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": WINDOW,
         "_sliding_window_pattern": 2, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
         "attn_logit_softcapping": None, "final_logit_softcapping": None, "use_bidirectional_attention": True}
    w, dense = make_weights(np.random.default_rng(11))
    for folder in ("1_Pooling", "2_Dense", "3_Dense"):
        os.makedirs(os.path.join(out, folder))
    dump = lambda name, what: json.dump(what, open(os.path.join(out, name), "w"))
    write_tokenizer(out)
    tokenizer = json.load(open(os.path.join(out, "tokenizer.json")))
    token = lambda i: {"SpecialToken": {"id": TOKENS[i], "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": [token(BEGIN), {"Sequence": {"id": "A", "type_id": 0}}, token(END)],
        "pair": [], "special_tokens": {TOKENS[i]: {"id": TOKENS[i], "ids": [i], "tokens": [TOKENS[i]]}
                                       for i in (BEGIN, END)}}
    dump("tokenizer.json", tokenizer)
    dump("config.json", c)
    dump("modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
        {"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"},
        {"idx": 4, "name": "4", "path": "4_Normalize", "type": "sentence_transformers.models.Normalize"}])
    dump("1_Pooling/config.json", {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": False,
                                   "pooling_mode_mean_tokens": True})
    for folder, matrix in zip(("2_Dense", "3_Dense"), dense):
        dump(folder + "/config.json", {"in_features": matrix.shape[1], "out_features": matrix.shape[0], "bias": False,
                                       "activation_function": "torch.nn.modules.linear.Identity"})
        write_safetensors(os.path.join(out, folder, "model.safetensors"), {"linear.weight": matrix})
    write_safetensors(os.path.join(out, "model.safetensors"), w)
    write_gguf(os.path.join(out, "model.gguf"), "gemma-embedding", {
        "context_length": POSITIONS, "embedding_length": HIDDEN, "block_count": LAYERS, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "attention.key_length": WIDE,
        "attention.value_length": WIDE, "attention.layer_norm_rms_epsilon": 1e-6, "attention.sliding_window": WINDOW,
        "attention.sliding_window_pattern": 2, "rope.freq_base": 1000000.0, "pooling_type": 1,
        "dense_2_feat_in": HIDDEN, "dense_2_feat_out": FEATURES, "dense_3_feat_in": FEATURES,
        "dense_3_feat_out": HIDDEN}, list(gguf_tensors(w, dense)),
        {"bos_token_id": BEGIN, "add_bos_token": True, "add_eos_token": True})
    wide = {k: v.astype(np.float64) for k, v in w.items()}
    behind = lambda states: states @ dense[0].astype(np.float64).T @ dense[1].astype(np.float64).T
    results = []
    for text in [t[:250] for t in TEXTS]:
        ids = ids_of(text)
        states = forward(wide, c, ids)
        results.append({"text": text, "ids": ids, "mean": list(behind(states.mean(0))),
                        "first": list(behind(states[0])), "last": list(behind(states[-1]))})
    dump("embeddings.json", results)


if __name__ == "__main__":
    main(*sys.argv[1:2])
