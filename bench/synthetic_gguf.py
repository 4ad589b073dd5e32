#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes GGUF files of a model's true shape with random weights, for measuring programs that read GGUF.

  bench/synthetic_gguf.py bitnet_2b_4t tq2_0 f16 OUT.gguf --vocabulary VOCABULARY.gguf
  bench/synthetic_gguf.py mistral_7b q4_k_m q4_k_m OUT.gguf

q4_k_m and q5_k_m are the mixes of these names: each matrix in the codec that llama-quantize gives it. Of gpt-oss the
first codec is that of experts, the second that of all other matrices. The vocabulary is that of another file, or empty
(`no_vocab`).
For programs that import this there are models which say a text (Speech)."""

import argparse
import copy
import math
import os
import pathlib
import random
import struct

ALIGNMENT = 32
STRING, ARRAY, UINT32, INT32, FLOAT32, BOOL = 8, 9, 4, 5, 6, 7
SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
# GGUF type, weights a block, bytes a block, general.file_type (ggml.h, llama.h)
CODECS = {
    "f32": (0, 1, 4, 0),
    "f16": (1, 1, 2, 1),
    "q4_0": (2, 32, 18, 2),
    "q4_1": (3, 32, 20, 3),
    "q8_0": (8, 32, 34, 7),
    "q4_k": (12, 256, 144, 14),
    "q5_k": (13, 256, 176, 16),
    "q6_k": (14, 256, 210, 18),
    "iq4_xs": (23, 256, 136, 30),
    "bf16": (30, 1, 2, 32),
    "mxfp4": (39, 32, 17, 38),
    "tq2_0": (35, 256, 66, 37),
}
# name: general.file_type, codecs of most matrices and of those that are kept better
MIXES = {"q4_k_m": (15, "q4_k", "q6_k"), "q5_k_m": (17, "q5_k", "q6_k")}
# architecture, layers, width, FFN, query heads, key/value heads, head width, vocabulary, context, RoPE base, epsilon,
# tied head
SHAPES = {
    "fable": ("bitnet", 8, 256, 1024, 4, 2, 64, 4096, 512, 500000.0, 1e-5, True),
    "bitnet_2b_4t": ("bitnet", 30, 2560, 6912, 20, 5, 128, 128256, 4096, 500000.0, 1e-5, True),
    "mistral_7b": ("llama", 32, 4096, 14336, 32, 8, 128, 32000, 32768, 1000000.0, 1e-5, False),
    "llama_32_1b": ("llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 500000.0, 1e-5, True),
    "qwen3_06b": ("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 40960, 1000000.0, 1e-6, True),
    "qwen3_4b": ("qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, 1000000.0, 1e-6, True),
    "qwen3_8b": ("qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, 1000000.0, 1e-6, False),
    "qwen25_7b": ("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, 1000000.0, 1e-6, False),
    "gemma3_1b": ("gemma3", 26, 1152, 6912, 4, 1, 256, 262144, 32768, 1000000.0, 1e-6, True),
    "phi_4_mini": ("phi3", 32, 3072, 8192, 24, 8, 128, 200064, 131072, 10000.0, 1e-5, True),
    "gptoss_20b": ("gpt-oss", 24, 2880, 2880, 64, 8, 64, 201088, 131072, 150000.0, 1e-5, False),
    "gemma3_4b": ("gemma3", 34, 2560, 10240, 8, 4, 256, 262208, 131072, 1000000.0, 1e-6, True),
}

# Keys of a header that only some architectures have: numbers, texts, fractions.
MORE_KEYS = {
    "gemma3": ({b"attention.sliding_window": 1024}, {b"rope.scaling.type": b"linear"}, {b"rope.scaling.factor": 8.0}),
    "phi3": (
        {b"rope.dimension_count": 96, b"rope.scaling.original_context_length": 4096,
         b"attention.sliding_window": 262144},
        {},
        {b"rope.scaling.attn_factor": 1.19},
    ),
    "gpt-oss": (
        {b"expert_count": 32, b"expert_used_count": 4, b"expert_feed_forward_length": 2880,
         b"attention.sliding_window": 128, b"rope.scaling.original_context_length": 4096},
        {b"rope.scaling.type": b"yarn"},
        {b"rope.scaling.factor": 32.0},
    ),
}


class Speech:
    """What a model says, for write(): behind each token the next one of its text, whatever was before.

    A token's row of the head is the embedding of the token in front of it, and layers add little to the stream. So the
    likeliest token is the text's, by far, and a model with fewer layers says the same."""

    UNKNOWN, BEGIN, END, BYTES = 0, 1, 2, 3  # tokens; BYTES: the first of 256

    def __init__(self):
        self.pieces, self.before, self.same = [], {}, {}

    def add(self, pieces, goes_round=False):
        """A text, whose pieces are tokens, each with a text of its own. Behind the last comes END or, where it goes
        round, the second. @return its tokens, the first of which is for the prompt"""
        tokens = [self.count() + i for i in range(len(pieces))]
        self.pieces += pieces
        self.before |= dict(zip(tokens[1:], tokens))
        if goes_round:
            self.before[tokens[1]] = tokens[-1]
            self.same[tokens[0]] = tokens[-1]
        else:
            self.before[self.END] = tokens[-1]
        return tokens

    def with_errors(self, share, seed=1):
        """The same tokens, but behind a share of them another one, which is in no text. Call before any write()."""
        out = copy.deepcopy(self)
        chosen = random.Random(seed).sample(sorted(self.before), int(share * len(self.before)))
        for i, token in enumerate(chosen):
            self.pieces.append(f"<error {i}>"), out.pieces.append(f"<error {i}>")
            out.before[out.count() - 1] = out.before.pop(token)
        return out

    def count(self):
        return self.BYTES + 256 + len(self.pieces)

    def rows(self, embedding, other, bytes_each):
        """Rows of embedding and head of all tokens that are in texts, from random rows."""
        of = lambda data, i: data[i * bytes_each:(i + 1) * bytes_each]
        table = [of(embedding, self.same.get(i, i)) for i in range(self.count())]
        head = [table[self.before[i]] if i in self.before else of(other, i) for i in range(self.count())]
        return b"".join(table), b"".join(head)

    def tokenizer(self, vocabulary):
        """A GGUF header's keys of a tokenizer without merges."""
        special = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % i for i in range(256))]
        spoken = [piece.replace(" ", "\u2581").encode() for piece in self.pieces]
        unused = [b"<unused%d>" % i for i in range(vocabulary - self.count())]
        kinds = [2, 3, 3, *[6] * 256, *[1] * len(spoken), *[5] * len(unused)]  # unknown, control, byte, normal, unused
        strings = b"".join(map(text, special + spoken + unused))
        key = lambda name, kind, value: text(b"tokenizer.ggml." + name) + struct.pack("<I", kind) + value
        numbers = lambda kind, form, list_: struct.pack(f"<IQ{len(list_)}{form}", kind, len(list_), *list_)
        return [
            key(b"model", STRING, text(b"llama")),
            key(b"tokens", ARRAY, struct.pack("<IQ", STRING, vocabulary) + strings),
            key(b"scores", ARRAY, numbers(FLOAT32, "f", [0.0] * vocabulary)),
            key(b"token_type", ARRAY, numbers(INT32, "i", kinds)),
            key(b"unknown_token_id", UINT32, struct.pack("<I", self.UNKNOWN)),
            key(b"bos_token_id", UINT32, struct.pack("<I", self.BEGIN)),
            key(b"eos_token_id", UINT32, struct.pack("<I", self.END)),
            key(b"add_space_prefix", BOOL, b"\0"),
        ]


def text(value):
    return struct.pack("<Q", len(value)) + value


def string(data, at):
    """The string at `at` of a GGUF header, and where it ends."""
    (length,) = struct.unpack_from("<Q", data, at)
    return data[at + 8:at + 8 + length], at + 8 + length


def key_values(data):
    """The keys of a GGUF file, each with where its value's type begins and its value ends."""
    _, count = struct.unpack_from("<QQ", data, 8)
    at = 24
    for _ in range(count):
        key, at = string(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        end = at + 4
        if kind == STRING:
            _, end = string(data, end)
        elif kind != ARRAY:
            end += SCALAR_BYTES[kind]
        else:
            element, length = struct.unpack_from("<IQ", data, end)
            end += 12
            if element != STRING:
                end += length * SCALAR_BYTES[element]
            else:
                for _ in range(length):
                    _, end = string(data, end)
        yield key, at, end
        at = end


def half(value):
    return struct.pack("<e", value)


def without_threes(codes):
    """Ternary codes are 0, 1 and 2."""
    return codes.translate(bytes(b & 0xAA | b & ~(b >> 1) & 0x55 for b in range(256)))


# Factor of the matrices that add to the stream, in a model that says a text: 0.5 % to 5 % a layer. Codecs whose random
# weights have another mean than 0 would add the same to all columns in each layer, so they add nothing.
QUIET = 1.2e-4


def quiet(codec):
    return 0.0 if codec in ("q4_0", "q4_1", "q4_k", "q6_k") else QUIET


def blocks(codec, count, scale=1.0):
    """Random blocks with scales of about 1 / 100, so that nothing overflows."""
    noise = os.urandom(256 * count)
    at = lambda i, size: noise[256 * i:256 * i + size]
    block = {
        "f32": lambda i: struct.pack("<f", 1.0),
        "f16": lambda i: half(scale * (noise[i] - 128) / 2048),
        "bf16": lambda i: struct.pack("<f", scale * (noise[i] - 128) / 2048)[2:],
        "q4_0": lambda i: half(0.005 * scale) + at(i, 16),
        "q4_1": lambda i: half(0.005 * scale) + half(-0.04 * scale) + at(i, 16),
        "q8_0": lambda i: half(0.0005 * scale) + at(i, 32),
        "q4_k": lambda i: half(0.0001 * scale) + half(0.0008 * scale) + at(i, 140),
        "q5_k": lambda i: half(0.00005 * scale) + half(0.0008 * scale) + at(i, 172),
        "iq4_xs": lambda i: half(0.00002 * scale) + at(i, 134),
        "q6_k": lambda i: at(i, 208) + half(0.00001 * scale),
        "mxfp4": lambda i: b"\x76" + at(i, 16),  # 2^-9
        "tq2_0": lambda i: without_threes(at(i, 64)) + half(0.01 * scale),
    }[codec]
    return b"".join(map(block, range(count)))


def mixed(shape, mix, name, layer=0):
    """The codec of a matrix (include/intaglio/families/mixes.hpp)."""
    _, layers, *_, tied = SHAPES[shape]
    _, most, better = MIXES[mix]
    if name == "attn_qkv":
        return {"q4_k": "q5_k", "q5_k": "q6_k"}[most]
    if name in ("attn_v", "ffn_down"):
        first = layers // 8
        return better if layer < first or layer >= 7 * layers // 8 or (layer - first) % 3 == 2 else most
    return better if name == "output" or name == "token_embd" and tied else most


def tensors_of(shape, codec, head_codec):
    of = lambda kind, name, layer=0: mixed(shape, kind, name, layer) if kind in MIXES else kind
    architecture, layers, width, ffn, heads, kv_heads, head, vocabulary, *_, tied = SHAPES[shape]
    out = [("token_embd", (width, vocabulary), of(head_codec, "token_embd")), ("output_norm", (width,), "f32")]
    if not tied:
        out.append(("output", (width, vocabulary), of(head_codec, "output")))
    if architecture == "phi3":
        out += [(f"rope_factors_{which}", (48,), "f32") for which in ("long", "short")]
    for i in range(layers):
        if architecture == "gpt-oss":
            out += gptoss_layer(i, shape, codec, head_codec)
            continue
        matrices = {
            "attn_q": (width, heads * head),
            "attn_k": (width, kv_heads * head),
            "attn_v": (width, kv_heads * head),
            "attn_output": (heads * head, width),
            "ffn_gate": (width, ffn),
            "ffn_up": (width, ffn),
            "ffn_down": (ffn, width),
        }
        if architecture == "phi3":
            matrices = {
                "attn_qkv": (width, (heads + 2 * kv_heads) * head),
                "attn_output": (heads * head, width),
                "ffn_up": (width, 2 * ffn),
                "ffn_down": (ffn, width),
            }
        norms = {"attn_norm": width, "ffn_norm": width}
        if architecture == "bitnet":
            norms |= {"attn_sub_norm": heads * head, "ffn_sub_norm": ffn}
        if architecture == "gemma3":
            norms |= {"attn_q_norm": head, "attn_k_norm": head, "post_attention_norm": width, "post_ffw_norm": width}
        if architecture == "qwen3":
            norms |= {"attn_q_norm": head, "attn_k_norm": head}
        biases = {"attn_q": heads * head, "attn_k": kv_heads * head, "attn_v": kv_heads * head}
        if architecture == "qwen2":
            out += [(f"blk.{i}.{name}.bias", (size,), "f32") for name, size in biases.items()]
        out += [(f"blk.{i}.{name}", size, of(codec, name, i)) for name, size in matrices.items()]
        out += [(f"blk.{i}.{name}", (size,), "f32") for name, size in norms.items()]
    return out


def gptoss_layer(i, shape, codec, other):
    _, _, width, ffn, heads, kv_heads, head, *_ = SHAPES[shape]
    experts = MORE_KEYS["gpt-oss"][0][b"expert_count"]
    of = {
        "attn_norm.weight": ((width,), "f32"),
        "attn_q": ((width, heads * head), other),
        "attn_k": ((width, kv_heads * head), other),
        "attn_v": ((width, kv_heads * head), other),
        "attn_sinks.weight": ((heads,), "f32"),
        "attn_output": ((heads * head, width), other),
        "post_attention_norm.weight": ((width,), "f32"),
        "ffn_gate_inp": ((width, experts), "f32"),
        "ffn_gate_exps": ((width, ffn, experts), codec),
        "ffn_up_exps": ((width, ffn, experts), codec),
        "ffn_down_exps": ((ffn, width, experts), codec),
    }
    out = []
    for name, (size, its) in of.items():
        out.append((f"blk.{i}.{name.removesuffix('.weight')}", size, its))
        if not name.endswith(".weight"):
            out.append((f"blk.{i}.{name}.bias", size[1:], "f32"))
    return out


def tensor_bytes(size, codec):
    _, weights, width, _ = CODECS[codec]
    if size[0] % weights != 0:
        raise SystemExit(f"{codec}: expected rows of whole blocks of {weights}, found {size}")
    return math.prod(size) // weights * width


def spoken(shape, layers):
    """The name of a shape with a head of its own and with this number of layers, for models that say a text."""
    name = f"{shape}, {layers} layers"
    SHAPES[name] = (SHAPES[shape][0], layers, *SHAPES[shape][2:-1], False)
    return name


def write(shape, codec, head_codec, target, vocabulary=None, speech=None):
    """Layers' matrices in `codec`, embedding and head in `head_codec`. With a vocabulary, BitNet's architecture has the
    name of its own GGUF files; without, that which llama.cpp knows. With a speech the shape is one of spoken()."""
    architecture, layers, width, ffn, heads, kv_heads, head, words_in_all, context, rope_base, epsilon, _ = SHAPES[
        shape
    ]
    if architecture == "bitnet" and (vocabulary or speech):
        architecture = "bitnet-b1.58"
    a = architecture.encode() + b"."
    words = {
        a + b"block_count": layers,
        a + b"embedding_length": width,
        a + b"feed_forward_length": ffn,
        a + b"context_length": context,
        a + b"attention.head_count": heads,
        a + b"attention.head_count_kv": kv_heads,
        a + b"rope.dimension_count": head,
        a + b"attention.key_length": head,
        a + b"attention.value_length": head,
        a + b"vocab_size": words_in_all,
        b"general.file_type": MIXES[codec][0] if codec in MIXES else CODECS[codec][3],
        b"general.quantization_version": 2,
    }
    strings = {b"general.architecture": architecture.encode(), b"general.name": shape.encode()}
    if not vocabulary and not speech:
        strings[b"tokenizer.ggml.model"] = b"no_vocab"
    floats = {a + b"attention.layer_norm_rms_epsilon": epsilon, a + b"rope.freq_base": rope_base}
    for to, more in zip((words, strings, floats), MORE_KEYS.get(architecture, ())):
        to |= {a + key: value for key, value in more.items()}
    source = vocabulary.read_bytes() if vocabulary else b""
    tokenizer = (
        [text(key) + source[at:end] for key, at, end in key_values(source) if key.startswith(b"tokenizer.")]
        if vocabulary
        else speech.tokenizer(words_in_all)
        if speech
        else []
    )
    tensors = tensors_of(shape, codec, head_codec)
    header = struct.pack(
        "<4sIQQ", b"GGUF", 3, len(tensors), len(words) + len(strings) + len(floats) + len(tokenizer)
    ) + b"".join(tokenizer)
    for key, value in strings.items():
        header += text(key) + struct.pack("<I", STRING) + text(value)
    for key, value in words.items():
        header += text(key) + struct.pack("<II", UINT32, value)
    for key, value in floats.items():
        header += text(key) + struct.pack("<If", FLOAT32, value)
    offset = 0
    for name, size, kind in tensors:
        header += text((name if name.endswith(".bias") else f"{name}.weight").encode()) + struct.pack(
            f"<I{len(size)}QIQ", len(size), *size, CODECS[kind][0], offset
        )
        offset += tensor_bytes(size, kind) + -tensor_bytes(size, kind) % ALIGNMENT
    material = {(kind, scale): blocks(kind, 4096, scale) * 64
                for kind in {kind for _, _, kind in tensors} for scale in (1.0, quiet(kind))}
    first = first_rows(speech, width, head_codec) if speech else {}
    with target.open("wb") as out:
        out.write(header + bytes(-len(header) % ALIGNMENT))
        for name, size, kind in tensors:
            left = tensor_bytes(size, kind)
            padding = -left % ALIGNMENT
            left -= out.write(first.get(name, b""))
            scale = quiet(kind) if speech and name.endswith(("attn_output", "ffn_down")) else 1.0
            while left:
                left -= out.write(memoryview(material[kind, scale])[:left])
            out.write(bytes(padding))


def first_rows(speech, width, codec):
    count = speech.count() * width // CODECS[codec][1]
    table, head = speech.rows(blocks(codec, count), blocks(codec, count), tensor_bytes((width,), codec))
    return {"token_embd": table, "output": head}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("shape", choices=SHAPES)
    arguments.add_argument("codec", choices=[*CODECS, *MIXES], help="of the layers' matrices")
    arguments.add_argument("head", choices=[*CODECS, *MIXES], help="codec of embedding and head")
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument(
        "--vocabulary", type=pathlib.Path, metavar="GGUF", help="a file with a vocabulary of the model's size"
    )
    given = arguments.parse_args()
    write(given.shape, given.codec, given.head, given.out, given.vocabulary)


if __name__ == "__main__":
    main()
