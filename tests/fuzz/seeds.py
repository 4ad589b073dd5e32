#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes small well-formed inputs for the fuzzers of file formats: FOLDER/gguf, FOLDER/safetensors and so on. Standard
library only."""

import io
import json
import pathlib
import struct
import sys
import zipfile

# name: (ggml id, elements and bytes of a block)
TYPES = {
    "f32": (0, 1, 4),
    "f16": (1, 1, 2),
    "q4_0": (2, 32, 18),
    "q4_1": (3, 32, 20),
    "q5_0": (6, 32, 22),
    "q5_1": (7, 32, 24),
    "q8_0": (8, 32, 34),
    "q2_k": (10, 256, 84),
    "q3_k": (11, 256, 110),
    "q4_k": (12, 256, 144),
    "q5_k": (13, 256, 176),
    "q6_k": (14, 256, 210),
    "iq2_xxs": (16, 256, 66),
    "iq2_xs": (17, 256, 74),
    "iq3_xxs": (18, 256, 98),
    "iq1_s": (19, 256, 50),
    "iq4_nl": (20, 32, 18),
    "iq3_s": (21, 256, 110),
    "iq2_s": (22, 256, 82),
    "iq4_xs": (23, 256, 136),
    "iq1_m": (29, 256, 56),
    "bf16": (30, 1, 2),
    "tq1_0": (34, 256, 54),
    "tq2_0": (35, 256, 66),
    "i2_s": (36, 128, 32),
    "mxfp4": (39, 32, 17),
    "nvfp4": (40, 64, 36),
    "q1_0": (41, 128, 18),
    "q2_0": (42, 64, 18),
}
# Codecs of blocks that have a file of their own.
ALONE = [kind for kind in TYPES if kind[0] in "qimn" and kind not in ("q4_0", "q4_1", "q4_k", "q6_k", "q8_0", "i2_s")]


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, value):
    if isinstance(value, bool):
        return text(name) + struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return text(name) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return text(name) + struct.pack("<If", 6, value)
    if isinstance(value, str):
        return text(name) + struct.pack("<I", 8) + text(value)
    kind = 8 if isinstance(value[0], str) else 6 if isinstance(value[0], float) else 5
    body = b"".join(text(v) if kind == 8 else struct.pack("<f" if kind == 6 else "<i", v) for v in value)
    return text(name) + struct.pack("<IIQ", 9, kind, len(value)) + body


def data(kind, columns, rows):
    """Bytes that mean sound values in every type: small block scales, ternary codes of 0."""
    _, elements, size = TYPES[kind]
    half = struct.pack("<e", 0.5)
    blocks = columns // elements * rows
    if kind == "f32":
        return struct.pack("<f", 0.5) * blocks
    if kind == "bf16":
        return b"\x00\x3f" * blocks
    if kind == "f16":
        return half * blocks
    if kind == "i2_s":
        return b"\x55" * (blocks * size) + struct.pack("<f", 0.5) + bytes(28)
    if kind == "tq1_0":
        return (b"\x7f" * 52 + half) * blocks
    if kind == "tq2_0":
        return (b"\x55" * 64 + half) * blocks
    if kind in ("q3_k", "q6_k"):
        return (bytes(size - 2) + half) * blocks
    if kind == "q2_k":
        return (bytes(size - 4) + half + half) * blocks
    if kind == "iq1_m":  # four bits of its f16 in each of four words
        return (bytes(size - 8) + struct.pack("<4H", 0, 0, 0x8000, 0x3000)) * blocks
    if kind == "mxfp4":
        return (b"\x7e" + bytes(size - 1)) * blocks
    if kind == "nvfp4":
        return (b"\x30" * 4 + bytes(size - 4)) * blocks
    return (half + bytes(size - 2)) * blocks


def gguf(architecture, matrix, embedding, hidden, tokens, version=3):
    ternary = architecture.startswith("bitnet")
    kv, vocabulary = hidden // 2, ["a", "b", "ab", "c", "d", "e", "f", "g"][:tokens]  # "ab" is what the merge makes
    keys = {"general.architecture": architecture}
    for name, value in {
        "vocab_size": tokens,
        "context_length": 32,
        "embedding_length": hidden,
        "block_count": 1,
        "feed_forward_length": hidden,
        "rope.dimension_count": hidden // 2,
        "attention.head_count": 2,
        "attention.head_count_kv": 1,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }.items():
        keys[architecture + "." + name] = value
    keys.update(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "llama-bpe",
            "tokenizer.ggml.tokens": vocabulary,
            "tokenizer.ggml.scores": [0.0] * tokens,
            "tokenizer.ggml.token_type": [1] * tokens,
            "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.bos_token_id": 0,
            "tokenizer.ggml.add_bos_token": True,
        }
    )
    tensors = [("token_embd.weight", embedding, (hidden, tokens)), ("output_norm.weight", "f32", (hidden,))]
    tensors += [
        ("blk.0." + n + ".weight", "f32", (hidden,))
        for n in ["attn_norm", "ffn_norm"] + (["attn_sub_norm", "ffn_sub_norm"] if ternary else [])
    ]
    tensors += [("blk.0." + n + ".weight", matrix, (hidden, kv if n in ("attn_k", "attn_v") else hidden))
                for n in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]]
    infos, body = b"", b""
    for name, kind, shape in tensors:
        infos += (
            text(name)
            + struct.pack("<I", len(shape))
            + struct.pack("<%dQ" % len(shape), *shape)
            + struct.pack("<IQ", TYPES[kind][0], len(body))
        )
        body += data(kind, shape[0], shape[1] if len(shape) == 2 else 1)
        body += bytes(-len(body) % 32)
    head = (
        b"GGUF"
        + struct.pack("<IQQ", version, len(tensors), len(keys))
        + b"".join(key(k, v) for k, v in keys.items())
        + infos
    )
    return head + bytes(-len(head) % 32) + body


def safetensors(tensors, metadata=None):
    sizes = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I64": 8, "BOOL": 1}
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (kind, shape) in tensors.items():
        size = sizes[kind]
        for n in shape:
            size *= n
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + bytes(at)


def picked(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def torch_tensor(kind, key, elements, offset, shape, strides):
    storage = (
        tuple_of(picked("storage"), b"ctorch\n" + kind.encode() + b"\n", picked(key), picked("cpu"), number(elements))
        + b"Q"
    )
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n"
        + tuple_of(
            storage,
            number(offset),
            tuple_of(*map(number, shape)),
            tuple_of(*map(number, strides)),
            b"\x89",
            b"ccollections\nOrderedDict\n)R",
        )
        + b"R"
    )


def torch_pickle(tensors):
    return b"\x80\x02}q\x00(" + b"".join(picked(name) + value for name, value in tensors.items()) + b"u."


def torch_zip(pickle, storages):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        members = {
            "data.pkl": pickle,
            "byteorder": b"little",
            "version": b"3\n",
            **{"data/" + key: value for key, value in storages.items()},
        }
        for name, value in members.items():
            info = zipfile.ZipInfo("model/" + name)
            info.create_system = 0
            archive.writestr(info, value)
    return out.getvalue()


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(key, value):
    if isinstance(value, bytes):
        return varint(key << 3 | 2) + varint(len(value)) + value
    return (
        varint(key << 3 | 5) + struct.pack("<f", value)
        if isinstance(value, float)
        else varint(key << 3) + varint(value)
    )


def sentencepiece(add_dummy_prefix):
    pieces = (
        [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
        + [("<0x%02X>" % i, 6) for i in range(256)]
        + [(t, 1) for t in ("\u2581", "a", "b", "ab", "\u2581a")]
        + [("\n\n", 4)]
    )
    body = b"".join(
        field(1, field(1, text.encode()) + field(2, float(-i)) + field(3, kind))
        for i, (text, kind) in enumerate(pieces)
    )
    return (
        body
        + field(2, field(3, 2) + field(35, 1))
        + field(3, field(1, b"identity") + field(3, add_dummy_prefix) + field(4, 0))
    )


def feature_manifest(kind, row):
    """A seed with two layers of three features, 16 wide."""
    blocks = {
        name: {"type": kind, "scale": 0.5, "offset": 4096 * i, "bytes": 3 * row, "crc32": "00c0ffee"}
        for i, name in enumerate(("gate", "up", "down"))
    }
    config = {
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": 16,
        "intermediate_size": 3,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "vocab_size": 32,
        "rope_theta": 10000.0,
        "sliding_window": 0,
    }
    return {"format": "intaglio feature index", "version": 1, "source": "seed", "codec": "own", "config": config,
            "layers": [{"file": f"layer-{layer:04}.bin", "features": 3, **blocks} for layer in range(2)]}


def journal(records):
    """A seed for an index 8 wide; the fuzzer corrects head and checksums. records: (edit, layer, feature)"""
    out = b"INTPATC1" + struct.pack("<2I", 0, 8)
    for edit, layer, feature in records:
        vectors = struct.pack("<24f", *range(24)) if edit in (1, 2) else b""
        out += struct.pack("<4I", 0x54504649, edit, layer, feature) + vectors + bytes(4)
    return out


def feature_graph():
    """Four features: 1 at level 1 too, 2 at levels 1 and 2."""
    return struct.pack("<26I", 0x31534E48, 4, 2, 2, 0, 2, 1, 2, 1, 3, 0, 2, 3, 1, 2, 2, 1, 1, 1, 1, 0, 0, 3, 2, 1, 0)


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in (
        "gguf",
        "packed",
        "safetensors",
        "torch",
        "sentencepiece",
        "feature_manifest",
        "feature_graph",
        "journal",
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, arguments in {
        "i2_s": ("bitnet-b1.58", "i2_s", "f16", 128, 4),
        "f16": ("bitnet", "f16", "f32", 16, 4),
        "bf16": ("bitnet-25", "bf16", "bf16", 16, 4),
        "tq1_0": ("bitnet", "tq1_0", "q6_k", 256, 3),
        "tq2_0": ("bitnet-b1.58", "tq2_0", "f16", 256, 3),
        "llama-q8_0": ("llama", "q8_0", "q8_0", 32, 8),
        "llama-q4_0": ("llama", "q4_0", "q4_1", 32, 8),
        "llama-q4_k": ("llama", "q4_k", "q6_k", 256, 3),
        **{"llama-" + kind: ("llama", kind, kind, max(TYPES[kind][1], 32), 3) for kind in ALONE},
        "llama-v2": ("llama", "f32", "f32", 8, 4, 2),
    }.items():
        (folder / "gguf" / (name + ".gguf")).write_bytes(gguf(*arguments))
    seeds = folder / "safetensors"
    (seeds / "mixed").write_bytes(
        safetensors(
            {"a": ("F32", [2, 2]), "b": ("BF16", [3]), "c": ("U8", [4, 1]), "d": ("I64", []), "e": ("BOOL", [0, 7])},
            {"format": "pt"},
        )
    )
    (seeds / "empty").write_bytes(safetensors({}))
    (seeds / "layer").write_bytes(
        safetensors(
            {
                "model.layers.0.mlp.up_proj.weight": ("U8", [4, 16]),
                "model.layers.0.mlp.up_proj.weight_scale": ("BF16", [1]),
            }
        )
    )
    (seeds / "index").write_bytes(
        json.dumps(
            {
                "metadata": {"total_size": 8},
                "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"},
            }
        ).encode()
    )
    (seeds / "header").write_bytes(
        json.dumps({"a": {"dtype": "F16", "shape": [2, 1], "data_offsets": [0, 4]}}).encode()
    )
    pickle = torch_pickle(
        {
            "a": torch_tensor("FloatStorage", "0", 12, 0, (3, 4), (4, 1)),
            "b": torch_tensor("FloatStorage", "0", 12, 1, (4, 2), (1, 4)),
            "c": torch_tensor("HalfStorage", "1", 4, 2, (), ()),
            "d": torch_tensor("BoolStorage", "2", 3, 0, (5, 3), (0, 1)),
        }
    )
    nested = torch_pickle(
        {
            "model": (
                b"}("
                + picked("w")
                + torch_tensor("BFloat16Storage", "0", 6, 0, (0, 2), (2, 1))
                + picked("v")
                + torch_tensor("BFloat16Storage", "0", 6, 0, (6,), (1,))
                + b"u"
            ),
            "step": number(7),
            "list": b"](" + number(-1) + b"NG" + struct.pack(">d", 0.5) + b"e",
        }
    )
    seeds = folder / "torch"
    (seeds / "zip").write_bytes(torch_zip(pickle, {"0": bytes(48), "1": bytes(8), "2": bytes(3)}))
    (seeds / "nested").write_bytes(torch_zip(nested, {"0": bytes(12)}))
    (seeds / "pickle").write_bytes(pickle)
    (seeds / "nested-pickle").write_bytes(nested)
    (folder / "packed" / "unchanged").write_bytes(bytes(64))
    seeds = folder / "sentencepiece"
    (seeds / "ranks").write_bytes(b"IQ== 0\nIg== 1\nIyQ= 2\n")
    (seeds / "prefix").write_bytes(sentencepiece(1))
    (seeds / "plain").write_bytes(sentencepiece(0))
    for name, kind, row in (("f32", "f32", 64), ("ternary", "ternary", 4)):
        (folder / "feature_manifest" / name).write_bytes(json.dumps(feature_manifest(kind, row)).encode())
    (folder / "feature_graph" / "links").write_bytes(feature_graph())
    layers = [{"file": f"hnsw-{layer:04}.bin", "bytes": 104, "crc32": "00c0ffee"} for layer in range(2)]
    manifest = {
        "format": "intaglio feature graph",
        "version": 1,
        "index": "00c0ffee",
        "links": 16,
        "construction": 40,
        "search": 2000,
        "layers": layers,
    }
    (folder / "feature_graph" / "manifest").write_bytes(json.dumps(manifest).encode())
    for name, records in (
        ("empty", []),
        ("edits", [(1, 0, 3), (2, 1, 2), (3, 0, 1), (4, 0, 1)]),
        ("index", [(3, 1, 0), (1, 1, 0), (1, 1, 3), (3, 1, 3), (1, 1, 3)]),
    ):
        (folder / "journal" / name).write_bytes(journal(records))


if __name__ == "__main__":
    main()
