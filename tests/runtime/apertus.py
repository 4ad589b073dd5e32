# SPDX-License-Identifier: MIT
"""Writes tiny models of Apertus as folders and as GGUF, and their logits by numpy in float64, as decoders.py does.

  apertus.py OUT

The forward pass is that of decoders.py with xIELU; it, names and shapes are written from transformers' models/apertus
and XIELUActivation, the GGUF's keys from llama.cpp's converter. Model "one" has equal parameters in all layers, which
its GGUF states once, and an eps far below 0, so that inputs are on both sides of it.
"""
import sys

import numpy as np

from decoders import COMMON, WIDE, Decoder
from mamba2_hybrids import write_models

PARTS = ("alpha_p", "alpha_n", "beta", "eps")
NAMES = {"input_layernorm": "attention_layernorm", "post_attention_layernorm": "feedforward_layernorm"}


def softplus(x):
    return np.log1p(np.exp(x))


def xielu(x, alpha_p, alpha_n, beta, eps):
    above = softplus(alpha_p) * x * x + beta * x
    below = (np.expm1(np.minimum(x, eps)) - x) * (beta + softplus(alpha_n)) + beta * x
    return np.where(x > 0, above, below)


class Apertus(Decoder):
    """traits: parameters of a layer, in the order of PARTS; same: those of all layers are one."""

    def make(self):
        super().make()
        self.usual, self.weights, self.parameters = self.weights, {}, []
        for name, values in self.usual.items():
            for usual, own in NAMES.items():
                name = name.replace(usual, own)
            self.weights[name] = values
        for layer in range(self.layers):
            self.parameters.append([np.float32(v) for v in self.traits["parameters"](self.random, layer)])
            for part, value in zip(PARTS, self.parameters[-1]):
                one = np.array([value] if part.startswith("alpha") else value, np.float32)
                self.weights[f"model.layers.{layer}.mlp.act_fn.{part}"] = one

    def with_usual_names(self, what):
        written, self.weights = self.weights, self.usual
        made = what()
        self.weights = written
        return made

    def forward(self, ids):
        return self.with_usual_names(lambda: super(Apertus, self).forward(ids))

    def ffn(self, x, p, w):
        own = (float(v) for v in self.parameters[int(p.split(".")[-2])])
        return xielu(x @ w[p + "mlp.up_proj.weight"].T, *own) @ w[p + "mlp.down_proj.weight"].T

    def gguf_tensors(self):
        return self.with_usual_names(lambda: list(super(Apertus, self).gguf_tensors()))

    def gguf_keys(self):
        name, keys = super().gguf_keys()
        for part, values in zip(PARTS, zip(*self.parameters)):
            each = [float(v) for v in values]
            keys[f".xielu.{part}"] = each[0] if self.traits.get("same") else each
        return name, keys


SIZES = {**COMMON, "num_hidden_layers": 3, "hidden_act": "xielu"}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
PUBLISHED = {"model_type": "apertus", "architectures": ["ApertusForCausalLM"], "attention_bias": False,
             "attention_dropout": 0.0, "dtype": "bfloat16", "hidden_dropout": 0.0, "initializer_range": 0.02,
             "mlp_bias": False, "post_norm": False, "qk_norm": True, "use_cache": True, **SIZES}
ROPE = {"rope_parameters": {**LLAMA3, "rope_theta": 12000000.0}}
TRAITS = {"gguf": "apertus", "experts": "none", "norms": "heads", "ungated": True}
# NAME: (what config.json has, the config with the keys that decoders.py reads, traits)
MODELS = {
    "each": ({**PUBLISHED, "tie_word_embeddings": False, "rope_theta": 12000000,
              "rope_scaling": {**LLAMA3, "type": "llama3"}}, {**SIZES, "tie_word_embeddings": False, **ROPE},
             {**TRAITS, "parameters": lambda r, layer: [*r.uniform(-1.5, 1.5, 2), 0.5 + 0.125 * layer, -1e-6]}),
    "one": ({**PUBLISHED, "tie_word_embeddings": True, "head_dim": WIDE, **ROPE},
            {**SIZES, "tie_word_embeddings": True, "head_dim": WIDE, **ROPE},
            {**TRAITS, "embedding": 0.2, "same": True, "parameters": lambda r, layer: [0.25, -0.5, 0.5, -0.375]}),
}


def main(out):
    made = {name: (c, lambda seed, u=usual, t=traits: Apertus(u, t, seed)) for name, (c, usual, traits) in
            MODELS.items()}
    write_models(out, 70, made)


if __name__ == "__main__":
    main(*sys.argv[1:2])
