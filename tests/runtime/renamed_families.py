# SPDX-License-Identifier: MIT
"""Writes tiny decoders whose folders have names or orders of rows of their own, as decoders.py does.

  renamed_families.py OUT

The forward pass is that of decoders.py and logistic_decoders.py on tensors with usual names. Names, keys and orders of
rows are written from transformers' models/glm, dots1, minimax_m2 and hunyuan_v1_moe, and from the modeling files of
glm-4-9b-chat, EXAONE 3.5, InternLM2.5, deepseek-moe-16b, MiniCPM, MiniCPM4, XVERSE, Baichuan-7B, Ling-lite and
Ling-mini-2.0.
"""
import sys

import numpy as np

from decoders import COMMON, EXPERTS, HEADS, HIDDEN, INNER, KV_HEADS, TOP, WIDE, Decoder
from logistic_decoders import DENSE, GLM, GLM_EXPERTS, Logistic, softmax
from mamba2_hybrids import VOCABULARY, write_models

LAYERS = 3
# The names of a folder: those outside of the layers, the text in front of a layer's number, and those of a layer.
CHATGLM = {"embed_tokens": "transformer.embedding.word_embeddings", "norm": "transformer.encoder.final_layernorm",
           "lm_head": "transformer.output_layer", "layers": "transformer.encoder.layers.",
           "self_attn.qkv": "self_attention.query_key_value", "self_attn.o_proj": "self_attention.dense",
           "mlp.gate_up_proj": "mlp.dense_h_to_4h", "mlp.down_proj": "mlp.dense_4h_to_h"}
EXAONE = {"embed_tokens": "transformer.wte", "norm": "transformer.ln_f", "lm_head": "lm_head",
          "layers": "transformer.h.", "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2",
          "self_attn.o_proj": "attn.attention.out_proj", "mlp.gate_proj": "mlp.c_fc_0", "mlp.up_proj": "mlp.c_fc_1",
          "mlp.down_proj": "mlp.c_proj"}
EXAONE.update({f"self_attn.{n}_proj": f"attn.attention.{n}_proj" for n in "qkv"})
INTERNLM2 = {"embed_tokens": "model.tok_embeddings", "norm": "model.norm", "lm_head": "output",
             "layers": "model.layers.", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
             "self_attn.qkv": "attention.wqkv", "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
             "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2"}
BAICHUAN = {"embed_tokens": "model.embed_tokens", "norm": "model.norm", "lm_head": "lm_head",
            "layers": "model.layers.", "self_attn.qkv": "self_attn.W_pack"}
XVERSE = {name: name_of for name, name_of in BAICHUAN.items() if name != "self_attn.qkv"}


def in_blocks(q, k, v):
    return np.concatenate([q, k, v])


def in_groups(q, k, v):
    """For each key head its queries, the key and the value."""
    parts = [y.reshape(KV_HEADS, -1, WIDE, *y.shape[1:]) for y in (q, k, v)]
    return np.concatenate(parts, 1).reshape(-1, *q.shape[1:])


class Renamed(Decoder):
    """traits: names of the folder, join of q, k and v in it, joined: GGUF has them as one too."""

    def make(self):
        super().make()
        self.usual = self.weights
        self.weights = self.renamed() if "names" in self.traits else self.usual

    def joined(self, p, end):
        return self.traits["join"](*(self.usual[f"{p}self_attn.{n}_proj.{end}"] for n in "qkv"))

    def renamed(self):
        names, out = self.traits["names"], {}
        for name, values in self.usual.items():
            stem, end = name.removeprefix("model.").rsplit(".", 1)
            if not stem.startswith("layers."):
                out[f"{names[stem]}.{end}"] = values
                continue
            layer, part = stem[len("layers."):].split(".", 1)
            if "join" in self.traits and part in ("self_attn.k_proj", "self_attn.v_proj"):
                continue
            if "join" in self.traits and part == "self_attn.q_proj":
                part, values = "self_attn.qkv", self.joined(f"model.layers.{layer}.", end)
            out[f"{names['layers']}{layer}.{names.get(part, part)}.{end}"] = values
        for layer in range(LAYERS if self.traits.get("angles") else 0):
            out[self.traits["angles"].format(layer)] = np.zeros(WIDE // 4, np.float32)
        return out

    def forward(self, ids):
        written, self.weights = self.weights, self.usual
        logits = super().forward(ids)
        self.weights = written
        return logits

    def gguf_tensors(self):
        written, self.weights = self.weights, self.usual
        tensors = dict(super().gguf_tensors())
        self.weights = written
        if "short_factor" in (rope := self.text.get("rope_parameters", {})):
            for kind in ("short", "long"):
                tensors[f"rope_factors_{kind}.weight"] = np.array(rope[f"{kind}_factor"], np.float32)
        for layer in range(LAYERS if self.traits.get("joined") else 0):
            for end in ("weight", "bias"):
                parts = [tensors.pop(f"blk.{layer}.attn_{n}.{end}") for n in "qkv"]
                tensors[f"blk.{layer}.attn_qkv.{end}"] = np.concatenate(parts)
        return list(tensors.items())

    def gguf_keys(self):
        name, keys = super().gguf_keys()
        return name, {key: value for key, value in {**keys, **self.traits.get("keys", {})}.items() if value is not None}


class Mixture(Logistic):
    """traits of Logistic, and: biased: files have the bias of the choice; joined: folders have q, k and v as one, and
    so has GGUF where it is "both"."""

    def make(self):
        super().make()
        kind = self.traits.get("norms")
        for layer in range(self.layers if kind in ("whole", "turned") else 0):
            for old, new, heads in zip(("q_norm", "k_norm"), self.norm_names(), (HEADS, KV_HEADS)):
                p = f"layers.{layer}.self_attn."
                values = self.plain.pop(f"{p}{old}.weight")
                self.plain[f"{p}{new}.weight"] = values if kind == "turned" else (
                    self.random.uniform(0.5, 1.5, heads * WIDE).astype(np.float32))
        head = {name: values for name, values in self.weights.items() if name == "lm_head.weight"}
        self.weights = {"model." + self.names_of(name)[0]: values for name, values in self.plain.items()
                        if name != "lm_head.weight" and self.is_in_files(name)} | head
        if "joined" not in self.traits:
            return
        self.weights["model.word_embeddings.weight"] = self.weights.pop("model.embed_tokens.weight")
        for layer in range(self.layers):
            p = f"model.layers.{layer}."
            parts = [self.weights.pop(f"{p}self_attn.{n}_proj.weight") for n in "qkv"]
            self.weights[p + "attention.query_key_value.weight"] = np.concatenate(parts)

    def mixture(self, x, p, w):
        """Without a bias the logits of experts say how far a choice is from the next one."""
        before = self.gap
        y = super().mixture(x, p, w)
        if not self.traits.get("biased", True):
            ranked = np.sort(x @ w[p + "gate.weight"].T, -1)
            self.gap = min(before, (ranked[:, -TOP] - ranked[:, -TOP - 1]).min())
        return y

    def is_in_files(self, name):
        return self.traits.get("biased", True) or not name.endswith(".choosing")

    def gguf_tensors(self):
        parts = []
        for name, values in super().gguf_tensors():
            if not self.traits.get("biased", True) and name.endswith("exp_probs_b.bias"):
                continue
            if self.traits.get("pairs") and name.endswith(("attn_q.weight", "attn_k.weight")):
                values = self.in_pairs(values, HEADS if "attn_q" in name else KV_HEADS)
            if self.traits.get("joined") == "both" and name.endswith(("attn_q.weight", "attn_k.weight")):
                parts.append(values)
                continue
            if self.traits.get("joined") == "both" and name.endswith("attn_v.weight"):
                name, values = name.replace("attn_v", "attn_qkv"), np.concatenate([*parts, values])
                parts = []
            yield name, values

    def gguf_keys(self):
        name, keys = super().gguf_keys()
        for key in self.traits.get("without", ()):
            del keys[key]
        return name, keys


SIZES = {**COMMON, "num_hidden_layers": LAYERS, "tie_word_embeddings": False, "rope_theta": 10000.0}
GLM_CONFIG = {"model_type": "glm", **SIZES, "head_dim": WIDE, "partial_rotary_factor": 0.5, "attention_bias": True}
GLM_TRAITS = {"gguf": "chatglm", "experts": "none", "biases": True, "neighbours": True, "fused_gate_up": True}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
# MiniCPM's factors: of the embedding, of the depth, and the width by which logits are divided.
MINICPM = {"model_type": "minicpm", **SIZES, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256,
           "tie_word_embeddings": True}
MINICPM_USUAL = {**SIZES, "embedding_multiplier": 12.0, "residual_multiplier": 1.4 / LAYERS ** 0.5,
                 "logits_scaling": HIDDEN / 256, "tie_word_embeddings": True}
MINICPM_TRAITS = {"gguf": "minicpm", "experts": "none", "pairs": True, "embedding": 0.02}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0 + 0.5 * i for i in range(WIDE // 2)],
            "long_factor": [2.0 + i for i in range(WIDE // 2)], "original_max_position_embeddings": 512}
# NAME: (what config.json has, the config with transformers' keys, traits)
MODELS = {
    "glm": (GLM_CONFIG, GLM_CONFIG, GLM_TRAITS),
    "glm_edge": ({**GLM_CONFIG, "partial_rotary_factor": 1.0, "attention_bias": False},
                 {**GLM_CONFIG, "partial_rotary_factor": 1.0, "attention_bias": False},
                 {**GLM_TRAITS, "biases": False}),
    "chatglm": ({"model_type": "chatglm", "num_layers": LAYERS, "num_hidden_layers": LAYERS, "hidden_size": HIDDEN,
                 "padded_vocab_size": VOCABULARY, "vocab_size": VOCABULARY, "ffn_hidden_size": INNER,
                 "kv_channels": WIDE, "num_attention_heads": HEADS, "multi_query_attention": True,
                 "multi_query_group_num": KV_HEADS, "seq_length": 512, "layernorm_epsilon": 1e-5, "rope_ratio": 50,
                 "add_bias_linear": False, "add_qkv_bias": True, "apply_query_key_layer_scaling": True,
                 "apply_residual_connection_post_layernorm": False, "attention_softmax_in_fp32": True,
                 "attention_dropout": 0.0, "bias_dropout_fusion": True, "fp32_residual_connection": False,
                 "hidden_dropout": 0.0, "original_rope": True, "post_layer_norm": True, "rmsnorm": True,
                 "tie_word_embeddings": False}, {**GLM_CONFIG, "rope_theta": 500000.0},
                {**GLM_TRAITS, "names": CHATGLM, "join": in_blocks, "joined": True,
                 "angles": "transformer.rotary_pos_emb.inv_freq"}),
    "exaone": ({"model_type": "exaone", "num_layers": LAYERS, "layer_norm_epsilon": 1e-5,
                "activation_function": "silu", "embed_dropout": 0.0, "rope_scaling": LLAMA3,
                "rope_theta": 1000000, "tie_word_embeddings": True,
                **{key: COMMON[key] for key in ("hidden_size", "intermediate_size", "num_attention_heads", "vocab_size",
                                                "num_key_value_heads", "max_position_embeddings")}},
               {**SIZES, "rope_parameters": {**LLAMA3, "rope_theta": 1000000.0}, "tie_word_embeddings": True},
               {"gguf": "exaone", "experts": "none", "names": EXAONE, "embedding": 0.2}),
    "internlm2": ({"model_type": "internlm2", **SIZES, "bias": False,
                   "rope_scaling": {"type": "dynamic", "factor": 2.0}}, SIZES,
                  {"gguf": "internlm2", "experts": "none", "names": INTERNLM2, "join": in_groups, "pairs": True}),
    "internlm3": ({"model_type": "internlm3", **SIZES, "bias": False, "qkv_bias": False, "head_dim": WIDE,
                   "rope_scaling": {"rope_type": "dynamic", "factor": 6.0}}, SIZES,
                  {"gguf": "llama", "experts": "none", "pairs": True}),
    "minicpm": (MINICPM, MINICPM_USUAL,  # GGUF as before its keys of factors
                {**MINICPM_TRAITS, "keys": dict.fromkeys(("embedding_scale", "residual_scale", "logit_scale"))}),
    "minicpm4": ({**MINICPM, "scale_emb": 6, "scale_depth": 1.0, "dim_model_base": 32, "rope_scaling": LONGROPE,
                  "mup_denominator": 32, "tie_word_embeddings": False},
                 {**MINICPM_USUAL, "embedding_multiplier": 6.0, "residual_multiplier": LAYERS ** -0.5,
                  "logits_scaling": HIDDEN / 32, "rope_parameters": {**LONGROPE, "rope_theta": 10000.0},
                  "tie_word_embeddings": False},
                 {**MINICPM_TRAITS, "keys": {"rope.scaling.type": "longrope"}}),
    "xverse": ({"model_type": "xverse", **SIZES, "max_tokenizer_truncation": 480}, SIZES,
               {"gguf": "xverse", "experts": "none", "pairs": True, "names": XVERSE,
                "angles": "model.layers.{}.self_attn.rotary_emb.inv_freq"}),
    "baichuan": ({"model_type": "baichuan", **{k: v for k, v in SIZES.items() if k != "max_position_embeddings"},
                  "model_max_length": 512, "num_key_value_heads": KV_HEADS}, SIZES,
                 {"gguf": "baichuan", "experts": "none", "pairs": True, "names": BAICHUAN, "join": in_blocks,
                  "angles": "model.layers.{}.self_attn.rotary_emb.inv_freq"}),
}

# As GLM-4.5's names, but for the norm in front of the FFN.
MIXTURE = {**GLM, "post_attention_layernorm": (None, "ffn_norm")}
W_EXPERTS = {"gate_proj": ("w1", "ffn_gate_exps"), "up_proj": ("w3", "ffn_up_exps"),
             "down_proj": ("w2", "ffn_down_exps")}
MINIMAX = {**MIXTURE, "mlp.gate": ("block_sparse_moe.gate", "ffn_gate_inp"),
           "mlp.choosing": ("block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias")}
HUNYUAN = {**MIXTURE, "mlp.gate": ("mlp.gate.wg", "ffn_gate_inp"),
           **{f"self_attn.{n}_layernorm": (None, f"attn_{n[0]}_norm") for n in ("query", "key")},
           **{f"mlp.shared_experts.{n}_proj": (f"mlp.shared_mlp.{n}_proj", f"ffn_{n}_shexp")
              for n in ("gate", "up", "down")}}
BAILING = {**MIXTURE, "self_attn.o_proj": ("attention.dense", "attn_output"),
           "self_attn.q_norm": ("attention.query_layernorm", "attn_q_norm"),
           "self_attn.k_norm": ("attention.key_layernorm", "attn_k_norm"),
           "mlp.choosing": ("mlp.gate.expert_bias", "exp_probs_b.bias")}
FINE = {**SIZES, "intermediate_size": DENSE, "moe_intermediate_size": INNER, "n_routed_experts": EXPERTS,
        "num_experts_per_tok": TOP, "n_shared_experts": 2, "first_k_dense_replace": 1}
DEEPSEEK = {"model_type": "deepseek", **FINE, "norm_topk_prob": False, "scoring_func": "softmax", "moe_layer_freq": 1,
            "attention_bias": False, "aux_loss_alpha": 0.001, "seq_aux": True}
DOTS = {"model_type": "dots1", **FINE, "head_dim": WIDE, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
        "n_group": None, "topk_group": None, "scoring_func": "sigmoid", "attention_bias": False}
LING = {"model_type": "bailing_moe", **SIZES, "intermediate_size": DENSE, "moe_intermediate_size": INNER,
        "num_experts": EXPERTS, "num_experts_per_tok": TOP, "norm_topk_prob": True, "use_bias": False,
        "use_qkv_bias": False, "rope_scaling": None, "embedding_dropout": 0.0, "output_router_logits": False}
IN_GROUPS = {"first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
             "partial_rotary_factor": 0.5, "head_dim": WIDE}
NO_WINDOW = {"sliding_window": 4096, "max_window_layers": 62, "use_sliding_window": False}
ALPHA = {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
         "type": "dynamic"}
IN_ALL = {"first_k_dense_replace": 0, "routed_scaling_factor": 1.0}


def mixture_traits(gguf, **more):
    return {"gguf": gguf, "names": MIXTURE, "expert_names": GLM_EXPERTS, "ffn": "mlp.",
            "dense": "first_k_dense_replace", "added": 1e-20, "last": ("norm", "output_norm"), "keys": {}, **more}


MIXTURES = {
    "deepseek": (DEEPSEEK, DEEPSEEK,
                 mixture_traits("deepseek", score=softmax, bias=0, biased=False, pairs=True,
                                keys={"expert_shared_count": 2, "expert_weights_scale": 1.0,
                                      "rope.scaling.type": "none"})),
    "dots1": ({**DOTS, **NO_WINDOW}, DOTS, mixture_traits("dots1", norms="heads", keys={"expert_shared_count": 2,
                                                                     "expert_weights_norm": True})),
    "ling": ({**LING, "num_shared_experts": 2, "first_k_dense_replace": 0, "norm_head": False, "norm_softmax": False},
             {**FINE, "first_k_dense_replace": 0},
             mixture_traits("bailingmoe", names=BAILING, score=softmax, bias=0, biased=False, pairs=True, added=0,
                            joined="folder", keys={"expert_shared_count": 2, "expert_weights_norm": True,
                                                   "expert_weights_scale": 1.0, "rope.scaling.type": "none"})),
    "ling2": ({**LING, **IN_GROUPS, "architectures": ["BailingMoeV2ForCausalLM"], "num_shared_experts": 1,
               "score_function": "sigmoid", "moe_router_enable_expert_bias": True, "use_qk_norm": True,
               "use_rmsnorm": True, "router_dtype": "fp32", "moe_shared_expert_intermediate_size": INNER,
               "num_nextn_predict_layers": 0}, {**FINE, **IN_GROUPS, "n_shared_experts": 1},
              mixture_traits("bailingmoe2", names=BAILING, norms="heads", joined="both",
                             keys={"expert_shared_count": 1, "expert_shared_feed_forward_length": INNER,
                                   "expert_weights_norm": True, "rope.scaling.type": "none"})),
    "minimax_m2": ({"model_type": "minimax_m2", **SIZES, "head_dim": WIDE, "rotary_dim": WIDE // 2,
                    "num_local_experts": EXPERTS, "num_experts_per_tok": TOP, "scoring_func": "sigmoid",
                    "use_qk_norm": True, "qk_norm_type": "per_layer", "use_routing_bias": True,
                    "shared_intermediate_size": 0, "shared_moe_mode": "sigmoid", "attn_type_list": [1] * LAYERS,
                    "use_mtp": True, "num_mtp_modules": 3, "mtp_transformer_layers": 1},
                   {**SIZES, **IN_ALL, "partial_rotary_factor": 0.5},
                   mixture_traits("minimax-m2", names=MINIMAX, expert_names=W_EXPERTS, ffn="block_sparse_moe.",
                                  norms="whole", added=0, keys={"feed_forward_length": INNER},
                                  without=("leading_dense_block_count", "expert_weights_scale"))),
    "hunyuan_moe": ({"model_type": "hunyuan_v1_moe", **SIZES, "head_dim": WIDE, "attention_head_dim": WIDE,
                     "num_experts": EXPERTS, "moe_topk": [TOP] * LAYERS, "num_shared_expert": [1] * LAYERS,
                     "moe_intermediate_size": [INNER] * LAYERS, "use_mixed_mlp_moe": True, "norm_topk_prob": True,
                     "moe_layer_num_skipped": 0, "moe_drop_tokens": False, "moe_random_routing_dropped_token": False,
                     "use_qk_norm": True, "use_cla": False, "norm_type": "rms", "attention_bias": False,
                     "mlp_bias": False, "rope_scaling": ALPHA, "tie_word_embeddings": True},
                    {**SIZES, **IN_ALL, "n_shared_experts": 1, "rope_theta": 10000.0 * 1000.0 ** (WIDE / (WIDE - 2)),
                     "tie_word_embeddings": True},
                    mixture_traits("hunyuan-moe", names=HUNYUAN, norms="turned", score=softmax, bias=0, biased=False,
                                   added=0, embedding=0.1,
                                   keys={"feed_forward_length": INNER, "expert_shared_count": 1,
                                         "expert_shared_feed_forward_length": INNER, "rope.scaling.type": "none",
                                         "rope.scaling.factor": 1.0},
                                   without=("leading_dense_block_count",))),
}


def main(out):
    made = {name: (config, lambda seed, k=kind, c=usual, t=traits: k(c, t, seed))
            for kind, models in ((Renamed, MODELS), (Mixture, MIXTURES))
            for name, (config, usual, traits) in models.items()}
    write_models(out, 70, made)


if __name__ == "__main__":
    main(*sys.argv[1:2])
