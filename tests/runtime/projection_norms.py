# SPDX-License-Identifier: MIT
"""A Qwen3 and a Gemma 3 with a norm of its own in front of each matrix, as microsoft's bitnet-embedding models have
them, and their logits in float64 by the conformance sets' own numpy.

  projection_norms.py SHARED MODEL SOURCE OUT

SOURCE is the folder of MODEL (qwen3-tiny or gemma3-tiny). Written into OUT: `bitlinear`, a folder whose tensors alone
show the norms; `auto`, one with transformers' quantization_config (use_rms_norm); p17.logits of both, f32 [tokens,
vocab_size]; for Qwen3 also float.gguf, the same weights as floats, with float.logits.
"""

import json
import os
import shutil
import sys

import numpy as np

from encoder import write_gguf
from safetensors_file import write_safetensors

PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}
EPS = 1e-6


def own_norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w


def logits(shared, folder, kind, tensors, ids, ternary):
    """Of matrices as they are, or rounded to ternary numbers and multiplied by inputs of int8."""
    sys.path[:0] = [os.path.join(shared, name) for name in ("conformance", "conformance2")]
    import reference
    import reference2

    w = {
        name: reference.absmean_ternary(values) if ternary and name.endswith("_proj.weight") else values
        for name, values in tensors.items()
    }
    if kind == "qwen3":

        class Normed(reference2.Ref):
            def lin(self, x, n):
                return super().lin(own_norm(x, self.W[n + ".norm.weight"]), n)

        config = json.load(open(os.path.join(folder, "config.json"), encoding="utf-8"))
        of = Normed(config, {name: values.astype(np.float64) for name, values in w.items()}, ternary)
        return of.forward(ids)[0]

    class Model(reference.Model):
        def lin(self, x, w):
            return super().lin(own_norm(x, self.own[id(w)]), w)

    config, weights = reference.load(folder)
    config.a8 = ternary
    for layer, of in enumerate(weights["layers"]):
        for key, part in zip(reference.LINEAR, PARTS):
            of[key] = w[f"model.layers.{layer}.{part}.weight"]
    model = Model(config, weights)
    model.own = {
        id(of[key]): w[f"model.layers.{layer}.{part}.norm.weight"].astype(np.float64)
        for layer, of in enumerate(model.w["layers"])
        for key, part in zip(reference.LINEAR, PARTS)
    }
    return model.forward(ids)


def write_floats(path, config, tensors):
    """A GGUF of Qwen3 as BitNet's convert-bitnet-embedding-to-gguf.py writes it, in F32."""
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    for layer in range(config["num_hidden_layers"]):
        for part, name in {**PARTS, **NORMS}.items():
            names[f"model.layers.{layer}.{part}.weight"] = f"blk.{layer}.{name}.weight"
        for part, name in PARTS.items():
            names[f"model.layers.{layer}.{part}.norm.weight"] = f"blk.{layer}.{name}_norm_in.weight"
    keys = {
        "general.architecture": "qwen3",
        "qwen3.block_count": config["num_hidden_layers"],
        "qwen3.context_length": config["max_position_embeddings"],
        "qwen3.embedding_length": config["hidden_size"],
        "qwen3.feed_forward_length": config["intermediate_size"],
        "qwen3.attention.head_count": config["num_attention_heads"],
        "qwen3.attention.head_count_kv": config["num_key_value_heads"],
        "qwen3.attention.key_length": config["head_dim"],
        "qwen3.attention.value_length": config["head_dim"],
        "qwen3.rope.freq_base": float(config["rope_theta"]),
        "qwen3.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "qwen3.pooling_type": 3,
        "general.file_type": 0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": ["a", "b", "ab", *(f"<{i}>" for i in range(3, config["vocab_size"]))],
        "tokenizer.ggml.token_type": [1] * config["vocab_size"],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": config["eos_token_id"],
    }
    write_gguf(path, keys, {names[name]: values for name, values in tensors.items()})


def main(shared, model, source, out):
    set_of = "conformance" if model == "gemma3-tiny" else "conformance2"
    sys.path.insert(0, os.path.join(shared, "conformance"))
    import reference

    stored = reference.Safetensors(source)
    tensors = {name: np.asarray(stored[name], np.float32) for name in stored.t}
    random = np.random.default_rng(7)
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        norm = 1 + 0.3 * random.standard_normal(tensors[name].shape[1])
        tensors[name.removesuffix("weight") + "norm.weight"] = norm.astype(np.float32)
    config = json.load(open(os.path.join(source, "config.json"), encoding="utf-8"))
    manifest = json.load(open(os.path.join(shared, set_of, model, "manifest.json"), encoding="utf-8"))
    ids = manifest["prompts"]["p17"]["ids"]
    for form in ("bitlinear", "auto"):
        folder = os.path.join(out, form)
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors*"))
        if form == "auto":
            config["quantization_config"] = {
                "quant_method": "bitnet",
                "linear_class": "autobitlinear",
                "quantization_mode": "online",
                "use_rms_norm": True,
                "rms_norm_eps": EPS,
            }
            json.dump(config, open(os.path.join(folder, "config.json"), "w", encoding="utf-8"))
        end = ".norm.weight" if form == "bitlinear" else ".rms_norm.weight"
        write_safetensors(
            os.path.join(folder, "model.safetensors"),
            {name.replace("_proj.norm.weight", "_proj" + end): values for name, values in tensors.items()},
        )
    kind = model.split("-")[0]
    logits(shared, source, kind, tensors, ids, True).astype("<f4").tofile(os.path.join(out, "p17.logits"))
    if kind == "qwen3":
        write_floats(os.path.join(out, "float.gguf"), config, tensors)
        logits(shared, source, kind, tensors, ids, False).astype("<f4").tofile(os.path.join(out, "float.logits"))


if __name__ == "__main__":
    main(*sys.argv[1:])
