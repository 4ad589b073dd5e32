# SPDX-License-Identifier: MIT
"""Writes tiny models of AFMoE's shape (Arcee Trinity), as folders and as GGUF, and their logits by numpy in float64.

  afmoe.py OUT

OUT/apart and OUT/tied have config.json, a tokenizer of bytes whose steps are Trinity's, model.safetensors,
prompts.json, logits of each prompt, and model.gguf as llama.cpp's converter writes it. Layers of the first model are of
three kinds, which its list and the interval state alike. Those of the second one are of four kinds, without a shared
expert. The forward pass is written from transformers' models/afmoe.
"""

import json
import os
import sys

import numpy as np

from decoder_math import sigmoid, silu
from mamba2_hybrids import EPS, VOCABULARY, write_gguf, write_models

THETA = 10000.0
EXPERTS, TOP, INNER, DENSE = 8, 3, 32, 64
# The steps of Trinity's tokenizer.json.
STEPS = [
    r"\p{Nd}{1,510}(?=(?>\p{Nd}{510})*(?:\P{Nd}|$))|\G\p{Nd}{510}",
    r"\A\p{Nd}{1,2}(?=\p{Nd}{3}+\z)",
    r"\A\p{Nd}{3}|\G\p{Nd}{3}",
    r"(?:[\u4E00-\u9FFF\u3040-\u309F\u30A0-\u30FF\u3400-\u4DBF\uf900-\uFAFF\uFF65-\uFF9F\u2F00-\u2FDF]+|"
    r"[\u0E00-\u0E7F]+|[\u0E80-\u0EFF]+|[\u1780-\u17FF]+|[\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF]+|"
    r"[\uAC00-\uD7AF\u1100-\u11FF]+)",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def rotated(x):
    """x: [tokens, heads, head_dim]; channel i turns with channel i + head_dim / 2."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None, None] * THETA ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


def gated(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


class Afmoe:
    def __init__(self, config, seed):
        c = self.config = config
        self.gap = np.inf
        self.layers, self.hidden, self.wide = c["num_hidden_layers"], c["hidden_size"], c["head_dim"]
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        every = c["global_attn_every_n_layers"]
        listed = c.get("layer_types")
        self.windowed = [t == "sliding_attention" for t in listed] if listed else [
            (i + 1) % every != 0 for i in range(self.layers)]
        self.weights = self.made(np.random.default_rng(seed))

    def is_dense(self, layer):
        return layer < self.config["num_dense_layers"]

    def units(self, layer):
        """The gated units of a layer's FFN and their widths."""
        if self.is_dense(layer):
            return {"mlp.": DENSE}
        out = {f"mlp.experts.{e}.": INNER for e in range(EXPERTS)}
        if self.config["num_shared_experts"]:
            out["mlp.shared_experts."] = INNER * self.config["num_shared_experts"]
        return out

    def made(self, random):
        """All tensors by their names in safetensors, f32."""
        hidden, c = self.hidden, self.config
        normal = lambda *shape: (1.2 * random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        near_one = lambda n: random.uniform(0.5, 1.5, n).astype(np.float32)
        rows = random.standard_normal((VOCABULARY, hidden)) / np.sqrt(hidden)
        out = {"model.embed_tokens.weight": rows.astype(np.float32), "model.norm.weight": near_one(hidden)}
        if not c["tie_word_embeddings"]:
            out["lm_head.weight"] = normal(VOCABULARY, hidden)
        for i in range(self.layers):
            p = f"model.layers.{i}."
            for name in ("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"):
                out[f"{p}{name}.weight"] = near_one(hidden)
            for name, heads in (("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads), ("gate", self.heads)):
                out[f"{p}self_attn.{name}_proj.weight"] = 2 * normal(heads * self.wide, hidden)
            out[p + "self_attn.o_proj.weight"] = normal(hidden, self.heads * self.wide)
            for name in ("q", "k"):
                out[f"{p}self_attn.{name}_norm.weight"] = near_one(self.wide)
            if not self.is_dense(i):
                out[p + "mlp.router.gate.weight"] = normal(EXPERTS, hidden)
                out[p + "mlp.expert_bias"] = random.permutation(np.linspace(-0.7, 0.7, EXPERTS)).astype(np.float32)
            for unit, inner in self.units(i).items():
                for name, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
                    out[f"{p}{unit}{name}_proj.weight"] = 2 * normal(*shape)
        return out

    def forward(self, ids):
        w = {name: values.astype(np.float64) for name, values in self.weights.items()}
        x = w["model.embed_tokens.weight"][ids] * np.sqrt(self.hidden)
        for i in range(self.layers):
            p = f"model.layers.{i}."
            y = self.attention(norm(x, w[p + "input_layernorm.weight"]), p + "self_attn.", w, self.windowed[i])
            x = x + norm(y, w[p + "post_attention_layernorm.weight"])
            h = norm(x, w[p + "pre_mlp_layernorm.weight"])
            y = self.unit(h, p + "mlp.", w) if self.is_dense(i) else self.mixture(h, p + "mlp.", w)
            x = x + norm(y, w[p + "post_mlp_layernorm.weight"])
        head = w["model.embed_tokens.weight" if self.config["tie_word_embeddings"] else "lm_head.weight"]
        return norm(x, w["model.norm.weight"]) @ head.T

    def attention(self, x, p, w, windowed):
        heads = lambda name, n: (x @ w[f"{p}{name}_proj.weight"].T).reshape(len(x), n, self.wide)
        q = norm(heads("q", self.heads), w[p + "q_norm.weight"])
        k = norm(heads("k", self.kv_heads), w[p + "k_norm.weight"])
        if windowed:
            q, k = rotated(q), rotated(k)
        k, v = (np.repeat(y, self.heads // self.kv_heads, 1) for y in (k, heads("v", self.kv_heads)))
        at = np.arange(len(x))
        seen = at[None, :] <= at[:, None]
        if windowed:
            seen &= at[None, :] > at[:, None] - self.config["sliding_window"]
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.wide)
        scores = np.where(seen, scores, -np.inf)
        parts = np.exp(scores - scores.max(-1, keepdims=True))
        parts /= parts.sum(-1, keepdims=True)
        y = np.einsum("hqk,khd->qhd", parts, v).reshape(len(x), -1)
        return (y * sigmoid(x @ w[p + "gate_proj.weight"].T)) @ w[p + "o_proj.weight"].T

    @staticmethod
    def unit(x, p, w):
        return gated(x, *(w[f"{p}{name}_proj.weight"] for name in ("gate", "up", "down")))

    def mixture(self, x, p, w):
        scores = sigmoid(x @ w[p + "router.gate.weight"].T)
        judged = scores + w[p + "expert_bias"]
        order = np.argsort(-judged, -1)
        ranked = np.take_along_axis(judged, order, -1)
        self.gap = min(self.gap, (ranked[:, TOP - 1] - ranked[:, TOP]).min())
        parts = np.take_along_axis(scores, order[:, :TOP], -1)
        parts = parts / (parts.sum(-1, keepdims=True) + 1e-20) * self.config["route_scale"]
        y = self.unit(x, p + "shared_experts.", w) if self.config["num_shared_experts"] else np.zeros_like(x)
        for i in range(len(x)):
            for j in range(TOP):
                y[i] += parts[i, j] * self.unit(x[i], f"{p}experts.{order[i, j]}.", w)
        return y

    # The same as GGUF.

    def gguf_tensors(self):
        names = {
            "embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight",
            "norm.weight": "output_norm.weight", "input_layernorm.weight": "attn_norm.weight",
            "post_attention_layernorm.weight": "post_attention_norm.weight",
            "pre_mlp_layernorm.weight": "ffn_norm.weight", "post_mlp_layernorm.weight": "post_ffw_norm.weight",
            "self_attn.o_proj.weight": "attn_output.weight",
            "self_attn.gate_proj.weight": "attn_gate.weight", "mlp.router.gate.weight": "ffn_gate_inp.weight",
            "mlp.expert_bias": "exp_probs_b.bias"}
        names.update({f"self_attn.{n}_proj.weight": f"attn_{n}.weight" for n in "qkv"})
        names.update({f"self_attn.{n}_norm.weight": f"attn_{n}_norm.weight" for n in "qk"})
        for n in ("gate", "up", "down"):
            names[f"mlp.{n}_proj.weight"] = f"ffn_{n}.weight"
            names[f"mlp.shared_experts.{n}_proj.weight"] = f"ffn_{n}_shexp.weight"
        stacks = {}
        for name, values in self.weights.items():
            part, block = name.removeprefix("model."), ""
            if part.startswith("layers."):
                _, layer, part = part.split(".", 2)
                block = f"blk.{layer}."
            if part.startswith("mlp.experts."):
                which = part.split(".")[3].removesuffix("_proj")
                stacks.setdefault(f"{block}ffn_{which}_exps.weight", []).append(values)
            else:
                yield block + names[part], values
        for name, values in stacks.items():
            yield name, np.stack(values)

    def gguf_keys(self):
        c = self.config
        return "afmoe", {
            "block_count": self.layers, "context_length": c["max_position_embeddings"], "embedding_length": self.hidden,
            "vocab_size": VOCABULARY, "feed_forward_length": DENSE, "attention.head_count": self.heads,
            "attention.head_count_kv": self.kv_heads, "attention.key_length": self.wide,
            "attention.value_length": self.wide, "attention.layer_norm_rms_epsilon": EPS,
            "attention.sliding_window": c["sliding_window"],
            "attention.sliding_window_pattern": self.windowed.index(False) + 1, "rope.freq_base": THETA,
            "rope.dimension_count": self.wide, "expert_count": EXPERTS, "expert_used_count": TOP,
            "expert_feed_forward_length": INNER, "expert_shared_count": c["num_shared_experts"],
            "expert_gating_func": 2, "expert_group_count": 1, "expert_group_used_count": 1,
            "expert_weights_norm": True, "expert_weights_scale": c["route_scale"],
            "leading_dense_block_count": c["num_dense_layers"]}


# The keys of the published config.json.
CONFIG = {
    "architectures": ["AfmoeForCausalLM"], "attention_dropout": 0.0, "dtype": "float32", "head_dim": 24,
    "hidden_act": "silu", "hidden_size": 96, "initializer_range": 0.02, "intermediate_size": DENSE,
    "max_position_embeddings": 512, "model_type": "afmoe", "moe_intermediate_size": INNER, "mup_enabled": True,
    "n_group": 1, "num_attention_heads": 4, "num_expert_groups": 1, "num_experts": EXPERTS,
    "num_experts_per_tok": TOP, "num_key_value_heads": 2, "num_limited_groups": 1, "rms_norm_eps": EPS,
    "rope_scaling": None, "rope_theta": 10000, "route_norm": True, "route_scale": 2.826, "score_func": "sigmoid",
    "sliding_window": 24, "topk_group": 1, "transformers_version": "4.57.3", "use_cache": True, "use_grouped_mm": True,
    "vocab_size": VOCABULARY}
MODELS = {
    "apart": {**CONFIG, "num_hidden_layers": 5, "num_dense_layers": 2, "num_shared_experts": 2,
              "global_attn_every_n_layers": 3, "tie_word_embeddings": False,
              "layer_types": [f"{'full' if (i + 1) % 3 == 0 else 'sliding'}_attention" for i in range(5)]},
    "tied": {**CONFIG, "num_hidden_layers": 5, "num_dense_layers": 2, "num_shared_experts": 0,
             "global_attn_every_n_layers": 2, "tie_word_embeddings": True},
}


def write_steps(folder):
    """Gives a folder's tokenizer the steps of Trinity's."""
    path = os.path.join(folder, "tokenizer.json")
    tokenizer = json.load(open(path))
    split = lambda step: {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated", "invert": False}
    last = {**tokenizer["pre_tokenizer"], "use_regex": False}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*map(split, STEPS), last]}
    json.dump(tokenizer, open(path, "w"))


def main(out):
    made = {}

    def make(name):
        def of(seed):
            made[name] = Afmoe(MODELS[name], seed)
            return made[name]

        return of

    write_models(out, 70, {name: (c, make(name)) for name, c in MODELS.items()})
    for name, model in made.items():
        folder = os.path.join(out, name)
        write_steps(folder)
        write_gguf(os.path.join(folder, "model.gguf"), *model.gguf_keys(), list(model.gguf_tensors()), {"pre": "afmoe"})


if __name__ == "__main__":
    main(*sys.argv[1:2])
