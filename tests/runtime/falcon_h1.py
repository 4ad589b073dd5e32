# SPDX-License-Identifier: MIT
"""Writes tiny models of Falcon-H1's shape, as folders and as GGUF, and their logits by numpy in float64.

  falcon_h1.py OUT

OUT/normed and OUT/tied have config.json, a tokenizer of bytes, model.safetensors, prompts.json, logits of each prompt,
and model.gguf as llama.cpp's converter writes it: the matrices have the multipliers in their values. The tied model's
GGUF has the factor of its head as logit_scale, which that converter leaves out. The forward pass multiplies values, as
transformers' models/falcon_h1 does, and goes from token to token by the recurrence itself.
"""

import sys

import numpy as np

from mamba2_hybrids import EPS, TAPS, VOCABULARY, silu, write_models

THETA = 1e11


def norm(x, weight, groups=1):
    parts = x.reshape(len(x), groups, -1)
    parts = parts / np.sqrt((parts * parts).mean(-1, keepdims=True) + EPS)
    return parts.reshape(x.shape) * weight


def rotated(x):
    """x: [tokens, heads, head_dim]; channel i turns with channel i + head_dim / 2."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None, None] * THETA ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


class FalconH1:
    gap = np.inf  # there are no choices of experts

    def __init__(self, config, seed):
        c = self.config = config
        self.hidden, self.head_dim = c["hidden_size"], c["head_dim"]
        self.q_heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.heads, self.groups, self.state = c["mamba_n_heads"], c["mamba_n_groups"], c["mamba_d_state"]
        self.inner = c["mamba_d_ssm"] or c["mamba_expand"] * self.hidden
        self.wide = self.inner // self.heads
        self.conv_dim = self.inner + 2 * self.groups * self.state
        self.normed = c["mamba_rms_norm"]
        self.weights = self.made(np.random.default_rng(seed))

    def made(self, random):
        """All tensors by their names in safetensors, f32. A matrix makes up for the factor that its values get."""
        c, hidden, inner = self.config, self.hidden, self.config["intermediate_size"]
        normal = lambda *shape: (1.2 * random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        near_one = lambda n: random.uniform(0.5, 1.5, n).astype(np.float32)
        size = 0.25 if c["tie_word_embeddings"] else 1  # rows of a head too
        embedding = size * random.standard_normal((VOCABULARY, hidden)) / c["embedding_multiplier"]
        out = {
            "model.embed_tokens.weight": embedding.astype(np.float32),
            "model.final_layernorm.weight": near_one(hidden),
        }
        if not c["tie_word_embeddings"]:
            out["lm_head.weight"] = normal(VOCABULARY, hidden) / np.float32(c["lm_head_multiplier"])
        for i in range(c["num_hidden_layers"]):
            p = f"model.layers.{i}."
            out[p + "input_layernorm.weight"] = near_one(hidden)
            out[p + "pre_ff_layernorm.weight"] = near_one(hidden)
            for name, heads in (("q", self.q_heads), ("k", self.kv_heads), ("v", self.kv_heads)):
                out[p + f"self_attn.{name}_proj.weight"] = 2 * normal(heads * self.head_dim, hidden)
            out[p + "self_attn.o_proj.weight"] = 2 * normal(hidden, self.q_heads * self.head_dim)
            m = p + "mamba."
            out[m + "in_proj.weight"] = 3 * normal(self.inner + self.conv_dim + self.heads, hidden)
            out[m + "conv1d.weight"] = random.uniform(-1, 1, (self.conv_dim, 1, TAPS)).astype(np.float32)
            out[m + "conv1d.bias"] = random.uniform(-0.5, 0.5, self.conv_dim).astype(np.float32)
            out[m + "A_log"] = np.log(random.uniform(0.5, 8, self.heads)).astype(np.float32)
            out[m + "D"] = random.uniform(0.2, 1.2, self.heads).astype(np.float32)
            out[m + "dt_bias"] = random.uniform(-3, 1, self.heads).astype(np.float32)
            if self.normed:
                out[m + "norm.weight"] = near_one(self.inner)
            out[m + "out_proj.weight"] = 2 * normal(hidden, self.inner)
            for name, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
                out[p + f"feed_forward.{name}_proj.weight"] = 2 * normal(*shape)
        return out

    def forward(self, ids):
        c, w = self.config, {k: v.astype(np.float64) for k, v in self.weights.items()}
        x = w["model.embed_tokens.weight"][ids] * c["embedding_multiplier"]
        gate_factor, down_factor = c["mlp_multipliers"]
        for i in range(c["num_hidden_layers"]):
            p = f"model.layers.{i}."
            h = norm(x, w[p + "input_layernorm.weight"])
            scanned = self.mamba(h * c["ssm_in_multiplier"], p + "mamba.", w) * c["ssm_out_multiplier"]
            seen = self.attention(h * c["attention_in_multiplier"], p + "self_attn.", w)
            x = x + scanned + seen * c["attention_out_multiplier"]
            h = norm(x, w[p + "pre_ff_layernorm.weight"])
            gate = h @ w[p + "feed_forward.gate_proj.weight"].T * gate_factor
            up = h @ w[p + "feed_forward.up_proj.weight"].T
            x = x + (silu(gate) * up) @ w[p + "feed_forward.down_proj.weight"].T * down_factor
        x = norm(x, w["model.final_layernorm.weight"])
        head = w["model.embed_tokens.weight" if c["tie_word_embeddings"] else "lm_head.weight"]
        return x @ head.T * c["lm_head_multiplier"]

    def attention(self, x, p, w):
        heads = lambda name, n: (x @ w[p + name + "_proj.weight"].T).reshape(len(x), n, self.head_dim)
        k = rotated(heads("k", self.kv_heads) * self.config["key_multiplier"])
        q, v, group = rotated(heads("q", self.q_heads)), heads("v", self.kv_heads), self.q_heads // self.kv_heads
        y = np.zeros_like(q)
        for t in range(len(x)):
            for h in range(self.q_heads):
                s = k[:t + 1, h // group] @ q[t, h] / np.sqrt(self.head_dim)
                s = np.exp(s - s.max())
                y[t, h] = s / s.sum() @ v[:t + 1, h // group]
        return y.reshape(len(x), -1) @ w[p + "o_proj.weight"].T

    def parts_of_rows(self):
        """Rows of in_proj: gate, values, keys, queries and steps."""
        keys = self.groups * self.state
        return np.repeat(self.config["ssm_multipliers"], [self.inner, self.inner, keys, keys, self.heads])

    def mamba(self, x, p, w):
        products = x @ w[p + "in_proj.weight"].T * self.parts_of_rows()
        gate, xbc, dt = np.split(products, [self.inner, self.inner + self.conv_dim], -1)
        taps, decay = w[p + "conv1d.weight"][:, 0], -np.exp(w[p + "A_log"])
        before = np.concatenate([np.zeros((TAPS - 1, self.conv_dim)), xbc])
        state = np.zeros((self.heads, self.wide, self.state))
        y = np.zeros((len(x), self.inner))
        for t in range(len(x)):
            mixed = silu((before[t:t + TAPS].T * taps).sum(-1) + w[p + "conv1d.bias"])
            values, b, c = np.split(mixed, [self.inner, self.inner + self.groups * self.state])
            values = values.reshape(self.heads, self.wide)
            b, c = (np.repeat(z.reshape(self.groups, self.state), self.heads // self.groups, 0) for z in (b, c))
            step = np.log1p(np.exp(dt[t] + w[p + "dt_bias"]))
            state = np.exp(step * decay)[:, None, None] * state + (step[:, None] * values)[:, :, None] * b[:, None, :]
            y[t] = ((state * c[:, None, :]).sum(-1) + w[p + "D"][:, None] * values).reshape(-1)
        z = y * silu(gate)
        return (norm(z, w[p + "norm.weight"], self.groups) if self.normed else z) @ w[p + "out_proj.weight"].T

    def gguf_tensors(self):
        c = self.config
        reads = c["attention_in_multiplier"]
        names = {
            "embed_tokens.weight": ("token_embd.weight", c["embedding_multiplier"]),
            "lm_head.weight": ("output.weight", c["lm_head_multiplier"]),
            "final_layernorm.weight": ("output_norm.weight", 1),
            "input_layernorm.weight": ("attn_norm.weight", 1),
            "pre_ff_layernorm.weight": ("ffn_norm", 1),  # llama.cpp's name has no ending
            "self_attn.q_proj.weight": ("attn_q.weight", reads),
            "self_attn.k_proj.weight": ("attn_k.weight", reads * c["key_multiplier"]),
            "self_attn.v_proj.weight": ("attn_v.weight", reads),
            "self_attn.o_proj.weight": ("attn_output.weight", c["attention_out_multiplier"]),
            "mamba.in_proj.weight": ("ssm_in.weight", c["ssm_in_multiplier"] * self.parts_of_rows()[:, None]),
            "mamba.conv1d.weight": ("ssm_conv1d.weight", 1),
            "mamba.conv1d.bias": ("ssm_conv1d.bias", 1),
            "mamba.A_log": ("ssm_a", 1),
            "mamba.D": ("ssm_d", 1),
            "mamba.dt_bias": ("ssm_dt.bias", 1),
            "mamba.norm.weight": ("ssm_norm.weight", 1),
            "mamba.out_proj.weight": ("ssm_out.weight", c["ssm_out_multiplier"]),
            "feed_forward.gate_proj.weight": ("ffn_gate.weight", c["mlp_multipliers"][0]),
            "feed_forward.up_proj.weight": ("ffn_up.weight", 1),
            "feed_forward.down_proj.weight": ("ffn_down.weight", c["mlp_multipliers"][1]),
        }
        for name, values in self.weights.items():
            part, block = name.removeprefix("model."), ""
            if part.startswith("layers."):
                _, layer, part = part.split(".", 2)
                block = f"blk.{layer}."
            to, factor = names[part]
            if to == "ssm_a":
                values = -np.exp(values)[:, None]
            elif to == "ssm_d":
                values = values[:, None]
            elif to == "ssm_conv1d.weight":
                values = values[:, 0]
            elif to == "ssm_norm.weight":
                values = values.reshape(self.groups, -1)
            yield block + to, (values * np.asarray(factor)).astype(np.float32)

    def gguf_keys(self):
        c = self.config
        keys = {"block_count": c["num_hidden_layers"], "context_length": c["max_position_embeddings"],
                "embedding_length": self.hidden, "vocab_size": VOCABULARY,
                "feed_forward_length": c["intermediate_size"], "attention.head_count": self.q_heads,
                "attention.head_count_kv": self.kv_heads, "attention.key_length": self.head_dim,
                "attention.value_length": self.head_dim, "attention.layer_norm_rms_epsilon": EPS,
                "rope.freq_base": THETA, "ssm.conv_kernel": TAPS, "ssm.state_size": self.state,
                "ssm.group_count": self.groups, "ssm.inner_size": self.inner, "ssm.time_step_rank": self.heads}
        if c["tie_word_embeddings"]:
            keys["logit_scale"] = c["lm_head_multiplier"] / c["embedding_multiplier"]
        return "falcon-h1", keys


def config(**own):
    return {
        "model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"], "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16,
        "vocab_size": VOCABULARY, "max_position_embeddings": 512, "rms_norm_eps": EPS, "hidden_act": "silu",
        "rope_theta": THETA, "rope_scaling": None, "attention_bias": False, "mlp_bias": False, "projectors_bias": False,
        "mamba_d_ssm": 96, "mamba_n_heads": 8, "mamba_d_head": 12, "mamba_n_groups": 2, "mamba_d_state": 20,
        "mamba_d_conv": TAPS, "mamba_expand": 2, "mamba_chunk_size": 128, "mamba_conv_bias": True,
        "mamba_proj_bias": False, "mamba_norm_before_gate": False, "mamba_rms_norm": True, "mamba_use_mlp": True,
        "attn_layer_indices": None, "embedding_multiplier": 5.656854249492381, "lm_head_multiplier": 0.0390625,
        "attention_in_multiplier": 0.9, "attention_out_multiplier": 0.9375, "key_multiplier": 0.39062499999999994,
        "ssm_in_multiplier": 1.25, "ssm_multipliers": [0.35, 0.25, 0.36, 0.5, 0.37],
        "ssm_out_multiplier": 0.23570226039551587, "mlp_multipliers": [0.8838834764831844, 0.5859375],
        "num_logits_to_keep": 1, "tie_word_embeddings": False, "time_step_limit": [0.0, {"__float__": "Infinity"}],
        **own}


TIED = {"mamba_d_ssm": None, "mamba_d_head": "auto", "mamba_n_groups": 1, "mamba_rms_norm": False,
        "tie_word_embeddings": True, "embedding_multiplier": 0.11083984375, "lm_head_multiplier": 0.078125}


def main(out):
    write_models(out, 100, {name: (c, lambda seed, c=c: FalconH1(c, seed))
                            for name, c in {"normed": config(), "tied": config(**TIED)}.items()})


if __name__ == "__main__":
    main(*sys.argv[1:2])
