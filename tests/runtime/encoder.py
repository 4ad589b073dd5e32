# SPDX-License-Identifier: MIT
"""Writes tiny encoders, a BERT, a cross-encoder, a Nomic BERT, an XLM-RoBERTa and a RoBERTa, as folders and as GGUF,
and what they make of texts by numpy in float64: embeddings, and scores of pairs.

  encoder.py OUT

Tokenizer and forward pass are written from the papers and from transformers' modeling_bert.py and nomic-bert-2048's
modeling_hf_nomic_bert.py; nothing here is the library's.
"""

import json
import math
import os
import struct
import sys

import numpy as np

from encoder_tokens import (BYTES, MERGES, PAIRS, PIECES, TEXTS, VOCABULARY, byte_tokens, bytes_json, charsmap,
                            gguf_tokens, tokenizer_json, tokens_of, unigram_json, unigram_tokens)
from safetensors_file import write_safetensors

CLS, SEP = VOCABULARY.index("[CLS]"), VOCABULARY.index("[SEP]")


def layer_norm(x, w, b, eps):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + eps) * w + b


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, heads):
    split = lambda x: x.reshape(len(x), heads, -1).transpose(1, 0, 2)
    q, k, v = split(q), split(k), split(v)
    y = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])) @ v
    return y.transpose(1, 0, 2).reshape(y.shape[1], -1)


def bert(w, c, ids, kinds):
    lin = lambda x, n: x @ w[n + ".weight"].T + w[n + ".bias"]
    norm = lambda x, n: layer_norm(x, w[n + ".LayerNorm.weight"], w[n + ".LayerNorm.bias"], c["layer_norm_eps"])
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][kinds]
    first = c["pad_token_id"] + 1 if c["model_type"] != "bert" else 0
    x = norm(x + w["embeddings.position_embeddings.weight"][first:first + len(ids)], "embeddings")
    gelu = lambda y: y * 0.5 * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        q, k, v = (lin(x, p + "attention.self." + n) for n in ("query", "key", "value"))
        y = attention(q, k, v, c["num_attention_heads"])
        x = norm(x + lin(y, p + "attention.output.dense"), p + "attention.output")
        x = norm(x + lin(gelu(lin(x, p + "intermediate.dense")), p + "output.dense"), p + "output")
    return x


def nomic(w, c, ids, kinds):
    lin = lambda x, n: x @ w[n + ".weight"].T
    norm = lambda x, n: layer_norm(x, w[n + ".weight"], w[n + ".bias"], c["layer_norm_epsilon"])
    x = norm(
        w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][kinds], "emb_ln"
    )
    half = c["n_embd"] // c["n_head"] // 2
    angles = np.arange(len(ids))[:, None] * c["rotary_emb_base"] ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def turn(x):
        y = x.reshape(len(x), c["n_head"], 2 * half)
        a, b = y[..., :half], y[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)

    for i in range(c["n_layer"]):
        p = f"encoder.layers.{i}."
        q, k, v = np.split(lin(x, p + "attn.Wqkv"), 3, -1)
        x = norm(x + lin(attention(turn(q), turn(k), v, c["n_head"]), p + "attn.out_proj"), p + "norm1")
        gate = lin(x, p + "mlp.fc12")
        x = norm(x + lin(lin(x, p + "mlp.fc11") * gate / (1 + np.exp(-gate)), p + "mlp.fc2"), p + "norm2")
    return x


def write_gguf(path, keys, tensors):
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()

    def value(v):
        if isinstance(v, bool):
            return struct.pack("<IB", 7, v)
        if isinstance(v, int):
            return struct.pack("<II", 4, v)
        if isinstance(v, float):
            return struct.pack("<If", 6, v)
        if isinstance(v, bytes):
            return struct.pack("<IIQ", 9, 0, len(v)) + v
        if isinstance(v, str):
            return struct.pack("<I", 8) + text(v)
        kind, one = (
            (8, text)
            if isinstance(v[0], str)
            else (6, lambda n: struct.pack("<f", n)) if isinstance(v[0], float) else (5, lambda n: struct.pack("<i", n))
        )
        return struct.pack("<IIQ", 9, kind, len(v)) + b"".join(one(x) for x in v)

    infos, at = b"", 0
    for name, values in tensors.items():
        infos += (
            text(name) + struct.pack("<I", values.ndim) + b"".join(struct.pack("<Q", d) for d in reversed(values.shape))
        )
        infos += struct.pack("<IQ", 0, at)
        at += values.nbytes + -values.nbytes % 32
    head = (
        b"GGUF"
        + struct.pack("<IQQ", 3, len(tensors), len(keys))
        + b"".join(text(k) + value(v) for k, v in keys.items())
        + infos
    )
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % 32))
        for values in tensors.values():
            data = np.ascontiguousarray(values, "<f4").tobytes()
            out.write(data + bytes(-len(data) % 32))


GLOBALS = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "emb_ln": "token_embd_norm",
    "pooler.dense": "cls",
    "classifier": "cls.output",
    "classifier.dense": "cls",
    "classifier.out_proj": "cls.output",
}
PARTS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
    "attn.Wqkv": "attn_qkv",
    "attn.out_proj": "attn_output",
    "norm1": "attn_output_norm",
    "norm2": "layer_output_norm",
    "mlp.fc11": "ffn_up",
    "mlp.fc12": "ffn_gate",
    "mlp.fc2": "ffn_down",
}


def gguf_name(name):
    part, end = name.rsplit(".", 1)
    if part in GLOBALS:
        return GLOBALS[part] + "." + end
    _, _, layer, what = part.split(".", 3)
    return f"blk.{layer}.{PARTS[what]}.{end}"


def make(out, kind):
    robertas = {"xlmr": "xlm-roberta", "roberta": "roberta"}
    hidden, heads, inner, layers, positions = 64, 4, 128, 3, 320
    vocabulary = len({"xlmr": PIECES, "roberta": BYTES}.get(kind, VOCABULARY))
    random = np.random.default_rng(7)
    matrix = lambda rows, columns, size=2.0: (
        random.standard_normal((rows, columns)) * size / math.sqrt(columns)
    ).astype(np.float32)
    vector = lambda n, at=0.0: (at + 0.3 * random.standard_normal(n)).astype(np.float32)
    w = {"embeddings.word_embeddings.weight": matrix(vocabulary, hidden, 8.0)}
    kinds = 1 if kind in robertas else 2
    w["embeddings.token_type_embeddings.weight"] = matrix(kinds, hidden, 4.0)

    def norm(name):
        w[name + ".weight"], w[name + ".bias"] = vector(hidden, 1.0), vector(hidden)

    def linear(name, rows, columns, biased):
        w[name + ".weight"] = matrix(rows, columns)
        if biased:
            w[name + ".bias"] = vector(rows)

    if kind != "nomic":
        c = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": hidden, "num_attention_heads": heads,
             "intermediate_size": inner, "num_hidden_layers": layers, "vocab_size": vocabulary, "type_vocab_size": 2,
             "max_position_embeddings": positions, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
             "position_embedding_type": "absolute", "pad_token_id": 0}
        if kind in robertas:
            name = {"xlmr": "XLMRobertaForSequenceClassification", "roberta": "RobertaForSequenceClassification"}[kind]
            c.update(model_type=robertas[kind], architectures=[name], type_vocab_size=1,
                     max_position_embeddings=positions + 2, layer_norm_eps=1e-5, pad_token_id=1)
        w["embeddings.position_embeddings.weight"] = matrix(c["max_position_embeddings"], hidden, 4.0)
        norm("embeddings.LayerNorm")
        for i in range(layers):
            p = f"encoder.layer.{i}."
            for n in ("query", "key", "value"):
                linear(p + "attention.self." + n, hidden, hidden, True)
            linear(p + "attention.output.dense", hidden, hidden, True)
            norm(p + "attention.output.LayerNorm")
            linear(p + "intermediate.dense", inner, hidden, True)
            linear(p + "output.dense", hidden, inner, True)
            norm(p + "output.LayerNorm")
        if kind == "cross":
            linear("pooler.dense", hidden, hidden, True)
            linear("classifier", 1, hidden, True)
        if kind in robertas:
            linear("classifier.dense", hidden, hidden, True)
            linear("classifier.out_proj", 1, hidden, True)
    else:
        c = {
            "model_type": "nomic_bert",
            "architectures": ["NomicBertModel"],
            "n_embd": hidden,
            "n_head": heads,
            "n_inner": inner,
            "n_layer": layers,
            "vocab_size": vocabulary,
            "type_vocab_size": 2,
            "n_positions": 4 * positions,
            "max_trained_positions": positions,
            "layer_norm_epsilon": 1e-12,
            "activation_function": "swiglu",
            "rotary_emb_base": 1000,
            "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": False,
            "rotary_emb_scale_base": None,
            "rotary_scaling_factor": None,
            "qkv_proj_bias": False,
            "mlp_fc1_bias": False,
            "mlp_fc2_bias": False,
            "prenorm": False,
            "causal": False,
            "parallel_block": False,
            "use_rms_norm": False,
        }
        norm("emb_ln")
        for i in range(layers):
            p = f"encoder.layers.{i}."
            linear(p + "attn.Wqkv", 3 * hidden, hidden, False)
            linear(p + "attn.out_proj", hidden, hidden, False)
            for n in ("mlp.fc11", "mlp.fc12"):
                linear(p + n, inner, hidden, False)
            linear(p + "mlp.fc2", hidden, inner, False)
            norm(p + "norm1")
            norm(p + "norm2")

    wide = {k: v.astype(np.float64) for k, v in w.items()}
    run = lambda ids, kinds: (nomic if kind == "nomic" else bert)(wide, c, ids, kinds)
    results = []
    own = {"xlmr": (0, 2, unigram_tokens), "roberta": (0, 2, byte_tokens)}
    begin, end, pieces_of = own.get(kind, (CLS, SEP, tokens_of))
    for text in [t[:300 if kind == "roberta" else 600] if kind in robertas else t for t in TEXTS]:
        ids = [begin] + pieces_of(text) + [end]
        states = run(ids, [0] * len(ids))
        results.append(
            {"text": text, "ids": ids, "mean": list(states.mean(0)), "first": list(states[0]), "last": list(states[-1])}
        )

    scores = []
    for first, second in PAIRS if kind in ("cross", "xlmr", "roberta") else []:
        head, tail = [begin] + pieces_of(first) + [end], pieces_of(second) + [end]
        head += [end] if kind in robertas else []
        state = run(head + tail, [0] * len(head) + [kinds - 1] * len(tail))[0]
        dense, last = "pooler.dense", "classifier"
        if kind in robertas:
            dense, last = "classifier.dense", "classifier.out_proj"
        pooled = np.tanh(wide[dense + ".weight"] @ state + wide[dense + ".bias"])
        scores.append({"first": first, "second": second, "ids": head + tail, "begins": len(head),
                       "score": float(wide[last + ".weight"][0] @ pooled + wide[last + ".bias"][0])})

    os.makedirs(os.path.join(out, "1_Pooling"))
    dump = lambda name, what: json.dump(what, open(os.path.join(out, name), "w"))
    dump("config.json", c)
    dump("tokenizer.json", {"xlmr": unigram_json, "roberta": bytes_json}.get(kind, tokenizer_json)())
    dump("1_Pooling/config.json", {"word_embedding_dimension": hidden, "pooling_mode_cls_token": kind != "nomic",
                                   "pooling_mode_mean_tokens": kind == "nomic"})
    dump("embeddings.json", results)
    dump("scores.json", scores)
    model = {"cross": "bert.", "xlmr": "roberta.", "roberta": "roberta."}.get(kind, "")
    prefix = lambda k: k if k.startswith("classifier") else model + k
    write_safetensors(os.path.join(out, "model.safetensors"), {prefix(k): v for k, v in w.items()})
    name = "nomic-bert" if kind == "nomic" else "bert"
    keys = {"general.architecture": name, f"{name}.block_count": layers, f"{name}.context_length": positions,
            f"{name}.embedding_length": hidden, f"{name}.feed_forward_length": inner,
            f"{name}.attention.head_count": heads,
            f"{name}.attention.layer_norm_epsilon": 1e-12, f"{name}.attention.causal": False,
            f"{name}.pooling_type": {"bert": 2, "cross": 4, "nomic": 1, "xlmr": 4, "roberta": 4}[kind],
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.token_type_count": 2, "tokenizer.ggml.tokens": gguf_tokens(),
            "tokenizer.ggml.token_type": [3] * 5 + [1] * (vocabulary - 5), "tokenizer.ggml.unknown_token_id": 1,
            "tokenizer.ggml.seperator_token_id": SEP, "tokenizer.ggml.padding_token_id": 0,
            "tokenizer.ggml.cls_token_id": CLS,
            "tokenizer.ggml.mask_token_id": 4}
    if kind == "nomic":
        keys[f"{name}.rope.freq_base"] = 1000.0
    if kind in robertas:
        keys = {k: v for k, v in keys.items() if not k.startswith("tokenizer.")}
        keys["bert.attention.layer_norm_epsilon"] = 1e-5
    if kind == "roberta":
        keys.update({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "roberta-bpe",
            "tokenizer.ggml.tokens": BYTES,
                     "tokenizer.ggml.merges": MERGES,
                     "tokenizer.ggml.token_type": [3] * 4 + [1] * (len(BYTES) - 5) + [3],
                     "tokenizer.ggml.token_type_count": 1, "tokenizer.ggml.bos_token_id": 0,
                     "tokenizer.ggml.eos_token_id": 2,
                     "tokenizer.ggml.unknown_token_id": 3, "tokenizer.ggml.padding_token_id": 1,
                     "tokenizer.ggml.seperator_token_id": 2, "tokenizer.ggml.cls_token_id": 0,
                     "tokenizer.ggml.mask_token_id": len(BYTES) - 1,
                     "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True})
    if kind == "xlmr":
        keys.update({"tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default",
                     "tokenizer.ggml.tokens": [t for t, _ in PIECES], "tokenizer.ggml.scores": [s for _, s in PIECES],
                     "tokenizer.ggml.token_type": [3, 3, 3, 2] + [1] * (len(PIECES) - 4),
                     "tokenizer.ggml.token_type_count": 1,
                     "tokenizer.ggml.add_space_prefix": True, "tokenizer.ggml.remove_extra_whitespaces": True,
                     "tokenizer.ggml.precompiled_charsmap": charsmap(), "tokenizer.ggml.bos_token_id": 0,
                     "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 3,
                     "tokenizer.ggml.padding_token_id": 1,
                     "tokenizer.ggml.seperator_token_id": 2, "tokenizer.ggml.add_bos_token": True,
                     "tokenizer.ggml.add_eos_token": True})
    if kind in robertas:
        w["embeddings.position_embeddings.weight"] = w["embeddings.position_embeddings.weight"][2:]
    write_gguf(os.path.join(out, "model.gguf"), keys, {gguf_name(k): v for k, v in w.items()})


if __name__ == "__main__":
    for kind in ("bert", "cross", "nomic", "xlmr", "roberta"):
        make(os.path.join(sys.argv[1], kind), kind)
