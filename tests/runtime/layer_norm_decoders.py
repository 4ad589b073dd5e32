# SPDX-License-Identifier: MIT
"""Writes tiny decoders with LayerNorms as folders and as GGUF, and their logits by numpy in float64.

  layer_norm_decoders.py OUT

OUT/NAME has config.json, a tokenizer of bytes, model.safetensors with transformers' names and shapes, model.gguf with
those of llama.cpp's converter, prompts.json and, for each prompt, PROMPT.logits, f32 [tokens, vocabulary]. The forward
pass is written from transformers' models/cohere, cohere2, starcoder2, stablelm, nemotron, phi, gpt_neox, falcon,
gpt2, gpt_bigcode and olmo, and from Orion's modeling file.
"""
import math
import sys

import numpy as np

from mamba2_hybrids import VOCABULARY, write_models

HIDDEN, HEADS, KV_HEADS, INNER, LAYERS, EPS = 64, 4, 2, 96, 5, 1e-5


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def relu_squared(x):
    return np.maximum(x, 0) ** 2


# The names of tensors in safetensors, by GGUF's. In a layer they are behind the layer's own.
LLAMA = {"layers": "model.layers.", "token_embd": "model.embed_tokens", "output_norm": "model.norm",
         "output": "lm_head", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}
STARCODER2 = {**LLAMA, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
PHI = {**LLAMA, "output_norm": "model.final_layernorm", "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1",
       "ffn_down": "mlp.fc2"}


GPT_NEOX = {"layers": "gpt_neox.layers.", "token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm",
            "output": "embed_out", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
            "attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
            "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h"}
FALCON = {"layers": "transformer.h.", "token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f",
          "output": "lm_head", "attn_norm": "input_layernorm", "attn_qkv": "self_attention.query_key_value",
          "attn_output": "self_attention.dense", "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h"}
GPT2 = {"layers": "h.", "token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "attn_norm": "ln_1",
        "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj"}

OUTER = ("layers", "token_embd", "position_embd", "output_norm")
BIGCODE = {name: ("transformer." if name in OUTER else "") + hf for name, hf in GPT2.items()}


class Decoder:
    """A decoder with LayerNorms. `traits` has the differences between families; weights have GGUF's names."""

    def __init__(self, config, traits, seed):
        self.config, self.t, self.gap = config, traits, np.inf
        self.kv_heads, self.wide = traits.get("kv_heads", KV_HEADS), traits.get("wide", HIDDEN // HEADS)
        self.random = np.random.default_rng(seed)
        self.w = {}
        self.make()
        self.weights = dict(self.safetensors())

    def make(self):
        r, t, w = self.random, self.t, self.w
        q, kv = HEADS * self.wide, self.kv_heads * self.wide

        def matrix(name, rows, columns, biased):
            w[name + ".weight"] = (1.2 * r.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
            if biased:
                w[name + ".bias"] = r.uniform(-0.5, 0.5, rows).astype(np.float32)

        def norm(name):
            if not t.get("plain"):
                w[name + ".weight"] = r.uniform(0.5, 1.5, HIDDEN).astype(np.float32)
            if not t.get("bare"):
                w[name + ".bias"] = r.uniform(-0.5, 0.5, HIDDEN).astype(np.float32)

        rows = r.standard_normal((VOCABULARY, HIDDEN)) * t.get("embedding", 1.0)
        w["token_embd.weight"] = rows.astype(np.float32)
        if t.get("positions"):
            w["position_embd.weight"] = (0.5 * r.standard_normal((512, HIDDEN))).astype(np.float32)
        biased = t.get("biases", False)
        for layer in range(LAYERS):
            p = f"blk.{layer}."
            norm(p + "attn_norm")
            for name, size in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
                matrix(p + name, size, HIDDEN, t.get("qkv_biases", biased))
            matrix(p + "attn_output", HIDDEN, q, biased)
            if not t.get("joint"):
                norm(p + "ffn_norm")
            if not t.get("ungated"):
                matrix(p + "ffn_gate", INNER, HIDDEN, False)
            matrix(p + "ffn_up", INNER, HIDDEN, biased)
            matrix(p + "ffn_down", HIDDEN, INNER, biased)
        norm("output_norm")
        if t.get("head"):
            matrix("output", VOCABULARY, HIDDEN, t.get("head_bias", False))

    # The forward pass.

    def forward(self, ids):
        w = self.f64 = {k: v.astype(np.float64) for k, v in self.w.items()}
        x = w["token_embd.weight"][ids]
        if self.t.get("positions"):
            x = x + w["position_embd.weight"][:len(ids)]
        for layer in range(LAYERS):
            p = f"blk.{layer}."
            h = self.norm(x, p + "attn_norm")
            a = self.attention(h, p, layer)
            if self.t.get("parallel"):
                x = x + a + self.ffn(h if self.t.get("joint") else self.norm(x, p + "ffn_norm"), p)
            else:
                x = x + a
                x = x + self.ffn(self.norm(x, p + "ffn_norm"), p)
        x = self.norm(x, "output_norm")
        head = "output" if self.t.get("head") else "token_embd"
        return (x @ w[head + ".weight"].T + w.get("output.bias", 0)) * self.config.get("logit_scale", 1.0)

    def norm(self, x, name):
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPS)
        return y * self.f64.get(name + ".weight", 1) + self.f64.get(name + ".bias", 0)

    def product(self, x, name):
        return x @ self.f64[name + ".weight"].T + self.f64.get(name + ".bias", 0)

    def ffn(self, x, p):
        act, up = self.t.get("act", silu), self.product(x, p + "ffn_up")
        return self.product(act(up) if self.t.get("ungated") else act(self.product(x, p + "ffn_gate")) * up,
                            p + "ffn_down")

    def attention(self, x, p, layer):
        window, turns = self.t.get("window", 0), not self.t.get("positions")
        if self.t.get("interval") and (layer + 1) % self.t["interval"] == 0:
            window, turns = 0, False
        q, k, v = (self.product(x, p + "attn_" + n).reshape(len(x), -1, self.wide) for n in "qkv")
        if turns:
            q, k = self.turn(q), self.turn(k)
        y, group = np.zeros_like(q), HEADS // self.kv_heads
        for i in range(len(x)):
            first = max(0, i + 1 - window) if window else 0
            for h in range(HEADS):
                s = k[first:i + 1, h // group] @ q[i, h] / np.sqrt(self.wide)
                s = np.exp(s - s.max())
                y[i, h] = s / s.sum() @ v[first:i + 1, h // group]
        return self.product(y.reshape(len(x), -1), p + "attn_output")

    def turn(self, y):
        """Rotates the first channels of each head: neighbours together, or channels half of them apart."""
        n = self.t.get("rotary", self.wide)
        angles = np.arange(len(y))[:, None] * self.t.get("theta", 10000.0) ** (-np.arange(n // 2) * 2 / n)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        out = y.copy()
        one, two = (slice(0, n, 2), slice(1, n, 2)) if self.t.get("neighbours") else (slice(0, n // 2),
                                                                                     slice(n // 2, n))
        a, b = y[..., one], y[..., two]
        out[..., one], out[..., two] = a * cos - b * sin, b * cos + a * sin
        return out

    # The files.

    def safetensors(self):
        names = self.t.get("names", LLAMA)
        for name, values in self.fused(self.t.get("by_head", False)) if self.t.get("fused") else self.w.items():
            stem, end = name.rsplit(".", 1)
            if stem.endswith("norm") and end == "weight":
                values = values - np.float32(self.t.get("addend", 0))
            if stem.startswith("blk."):
                _, layer, part = stem.split(".")
                if self.t.get("transposed") and values.ndim == 2:
                    values = np.ascontiguousarray(values.T)
                yield f"{names['layers']}{layer}.{names[part]}.{end}", values
            else:
                yield f"{names[stem]}.{end}", values

    def fused(self, by_head):
        """Tensors with q, k and v as one, one behind the other or head by head."""
        for name, values in self.w.items():
            if ".attn_k." in name or ".attn_v." in name:
                continue
            if ".attn_q." not in name:
                yield name, values
                continue
            qkv = [self.w[name.replace("attn_q", "attn_" + n)] for n in "qkv"]
            if by_head:
                qkv = [np.stack([y.reshape(HEADS, self.wide, -1) for y in qkv], 1)]
            yield name.replace("attn_q", "attn_qkv"), np.concatenate(qkv).reshape(-1, *values.shape[1:])

    def gguf_tensors(self):
        one = self.t.get("fused") or self.t.get("fused_gguf")
        for name, values in self.fused(False) if one else self.w.items():
            if self.t.get("pairs") and (".attn_q." in name or ".attn_k." in name):  # llama.cpp turns neighbours
                values = values.reshape(-1, 2, self.wide // 2, HIDDEN).swapaxes(1, 2).reshape(values.shape)
            yield name, values

    def gguf_keys(self):
        keys = {"block_count": LAYERS, "context_length": 512, "embedding_length": HIDDEN, "feed_forward_length": INNER,
                "attention.head_count": HEADS, "attention.head_count_kv": self.kv_heads,
                "attention.layer_norm_epsilon": EPS}
        if not self.t.get("positions"):
            keys["rope.freq_base"] = self.t.get("theta", 10000.0)
        return self.t["gguf"], {**keys, **self.t.get("keys", {})}


COHERE = {"gguf": "command-r", "bare": True, "parallel": True, "joint": True, "neighbours": True, "embedding": 0.5,
          "keys": {"logit_scale": 0.25, "rope.scaling.type": "none", "vocab_size": VOCABULARY}}


def config(model_type, **more):
    return {"model_type": model_type, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY,
            "max_position_embeddings": 512, "rope_theta": 10000.0, **more}


MODELS = {
    "cohere": (config("cohere", layer_norm_eps=EPS, logit_scale=0.25, hidden_act="silu", use_qk_norm=False,
                      attention_bias=False), COHERE),
    "cohere2": (config("cohere2", layer_norm_eps=EPS, logit_scale=0.25, hidden_act="silu", sliding_window=12,
                       sliding_window_pattern=4, layer_switch=4, rotary_pct=1.0, use_parallel_block=True,
                       order_of_interleaved_layers="local_attn_first", position_embedding_type="rope_gptj",
                       use_embedding_sharing=True, use_gated_activation=True, use_parallel_embedding=False,
                       head_dim=HIDDEN // HEADS),
                {**COHERE, "gguf": "cohere2", "window": 12, "interval": 4,
                 "keys": {**COHERE["keys"], "attention.sliding_window": 12, "rope.dimension_count": 16}}),
    "starcoder2": (config("starcoder2", norm_epsilon=EPS, norm_type="layer_norm", mlp_type="default", use_bias=True,
                          hidden_act="gelu_pytorch_tanh", sliding_window=24),
                   {"gguf": "starcoder2", "names": STARCODER2, "biases": True, "ungated": True, "act": gelu_tanh,
                    "window": 24, "embedding": 0.5, "keys": {"attention.sliding_window": 24}}),
    "stablelm": (config("stablelm", layer_norm_eps=EPS, use_qkv_bias=True, partial_rotary_factor=0.25,
                        hidden_act="silu", use_parallel_residual=False, tie_word_embeddings=False,
                        qk_layernorm=False),
                 {"gguf": "stablelm", "qkv_biases": True, "rotary": 4, "head": True,
                  "keys": {"rope.dimension_count": 4, "use_parallel_residual": False}}),
    "stablelm_3b": (config("stablelm", layer_norm_eps=EPS, use_qkv_bias=False, hidden_act="silu", head_dim=40,
                           tie_word_embeddings=False),
                    {"gguf": "stablelm", "rotary": 10, "wide": 40, "head": True,
                     "keys": {"rope.dimension_count": 10, "attention.key_length": 40, "attention.value_length": 40,
                              "use_parallel_residual": True}}),  # as llama.cpp's converter writes for each
    "nemotron": (config("nemotron", norm_eps=EPS, partial_rotary_factor=0.5, hidden_act="relu2", head_dim=16,
                        mlp_bias=False, attention_bias=False, tie_word_embeddings=False),
                 {"gguf": "nemotron", "addend": 1, "ungated": True, "act": relu_squared, "rotary": 8, "head": True,
                  "keys": {"rope.dimension_count": 8, "vocab_size": VOCABULARY}}),
    "phi": (config("phi", layer_norm_eps=EPS, partial_rotary_factor=0.5, hidden_act="gelu_new", qk_layernorm=False,
                   tie_word_embeddings=False),
            {"gguf": "phi2", "names": PHI, "biases": True, "parallel": True, "joint": True, "ungated": True,
             "act": gelu_tanh, "rotary": 8, "head": True, "head_bias": True, "fused_gguf": True,  # as older files
             "keys": {"rope.dimension_count": 8}}),
    "gpt_neox": ({k: v for k, v in config("gpt_neox", layer_norm_eps=EPS, hidden_act="gelu", rotary_pct=0.5,
                                          rotary_emb_base=20000, use_parallel_residual=True, attention_bias=True,
                                          tie_word_embeddings=False).items()
                  if k not in ("rope_theta", "num_key_value_heads")},
                 {"gguf": "gptneox", "names": GPT_NEOX, "biases": True, "parallel": True, "ungated": True, "act": gelu,
                  "rotary": 8, "theta": 20000.0, "head": True, "kv_heads": HEADS, "fused": True, "by_head": True,
                  "keys": {"rope.dimension_count": 8, "use_parallel_residual": True}}),
    "falcon": ({"model_type": "falcon", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "ffn_hidden_size": INNER,
                "num_attention_heads": HEADS, "vocab_size": VOCABULARY, "layer_norm_epsilon": EPS, "alibi": False,
                "max_position_embeddings": 512, "bias": False, "multi_query": True, "parallel_attn": True,
                "new_decoder_architecture": False, "apply_residual_connection_post_layernorm": False},
               {"gguf": "falcon", "names": FALCON, "parallel": True, "joint": True, "ungated": True, "act": gelu,
                "kv_heads": 1, "fused": True, "embedding": 0.5, "keys": {"tensor_data_layout": "jploski"}}),
    "gpt2": ({"model_type": "gpt2", "n_embd": HIDDEN, "n_head": HEADS, "n_layer": LAYERS, "n_inner": INNER,
              "n_positions": 512, "n_ctx": 512, "vocab_size": VOCABULARY, "layer_norm_epsilon": EPS,
              "activation_function": "gelu_new", "summary_type": "cls_index"},
             {"gguf": "gpt2", "names": GPT2, "biases": True, "ungated": True, "act": gelu_tanh, "positions": True,
              "kv_heads": HEADS, "fused": True, "transposed": True, "embedding": 0.5}),
    "gpt_bigcode": ({"model_type": "gpt_bigcode", "n_embd": HIDDEN, "n_head": HEADS, "n_layer": LAYERS,
                     "n_inner": INNER, "n_positions": 512, "vocab_size": VOCABULARY, "layer_norm_epsilon": EPS,
                     "activation_function": "gelu_pytorch_tanh", "multi_query": True, "scale_attn_weights": True,
                     "attention_softmax_in_fp32": True, "scale_attention_softmax_in_fp32": True},
                    {"gguf": "starcoder", "names": BIGCODE, "biases": True,
                     "ungated": True, "act": gelu_tanh, "positions": True, "kv_heads": 1, "fused": True,
                     "embedding": 0.5}),
    "orion": (config("orion", rms_norm_eps=EPS, hidden_act="silu", max_sequence_length=512, pretraining_tp=1,
                     tie_word_embeddings=False),
              {"gguf": "orion", "head": True, "keys": {"tensor_data_layout": "Meta AI original pth"}}),
    "olmo": (config("olmo", hidden_act="silu", clip_qkv=None, attention_bias=False),
             {"gguf": "olmo", "bare": True, "plain": True, "pairs": True, "embedding": 0.25}),
}


def main(out):
    write_models(out, 70, {name: (c, lambda seed, c=c, t=t: Decoder(c, t, seed)) for name, (c, t) in MODELS.items()})


if __name__ == "__main__":
    main(*sys.argv[1:2])
