# SPDX-License-Identifier: MIT
"""Writes tiny models with latent attention (MLA), as folders and as GGUF, and their logits by numpy in float64, as
decoders.py does.

  latent_attention.py OUT

"v2_lite" has what DeepSeek-V2-Lite has: queries by one product, routers that weigh by a softmax, YaRN with a share for
scores. "flash" has what GLM-4.7-Flash has: queries by two products, logistic routers with a bias, a layer that drafts
tokens. "halves" is a deepseek_v3 whose rotated channels are not neighbours (rope_interleave false), and whose experts
are chosen in two of four groups. "v2" has the groups of DeepSeek-V2, which are judged by their best experts. The
forward pass is written from transformers' models/deepseek_v3 and glm4_moe_lite, and for both v2 from the models' own
code; keys and values are expanded for each head. Beside model.gguf, as llama.cpp's converter writes it, old.gguf has
keys and values by one matrix, as it wrote them before.
"""
import os
import sys

import numpy as np

from decoders import COMMON, EXPERTS, HEADS, HIDDEN, INNER, TOP, VOCABULARY, yarn
from logistic_decoders import DENSE, GLM, GLM_EXPERTS, Logistic, sigmoid, softmax
from mamba2_hybrids import write_gguf, write_models

LATENT, FIRST, TURNED, VALUE, QUERY = 64, 32, 16, 48, 32  # channels; FIRST and TURNED are those of a head's query

NAMES = {**GLM, "post_attention_layernorm": (None, "ffn_norm"), "self_attn.q_a_proj": (None, "attn_q_a"),
         "self_attn.q_a_layernorm": (None, "attn_q_a_norm"), "self_attn.q_b_proj": (None, "attn_q_b"),
         "self_attn.kv_a_proj_with_mqa": (None, "attn_kv_a_mqa"), "self_attn.kv_a_layernorm": (None, "attn_kv_a_norm"),
         "self_attn.kv_b_proj": (None, "attn_kv_b")}


class Latent(Logistic):
    def make_attention(self, p, w, matrix, near):
        wide = HEADS * (FIRST + TURNED)
        if self.text["q_lora_rank"]:
            w[p + "q_a_proj.weight"], w[p + "q_a_layernorm.weight"] = matrix(QUERY, HIDDEN), near(QUERY)
            w[p + "q_b_proj.weight"] = matrix(wide, QUERY)
        else:
            w[p + "q_proj.weight"] = matrix(wide, HIDDEN)
        w[p + "kv_a_proj_with_mqa.weight"] = matrix(LATENT + TURNED, HIDDEN)
        w[p + "kv_a_layernorm.weight"] = near(LATENT)
        w[p + "kv_b_proj.weight"] = matrix(HEADS * (FIRST + VALUE), LATENT)
        w[p + "o_proj.weight"] = matrix(HIDDEN, HEADS * VALUE)

    def scaling(self):
        return self.text.get("rope_scaling") or {}

    def mscale(self, share):
        return 1 + 0.1 * share * np.log(self.scaling()["factor"]) if self.scaling() else 1.0

    # The forward pass.

    def turn(self, x):
        """Rotates all channels of [tokens, heads, TURNED]."""
        rope = {**self.scaling(), "rope_theta": self.base()}
        own = self.base() ** (-np.arange(TURNED // 2) * 2 / TURNED)
        angles = np.arange(len(x))[:, None] * (yarn(rope, TURNED) if self.scaling() else own)
        factor = self.mscale(rope.get("mscale", 0)) / self.mscale(rope.get("mscale_all_dim", 0))
        cos, sin = factor * np.cos(angles)[:, None], factor * np.sin(angles)[:, None]
        if self.text.get("rope_interleave", True):
            a, b = x[..., ::2], x[..., 1::2]
        else:
            a, b = np.split(x, 2, -1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, p, w, layer=0):
        if p + "q_proj.weight" in w:
            q = x @ w[p + "q_proj.weight"].T
        else:
            h = self.norm(x @ w[p + "q_a_proj.weight"].T, w[p + "q_a_layernorm.weight"])
            q = h @ w[p + "q_b_proj.weight"].T
        q, q_turned = np.split(q.reshape(len(x), HEADS, FIRST + TURNED), [FIRST], -1)
        latent, k_turned = np.split(x @ w[p + "kv_a_proj_with_mqa.weight"].T, [LATENT], -1)
        both = self.norm(latent, w[p + "kv_a_layernorm.weight"]) @ w[p + "kv_b_proj.weight"].T
        k, v = np.split(both.reshape(len(x), HEADS, FIRST + VALUE), [FIRST], -1)
        k_turned = np.repeat(self.turn(k_turned[:, None]), HEADS, 1)
        q, k = np.concatenate([q, self.turn(q_turned)], -1), np.concatenate([k, k_turned], -1)
        scale = self.mscale(self.scaling().get("mscale_all_dim", 0)) ** 2 / np.sqrt(FIRST + TURNED)
        y = np.zeros_like(v)
        for i in range(len(x)):
            for h in range(HEADS):
                s = k[:i + 1, h] @ q[i, h] * scale
                s = np.exp(s - s.max())
                y[i, h] = s / s.sum() @ v[:i + 1, h]
        return y.reshape(len(x), -1) @ w[p + "o_proj.weight"].T

    # The same as GGUF.

    def in_neighbours(self, rows):
        """The last TURNED of [..., rows, columns] as GGUF has them."""
        if self.text.get("rope_interleave", True):
            return rows
        first, last = rows[..., :-TURNED, :], rows[..., -TURNED:, :]
        pairs = np.stack(np.split(last, 2, -2), -2).reshape(last.shape)
        return np.concatenate([first, pairs], -2)

    def gguf_tensors(self, old=False):
        for name, values in super().gguf_tensors():
            if name.endswith((".attn_q.weight", ".attn_q_b.weight")):
                heads = values.reshape(HEADS, FIRST + TURNED, -1)
                values = self.in_neighbours(heads).reshape(values.shape)
            if name.endswith(".attn_kv_a_mqa.weight"):
                values = self.in_neighbours(values)
            if name.endswith(".attn_kv_b.weight") and not old:
                keys, own = np.split(values.reshape(HEADS, FIRST + VALUE, LATENT), [FIRST], 1)
                yield name.replace("kv_b", "k_b"), np.ascontiguousarray(keys.swapaxes(1, 2))
                yield name.replace("kv_b", "v_b"), np.ascontiguousarray(own)
                continue
            yield name, np.ascontiguousarray(values)

    def gguf_keys(self, old=False):
        _, keys = super().gguf_keys()
        t, scaling = self.text, self.scaling()
        keys.update({"rope.dimension_count": TURNED, "attention.kv_lora_rank": LATENT,
                     "expert_shared_count": t["n_shared_experts"], "expert_gating_func": 1 + self.biased(),
                     "expert_weights_scale": t["routed_scaling_factor"]})
        head = {"attention.key_length": FIRST + TURNED, "attention.value_length": VALUE}
        cache = {"attention.key_length": LATENT + TURNED, "attention.value_length": LATENT}
        keys.update(head if old else {**cache, **{k + "_mla": v for k, v in head.items()}})
        keys["attention.head_count_kv"] = HEADS if old else 1
        if old and not self.biased():
            del keys["expert_gating_func"]
        if t["q_lora_rank"]:
            keys["attention.q_lora_rank"] = t["q_lora_rank"]
        if t["norm_topk_prob"]:
            keys["expert_weights_norm"] = True
        if scaling:
            keys.update({"rope.scaling.type": "yarn", "rope.scaling.factor": float(scaling["factor"]),
                         "rope.scaling.original_context_length": scaling["original_max_position_embeddings"],
                         "rope.scaling.yarn_log_multiplier": 0.1 * scaling["mscale_all_dim"]})
        return "deepseek2", keys

    def biased(self):
        return "score" not in self.traits


CONFIG = {**COMMON, "num_key_value_heads": HEADS, "intermediate_size": DENSE, "moe_intermediate_size": INNER,
          "num_hidden_layers": 3, "attention_bias": False, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
          "n_routed_experts": EXPERTS, "num_experts_per_tok": TOP, "kv_lora_rank": LATENT, "qk_nope_head_dim": FIRST,
          "qk_rope_head_dim": TURNED, "v_head_dim": VALUE, "tie_word_embeddings": False}


def scaled(share):
    return {"type": "yarn", "factor": 8, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1,
            "mscale": share, "mscale_all_dim": share}


TRAITS = {"gguf": "deepseek2", "names": NAMES, "expert_names": GLM_EXPERTS, "ffn": "mlp.",
          "dense": "first_k_dense_replace", "added": 1e-20, "last": ("norm", "output_norm"), "keys": {}}
MODELS = {
    "v2_lite": ({"model_type": "deepseek_v2", **CONFIG, "q_lora_rank": None, "rope_theta": 10000,
                 "rope_scaling": scaled(0.707), "scoring_func": "softmax", "topk_method": "greedy",
                 "norm_topk_prob": False, "routed_scaling_factor": 1.0, "n_shared_experts": 2, "moe_layer_freq": 1,
                 "ep_size": 1, "aux_loss_alpha": 0.001, "seq_aux": True, "pretraining_tp": 1},
                {**TRAITS, "score": softmax, "bias": 0}),
    "v2": ({"model_type": "deepseek_v2", **CONFIG, "n_group": 4, "topk_group": 2, "q_lora_rank": QUERY,
            "rope_theta": 10000, "rope_scaling": scaled(1.0), "scoring_func": "softmax",
            "topk_method": "group_limited_greedy", "norm_topk_prob": False, "routed_scaling_factor": 4.0,
            "n_shared_experts": 2, "moe_layer_freq": 1}, {**TRAITS, "score": softmax, "bias": 0}),
    "flash": ({"model_type": "glm4_moe_lite", **CONFIG, "q_lora_rank": QUERY, "rope_theta": 1000000.0,
               "rope_scaling": None, "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 1.8,
               "n_shared_experts": 1, "num_nextn_predict_layers": 1, "partial_rotary_factor": 1.0}, TRAITS),
    "halves": ({"model_type": "deepseek_v3", **CONFIG, "n_group": 4, "topk_group": 2, "q_lora_rank": QUERY,
                "rope_theta": 50000.0, "rope_scaling": scaled(1.0), "scoring_func": "sigmoid",
                "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 2.446,
                "n_shared_experts": 2, "rope_interleave": False}, TRAITS),
}


def main(out):
    write_models(out, 70, {name: (c, lambda seed, c=c, t=traits: written(out, name_of(c), Latent(c, t, seed)))
                           for name, (c, traits) in MODELS.items()})


def name_of(config):
    return next(name for name, (c, _) in MODELS.items() if c is config)


def written(out, name, model):
    """The model, of which old.gguf is written; that of the last seed stays."""
    os.makedirs(os.path.join(out, name), exist_ok=True)
    write_gguf(os.path.join(out, name, "old.gguf"), *model.gguf_keys(True), list(model.gguf_tensors(True)))
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
