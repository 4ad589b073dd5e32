# SPDX-License-Identifier: MIT
"""GGUF files of tiny models with another chat template and other texts of tokens than they came with."""

import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, UINT32 = 8, 9, 4


def _text(data, at):
    (size,) = struct.unpack_from("<Q", data, at)
    return data[at + 8:at + 8 + size], at + 8 + size


def _value(data, at, kind):
    if kind == STRING:
        return _text(data, at)
    if kind == ARRAY:
        inner, count = struct.unpack_from("<IQ", data, at)
        at += 12
        items = []
        for _ in range(count):
            item, at = _value(data, at, inner)
            items.append(item)
        return (inner, items), at
    return data[at:at + SIZES[kind]], at + SIZES[kind]


def _written(kind, value):
    if kind == STRING:
        return struct.pack("<Q", len(value)) + value
    if kind == ARRAY:
        return struct.pack("<IQ", value[0], len(value[1])) + b"".join(_written(value[0], each) for each in value[1])
    return value


def read(path):
    """(version, {key: (type, value)}, {tensor: its info}, data, alignment)"""
    with open(path, "rb") as file:
        data = file.read()
    magic, version, tensors, keys = struct.unpack_from("<4sIQQ", data, 0)
    assert magic == b"GGUF"
    at, members = 24, {}
    for _ in range(keys):
        name, at = _text(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        members[name.decode()], at = (lambda found: ((kind, found[0]), found[1]))(_value(data, at + 4, kind))
    infos = {}
    for _ in range(tensors):
        begin = at
        name, at = _text(data, at)
        (dims,) = struct.unpack_from("<I", data, at)
        at += 4 + 8 * dims + 4 + 8
        infos[name.decode()] = data[begin:at]
    alignment = struct.unpack("<I", members["general.alignment"][1])[0] if "general.alignment" in members else 32
    return version, members, infos, data[-(-at // alignment) * alignment:], alignment


def tokens_of(path):
    return [each.decode() for each in read(path)[1]["tokenizer.ggml.tokens"][1][1]]


def is_kept(tensor, layers):
    """Whether a file of this number of layers has a tensor."""
    parts = tensor.split(".")
    return parts[0] != "blk" or int(parts[1]) < layers


def write(source, target, template=None, control=(), context=None, layers=None):
    """The model of `source` with this chat template, and with control tokens of these texts in place of its last plain
    tokens. `layers` is the number of its first layers that the file keeps; data of the others remain."""
    version, members, infos, data, alignment = read(source)
    architecture = members["general.architecture"][1].decode()
    if template is not None:
        members["tokenizer.chat_template"] = (STRING, template.encode())
    if layers:
        infos = {name: info for name, info in infos.items() if is_kept(name, layers)}
        members[architecture + ".block_count"] = (UINT32, struct.pack("<I", layers))
    texts, types = members["tokenizer.ggml.tokens"][1][1], members["tokenizer.ggml.token_type"][1][1]
    free = [i for i in range(len(texts)) if types[i] == struct.pack("<i", 1) and len(texts[i].decode()) > 3]
    known = {each.decode() for each in texts}
    for text in control:
        if text in known:
            i = texts.index(text.encode())
        else:
            i = free.pop()
            texts[i] = text.encode()
        types[i] = struct.pack("<i", 3)
    kept = {each.decode() for each in texts}
    if "tokenizer.ggml.merges" in members:  # what made a token that is gone
        merges = members["tokenizer.ggml.merges"][1][1]
        merges[:] = [
            each
            for each in merges
            if each.decode().replace(" ", "") in kept and all(part in kept for part in each.decode().split(" "))
        ]
    if context:
        members[architecture + ".context_length"] = (UINT32, struct.pack("<I", context))
    head = struct.pack("<4sIQQ", b"GGUF", version, len(infos), len(members))
    for name, (kind, value) in members.items():
        head += _written(STRING, name.encode()) + struct.pack("<I", kind) + _written(kind, value)
    head += b"".join(infos.values())
    with open(target, "wb") as file:
        file.write(head + b"\0" * (-len(head) % alignment) + data)
