# SPDX-License-Identifier: MIT
"""Writes tiny OLMo 3s and a tiny Qwen3-VL with experts, as decoders.py does.

  later_decoders.py OUT

Written from transformers' models/olmo3 and qwen3_vl_moe, and from the keys that llama.cpp's converter writes.
"""
import sys

import numpy as np

from decoders import COMMON, EXPERTS, HIDDEN, INNER, TOP, WIDE, Decoder
from mamba2_hybrids import write_models

YARN = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "attention_factor": 1.2079441541679836, "original_max_position_embeddings": 64}


class Olmo3(Decoder):
    """Layers with a window have the base of the others, and no scaling. traits: factor_key in GGUF."""

    def rope(self, windowed=False):
        rope = self.text.get("rope_parameters", {**self.text, **self.text.get("rope_scaling", {})})
        rope = rope.get("full_attention", rope)
        return {"rope_theta": rope["rope_theta"]} if windowed else rope

    def gguf_keys(self):
        name, keys = super().gguf_keys()
        rope = self.rope()
        return name, {**keys, "rope.scaling.type": "yarn", "rope.scaling.factor": rope["factor"],
                      "rope.scaling.original_context_length": rope["original_max_position_embeddings"],
                      self.traits["factor_key"]: rope["attention_factor"]}


class Qwen3VlMoe(Decoder):
    """A folder has each expert's matrices transposed."""

    def make(self):
        super().make()
        for name in self.experts():
            self.weights[name] = self.weights[name].swapaxes(1, 2).copy()

    def experts(self):
        return [name for name in self.weights if ".experts." in name]

    def experts_of(self, p, w, e):
        gate_up, down = (w[f"{p}mlp.experts.{n}_proj"][e].T for n in ("gate_up", "down"))
        return [*np.split(gate_up, 2), down]

    def gguf_tensors(self):
        written = self.weights
        straight = {name: written[name].swapaxes(1, 2).copy() for name in self.experts()}
        self.weights = {**written, **straight}
        out = list(super().gguf_tensors())
        self.weights = written
        return out

    def gguf_keys(self):
        name, keys = super().gguf_keys()
        del keys["feed_forward_length"]
        return name, {**keys, "expert_feed_forward_length": INNER, "rope.dimension_sections": [2, 3, 3, 0],
                      "n_deepstack_layers": 1}


OLMO = {"model_type": "olmo3", **COMMON, "rms_norm_eps": 1e-6, "sliding_window": 24, "attention_bias": False,
        "tie_word_embeddings": False}
OLMO_TRAITS = {"gguf": "olmo2", "experts": "none", "behind": True, "norms": "whole", "globals_turn": True,
               "ffn_norm": "post_attention_norm"}
WINDOWS = ["sliding_attention"] * 3 + ["full_attention"]
# NAME: (class, config, traits)
MODELS = {
    "olmo3": (Olmo3, {**OLMO, "num_hidden_layers": 5, "layer_types": WINDOWS + WINDOWS[:1], "rope_theta": 500000,
                      "rope_scaling": YARN}, {**OLMO_TRAITS, "factor_key": "rope.scaling.attn_factor"}),
    "olmo3_kinds": (Olmo3, {**OLMO, "num_hidden_layers": 4, "layer_types": WINDOWS, "rope_parameters": {
        "full_attention": {**YARN, "rope_theta": 500000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0}}},
                    {**OLMO_TRAITS, "factor_key": "rope.scaling.yarn_attn_factor"}),
    "qwen3vlmoe": (Qwen3VlMoe, {
        "model_type": "qwen3_vl_moe", "tie_word_embeddings": False, "image_token_id": 9,
        "vision_config": {"model_type": "qwen3_vl_moe"}, "text_config": {
            "model_type": "qwen3_vl_moe_text", **COMMON, "num_hidden_layers": 3, "head_dim": WIDE,
            "num_experts": EXPERTS, "num_experts_per_tok": TOP, "norm_topk_prob": True, "intermediate_size": 96,
            "moe_intermediate_size": INNER, "decoder_sparse_step": 1, "mlp_only_layers": [], "attention_bias": False,
            "rope_theta": 5000000, "rope_scaling": {"mrope_interleaved": True, "mrope_section": [2, 3, 3],
                                                    "rope_type": "default"}}},
                   {"gguf": "qwen3vlmoe", "experts": "together", "norms": "heads"}),
}


def main(out):
    made = {name: (c, lambda seed, of=of, c=c, t=traits: of(c, t, seed)) for name, (of, c, traits) in MODELS.items()}
    write_models(out, 70, made)


if __name__ == "__main__":
    main(*sys.argv[1:2])
