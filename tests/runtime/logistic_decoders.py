# SPDX-License-Identifier: MIT
"""Writes tiny decoders whose routers judge experts by a logistic or by a probability, behind dense layers, as
decoders.py does.

  logistic_decoders.py OUT

The forward pass is written from transformers' models/lfm2_moe, glm4_moe and ernie4_5_moe. Layers that draft tokens are
in the files and nowhere else.
"""
import re
import sys

import numpy as np

from decoders import (COMMON, EXPERTS, HEADS, HIDDEN, INNER, KV_HEADS, TOP, VOCABULARY, WIDE, Decoder, sigmoid)
from mamba2_hybrids import write_models

CONV, DENSE = 3, 96

# Names in a folder and in GGUF of what this file calls otherwise; None: the same.
LFM2 = {
    "input_layernorm": ("operator_norm", "attn_norm"), "post_attention_layernorm": ("ffn_norm", "ffn_norm"),
    "self_attn.o_proj": ("self_attn.out_proj", "attn_output"),
    "self_attn.q_norm": ("self_attn.q_layernorm", "attn_q_norm"),
    "self_attn.k_norm": ("self_attn.k_layernorm", "attn_k_norm"),
    "conv.in_proj": (None, "shortconv.in_proj"), "conv.conv": (None, "shortconv.conv"),
    "conv.out_proj": (None, "shortconv.out_proj"), "mlp.gate": ("feed_forward.gate", "ffn_gate_inp"),
    "mlp.choosing": ("feed_forward.expert_bias", "exp_probs_b.bias"),
    "mlp.gate_proj": ("feed_forward.w1", "ffn_gate"), "mlp.up_proj": ("feed_forward.w3", "ffn_up"),
    "mlp.down_proj": ("feed_forward.w2", "ffn_down")}
LFM2.update({f"self_attn.{n}_proj": (None, f"attn_{n}") for n in "qkv"})
LFM2_EXPERTS = {"gate_proj": ("w1", "ffn_gate_exps"), "up_proj": ("w3", "ffn_up_exps"),
                "down_proj": ("w2", "ffn_down_exps")}
# GLM-4.5's: transformers has the same but for the bias by which experts are chosen.
GLM = {"input_layernorm": (None, "attn_norm"), "post_attention_layernorm": (None, "post_attention_norm"),
       "self_attn.o_proj": (None, "attn_output"), "self_attn.q_norm": (None, "attn_q_norm"),
       "self_attn.k_norm": (None, "attn_k_norm"), "mlp.gate": (None, "ffn_gate_inp"),
       "mlp.choosing": ("mlp.gate.e_score_correction_bias", "exp_probs_b.bias")}
GLM.update({f"self_attn.{n}_proj": (None, f"attn_{n}") for n in "qkv"})
GLM.update({f"mlp.{n}_proj": (None, f"ffn_{n}") for n in ("gate", "up", "down")})
GLM.update({f"mlp.shared_experts.{n}_proj": (None, f"ffn_{n}_shexp") for n in ("gate", "up", "down")})
GLM_EXPERTS = {f"{n}_proj": (f"{n}_proj", f"ffn_{n}_exps") for n in ("gate", "up", "down")}
# ERNIE 4.5's: as GLM-4.5's, but for the norm in front of the FFN and the bias.
ERNIE = {**GLM, "post_attention_layernorm": (None, "ffn_norm"),
         "mlp.choosing": ("mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias")}
ERNIE_DRAFTS = ("mtp_block.0.input_layernorm.weight", "mtp_emb_norm.0.weight", "mtp_hidden_norm.0.weight")
# Tensors of a layer that drafts tokens, which no reader uses.
DRAFTS = {"eh_proj.weight": "nextn.eh_proj.weight", "enorm.weight": "nextn.enorm.weight",
          "input_layernorm.weight": "attn_norm.weight"}


def softmax(x):
    parts = np.exp(x - x.max(-1, keepdims=True))
    return parts / parts.sum(-1, keepdims=True)


class Logistic(Decoder):
    """`traits` has the differences between families."""

    def is_recurrent(self, layer):
        return self.text.get("layer_types", ["full_attention"] * self.layers)[layer] == "conv"

    def is_dense(self, layer):
        return layer < self.text[self.traits["dense"]]

    def make(self):
        r, t, w = self.random, self.text, {}
        matrix = lambda *shape: (1.2 * r.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        near = lambda n: r.uniform(0.5, 1.5, n).astype(np.float32)
        wide = self.traits.get("embedding", 0.5)
        w["embed_tokens.weight"] = (wide * r.standard_normal((VOCABULARY, HIDDEN))).astype(np.float32)  # the head too
        for layer in range(self.layers):
            p = f"layers.{layer}."
            w[p + "input_layernorm.weight"], w[p + "post_attention_layernorm.weight"] = near(HIDDEN), near(HIDDEN)
            if self.is_recurrent(layer):
                w[p + "conv.in_proj.weight"] = matrix(3 * HIDDEN, HIDDEN)
                w[p + "conv.conv.weight"] = (0.6 * r.standard_normal((HIDDEN, 1, CONV))).astype(np.float32)
                w[p + "conv.out_proj.weight"] = matrix(HIDDEN, HIDDEN)
            else:
                self.make_attention(p + "self_attn.", w, matrix, near)
            units = {"mlp.": DENSE} if self.is_dense(layer) else {f"mlp.experts.{e}.": INNER for e in range(EXPERTS)}
            if not self.is_dense(layer):
                w[p + "mlp.gate.weight"] = matrix(EXPERTS, HIDDEN)
                if widest := self.traits.get("bias", 0.4):
                    w[p + "mlp.choosing"] = r.uniform(-widest, widest, EXPERTS).astype(np.float32)
                if shared := t.get(self.traits.get("shared", "n_shared_experts")):
                    units["mlp.shared_experts."] = INNER * shared
            for unit, inner in units.items():
                w[p + unit + "gate_proj.weight"] = matrix(inner, HIDDEN)
                w[p + unit + "up_proj.weight"] = matrix(inner, HIDDEN)
                w[p + unit + "down_proj.weight"] = matrix(HIDDEN, inner)
        w["norm.weight"] = near(HIDDEN)
        kept = lambda values: values
        row = lambda name, values: values[None] if self.traits.get("row") and name.endswith(".choosing") else values
        if self.traits.get("sublayers"):  # a folder's vectors, which convert writes as f32
            w.update({name: values.astype(np.float16).astype(np.float32) for name, values in w.items()
                      if values.ndim == 1})
            kept = lambda values: values.astype(np.float16) if values.ndim == 1 else values
        self.plain = w
        self.weights = {"model." + self.names_of(name)[0]: row(name, kept(values)) for name, values in w.items()}
        for name in self.traits.get("heads", ()):
            self.weights["model." + name] = near(HIDDEN)
        for i in range(self.drafts()):
            for name in DRAFTS:
                self.weights[f"model.layers.{self.layers + i}.{name}"] = near(HIDDEN)
        if not t.get("tie_word_embeddings", t.get("tie_embedding")):
            w["lm_head.weight"] = self.weights["lm_head.weight"] = matrix(VOCABULARY, HIDDEN)

    def make_attention(self, p, w, matrix, near):
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            w[p + f"{name}_proj.weight"] = matrix(heads * WIDE, HIDDEN)
            if self.text.get("attention_bias"):
                w[p + f"{name}_proj.bias"] = self.random.standard_normal(heads * WIDE).astype(np.float32)
        w[p + "o_proj.weight"] = matrix(HIDDEN, HEADS * WIDE)
        if self.traits.get("norms"):
            w[p + "q_norm.weight"], w[p + "k_norm.weight"] = near(WIDE), near(WIDE)

    def base(self):
        return float(self.text.get("rope_theta", self.traits.get("theta")))

    def drafts(self):
        """Layers behind the last one."""
        return 0 if self.traits.get("heads") else self.text.get("num_nextn_predict_layers", 0)

    def names_of(self, name):
        """In a folder, without "model.", and in GGUF."""
        if not name.startswith("layers."):
            last = self.traits["last"]
            return {"embed_tokens.weight": (name, "token_embd.weight"), "lm_head.weight": (name, "output.weight"),
                    "norm.weight": (last[0] + ".weight", last[1] + ".weight")}[name]
        layer, part = name[len("layers."):].split(".", 1)
        part, end = (part, "") if part == "mlp.choosing" else part.rsplit(".", 1)
        end = end and "." + end
        if of := re.fullmatch(r"mlp\.experts\.(\d+)\.(\w+)", part):
            folder, gguf = self.traits["expert_names"][of[2]]
            folder = f"{self.traits['ffn']}experts.{of[1]}.{folder}"
        else:
            folder, gguf = self.traits["names"][part]
        return f"layers.{layer}.{folder or part}{end}", f"blk.{layer}.{gguf}{end}"

    # The forward pass.

    def forward(self, ids):
        w = {name: values.astype(np.float64) for name, values in self.plain.items()}
        x = w["embed_tokens.weight"][ids]
        for layer in range(self.layers):
            p = f"layers.{layer}."
            half, name = (self.short_conv, "conv.") if self.is_recurrent(layer) else (self.attention, "self_attn.")
            x = x + half(self.norm(x, w[p + "input_layernorm.weight"]), p + name, w)
            h = self.norm(x, w[p + "post_attention_layernorm.weight"])
            x = x + (self.unit(h, p + "mlp.", w) if self.is_dense(layer) else self.mixture(h, p + "mlp.", w))
        return self.norm(x, w["norm.weight"]) @ w.get("lm_head.weight", w["embed_tokens.weight"]).T

    def unit(self, x, p, w):
        return self.gated(x, *(w[p + n + "_proj.weight"] for n in ("gate", "up", "down")))

    def short_conv(self, x, p, w):
        b, c, h = np.split(x @ w[p + "in_proj.weight"].T, 3, -1)
        before = np.concatenate([np.zeros((CONV - 1, HIDDEN)), b * h])
        mixed = [(before[i:i + CONV].T * w[p + "conv.weight"][:, 0]).sum(-1) for i in range(len(x))]
        return (c * np.array(mixed)) @ w[p + "out_proj.weight"].T

    def mixture(self, x, p, w):
        scores = self.traits.get("score", sigmoid)(x @ w[p + "gate.weight"].T)
        judged = self.in_best_groups(scores + w.get(p + "choosing", 0), p + "choosing" in w)
        order = np.argsort(-judged, -1)
        ranked = np.take_along_axis(judged, order, -1)
        self.gap = min(self.gap, (ranked[:, TOP - 1] - ranked[:, TOP]).min())
        parts = np.take_along_axis(scores, order[:, :TOP], -1)
        if self.text.get("norm_topk_prob", True):
            sums = np.maximum(parts.sum(-1, keepdims=True), self.traits.get("least", 0))
            parts = parts / (sums + self.traits["added"])
        parts = parts * self.text.get("routed_scaling_factor", 1.0)
        y = self.unit(x, p + "shared_experts.", w) if p + "shared_experts.up_proj.weight" in w else np.zeros_like(x)
        for i in range(len(x)):
            for j in range(TOP):
                y[i] += parts[i, j] * self.unit(x[i], p + f"experts.{order[i, j]}.", w)
        return y

    def in_best_groups(self, judged, biased):
        """Numbers of experts [tokens, experts], -inf outside of the groups with the best expert or, biased, with the
        largest sum of two."""
        t = self.text
        groups, used = t.get("n_group") or 1, t.get("topk_group") or 1
        if groups == used or t.get("topk_method") == "greedy":
            return judged
        parts = judged.reshape(len(judged), groups, -1).copy()
        ranked = np.sort(parts, -1)
        sums = ranked[..., -2:].sum(-1) if biased else ranked[..., -1]
        order = np.argsort(-sums, -1)
        best = np.take_along_axis(sums, order, -1)
        self.gap = min(self.gap, (best[:, used - 1] - best[:, used]).min())
        np.put_along_axis(parts, order[:, used:, None], -np.inf, 1)
        return parts.reshape(judged.shape)

    # The same as GGUF.

    def gguf_tensors(self):
        stacks = {}
        for name, values in self.plain.items():
            gguf = self.names_of(name)[1]
            if ".experts." in name:
                stacks.setdefault(gguf, []).append(values)
            else:
                yield gguf, values[:, 0] if values.ndim == 3 else values
        for gguf, all_ in stacks.items():
            yield gguf, np.stack(all_)
        for i in range(self.drafts()):
            for name, gguf in DRAFTS.items():
                layer = self.layers + i
                yield f"blk.{layer}.{gguf}", self.weights[f"model.layers.{layer}.{name}"]

    def gguf_keys(self):
        t = self.text
        attends = [0 if self.is_recurrent(layer) else KV_HEADS for layer in range(self.layers)]
        drafts = self.drafts()
        keys = {"block_count": self.layers + drafts, "context_length": t["max_position_embeddings"],
                "embedding_length": HIDDEN, "vocab_size": VOCABULARY, "feed_forward_length": DENSE,
                "attention.head_count": HEADS,
                "attention.head_count_kv": attends if 0 in attends else KV_HEADS,
                "attention.layer_norm_rms_epsilon": self.eps, "rope.freq_base": self.base(),
                "rope.dimension_count": int(WIDE * t.get("partial_rotary_factor", 1.0)), "expert_count": EXPERTS,
                "expert_used_count": TOP, "expert_feed_forward_length": INNER,
                "leading_dense_block_count": t[self.traits["dense"]], **self.traits["keys"]}
        if "score" not in self.traits:
            keys.update({"expert_gating_func": 2, "expert_weights_scale": t["routed_scaling_factor"]})
        if (t.get("n_group") or 1) > 1:
            keys.update({"expert_group_count": t["n_group"], "expert_group_used_count": t["topk_group"]})
        if drafts:
            keys["nextn_predict_layers"] = drafts
        return self.traits["gguf"], keys


GLM_CONFIG = {"model_type": "glm4_moe", **COMMON, "intermediate_size": DENSE, "moe_intermediate_size": INNER,
              "num_hidden_layers": 2, "head_dim": WIDE, "partial_rotary_factor": 0.5, "rope_theta": 1000000.0,
              "rope_scaling": None, "attention_bias": True, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
              "n_routed_experts": EXPERTS, "num_experts_per_tok": TOP, "norm_topk_prob": True,
              "tie_word_embeddings": False, "num_nextn_predict_layers": 1}


def glm_traits(shared, **more):
    return {"gguf": "glm4moe", "names": GLM, "expert_names": GLM_EXPERTS, "ffn": "mlp.",
            "dense": "first_k_dense_replace", "added": 1e-20, "last": ("norm", "output_norm"),
            "keys": {"expert_shared_count": shared, "expert_weights_norm": True, "attention.key_length": WIDE,
                     "attention.value_length": WIDE}, **more}


ERNIE_CONFIG = {"model_type": "ernie4_5_moe", **COMMON, "intermediate_size": DENSE, "moe_intermediate_size": INNER,
                "use_bias": False, "moe_num_experts": EXPERTS, "moe_k": TOP, "moe_layer_interval": 1,
                "moe_gate": "topk", "moe_capacity": [64, 64, 64], "moe_use_aux_free": True,
                "num_nextn_predict_layers": 1}


def ernie_traits(shared, **more):
    counted = {"expert_shared_feed_forward_length": shared * INNER} if shared else {}
    return {"gguf": "ernie4_5-moe", "names": ERNIE, "expert_names": GLM_EXPERTS, "ffn": "mlp.", "score": softmax,
            "dense": "moe_layer_start_index", "shared": "moe_num_shared_experts", "added": 0, "least": 1e-12,
            "bias": 0.1, "row": True, "theta": 5e5, "neighbours": True, "last": ("norm", "output_norm"),
            "heads": ERNIE_DRAFTS,
            "keys": {"interleave_moe_layer_step": 1, "expert_shared_count": shared, **counted}, **more}


MODELS = {
    "ernie4_5_moe": ({**ERNIE_CONFIG, "num_hidden_layers": 3, "rope_theta": 500000, "moe_num_shared_experts": 2,
                      "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_norm_min": 1e-12,
                      "tie_word_embeddings": True}, ernie_traits(2, embedding=0.1)),
    "ernie4_5_moe_alone": ({**ERNIE_CONFIG, "num_hidden_layers": 4, "moe_num_shared_experts": 0,
                            "moe_layer_start_index": 2, "moe_layer_end_index": 3, "tie_word_embeddings": False},
                           ernie_traits(0)),
    "glm4moe": ({**GLM_CONFIG, "n_shared_experts": 2, "routed_scaling_factor": 2.5, "use_qk_norm": True},
                glm_traits(2, norms="heads", sublayers=True)),
    "glm4moe_air": ({**GLM_CONFIG, "n_shared_experts": 1, "routed_scaling_factor": 1.0, "use_qk_norm": False},
                    glm_traits(1)),
    "lfm2moe": ({"model_type": "lfm2_moe", "hidden_size": HIDDEN, "intermediate_size": DENSE,
                 "moe_intermediate_size": INNER, "num_hidden_layers": 6, "num_attention_heads": HEADS,
                 "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY, "max_position_embeddings": 512,
                 "norm_eps": 1e-5, "rope_theta": 1000000.0, "conv_L_cache": CONV, "conv_bias": False,
                 "num_dense_layers": 2, "num_experts": EXPERTS, "num_experts_per_tok": TOP, "norm_topk_prob": True,
                 "use_expert_bias": True, "routed_scaling_factor": 1.5, "tie_embedding": True,
                 "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention", "conv"]},
                {"gguf": "lfm2moe", "names": LFM2, "expert_names": LFM2_EXPERTS, "ffn": "feed_forward.",
                 "norms": "heads", "dense": "num_dense_layers", "added": 1e-6,
                 "last": ("embedding_norm", "token_embd_norm"), "keys": {"shortconv.l_cache": CONV}}),
}


def main(out):
    made = {name: (c, lambda seed, c=c, t=traits: Logistic(c, t, seed)) for name, (c, traits) in MODELS.items()}
    write_models(out, 70, made)


if __name__ == "__main__":
    main(*sys.argv[1:2])
