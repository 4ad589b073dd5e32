#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch as a peer of bench/compare: a Llama of random weights on a CUDA device, each layer compiled, a pass captured
in one CUDA graph. One JSON object.

  bench/torch_peer.py mistral_7b bf16 -p 512 -n 128 -r 3

Codecs are f16, bf16, and q8_0 for int8 weights with a scale a row (decode alone is faster by it).

Decode tries cuBLAS and products written as a product and a sum, which Inductor makes one reduction that also widens
int8, and takes the faster; prompts and attention over them are cuBLAS and the flash kernel. Numbers are checked: the
logits behind the prompt and of one decoded token against the same weights in float32, eager, layer by layer; farther
apart than 3 % of their length is an error. Exit code 3: no PyTorch, no CUDA device, or a model that this is not made
for.
"""

import argparse
import json
import math
import statistics
import sys
import warnings

import synthetic_gguf

ROPE_BASE, EPSILON, TIED = 9, 10, 11


def unavailable(why):
    print(why, file=sys.stderr)
    sys.exit(3)


try:
    import torch
    from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu
except ImportError as problem:
    unavailable(f"PyTorch: {problem}")


class Matrix:
    """[rows, columns] in the codec; `rows_of` gives a slice in float32."""

    def __init__(self, rows, columns, codec):
        kind = torch.float16 if codec == "f16" else torch.bfloat16
        value = torch.randn(rows, columns, device="cuda", dtype=kind) / math.sqrt(columns)
        self.scale = None
        if codec == "q8_0":
            self.scale = value.abs().amax(1).float() / 127
            value = (value.float() / self.scale[:, None]).round().to(torch.int8)
        self.value = value

    def wide(self):
        return self.value.float() if self.scale is None else self.value.float() * self.scale[:, None]

    def parts(self):
        return [self.value] if self.scale is None else [self.value, self.scale]


def product(x, parts, reduces):
    """x [tokens, columns] times a matrix's rows."""
    weight = parts[0]
    if x.shape[0] == 1 and (reduces or len(parts) > 1):
        y = (weight.float() * x.float()).sum(-1)
        return (y if len(parts) == 1 else y * parts[1]).to(x.dtype)[None]
    if len(parts) == 1:
        return x @ weight.T
    return (x @ weight.to(x.dtype).T) * parts[1].to(x.dtype)


def turned(x, sine, cosine):
    """x [tokens, heads, channels], halves of a head rotated against each other."""
    low, high = x.float().chunk(2, -1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1).to(x.dtype)


class Model:
    def __init__(self, name, codec, context):
        shape = synthetic_gguf.SHAPES[name]
        _, self.layers, self.width, self.ffn, self.heads, self.kv_heads, self.head, self.vocabulary, *_ = shape
        torch.manual_seed(1)
        self.kind = torch.float16 if codec == "f16" else torch.bfloat16
        q, kv = self.heads * self.head, self.kv_heads * self.head
        self.weights = [
            [
                Matrix(q + 2 * kv, self.width, codec),
                Matrix(self.width, q, codec),
                Matrix(2 * self.ffn, self.width, codec),
                Matrix(self.width, self.ffn, codec),
            ]
            for _ in range(self.layers)
        ]
        self.embedding = Matrix(self.vocabulary, self.width, "f16" if codec == "f16" else "bf16")
        self.output = self.embedding if shape[TIED] else Matrix(self.vocabulary, self.width, codec)
        self.norm = torch.ones(self.width, device="cuda", dtype=self.kind)
        self.epsilon = shape[EPSILON]
        turns = (
            torch.arange(context, device="cuda")[:, None]
            * shape[ROPE_BASE] ** (-torch.arange(self.head // 2, device="cuda") / (self.head // 2))[None]
        )
        self.sine, self.cosine = turns.sin()[:, None], turns.cos()[:, None]
        self.keys, self.values = (
            torch.zeros(self.layers, self.kv_heads, context, self.head, device="cuda", dtype=self.kind)
            for _ in range(2)
        )

    def layer(self, x, positions, keys, values, parts, reduces=False):
        """x [tokens, width]; one token attends to the whole cache behind a mask, several only to each other."""
        tokens = x.shape[0]
        q_size, kv_size = self.heads * self.head, self.kv_heads * self.head
        sine, cosine = self.sine[positions], self.cosine[positions]
        qkv = product(rms_norm(x, (self.width,), self.norm, self.epsilon), parts[0], reduces)
        q = turned(qkv[:, :q_size].view(tokens, self.heads, self.head), sine, cosine)
        k = turned(qkv[:, q_size:q_size + kv_size].view(tokens, self.kv_heads, self.head), sine, cosine).transpose(0, 1)
        v = qkv[:, q_size + kv_size:].view(tokens, self.kv_heads, self.head).transpose(0, 1)
        keys.index_copy_(1, positions, k)
        values.index_copy_(1, positions, v)
        if tokens == 1:
            q = q.view(self.kv_heads, self.heads // self.kv_heads, self.head)
            scores = (q[:, :, None].float() * keys[:, None].float()).sum(-1) / math.sqrt(self.head)
            scores = scores.masked_fill(torch.arange(keys.shape[1], device=x.device) > positions, -torch.inf)
            attended = (scores.softmax(-1)[..., None] * values[:, None].float()).sum(2).to(x.dtype).reshape(1, q_size)
        else:
            attended = (
                scaled_dot_product_attention(
                    q.transpose(0, 1)[None], k[None], v[None], is_causal=True, enable_gqa=True
                )[0]
                .transpose(0, 1)
                .reshape(tokens, q_size)
            )
        x = x + product(attended, parts[1], reduces)
        gate, up = product(rms_norm(x, (self.width,), self.norm, self.epsilon), parts[2], reduces).chunk(2, -1)
        return x + product(silu(gate) * up, parts[3], reduces)

    def head_of(self, x, reduces):
        return product(rms_norm(x, (self.width,), self.norm, self.epsilon), self.output.parts(), reduces)

    def captured(self, tokens, reduces=False):
        """A pass over a number of tokens as a graph, with its inputs and the logits of the last of them."""
        layer, head = torch.compile(self.layer, dynamic=False), torch.compile(self.head_of, dynamic=False)
        words, positions = (torch.zeros(tokens, device="cuda", dtype=torch.int64) for _ in range(2))

        def run():
            x = self.embedding.value[words]
            for i, matrices in enumerate(self.weights):
                x = layer(x, positions, self.keys[i], self.values[i], [each.parts() for each in matrices], reduces)
            return head(x[-1:], reduces)

        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            for _ in range(3):
                run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = run()
        return graph, words, positions, logits

    def reference(self, words):
        """Logits of the last of the words in float32."""
        self.norm, kept = self.norm.float(), self.norm
        x = self.embedding.value[words].float()
        positions = torch.arange(len(words), device="cuda")
        for matrices in self.weights:
            room = [torch.zeros(self.kv_heads, len(words), self.head, device="cuda") for _ in range(2)]
            x = self.layer(x, positions, *room, [[each.wide()] for each in matrices])
        logits = rms_norm(x[-1:], (self.width,), self.norm, self.epsilon) @ self.output.wide().T
        self.norm = kept
        return logits


def apart(found, expected):
    return ((found.float() - expected).norm() / expected.norm()).item()


def milliseconds(graph, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("name")
    arguments.add_argument("codec")
    arguments.add_argument("-p", "--prompt", type=int, default=512)
    arguments.add_argument("-n", "--tokens", type=int, default=128)
    arguments.add_argument("-r", "--runs", type=int, default=3)
    options = arguments.parse_args()
    if synthetic_gguf.SHAPES.get(options.name, ("",))[0] != "llama":
        unavailable(f"PyTorch: only Llamas, found {options.name}")
    if options.codec not in ("f16", "bf16", "q8_0"):
        unavailable(f"PyTorch: f16, bf16 and q8_0 alone, found {options.codec}")
    if not torch.cuda.is_available():
        unavailable("PyTorch: no CUDA device")
    warnings.simplefilter("ignore")
    torch._inductor.config.max_autotune_pointwise = True
    torch._dynamo.config.recompile_limit = 64
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = Model(options.name, options.codec, options.prompt + options.tokens + 1)
    random_ids = torch.randint(0, model.vocabulary, (options.prompt + 1,), device="cuda")
    prompt, words, positions, logits = model.captured(options.prompt)
    words.copy_(random_ids[:-1])
    positions.copy_(torch.arange(options.prompt, device="cuda"))
    prompt.replay()
    worst, expected, decode = apart(logits, model.reference(random_ids[:-1])), model.reference(random_ids), None
    for reduces in (True,) if options.codec == "q8_0" else (True, False):
        graph, word, position, decoded = model.captured(1, reduces)
        word.copy_(random_ids[-1:])
        position.fill_(options.prompt)
        prompt.replay()  # capturing wrote into the cache
        graph.replay()
        worst = max(worst, apart(decoded, expected))
        time = min(milliseconds(graph, options.tokens) for _ in range(3))
        if decode is None or time < fastest:
            fastest = time
            decode = (graph, word, position, decoded)  # a graph reads where its inputs were when it was captured
    if not worst <= 0.03:
        sys.exit(f"PyTorch: logits are apart from float32's by {worst:.3g} of their length, expected at most 0.03")
    rates = {"prompt": [], "decode": []}
    for run in range(options.runs + 1):  # the first one warms up
        for kind, graph, count, tokens in (
            ("prompt", prompt, 10, options.prompt),
            ("decode", decode[0], options.tokens, 1),
        ):
            rate = tokens * 1e3 / milliseconds(graph, count)
            if run:
                rates[kind].append(rate)
    print(
        json.dumps(
            {kind: statistics.median(each) for kind, each in rates.items()}
            | {"apart": worst, "torch": torch.__version__}
        )
    )


if __name__ == "__main__":
    main()
