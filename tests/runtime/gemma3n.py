# SPDX-License-Identifier: MIT
"""Writes a tiny Gemma 3n, as a folder and as GGUF, and its logits by numpy in float64.

  gemma3n.py OUT

OUT has config.json, a tokenizer of bytes, model.safetensors with names of transformers'
Gemma3nForConditionalGeneration, model.gguf with names and shapes of llama.cpp's converter, prompts.json and, for each
prompt, NAME.logits, f32 [tokens, vocabulary]. What is computed: transformers, models/gemma3n/modular_gemma3n.py.
"""
import json
import os
import statistics
import sys

import numpy as np

from safetensors_file import write_safetensors
from mamba2_hybrids import VOCABULARY, write_gguf, write_tokenizer

EPS = 1e-6
LAYERS, SHARED, WINDOW, STREAMS, RANK = 12, 6, 16, 4, 16
HIDDEN, INNER, HEADS, KV_HEADS, WIDE, INPUT = 64, 128, 4, 2, 16, 8
WORDS = VOCABULARY - 16  # rows of the embeddings of each layer
SPARSITY = [0.8 if layer < 4 else 0.0 for layer in range(LAYERS)]
TYPES = ["full_attention" if layer % 3 == 2 else "sliding_attention" for layer in range(LAYERS)]
THETA = {"full_attention": 1e6, "sliding_attention": 1e4}


def config():
    return {"model_type": "gemma3n", "architectures": ["Gemma3nForConditionalGeneration"], "audio_token_id": 262273,
            "vision_soft_tokens_per_image": 256, "audio_soft_tokens_per_image": 188,
            "vision_config": {"hidden_size": 8},
            "text_config": {
                "model_type": "gemma3n_text", "hidden_size": HIDDEN, "intermediate_size": [INNER] * LAYERS,
                "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
                "head_dim": WIDE, "vocab_size": VOCABULARY, "vocab_size_per_layer_input": WORDS,
                "hidden_size_per_layer_input": INPUT, "max_position_embeddings": 512, "rms_norm_eps": EPS,
                "hidden_activation": "gelu_pytorch_tanh", "sliding_window": WINDOW, "layer_types": TYPES,
                "rope_theta": THETA["full_attention"], "rope_local_base_freq": THETA["sliding_attention"],
                "rope_scaling": None, "attention_bias": False, "final_logit_softcapping": 30.0,
                "num_kv_shared_layers": SHARED, "altup_active_idx": 0, "altup_coef_clip": 120.0,
                "altup_correct_scale": True, "altup_num_inputs": STREAMS, "laurel_rank": RANK,
                "activation_sparsity_pattern": SPARSITY}}


def made(random):
    """All tensors by their names in safetensors, f32."""
    normal = lambda *shape: (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    near_one = lambda n: random.uniform(0.5, 1.5, n).astype(np.float32)
    out, root = {}, "model.language_model."
    out[root + "embed_tokens.weight"] = normal(VOCABULARY, HIDDEN)
    out[root + "embed_tokens_per_layer.weight"] = random.standard_normal((WORDS, LAYERS * INPUT)).astype(np.float32)
    out[root + "per_layer_model_projection.weight"] = normal(LAYERS * INPUT, HIDDEN)
    out[root + "per_layer_projection_norm.weight"] = near_one(INPUT)
    out[root + "norm.weight"] = near_one(HIDDEN)
    for i in range(STREAMS - 1):
        out[root + f"altup_projections.{i}.weight"] = normal(HIDDEN, HIDDEN)
        out[root + f"altup_unembed_projections.{i}.weight"] = normal(HIDDEN, HIDDEN)
    for layer in range(LAYERS):
        p = root + f"layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                     "post_feedforward_layernorm", "post_per_layer_input_norm", "laurel.post_laurel_norm",
                     "altup.router_norm"):
            out[p + name + ".weight"] = near_one(HIDDEN)
        out[p + "self_attn.q_proj.weight"] = normal(HEADS * WIDE, HIDDEN)
        out[p + "self_attn.k_proj.weight"] = normal(KV_HEADS * WIDE, HIDDEN)
        out[p + "self_attn.v_proj.weight"] = normal(KV_HEADS * WIDE, HIDDEN)
        out[p + "self_attn.o_proj.weight"] = normal(HIDDEN, HEADS * WIDE)
        out[p + "self_attn.q_norm.weight"] = near_one(WIDE) / 2  # scores are not divided: so they stay small
        out[p + "self_attn.k_norm.weight"] = near_one(WIDE) / 2
        out[p + "mlp.gate_proj.weight"] = normal(INNER, HIDDEN)
        out[p + "mlp.up_proj.weight"] = normal(INNER, HIDDEN)
        out[p + "mlp.down_proj.weight"] = normal(HIDDEN, INNER)
        out[p + "per_layer_input_gate.weight"] = normal(INPUT, HIDDEN)
        out[p + "per_layer_projection.weight"] = normal(HIDDEN, INPUT)
        out[p + "laurel.linear_left.weight"] = normal(RANK, HIDDEN)
        out[p + "laurel.linear_right.weight"] = normal(HIDDEN, RANK)
        out[p + "altup.modality_router.weight"] = (8 * random.standard_normal((STREAMS, HIDDEN))).astype(np.float32)
        small = random.standard_normal((STREAMS**2, STREAMS)) / 10
        out[p + "altup.prediction_coefs.weight"] = small.astype(np.float32)
        out[p + "altup.correction_coefs.weight"] = (0.2 * random.standard_normal((STREAMS, STREAMS))).astype(np.float32)
        out[p + "altup.correct_output_scale"] = near_one(HIDDEN)
    return {name: values.astype(np.float16).astype(np.float32) if in_f16(name) else values
            for name, values in out.items()}


def in_f16(name):
    """Whether llama.cpp's programs store this tensor of a GGUF file as F16."""
    return "modality_router" in name or "laurel.linear" in name


def norm(x, weight=1.0):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def rotated(x, theta):
    """x: [tokens, heads, width]"""
    half = WIDE // 2
    angles = np.arange(len(x))[:, None] / theta ** (np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Model:
    def __init__(self, weights):
        self.w = {k.removeprefix("model.language_model."): v.astype(np.float64) for k, v in weights.items()}

    def times(self, x, name):
        return x @ self.w[name + ".weight"].T

    def as_large(self, x, target):
        magnitude = lambda y: (y * y).mean(-1, keepdims=True)
        return x * np.sqrt(magnitude(target)) / np.sqrt(np.maximum(magnitude(x), 1e-5))

    def modalities(self, x, p):
        normed = norm(x, self.w[p + "altup.router_norm.weight"]) / HIDDEN
        return np.tanh(self.times(normed, p + "altup.modality_router"))

    def attention(self, x, p, layer):
        kind, tokens = TYPES[layer], len(x)
        heads = lambda name, count: self.times(x, f"{p}self_attn.{name}_proj").reshape(tokens, count, WIDE)
        q = rotated(norm(heads("q", HEADS), self.w[p + "self_attn.q_norm.weight"]), THETA[kind])
        if layer < LAYERS - SHARED:
            k = norm(heads("k", KV_HEADS), self.w[p + "self_attn.k_norm.weight"])
            self.cache[kind] = rotated(k, THETA[kind]), norm(heads("v", KV_HEADS))
        k, v = (np.repeat(each, HEADS // KV_HEADS, 1) for each in self.cache[kind])
        scores = np.einsum("qhd,khd->hqk", q, k)
        apart = np.arange(tokens)[:, None] - np.arange(tokens)[None]
        seen = (apart >= 0) & ((apart < WINDOW) | (kind == "full_attention"))
        scores = np.where(seen, scores, -np.inf)
        p_of = np.exp(scores - scores.max(-1, keepdims=True))
        p_of /= p_of.sum(-1, keepdims=True)
        return self.times(np.einsum("hqk,khd->qhd", p_of, v).reshape(tokens, -1), p + "self_attn.o_proj")

    def layer(self, s, layer, inputs):
        """s: [streams, tokens, hidden]"""
        p = f"layers.{layer}."
        coefs = self.times(self.modalities(s[0], p), p + "altup.prediction_coefs").reshape(-1, STREAMS, STREAMS)
        predictions = s + np.einsum("tij,jtc->itc", coefs, s)
        active = predictions[0]
        n = norm(active, self.w[p + "input_layernorm.weight"])
        laurel = n + norm(self.times(self.times(n, p + "laurel.linear_left"), p + "laurel.linear_right"),
                          self.w[p + "laurel.post_laurel_norm.weight"])
        attended = active + norm(self.attention(n, p, layer), self.w[p + "post_attention_layernorm.weight"])
        x = (attended + laurel) / np.sqrt(2)
        h = norm(x, self.w[p + "pre_feedforward_layernorm.weight"])
        gate = self.times(h, p + "mlp.gate_proj")
        if SPARSITY[layer] > 0:
            deviations = statistics.NormalDist().inv_cdf(SPARSITY[layer])
            gate = np.maximum(gate - gate.mean(-1, keepdims=True) - deviations * gate.std(-1, keepdims=True), 0)
        h = self.times(gelu(gate) * self.times(h, p + "mlp.up_proj"), p + "mlp.down_proj")
        x = x + norm(h, self.w[p + "post_feedforward_layernorm.weight"])
        by = self.times(self.modalities(x, p), p + "altup.correction_coefs") + 1
        s = predictions + (x - active)[None] * by.T[:, :, None]
        first = s[0] * self.w[p + "altup.correct_output_scale"]
        first = gelu(self.times(first, p + "per_layer_input_gate")) * inputs[:, layer]
        first = norm(self.times(first, p + "per_layer_projection"), self.w[p + "post_per_layer_input_norm.weight"])
        s[1:] += first
        return s

    def forward(self, ids):
        ids, self.cache = np.array(ids), {}
        x = self.w["embed_tokens.weight"][ids] * np.sqrt(HIDDEN)
        own = self.w["embed_tokens_per_layer.weight"][np.where(ids < WORDS, ids, 0)] * np.sqrt(INPUT)
        shape = (len(ids), LAYERS, INPUT)
        projected = self.times(x, "per_layer_model_projection").reshape(shape) / np.sqrt(HIDDEN)
        inputs = (norm(projected, self.w["per_layer_projection_norm.weight"]) + own.reshape(shape)) / np.sqrt(2)
        s = np.stack([x] + [self.as_large(self.times(x, f"altup_projections.{i}"), x) for i in range(STREAMS - 1)])
        for layer in range(LAYERS):
            s = self.layer(s, layer, inputs)
        back = [self.as_large(self.times(s[i + 1], f"altup_unembed_projections.{i}"), s[0]) for i in range(STREAMS - 1)]
        x = norm(np.mean([s[0]] + back, 0), self.w["norm.weight"])
        return 30 * np.tanh(self.times(x, "embed_tokens") / 30)


GGUF_NAMES = {
    "embed_tokens": "token_embd", "embed_tokens_per_layer": "per_layer_token_embd", "norm": "output_norm",
    "per_layer_model_projection": "per_layer_model_proj", "per_layer_projection_norm": "per_layer_proj_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
    "post_per_layer_input_norm": "post_norm", "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "laurel.linear_left": "laurel_l", "laurel.linear_right": "laurel_r", "laurel.post_laurel_norm": "laurel_post_norm",
    "altup.modality_router": "altup_router", "altup.router_norm": "altup_router_norm",
    "altup.prediction_coefs": "altup_predict_coef", "altup.correction_coefs": "altup_correct_coef",
    "altup.correct_output_scale": "altup_correct_scale"}


def gguf_tensors(weights):
    stacks = {"altup_projections": [], "altup_unembed_projections": []}
    for name, values in weights.items():
        name = name.removeprefix("model.language_model.").removesuffix(".weight")
        stack, _, rest = name.partition(".")
        if stack in stacks:
            stacks[stack].append(values)
        elif stack == "layers":
            layer, part = rest.split(".", 1)
            yield f"blk.{layer}.{GGUF_NAMES[part]}.weight", values.astype(np.float16) if in_f16(part) else values
        else:
            yield GGUF_NAMES[name] + ".weight", values
    yield "altup_proj.weight", np.stack(stacks["altup_projections"])
    yield "altup_unembd_proj.weight", np.stack(stacks["altup_unembed_projections"])


def gguf_keys():
    deviations = [np.float32(statistics.NormalDist().inv_cdf(s)).item() if s > 0 else float("-inf") for s in SPARSITY]
    return {"block_count": LAYERS, "context_length": 512, "embedding_length": HIDDEN,
            "feed_forward_length": [INNER] * LAYERS, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
            "attention.key_length": WIDE, "attention.value_length": WIDE, "attention.layer_norm_rms_epsilon": EPS,
            "attention.sliding_window": WINDOW,
            "attention.sliding_window_pattern": [t == "sliding_attention" for t in TYPES],
            "attention.shared_kv_layers": float(SHARED), "rope.freq_base": THETA["full_attention"],
            "altup.active_idx": 0, "altup.num_inputs": STREAMS, "embedding_length_per_layer_input": INPUT,
            "activation_sparsity_scale": deviations}


def main(out):
    random = np.random.default_rng(11)
    prompts = {"p17": random.integers(3, VOCABULARY, 17).tolist(), "p100": random.integers(3, VOCABULARY, 100).tolist()}
    prompts["p17"][5] = VOCABULARY - 2  # has no row of its own in the embeddings of each layer
    weights = made(random)
    model = Model(weights)
    os.makedirs(out, exist_ok=True)
    json.dump(config(), open(os.path.join(out, "config.json"), "w"))
    json.dump(prompts, open(os.path.join(out, "prompts.json"), "w"))
    write_tokenizer(out)
    towers = {"model.vision_tower.conv.weight": np.zeros((8, 8), np.float32),
              "model.embed_audio.embedding.weight": np.zeros((4, 8), np.float32)}
    write_safetensors(os.path.join(out, "model.safetensors"), {**weights, **towers})
    write_gguf(os.path.join(out, "model.gguf"), "gemma3n", gguf_keys(), list(gguf_tensors(weights)))
    for name, ids in prompts.items():
        model.forward(ids).astype("<f4").tofile(os.path.join(out, name + ".logits"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
