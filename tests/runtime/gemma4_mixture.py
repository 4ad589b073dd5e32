# SPDX-License-Identifier: MIT
"""Writes a tiny Gemma 4 with experts beside its FFNs, as a folder and as GGUF, and its logits by numpy in float64.

  gemma4_mixture.py CONFORMANCE2 GEMMA4D_FOLDER OUT

It is the conformance set's gemma4d-tiny with made-up experts. The forward pass is the set's own (reference2.py), with
what transformers' modeling_gemma4.py has instead of an FFN where enable_moe_block is true.
"""
import json
import os
import shutil
import struct
import sys

import numpy as np

from safetensors_file import write_safetensors

EXPERTS, TOP_K, WIDTH, GAP = 8, 2, 96, 1e-3  # GAP: of router logits at every choice, so that rounding does not decide


def main(conformance, source, out):
    sys.path.insert(0, conformance)
    import reference2

    config = json.load(open(os.path.join(source, "hf/config.json")))
    weights = dict(reference2.HF(os.path.join(source, "hf"), config))
    config.update(enable_moe_block=True, num_experts=EXPERTS, top_k_experts=TOP_K, moe_intermediate_size=WIDTH)

    class Mixture(reference2.Ref):
        def norm(self, x, n, plus1=None):
            if n.endswith("pre_feedforward_layernorm"):
                self.stream = x
            return super().norm(x, n, plus1)

        def lin(self, x, n):
            y = super().lin(x, n)
            if not n.endswith("mlp.down_proj"):
                return y
            p = n[:-len("mlp.down_proj")]
            return self.norm(y, p + "post_feedforward_layernorm_1") + self.norm(
                self.experts(p), p + "post_feedforward_layernorm_2")

        def experts(self, p):
            x, w = self.stream, self.W
            r = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * w[p + "router.scale"] / np.sqrt(x.shape[-1])
            logits = r @ w[p + "router.proj.weight"].T
            chosen = self.route(logits, TOP_K)
            part = np.take_along_axis(reference2.softmax(logits), chosen, -1)
            part = part / part.sum(-1, keepdims=True) * w[p + "router.per_expert_scale"][chosen]
            h, y = self.norm(x, p + "pre_feedforward_layernorm_2"), np.zeros_like(x)
            for t in range(len(x)):
                for j, e in enumerate(chosen[t]):
                    g, u = np.split(w[p + "experts.gate_up_proj"][e] @ h[t], 2)
                    y[t] += part[t, j] * (w[p + "experts.down_proj"][e] @ (reference2.gelu(g) * u))
            return y

    prompts = {
        k: v["ids"]
        for k, v in json.load(open(os.path.join(conformance, "gemma4d-tiny/manifest.json")))["prompts"].items()
    }
    for seed in range(1, 100):
        made = experts_of(config, np.random.default_rng(seed))
        model = Mixture(config, {**weights, **{k: v.astype(np.float64) for k, v in made.items()}})
        logits = {name: model.forward(prompts[name])[0] for name in ("p17", "p100")}
        if model.router_margin > GAP:
            break
    else:
        raise SystemExit("no seed keeps all choices of experts apart")

    os.makedirs(out, exist_ok=True)
    json.dump(config, open(os.path.join(out, "config.json"), "w"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(source, "hf", name), out)
    write_safetensors(
        os.path.join(out, "model.safetensors"), {**{k: v.astype(np.float32) for k, v in weights.items()}, **made}
    )
    write_gguf(os.path.join(source, "gguf/gemma4d-tiny-f32.gguf"), os.path.join(out, "model.gguf"), made, config)
    for name, y in logits.items():
        y.astype("<f4").tofile(os.path.join(out, name + ".logits"))


def experts_of(config, random):
    hidden, made = config["hidden_size"], {}
    for layer in range(config["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        normal = lambda *shape: (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        near_one = lambda n: random.uniform(0.5, 1.5, n).astype(np.float32)
        made[p + "router.scale"] = near_one(hidden)
        made[p + "router.per_expert_scale"] = near_one(EXPERTS)
        made[p + "router.proj.weight"] = 32 * normal(EXPERTS, hidden)
        made[p + "experts.gate_up_proj"] = normal(EXPERTS, 2 * WIDTH, hidden)
        made[p + "experts.down_proj"] = normal(EXPERTS, hidden, WIDTH)
        for name in ("pre_feedforward_layernorm_2", "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"):
            made[p + name + ".weight"] = near_one(hidden)
    return made


GGUF_NAMES = {
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "router.proj.weight": "ffn_gate_inp.weight",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
}


def write_gguf(source, path, made, config):
    """The file's keys and tensors, all f32, with those of the experts behind them."""
    from reference import Gguf

    old = Gguf(source)
    raw, keys_end = old.raw.tobytes(), keys_of(old)
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
    keys = b"".join(text("gemma4." + k) + struct.pack("<II", 4, v) for k, v in (
        ("expert_count", EXPERTS), ("expert_used_count", TOP_K), ("expert_feed_forward_length", WIDTH)))
    tensors = []
    for name, (dims, kind, offset) in old.info.items():
        assert kind == 0, name
        size = 4 * int(np.prod(dims))
        tensors.append((name, dims, raw[old.data + offset:old.data + offset + size]))
    for name, values in made.items():
        layer, what = name.removeprefix("model.layers.").split(".", 1)
        tensors.append((f"blk.{layer}.{GGUF_NAMES[what]}", list(reversed(values.shape)), values.tobytes()))
    infos, at = b"", 0
    for name, dims, data in tensors:
        infos += (
            text(name)
            + struct.pack("<I", len(dims))
            + b"".join(struct.pack("<Q", d) for d in dims)
            + struct.pack("<IQ", 0, at)
        )
        at += len(data) + -len(data) % 32
    head = b"GGUF" + struct.pack("<IQQ", old.version, len(tensors), len(old.kv) + 3) + raw[24:keys_end] + keys + infos
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % 32))
        for _, _, data in tensors:
            out.write(data + bytes(-len(data) % 32))


def keys_of(gguf):
    """Where the keys of a file end."""
    gguf.pos = 24
    for _ in gguf.kv:
        gguf._str()
        gguf._val(gguf._u("<I"))
    return gguf.pos


if __name__ == "__main__":
    main(*sys.argv[1:4])
