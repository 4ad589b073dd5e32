# SPDX-License-Identifier: MIT
"""Writes tiny hybrids of Mamba-2 and attention, as folders and as GGUF, and their logits by numpy in float64.

  mamba2_hybrids.py OUT

OUT/granite and OUT/granite_experts are as transformers' granitemoehybrid, OUT/nemotron and OUT/nemotron_experts as its
nemotron_h; each has config.json, a tokenizer of bytes, model.safetensors, model.gguf with names and shapes of
llama.cpp's converter, prompts.json and, for each prompt, NAME.logits, f32 [tokens, vocabulary]. The forward pass goes
from token to token by the recurrences themselves.
"""

import json
import os
import struct
import sys

import numpy as np

from safetensors_file import write_safetensors

VOCABULARY, TAPS, EPS = 320, 4, 1e-5
GAP = 1e-3  # of router logits at every choice, so that rounding does not decide


def silu(x):
    return x / (1 + np.exp(-x))


class Model:
    def __init__(self, config, kinds, seed):
        self.config, self.kinds, self.gap = config, kinds, np.inf
        self.nemotron = config["model_type"] == "nemotron_h"
        c = config
        self.hidden = c["hidden_size"]
        self.q_heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        if self.nemotron:
            self.head_dim = c["attention_head_dim"]
            self.heads, self.wide, self.groups, self.state = (
                c["mamba_num_heads"], c["mamba_head_dim"], c["n_groups"], c["ssm_state_size"])
        else:
            self.head_dim = self.hidden // self.q_heads
            self.heads, self.wide, self.groups, self.state = (
                c["mamba_n_heads"], c["mamba_d_head"], c["mamba_n_groups"], c["mamba_d_state"])
        self.inner = self.heads * self.wide
        self.conv_dim = self.inner + 2 * self.groups * self.state
        self.experts = c.get("num_local_experts", c.get("n_routed_experts", 0))
        self.weights = self.made(np.random.default_rng(seed))

    def made(self, random):
        """All tensors by their names in safetensors, f32."""
        hidden, out = self.hidden, {}
        normal = lambda *shape: (1.2 * random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        near_one = lambda n: random.uniform(0.5, 1.5, n).astype(np.float32)
        root = "backbone." if self.nemotron else "model."
        out[root + ("embeddings.weight" if self.nemotron else "embed_tokens.weight")] = (
            random.standard_normal((VOCABULARY, hidden)).astype(np.float32) * (1 if self.nemotron else 0.2))
        out[root + ("norm_f.weight" if self.nemotron else "norm.weight")] = near_one(hidden)
        if not self.config["tie_word_embeddings"]:
            out["lm_head.weight"] = normal(VOCABULARY, hidden)
        for i, kind in enumerate(self.kinds):
            p = f"{root}layers.{i}."
            mixer = p + ("mixer." if self.nemotron else "mamba." if kind == "M" else "self_attn.")
            out[p + ("norm.weight" if self.nemotron else "input_layernorm.weight")] = near_one(hidden)
            if kind == "M":
                out[mixer + "in_proj.weight"] = normal(self.inner + self.conv_dim + self.heads, hidden)
                out[mixer + "conv1d.weight"] = random.uniform(-1, 1, (self.conv_dim, 1, TAPS)).astype(np.float32)
                out[mixer + "conv1d.bias"] = random.uniform(-0.5, 0.5, self.conv_dim).astype(np.float32)
                out[mixer + "A_log"] = np.log(random.uniform(0.5, 8, self.heads)).astype(np.float32)
                out[mixer + "D"] = random.uniform(0.2, 1.2, self.heads).astype(np.float32)
                out[mixer + "dt_bias"] = random.uniform(-3, 1, self.heads).astype(np.float32)
                out[mixer + "norm.weight"] = near_one(self.inner)
                out[mixer + "out_proj.weight"] = normal(hidden, self.inner)
            elif kind == "*":
                for name, heads in (("q", self.q_heads), ("k", self.kv_heads), ("v", self.kv_heads)):
                    out[mixer + name + "_proj.weight"] = 1.5 * normal(heads * self.head_dim, hidden)
                out[mixer + "o_proj.weight"] = normal(hidden, self.q_heads * self.head_dim)
            else:
                units = {"": self.config["intermediate_size"]}
                if kind == "E":
                    units = {f"experts.{e}.": self.config["moe_intermediate_size"] for e in range(self.experts)}
                    units["shared_experts."] = self.config["moe_shared_expert_intermediate_size"]
                    out[mixer + "gate.weight"] = normal(self.experts, hidden)
                    out[mixer + "gate.e_score_correction_bias"] = (
                        random.uniform(-0.4, 0.4, self.experts).astype(np.float32))
                for unit, inner in units.items():
                    out[mixer + unit + "up_proj.weight"] = normal(inner, hidden)
                    out[mixer + unit + "down_proj.weight"] = normal(hidden, inner)
            if self.nemotron:
                continue
            out[p + "post_attention_layernorm.weight"] = near_one(hidden)
            shared = self.config["shared_intermediate_size"]
            out[p + "shared_mlp.input_linear.weight"] = normal(2 * shared, hidden)
            out[p + "shared_mlp.output_linear.weight"] = normal(hidden, shared)
            if self.experts:
                each = self.config["intermediate_size"]
                out[p + "block_sparse_moe.router.layer.weight"] = 4 * normal(self.experts, hidden)
                out[p + "block_sparse_moe.input_linear.weight"] = normal(self.experts, 2 * each, hidden)
                out[p + "block_sparse_moe.output_linear.weight"] = normal(self.experts, hidden, each)
        return out

    def forward(self, ids):
        c, w = self.config, {k: v.astype(np.float64) for k, v in self.weights.items()}
        root = "backbone." if self.nemotron else "model."
        table = w[root + ("embeddings.weight" if self.nemotron else "embed_tokens.weight")]
        x = table[ids] * c.get("embedding_multiplier", 1.0)
        keep = c.get("residual_multiplier", 1.0)
        for i, kind in enumerate(self.kinds):
            p = f"{root}layers.{i}."
            mixer = p + ("mixer." if self.nemotron else "mamba." if kind == "M" else "self_attn.")
            h = self.norm(x, w[p + ("norm.weight" if self.nemotron else "input_layernorm.weight")])
            half = {"M": self.mamba, "*": self.attention, "-": self.relu2, "E": self.ungated_mixture}[kind]
            x = x + keep * half(h, mixer, w)
            if not self.nemotron:
                h = self.norm(x, w[p + "post_attention_layernorm.weight"])
                x = x + keep * (
                    self.gated(h, w[p + "shared_mlp.input_linear.weight"], w[p + "shared_mlp.output_linear.weight"])
                    + (self.mixture(h, p + "block_sparse_moe.", w) if self.experts else 0)
                )
        x = self.norm(x, w[root + ("norm_f.weight" if self.nemotron else "norm.weight")])
        return x @ (table if c["tie_word_embeddings"] else w["lm_head.weight"]).T / c.get("logits_scaling", 1.0)

    @staticmethod
    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight

    @staticmethod
    def gated(x, both, down):
        gate, up = np.split(x @ both.T, 2, -1)
        return (silu(gate) * up) @ down.T

    def mixture(self, x, p, w):
        logits, top = x @ w[p + "router.layer.weight"].T, self.config["num_experts_per_tok"]
        order = np.argsort(-logits, -1)
        ranked = np.take_along_axis(logits, order, -1)
        self.gap = min(self.gap, (ranked[:, top - 1] - ranked[:, top]).min())
        part = np.exp(ranked[:, :top] - ranked[:, :1])
        part = part / part.sum(-1, keepdims=True)
        y = np.zeros_like(x)
        for t in range(len(x)):
            for j in range(top):
                e = order[t, j]
                y[t] += part[t, j] * self.gated(x[t], w[p + "input_linear.weight"][e], w[p + "output_linear.weight"][e])
        return y

    def relu2(self, x, p, w):
        return np.maximum(x @ w[p + "up_proj.weight"].T, 0) ** 2 @ w[p + "down_proj.weight"].T

    def ungated_mixture(self, x, p, w):
        """Experts of two matrices, chosen by a logistic of their logits and a bias, and one that every token has."""
        scores = 1 / (1 + np.exp(-(x @ w[p + "gate.weight"].T)))
        judged, top = scores + w[p + "gate.e_score_correction_bias"], self.config["num_experts_per_tok"]
        order = np.argsort(-judged, -1)
        ranked = np.take_along_axis(judged, order, -1)
        self.gap = min(self.gap, (ranked[:, top - 1] - ranked[:, top]).min())
        part = np.take_along_axis(scores, order[:, :top], -1)
        part = part / (part.sum(-1, keepdims=True) + 1e-20) * self.config["routed_scaling_factor"]
        y = self.relu2(x, p + "shared_experts.", w)
        for t in range(len(x)):
            for j in range(top):
                y[t] += part[t, j] * self.relu2(x[t], p + f"experts.{order[t, j]}.", w)
        return y

    def attention(self, x, p, w):
        heads = lambda name, n: (x @ w[p + name + "_proj.weight"].T).reshape(len(x), n, self.head_dim)
        q, k, v = heads("q", self.q_heads), heads("k", self.kv_heads), heads("v", self.kv_heads)
        scale, group = self.config.get("attention_multiplier", self.head_dim ** -0.5), self.q_heads // self.kv_heads
        y = np.zeros_like(q)
        for t in range(len(x)):
            for h in range(self.q_heads):
                s = k[:t + 1, h // group] @ q[t, h] * scale
                s = np.exp(s - s.max())
                y[t, h] = s / s.sum() @ v[:t + 1, h // group]
        return y.reshape(len(x), -1) @ w[p + "o_proj.weight"].T

    def mamba(self, x, p, w):
        gate, xbc, dt = np.split(x @ w[p + "in_proj.weight"].T, [self.inner, self.inner + self.conv_dim], -1)
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
        z = (y * silu(gate)).reshape(len(x), self.groups, -1)
        z = z / np.sqrt((z * z).mean(-1, keepdims=True) + EPS)
        return (z.reshape(len(x), -1) * w[p + "norm.weight"]) @ w[p + "out_proj.weight"].T

    def in_pairs(self, rows, heads):
        """llama.cpp's order of q's and k's rows."""
        return rows.reshape(heads, 2, self.head_dim // 2, -1).swapaxes(1, 2).reshape(rows.shape)

    def gguf_tensors(self):
        root = "backbone." if self.nemotron else "model."
        for i, kind in enumerate(self.kinds):
            for name in ("up", "down") if kind == "E" else ():
                experts = [self.weights[f"{root}layers.{i}.mixer.experts.{e}.{name}_proj.weight"]
                           for e in range(self.experts)]
                yield f"blk.{i}.ffn_{name}_exps.weight", np.stack(experts)
        for name, values in self.weights.items():
            if ".mixer.experts." in name:
                continue
            if name == "lm_head.weight":
                yield "output.weight", values
                continue
            name = name[len(root):]
            if not name.startswith("layers."):
                yield ("token_embd.weight" if "emb" in name else "output_norm.weight"), values
                continue
            layer, part = name[len("layers."):].split(".", 1)
            block = f"blk.{layer}."
            if part.endswith("shared_mlp.input_linear.weight"):
                gate, up = np.split(values, 2)
                end = "_shexp.weight" if self.experts else ".weight"
                yield block + "ffn_gate" + end, gate
                yield block + "ffn_up" + end, up
            elif part.endswith("block_sparse_moe.input_linear.weight"):
                gate, up = np.split(values, 2, 1)
                yield block + "ffn_gate_exps.weight", gate
                yield block + "ffn_up_exps.weight", up
            elif part.endswith("A_log"):
                yield block + "ssm_a", -np.exp(values)[:, None]
            elif part.endswith("mixer.D") or part.endswith("mamba.D"):
                yield block + "ssm_d", values[:, None]
            elif part.endswith("conv1d.weight"):
                yield block + "ssm_conv1d.weight", values[:, 0]
            elif part.endswith(("mixer.norm.weight", "mamba.norm.weight")):
                yield block + "ssm_norm.weight", values.reshape(self.groups, -1)
            elif part.endswith("q_proj.weight") or part.endswith("k_proj.weight"):
                q = part.endswith("q_proj.weight")
                yield block + ("attn_q.weight" if q else "attn_k.weight"), self.in_pairs(
                    values, self.q_heads if q else self.kv_heads
                )
            else:
                yield block + next(gguf for hf, gguf in GGUF_NAMES if part.endswith(hf)).format(
                    "ffn_down_shexp" if self.experts else "ffn_down"), values

    def gguf_keys(self):
        c, n = self.config, len(self.kinds)
        kv = [self.kv_heads if kind == "*" else 0 for kind in self.kinds]
        keys = {"block_count": n, "context_length": 1 << 20, "embedding_length": self.hidden, "vocab_size": VOCABULARY,
                "attention.head_count": self.q_heads, "attention.head_count_kv": kv,
                "attention.layer_norm_rms_epsilon": EPS, "rope.freq_base": 10000.0,
                "ssm.conv_kernel": TAPS, "ssm.state_size": self.state, "ssm.group_count": self.groups,
                "ssm.inner_size": self.inner, "ssm.time_step_rank": self.heads, "rope.scaling.finetuned": False,
                "rope.dimension_count": self.hidden // self.q_heads}
        if self.nemotron:
            widths = {"-": c["intermediate_size"], "E": c.get("moe_intermediate_size")}
            keys.update({"feed_forward_length": [widths.get(kind, 0) for kind in self.kinds],
                         "attention.key_length": self.head_dim, "attention.value_length": self.head_dim})
            if not self.experts:
                return "nemotron_h", keys
            keys.update({"expert_count": self.experts, "expert_used_count": c["num_experts_per_tok"],
                         "expert_feed_forward_length": c["moe_intermediate_size"],
                         "expert_shared_feed_forward_length": c["moe_shared_expert_intermediate_size"],
                         "expert_shared_count": 1, "expert_weights_norm": True, "expert_group_count": 1,
                         "expert_weights_scale": c["routed_scaling_factor"]})
            return "nemotron_h_moe", keys
        keys.update({"feed_forward_length": c["intermediate_size"],
                     "expert_shared_feed_forward_length": c["shared_intermediate_size"],
                     "embedding_scale": c["embedding_multiplier"], "residual_scale": c["residual_multiplier"],
                     "attention.scale": c["attention_multiplier"], "logit_scale": c["logits_scaling"]})
        if self.experts:
            keys.update({"expert_count": self.experts, "expert_used_count": c["num_experts_per_tok"]})
        return "granitehybrid", keys


GGUF_NAMES = (
    ("input_layernorm.weight", "attn_norm.weight"), ("post_attention_layernorm.weight", "ffn_norm.weight"),
    ("in_proj.weight", "ssm_in.weight"), ("conv1d.bias", "ssm_conv1d.bias"), ("dt_bias", "ssm_dt.bias"),
    ("shared_experts.up_proj.weight", "ffn_up_shexp.weight"),
    ("shared_experts.down_proj.weight", "ffn_down_shexp.weight"), ("mixer.gate.weight", "ffn_gate_inp.weight"),
    ("gate.e_score_correction_bias", "exp_probs_b.bias"), ("out_proj.weight", "ssm_out.weight"),
    ("v_proj.weight", "attn_v.weight"), ("o_proj.weight", "attn_output.weight"),
    ("up_proj.weight", "ffn_up.weight"), ("down_proj.weight", "ffn_down.weight"),
    ("shared_mlp.output_linear.weight", "{}.weight"), ("router.layer.weight", "ffn_gate_inp.weight"),
    ("block_sparse_moe.output_linear.weight", "ffn_down_exps.weight"), ("norm.weight", "attn_norm.weight"))


def letters():
    """GPT-2's letters of the 256 bytes."""
    own = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
    rest = [b for b in range(256) if b not in own]
    return [chr(b) if b in own else chr(256 + rest.index(b)) for b in range(256)]


TOKENS, MERGES = letters() + ["ab"], ["a b"]
TOKENS += [f"<|{i}|>" for i in range(VOCABULARY - len(TOKENS))]


def write_tokenizer(folder):
    bytes_of = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, t in enumerate(TOKENS) if t.startswith("<|")]
    json.dump({"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": bytes_of,
               "post_processor": None, "decoder": bytes_of,
               "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(TOKENS) if not t.startswith("<|")},
                         "merges": MERGES}}, open(os.path.join(folder, "tokenizer.json"), "w"))
    json.dump(
        {"tokenizer_class": "GPT2Tokenizer", "eos_token": TOKENS[-1]},
        open(os.path.join(folder, "tokenizer_config.json"), "w"),
    )


def write_gguf(path, architecture, keys, tensors, words=None):
    """@param keys one that begins with a dot has no architecture in front
    @param words keys of the tokenizer besides"""
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()

    def value(v):
        if isinstance(v, bool):
            return struct.pack("<I?", 7, v)
        if isinstance(v, float):
            return struct.pack("<If", 6, v)
        if isinstance(v, list) and isinstance(v[0], str):
            return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(text(s) for s in v)
        if isinstance(v, list):
            code, letter = {bool: (7, "?"), float: (6, "f"), int: (5, "i")}[type(v[0])]
            return struct.pack("<IIQ", 9, code, len(v)) + struct.pack(f"<{len(v)}{letter}", *v)
        return struct.pack("<II", 4, v) if isinstance(v, int) else struct.pack("<I", 8) + text(v)

    pairs = [("general.architecture", architecture)] + [
        (k[1:] if k[0] == "." else f"{architecture}.{k}", v) for k, v in keys.items()]
    pairs += [(f"tokenizer.ggml.{k}", v) for k, v in {
        "model": "gpt2", "pre": "gpt-2", "tokens": TOKENS, "merges": MERGES, "eos_token_id": VOCABULARY - 1,
        "token_type": [3 if t.startswith("<|") else 1 for t in TOKENS], **(words or {})}.items()]
    infos, data = b"", b""
    for name, values in tensors:
        infos += (
            text(name) + struct.pack("<I", values.ndim) + b"".join(struct.pack("<Q", d) for d in reversed(values.shape))
        )
        half = values.dtype == np.float16
        infos += struct.pack("<IQ", 1 if half else 0, len(data))
        raw = np.ascontiguousarray(values, "<f2" if half else "<f4").tobytes()
        data += raw + bytes(-len(raw) % 32)
    head = (
        b"GGUF"
        + struct.pack("<IQQ", 3, len(tensors), len(pairs))
        + b"".join(text(k) + value(v) for k, v in pairs)
        + infos
    )
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % 32) + data)


def granite(experts):
    kinds = "MM*MM*"
    return kinds, {
        "model_type": "granitemoehybrid", "architectures": ["GraniteMoeHybridForCausalLM"], "hidden_size": 64,
        "intermediate_size": 32 if experts else 96, "shared_intermediate_size": 96, "num_hidden_layers": len(kinds),
        "layer_types": ["mamba" if kind == "M" else "attention" for kind in kinds], "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 512, "rms_norm_eps": EPS,
        "hidden_act": "silu", "position_embedding_type": "nope", "normalization_function": "rmsnorm",
        "num_local_experts": 8 if experts else 0, "num_experts_per_tok": 2 if experts else 0,
        "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 20, "mamba_n_groups": 1, "mamba_d_conv": TAPS,
        "mamba_expand": 2, "mamba_conv_bias": True, "mamba_proj_bias": False, "mamba_chunk_size": 256,
        "embedding_multiplier": 12.0, "attention_multiplier": 0.125, "residual_multiplier": 0.35, "logits_scaling": 2.0,
        "tie_word_embeddings": True, "time_step_limit": [0.0, {"__float__": "Infinity"}]}


def nemotron(kinds="M-M*-MM*-", mixtures={}):
    return kinds, {
        "model_type": "nemotron_h",
        "architectures": ["NemotronHForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 80,
        "num_hidden_layers": len(kinds),
        "hybrid_override_pattern": kinds,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "attention_head_dim": 16,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 512,
        "layer_norm_epsilon": EPS,
        "mlp_hidden_act": "relu2",
        "mamba_hidden_act": "silu",
        "mamba_num_heads": 8,
        "mamba_head_dim": 12,
        "ssm_state_size": 16,
        "n_groups": 2,
        "conv_kernel": TAPS,
        "expand": 2,
        "use_conv_bias": True,
        "use_bias": False,
        "mamba_proj_bias": False,
        "mlp_bias": False,
        "attention_bias": False,
        "chunk_size": 128,
        "tie_word_embeddings": False,
        "time_step_limit": [0.0, float("inf")],
        **mixtures,
    }


# NVIDIA-Nemotron-3-Nano's: a shared expert with its own width, and keys that state values which other models compute.
NEMOTRON_MIXTURES = {
    "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 36,
    "moe_shared_expert_intermediate_size": 72, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "n_group": 1,
    "topk_group": 1, "moe_latent_size": None, "norm_eps": EPS, "sliding_window": None, "rope_theta": 10000,
    "partial_rotary_factor": 1.0}


def write_models(out, longer, models):
    """A folder of each model: config, prompts of 17 and of `longer` tokens, tokenizer, weights in both forms, logits.

    models: {name: (config, what makes the model by a seed)}; the first seed that keeps all choices of experts apart."""
    random = np.random.default_rng(7)
    prompts = {f"p{size}": random.integers(3, VOCABULARY, size).tolist() for size in (17, longer)}
    for name, (config, make) in models.items():
        for seed in range(1, 100):
            model = make(seed)
            logits = {prompt: model.forward(ids) for prompt, ids in prompts.items()}
            if model.gap > GAP:
                break
        else:
            raise SystemExit("no seed keeps all choices of experts apart")
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        json.dump(config, open(os.path.join(folder, "config.json"), "w"))
        json.dump(prompts, open(os.path.join(folder, "prompts.json"), "w"))
        write_tokenizer(folder)
        write_safetensors(os.path.join(folder, "model.safetensors"), model.weights)
        write_gguf(os.path.join(folder, "model.gguf"), *model.gguf_keys(), list(model.gguf_tensors()))
        for prompt, y in logits.items():
            y.astype("<f4").tofile(os.path.join(folder, prompt + ".logits"))


def main(out):
    made = {"granite": granite(False), "granite_experts": granite(True), "nemotron": nemotron(),
            "nemotron_experts": nemotron("ME*M-E", NEMOTRON_MIXTURES)}
    write_models(
        out,
        100,
        {name: (config, lambda seed, c=config, k=kinds: Model(c, k, seed)) for name, (kinds, config) in made.items()},
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
