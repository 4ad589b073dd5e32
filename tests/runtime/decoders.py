# SPDX-License-Identifier: MIT
"""Writes tiny decoders whose layers are put together of those of other families, as folders and as GGUF, and their
logits by numpy in float64.

  decoders.py OUT

OUT/NAME has config.json, a tokenizer of bytes, model.safetensors with transformers' names and shapes, model.gguf with
those of llama.cpp's converter, prompts.json and, for each prompt, PROMPT.logits, f32 [tokens, vocabulary]. The forward
pass is written from transformers' models/granitemoe, granitemoeshared, granitemoehybrid, olmoe, qwen3_5_moe, gemma,
arcee, seed_oss, ministral3, exaone4, qwen2_moe, ernie4_5, glm4 and hunyuan_v1_dense; delta rules go from token to
token.
"""
import sys

import numpy as np

from decoder_math import gelu_tanh, llama3, longrope, relu_squared, sigmoid, silu, yarn
from mamba2_hybrids import VOCABULARY, write_models

HIDDEN, HEADS, KV_HEADS, WIDE, INNER, EXPERTS, TOP, TAPS = 64, 4, 2, 16, 48, 8, 2, 4

DELTA_NAMES = {
    "in_proj_qkv.weight": "attn_qkv.weight", "in_proj_z.weight": "attn_gate.weight",
    "in_proj_b.weight": "ssm_beta.weight", "in_proj_a.weight": "ssm_alpha.weight", "conv1d.weight": "ssm_conv1d.weight",
    "A_log": "ssm_a", "dt_bias": "ssm_dt.bias", "norm.weight": "ssm_norm.weight", "out_proj.weight": "ssm_out.weight"}
NAMES = {
    "input_layernorm.weight": "attn_norm.weight", "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight", "self_attn.k_norm.weight": "attn_k_norm.weight",
    "block_sparse_moe.router.layer.weight": "ffn_gate_inp.weight", "mlp.gate.weight": "ffn_gate_inp.weight",
    "block_sparse_moe.output_linear.weight": "ffn_down_exps.weight", "mlp.experts.down_proj": "ffn_down_exps.weight",
    "shared_mlp.output_linear.weight": "ffn_down_shexp.weight",
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight"}
NAMES.update({f"self_attn.{n}_proj.{end}": f"attn_{n}.{end}" for n in "qkv" for end in ("weight", "bias")})
NAMES.update({f"mlp.{n}_proj.weight": f"ffn_{n}.weight" for n in ("gate", "up", "down")})
NAMES["post_feedforward_layernorm.weight"] = "post_ffw_norm.weight"
NAMES.update({f"self_attn.{n}_layernorm.weight": f"attn_{n[0]}_norm.weight" for n in ("query", "key")})
NAMES.update({"post_self_attn_layernorm.weight": "post_attention_norm.weight",
              "post_mlp_layernorm.weight": "post_ffw_norm.weight", "mlp.gate_up_proj.weight": "ffn_up.weight"})
NAMES.update({f"mlp.shared_expert.{n}_proj.weight": f"ffn_{n}_shexp.weight" for n in ("gate", "up", "down")})


class Decoder:
    """`traits` has the differences between families."""

    def __init__(self, config, traits, seed):
        self.config, self.traits, self.gap = config, traits, np.inf
        self.text = config.get("text_config", config)
        self.layers = self.text["num_hidden_layers"]
        self.eps = self.text.get("rms_norm_eps", self.text.get("norm_eps"))
        self.root = traits.get("root", "model.language_model." if "text_config" in config else "model.")
        self.weights = {}
        self.random = np.random.default_rng(seed)
        self.make()

    def norm_names(self):
        return ("query_layernorm", "key_layernorm") if self.traits["norms"] == "turned" else ("q_norm", "k_norm")

    def base(self):
        """The base of the angles; a Hunyuan's is larger by a power of alpha."""
        rope = self.rope()
        alpha = (self.text.get("rope_scaling") or {}).get("alpha", 1.0)
        return float(rope["rope_theta"]) * alpha ** (WIDE / (WIDE - 2))

    def is_recurrent(self, layer):
        return self.traits.get("recurrent", False) and (layer + 1) % self.text["full_attention_interval"] != 0

    def make(self):
        w, r, traits = self.weights, self.random, self.traits
        matrix = lambda *shape: (1.2 * r.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        near = lambda n: (r.uniform(0.5, 1.5, n) - traits.get("addend", 0)).astype(np.float32)
        # Smaller where it is the head too: the bounds of a narrow cache's errors are absolute.
        rows = r.standard_normal((VOCABULARY, HIDDEN)) * traits.get("embedding", 1.0)
        w[self.root + "embed_tokens.weight"] = rows.astype(np.float32)
        for layer in range(self.layers):
            p = f"{self.root}layers.{layer}."
            w[p + ("post_feedforward_layernorm.weight" if traits.get("behind") else "input_layernorm.weight")] = near(
                HIDDEN)
            w[p + "post_attention_layernorm.weight"] = near(HIDDEN)
            if traits.get("sandwich"):
                w[p + "post_self_attn_layernorm.weight"] = near(HIDDEN)
                w[p + "post_mlp_layernorm.weight"] = near(HIDDEN)
            if self.is_recurrent(layer):
                self.make_delta(p + "linear_attn.", matrix)
            else:
                w[p + "self_attn.q_proj.weight"] = matrix(HEADS * WIDE * (2 if traits.get("gate") else 1), HIDDEN)
                w[p + "self_attn.k_proj.weight"] = matrix(KV_HEADS * WIDE, HIDDEN)
                w[p + "self_attn.v_proj.weight"] = matrix(KV_HEADS * WIDE, HIDDEN)
                w[p + "self_attn.o_proj.weight"] = matrix(HIDDEN, HEADS * WIDE)
                if traits.get("biases"):
                    for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
                        w[p + f"self_attn.{name}_proj.bias"] = r.uniform(-1, 1, heads * WIDE).astype(np.float32)
                if traits.get("norms"):
                    whole = traits["norms"] == "whole"
                    for name, heads in zip(self.norm_names(), (HEADS, KV_HEADS)):
                        w[p + f"self_attn.{name}.weight"] = near(heads * WIDE if whole else WIDE)
            form, shared = traits["experts"], self.text.get(traits.get("shared", ""), 0)
            if form == "granite":
                m = p + "block_sparse_moe."
                w[m + "router.layer.weight"] = matrix(EXPERTS, HIDDEN)
                w[m + "input_linear.weight"] = matrix(EXPERTS, 2 * INNER, HIDDEN)
                w[m + "output_linear.weight"] = matrix(EXPERTS, HIDDEN, INNER)
                if shared:
                    w[p + "shared_mlp.input_linear.weight"] = matrix(2 * shared, HIDDEN)
                    w[p + "shared_mlp.output_linear.weight"] = matrix(HIDDEN, shared)
            elif form == "none" and traits.get("fused_gate_up"):
                w[p + "mlp.gate_up_proj.weight"] = matrix(2 * INNER, HIDDEN)
                w[p + "mlp.down_proj.weight"] = matrix(HIDDEN, INNER)
            elif form == "none":
                for name in ("up", "down") if traits.get("ungated") else ("gate", "up", "down"):
                    w[p + f"mlp.{name}_proj.weight"] = matrix(*((HIDDEN, INNER) if name == "down" else (INNER, HIDDEN)))
            else:
                w[p + "mlp.gate.weight"] = matrix(EXPERTS, HIDDEN)
                if form == "together":
                    w[p + "mlp.experts.gate_up_proj"] = matrix(EXPERTS, 2 * INNER, HIDDEN)
                    w[p + "mlp.experts.down_proj"] = matrix(EXPERTS, HIDDEN, INNER)
                for e in range(EXPERTS if form == "apart" else 0):
                    for name, shape in (("gate", (INNER, HIDDEN)), ("up", (INNER, HIDDEN)), ("down", (HIDDEN, INNER))):
                        w[p + f"mlp.experts.{e}.{name}_proj.weight"] = matrix(*shape)
                if shared:
                    for name in ("gate", "up", "down"):
                        shape = (HIDDEN, shared) if name == "down" else (shared, HIDDEN)
                        w[p + f"mlp.shared_expert.{name}_proj.weight"] = matrix(*shape)
                    w[p + "mlp.shared_expert_gate.weight"] = matrix(1, HIDDEN)
        w[self.root + "norm.weight"] = near(HIDDEN)
        if not self.config.get("tie_word_embeddings", True) and not traits.get("headless"):
            w["lm_head.weight"] = matrix(VOCABULARY, HIDDEN)

    def make_delta(self, p, matrix):
        t, w, r = self.text, self.weights, self.random
        keys, values = t["linear_num_key_heads"], t["linear_num_value_heads"]
        inner = values * t["linear_value_head_dim"]
        qkv = 2 * keys * t["linear_key_head_dim"] + inner
        w[p + "in_proj_qkv.weight"], w[p + "in_proj_z.weight"] = matrix(qkv, HIDDEN), matrix(inner, HIDDEN)
        w[p + "in_proj_b.weight"], w[p + "in_proj_a.weight"] = matrix(values, HIDDEN), matrix(values, HIDDEN)
        w[p + "conv1d.weight"] = (0.6 * r.standard_normal((qkv, 1, TAPS))).astype(np.float32)
        for name in ("A_log", "dt_bias"):
            w[p + name] = r.uniform(-1, 1, values).astype(np.float32)
        w[p + "norm.weight"] = r.uniform(0.5, 1.5, t["linear_value_head_dim"]).astype(np.float32)
        w[p + "out_proj.weight"] = matrix(HIDDEN, inner)

    # The forward pass.

    def forward(self, ids):
        w = self.weights
        head = w["lm_head.weight"] if "lm_head.weight" in w else w[self.root + "embed_tokens.weight"]
        return self.states(ids) @ head.astype(np.float64).T / self.text.get("logits_scaling", 1.0)

    def states(self, ids):
        t, w = self.text, {k: v.astype(np.float64) for k, v in self.weights.items()}
        keep = t.get("residual_multiplier", 1.0)
        x = w[self.root + "embed_tokens.weight"][ids] * t.get("embedding_multiplier", self.traits.get("scale", 1.0))
        for layer in range(self.layers):
            p = f"{self.root}layers.{layer}."
            if self.traits.get("behind"):
                y = self.attention(x, p + "self_attn.", w, layer)
                x = x + self.norm(y, w[p + "post_attention_layernorm.weight"])
                x = x + self.norm(self.ffn(x, p, w), w[p + "post_feedforward_layernorm.weight"])
                continue
            h = self.norm(x, w[p + "input_layernorm.weight"])
            half, name = (self.delta, "linear_attn.") if self.is_recurrent(layer) else (self.attention, "self_attn.")
            behind = lambda y, norm: self.norm(y, w[p + norm]) if self.traits.get("sandwich") else y
            x = x + keep * behind(half(h, p + name, w), "post_self_attn_layernorm.weight")
            h = self.norm(x, w[p + "post_attention_layernorm.weight"])
            y = (self.ffn(h, p, w) if self.traits["experts"] == "none" else
                 self.mixture(h, p, w) + self.shared(h, p, w))
            x = x + keep * behind(y, "post_mlp_layernorm.weight")
        return self.norm(x, w[self.root + "norm.weight"])

    def norm(self, x, weight, eps=None):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * (weight + self.traits.get("addend", 0))

    def rope(self, windowed=False):
        """The rotation of layers with a window, or of the others."""
        return self.text.get("rope_parameters", self.text)

    def turn(self, x, windowed=False):
        """Rotates the first channels of [tokens, heads, width], i with i + half."""
        rope = self.rope(windowed)
        part = int(WIDE * self.text.get("partial_rotary_factor", rope.get("partial_rotary_factor", 1.0)))
        half = part // 2
        of = {"yarn": yarn, "llama3": llama3, "longrope": longrope}.get(rope.get("rope_type"))
        angles = np.arange(len(x))[:, None] * (
            of(rope, part) if of else self.base() ** (-np.arange(half) / half))
        cos, sin = (f(angles)[:, None] * rope.get("attention_factor", 1.0) for f in (np.cos, np.sin))
        if self.traits.get("neighbours"):
            a, b = x[..., :part:2], x[..., 1:part:2]
            turned = np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(*x.shape[:-1], part)
            return np.concatenate([turned, x[..., part:]], -1)
        a, b = x[..., :half], x[..., half:part]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., part:]], -1)

    def ffn(self, x, p, w):
        act = {"silu": silu, "relu2": relu_squared, "gelu_pytorch_tanh": gelu_tanh}[self.text["hidden_act"]]
        if self.traits.get("fused_gate_up"):
            gate, up = np.split(x @ w[p + "mlp.gate_up_proj.weight"].T, 2, -1)
            return (act(gate) * up) @ w[p + "mlp.down_proj.weight"].T
        up = x @ w[p + "mlp.up_proj.weight"].T
        gated = act(up) if self.traits.get("ungated") else act(x @ w[p + "mlp.gate_proj.weight"].T) * up
        return gated @ w[p + "mlp.down_proj.weight"].T

    def attention(self, x, p, w, layer=0):
        q, k, v = (x @ w[p + n + "_proj.weight"].T + w.get(p + n + "_proj.bias", 0) for n in "qkv")
        window = self.text.get("sliding_window") or 0
        windowed = bool(window) and self.text["layer_types"][layer] == "sliding_attention"
        turns = windowed or not window or self.traits.get("globals_turn")
        window = window if windowed else 0
        gate = None
        if self.traits.get("gate"):
            q, gate = np.split(q.reshape(len(x), HEADS, 2 * WIDE), 2, -1)
            q = q.reshape(len(x), -1)
        heads = lambda y, n: y.reshape(len(x), n, WIDE)
        norms = self.traits.get("norms")
        if norms == "whole":
            q, k = self.norm(q, w[p + "q_norm.weight"]), self.norm(k, w[p + "k_norm.weight"])
        q, k, v = heads(q, HEADS), heads(k, KV_HEADS), heads(v, KV_HEADS)
        if norms == "heads":
            q, k = self.norm(q, w[p + "q_norm.weight"]), self.norm(k, w[p + "k_norm.weight"])
        if turns:
            q, k = self.turn(q, windowed), self.turn(k, windowed)
        if norms == "turned":
            q, k = (self.norm(y, w[f"{p}{name}.weight"]) for y, name in zip((q, k), self.norm_names()))
        y, group = np.zeros_like(q), HEADS // KV_HEADS
        for i in range(len(x)):
            for h in range(HEADS):
                first = max(0, i + 1 - window) if window else 0
                s = k[first:i + 1, h // group] @ q[i, h] * self.text.get("attention_multiplier", WIDE ** -0.5)
                s = np.exp(s - s.max())
                y[i, h] = s / s.sum() @ v[first:i + 1, h // group]
        if gate is not None:
            y = y * sigmoid(gate)
        return y.reshape(len(x), -1) @ w[p + "o_proj.weight"].T

    def experts_of(self, p, w, e):
        """Gate, up and down of an expert."""
        form = self.traits["experts"]
        if form == "apart":
            return [w[p + f"mlp.experts.{e}.{n}_proj.weight"] for n in ("gate", "up", "down")]
        both, down = {"granite": ("block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"),
                      "together": ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")}[form]
        return [*np.split(w[p + both][e], 2), w[p + down][e]]

    @staticmethod
    def gated(x, gate, up, down):
        return (silu(x @ gate.T) * (x @ up.T)) @ down.T

    def mixture(self, x, p, w):
        router = "block_sparse_moe.router.layer.weight" if self.traits["experts"] == "granite" else "mlp.gate.weight"
        logits = x @ w[p + router].T
        order = np.argsort(-logits, -1)
        ranked = np.take_along_axis(logits, order, -1)
        self.gap = min(self.gap, (ranked[:, TOP - 1] - ranked[:, TOP]).min())
        parts = np.exp(ranked - ranked[:, :1])
        counted = parts if self.traits.get("of_all") else parts[:, :TOP]
        parts = parts[:, :TOP] / counted.sum(-1, keepdims=True)
        y = np.zeros_like(x)
        for i in range(len(x)):
            for j in range(TOP):
                y[i] += parts[i, j] * self.gated(x[i], *self.experts_of(p, w, order[i, j]))
        return y

    def shared(self, x, p, w):
        if p + "shared_mlp.input_linear.weight" in w:
            gate, up = np.split(w[p + "shared_mlp.input_linear.weight"], 2)
            return self.gated(x, gate, up, w[p + "shared_mlp.output_linear.weight"])
        if p + "mlp.shared_expert_gate.weight" in w:
            part = sigmoid(x @ w[p + "mlp.shared_expert_gate.weight"].T)
            return part * self.gated(x, *(w[p + f"mlp.shared_expert.{n}_proj.weight"] for n in ("gate", "up", "down")))
        return 0

    def delta(self, x, p, w):
        t = self.text
        keys, values = t["linear_num_key_heads"], t["linear_num_value_heads"]
        wide, high = t["linear_key_head_dim"], t["linear_value_head_dim"]
        products = x @ w[p + "in_proj_qkv.weight"].T
        before = np.concatenate([np.zeros((TAPS - 1, products.shape[1])), products])
        z = (x @ w[p + "in_proj_z.weight"].T).reshape(len(x), values, high)
        beta, a = sigmoid(x @ w[p + "in_proj_b.weight"].T), x @ w[p + "in_proj_a.weight"].T
        decay = np.exp(-np.exp(w[p + "A_log"]) * np.log1p(np.exp(a + w[p + "dt_bias"])))
        state, y = np.zeros((values, wide, high)), np.zeros((len(x), values, high))
        unit = lambda v: v / np.sqrt((v * v).sum(-1, keepdims=True) + 1e-6)
        for i in range(len(x)):
            mixed = silu((before[i:i + TAPS].T * w[p + "conv1d.weight"][:, 0]).sum(-1))
            q, k, v = np.split(mixed, [keys * wide, 2 * keys * wide])
            q, k = (np.repeat(unit(h.reshape(keys, wide)), values // keys, 0) for h in (q, k))
            v = v.reshape(values, high)
            state = state * decay[i][:, None, None]
            error = (v - (state * k[:, :, None]).sum(1)) * beta[i][:, None]
            state = state + k[:, :, None] * error[:, None, :]
            y[i] = (state * (q * wide ** -0.5)[:, :, None]).sum(1)
        y = y / np.sqrt((y * y).mean(-1, keepdims=True) + self.eps) * w[p + "norm.weight"] * silu(z)
        return y.reshape(len(x), -1) @ w[p + "out_proj.weight"].T

    # The same as GGUF.

    def in_pairs(self, rows, heads):
        """llama.cpp's order of q's and k's rows where it turns neighbours."""
        return rows.reshape(heads, 2, WIDE // 2, -1).swapaxes(1, 2).reshape(rows.shape)

    def in_turn(self, values, rows):
        """Value heads by key heads in turn: the first of all, then the second. @param rows of a head"""
        keys, heads = self.text["linear_num_key_heads"], self.text["linear_num_value_heads"]
        tail = len(values) - heads * rows
        of = values[tail:].reshape(keys, heads // keys, rows, *values.shape[1:])
        return np.concatenate([values[:tail], of.swapaxes(0, 1).reshape(values[tail:].shape)])

    def gguf_tensors(self):
        addend = np.float32(self.traits.get("addend", 0))
        stacks = {}
        rope = self.text.get("rope_parameters", {})
        if rope.get("rope_type") == "llama3":
            factors = float(rope["rope_theta"]) ** (-np.arange(WIDE // 2) * 2 / WIDE) / llama3(rope, WIDE)
            yield "rope_freqs.weight", factors.astype(np.float32)
        for name, values in self.weights.items():
            if name == "lm_head.weight":
                yield "output.weight", values
                continue
            name = name[len(self.root):]
            if not name.startswith("layers."):
                yield ("token_embd.weight", values) if "emb" in name else ("output_norm.weight", values + addend)
                continue
            layer, part = name[len("layers."):].split(".", 1)
            block = f"blk.{layer}."
            high = self.text.get("linear_value_head_dim", 0)
            if part in ("block_sparse_moe.input_linear.weight", "mlp.experts.gate_up_proj"):
                gate, up = np.split(values, 2, 1)
                yield block + "ffn_gate_exps.weight", gate
                yield block + "ffn_up_exps.weight", up
            elif part == "shared_mlp.input_linear.weight":
                gate, up = np.split(values, 2)
                yield block + "ffn_gate_shexp.weight", gate
                yield block + "ffn_up_shexp.weight", up
            elif part.startswith("mlp.experts.") and part.endswith("_proj.weight"):
                kind = part.split(".")[-2].split("_")[0]
                all_ = stacks.setdefault((layer, kind), [])
                all_.append(values)
                if len(all_) == EXPERTS:
                    yield block + f"ffn_{kind}_exps.weight", np.stack(all_)
            elif part.startswith("linear_attn."):
                part = part[len("linear_attn."):]
                rows = 1 if part in ("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias") else high
                if part == "A_log":
                    values = -np.exp(values)
                if part == "conv1d.weight":
                    values = values[:, 0]
                if part == "out_proj.weight":
                    values = self.in_turn(values.T, rows).T
                elif part != "norm.weight":
                    values = self.in_turn(values, rows)
                yield block + DELTA_NAMES[part], np.ascontiguousarray(values)
            else:
                if self.traits.get("pairs") and part.endswith(("q_proj.weight", "k_proj.weight")):
                    values = self.in_pairs(values, HEADS if "q_proj" in part else KV_HEADS)
                if part.endswith("norm.weight"):
                    values = values + addend
                if part == "mlp.shared_expert_gate.weight" and self.traits["gguf"] == "qwen2moe":
                    values = values[0]
                norm = self.traits.get("ffn_norm", "ffn_norm") + ".weight"
                yield block + (norm if part == "post_attention_layernorm.weight" else NAMES[part]), values

    def gguf_keys(self):
        t = self.text
        keys = {"block_count": self.layers, "context_length": t["max_position_embeddings"], "embedding_length": HIDDEN,
                "vocab_size": VOCABULARY, "feed_forward_length": INNER, "attention.head_count": HEADS,
                "attention.head_count_kv": KV_HEADS, "attention.layer_norm_rms_epsilon": self.eps,
                "rope.freq_base": self.base(),
                "rope.dimension_count": int(WIDE * t.get("partial_rotary_factor", 1.0)),
                "expert_count": EXPERTS, "expert_used_count": TOP}
        if self.traits["experts"] == "none":
            del keys["expert_count"], keys["expert_used_count"]
        if "head_dim" in t:
            keys.update({"attention.key_length": WIDE, "attention.value_length": WIDE})
        if self.traits.get("biases") and self.traits["experts"] != "none":
            keys["expert_feed_forward_length"] = t["moe_intermediate_size"]
        if t.get("sliding_window"):
            keys.update({"attention.sliding_window": t["sliding_window"], "attention.sliding_window_pattern": [
                kind == "sliding_attention" for kind in t["layer_types"]]})
        if "alpha" in (t.get("rope_scaling") or {}):
            keys.update({"rope.scaling.type": "none", "rope.scaling.factor": 1.0,
                         "rope.scaling.original_context_length": t["max_position_embeddings"]})
        if (rope := t.get("rope_parameters", {})).get("rope_type") == "yarn":
            keys.update({"rope.scaling.type": "yarn", "rope.scaling.factor": rope["factor"],
                         "rope.scaling.original_context_length": rope["original_max_position_embeddings"],
                         "rope.scaling.yarn_beta_fast": rope["beta_fast"],
                         "rope.scaling.yarn_beta_slow": rope["beta_slow"],
                         "rope.scaling.yarn_log_multiplier": rope["mscale_all_dim"],
                         "attention.temperature_scale": rope["llama_4_scaling_beta"]})
        if "embedding_multiplier" in t:
            keys.update({"embedding_scale": t["embedding_multiplier"], "residual_scale": t["residual_multiplier"],
                         "logit_scale": t["logits_scaling"]})
        if "attention_multiplier" in t:
            keys["attention.scale"] = t["attention_multiplier"]
        if t.get(self.traits.get("shared", "")):
            keys["expert_shared_feed_forward_length"] = t[self.traits["shared"]]
        if self.traits.get("recurrent"):
            inner = t["linear_num_value_heads"] * t["linear_value_head_dim"]
            keys.update({"expert_feed_forward_length": INNER, "attention.key_length": WIDE,
                         "attention.value_length": WIDE, "rope.dimension_count": WIDE // 4,
                         "rope.dimension_sections": [1, 1, 0, 0], "ssm.conv_kernel": TAPS,
                         "ssm.state_size": t["linear_key_head_dim"], "ssm.group_count": t["linear_num_key_heads"],
                         "ssm.time_step_rank": t["linear_num_value_heads"], "ssm.inner_size": inner,
                         "full_attention_interval": t["full_attention_interval"]})
            del keys["feed_forward_length"]
        return self.traits["gguf"], keys


COMMON = {"hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS,
          "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY, "max_position_embeddings": 512,
          "hidden_act": "silu", "rms_norm_eps": 1e-5}
GRANITE = {"embedding_multiplier": 6.0, "attention_multiplier": 0.2, "residual_multiplier": 0.35, "logits_scaling": 2.0,
           "attention_bias": False, "num_local_experts": EXPERTS, "num_experts_per_tok": TOP, "num_hidden_layers": 3,
           "rope_theta": 10000.0, "tie_word_embeddings": True}
GRANITE_TRAITS = {"gguf": "granitemoe", "experts": "granite", "shared": "shared_intermediate_size", "pairs": True}
EXAONE = {"tie_word_embeddings": False, "rope_parameters": {
    "rope_type": "llama3", "rope_theta": 1000000.0, "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64}}
EXAONE_TRAITS = {"gguf": "exaone4", "experts": "none", "behind": True, "norms": "heads",
                 "ffn_norm": "post_attention_norm"}
QWEN = {"model_type": "qwen3_5_moe_text", "hidden_size": HIDDEN, "num_hidden_layers": 4, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": WIDE, "vocab_size": VOCABULARY, "max_position_embeddings": 512,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "full_attention_interval": 4, "linear_conv_kernel_dim": TAPS,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "num_experts": EXPERTS, "num_experts_per_tok": TOP, "moe_intermediate_size": INNER,
        "shared_expert_intermediate_size": 32,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
        "layer_types": ["linear_attention"] * 3 + ["full_attention"]}
MODELS = {
    "granitemoe": ({"model_type": "granitemoe", **COMMON, **GRANITE}, GRANITE_TRAITS),
    "granitemoeshared": ({"model_type": "granitemoeshared", **COMMON, **GRANITE, "shared_intermediate_size": 32},
                         GRANITE_TRAITS),
    "granite4": ({"model_type": "granitemoehybrid", **COMMON, **GRANITE, "shared_intermediate_size": 32,
                  "layer_types": ["attention"] * 3, "position_embedding_type": "rope"}, GRANITE_TRAITS),
    "olmoe": ({"model_type": "olmoe", **COMMON, "num_hidden_layers": 3, "num_experts": EXPERTS,
               "num_experts_per_tok": TOP, "norm_topk_prob": False, "rope_theta": 10000.0, "tie_word_embeddings": False,
               "clip_qkv": None},
              {"gguf": "olmoe", "experts": "apart", "norms": "whole", "of_all": True}),
    "qwen35moe": ({"model_type": "qwen3_5_moe", "text_config": QWEN, "tie_word_embeddings": False},
                  {"gguf": "qwen35moe", "experts": "together", "shared": "shared_expert_intermediate_size",
                   "norms": "heads", "addend": 1, "gate": True, "recurrent": True, "ffn_norm": "post_attention_norm"}),
    "gemma": ({"model_type": "gemma", **COMMON, "num_hidden_layers": 3, "head_dim": WIDE, "rope_theta": 10000.0,
               "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True},
              {"gguf": "gemma", "experts": "none", "addend": 1, "scale": HIDDEN ** 0.5}),
    "arcee": ({"model_type": "arcee", **COMMON, "num_hidden_layers": 3, "rope_theta": 10000.0, "hidden_act": "relu2",
               "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False},
              {"gguf": "arcee", "experts": "none", "ungated": True, "pairs": True}),
    "seed_oss": ({"model_type": "seed_oss", **COMMON, "num_hidden_layers": 3, "head_dim": WIDE, "rope_theta": 1e7,
                  "attention_bias": True, "attention_out_bias": False, "mlp_bias": False, "residual_dropout": 0.0,
                  "tie_word_embeddings": False},
                 {"gguf": "seed_oss", "experts": "none", "biases": True, "ffn_norm": "post_attention_norm"}),
    "ministral3": ({"model_type": "mistral3", "tie_word_embeddings": False, "text_config": {
        "model_type": "ministral3", **COMMON, "num_hidden_layers": 3, "head_dim": WIDE, "sliding_window": None,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0,
                            "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
                            "original_max_position_embeddings": 128}}},
                   {"gguf": "mistral3", "experts": "none", "pairs": True}),
    "exaone4": ({"model_type": "exaone4", **COMMON, **EXAONE, "num_hidden_layers": 5, "sliding_window": 24,
                 "sliding_window_pattern": "LLLG",
                 "layer_types": ["sliding_attention"] * 3 + ["full_attention", "sliding_attention"]}, EXAONE_TRAITS),
    "exaone4_all": ({"model_type": "exaone4", **COMMON, **EXAONE, "num_hidden_layers": 3, "sliding_window": None,
                     "sliding_window_pattern": None, "layer_types": ["full_attention"] * 3}, EXAONE_TRAITS),
    "qwen2moe": ({"model_type": "qwen2_moe", **COMMON, "num_hidden_layers": 3, "num_experts": EXPERTS,
                  "num_experts_per_tok": TOP, "norm_topk_prob": False, "rope_theta": 1e6, "tie_word_embeddings": False,
                  "intermediate_size": 96, "moe_intermediate_size": INNER, "shared_expert_intermediate_size": 96,
                  "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False},
                 {"gguf": "qwen2moe", "experts": "apart", "of_all": True, "biases": True,
                  "shared": "shared_expert_intermediate_size"}),
    "glm4": ({"model_type": "glm4", **COMMON, "num_hidden_layers": 2, "head_dim": WIDE, "rope_theta": 10000.0,
              "partial_rotary_factor": 0.5, "attention_bias": True, "tie_word_embeddings": False},
             {"gguf": "glm4", "experts": "none", "biases": True, "neighbours": True, "sandwich": True,
              "fused_gate_up": True}),
    "hunyuan": ({"model_type": "hunyuan_v1_dense", **COMMON, "num_hidden_layers": 3, "head_dim": WIDE,
                 "attention_head_dim": WIDE, "attention_bias": False, "mlp_bias": False, "use_qk_norm": True,
                 "use_cla": False, "cla_share_factor": 2, "norm_type": "rms", "rope_theta": 10000.0,
                 "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0,
                                  "mscale_all_dim": 1.0, "type": "dynamic"}, "tie_word_embeddings": True},
                {"gguf": "hunyuan-dense", "experts": "none", "norms": "turned", "embedding": 0.2}),
    "ernie4_5": ({"model_type": "ernie4_5", **COMMON, "num_hidden_layers": 3, "head_dim": WIDE, "rope_theta": 5e5,
                  "use_bias": False}, {"gguf": "ernie4_5", "experts": "none", "neighbours": True,
                                      "embedding": 0.2}),
}


def main(out):
    made = {name: (c, lambda seed, c=c, t=traits: Decoder(c, t, seed)) for name, (c, traits) in MODELS.items()}
    write_models(out, 70, made)


if __name__ == "__main__":
    main(*sys.argv[1:2])
