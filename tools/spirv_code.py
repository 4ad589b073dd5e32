# SPDX-License-Identifier: MIT
"""Instructions of a SPIR-V module: a walk over them, and modules without source text or without decorations of
exactness (tools/embed_shaders)."""

import struct

# Instructions that carry only source text and line numbers.
SOURCE_TEXT = {2, 3, 4, 7, 8, 317, 330}
OP_NAME, OP_MEMBER_NAME, OP_TYPE_POINTER, OP_FUNCTION, OP_VARIABLE = 5, 6, 32, 54, 59
# The optimizer drops `precise` where it copies instructions, so every sum and product is decorated here once more.
OP_DECORATE, SPEC_ID, NO_CONTRACTION = 71, 1, 42
# Shaders say dont_unroll to the optimizer where they mean that drivers should unroll (shaders/include/subgroup.glsl).
OP_LOOP_MERGE, UNROLL, DONT_UNROLL = 246, 1, 2
# And dependency_infinite where kernels::hint_loops decides: embedded modules have dont_unroll at these loops.
DEPENDENCY_INFINITE = 4
FLOAT_ARITHMETIC = {127, 129, 131, 133, 136, 140, 141, 142, 148}
PUSH_CONSTANT_STORAGE = 9
TYPES = set(range(19, 40))


def first_function(spirv):
    """Byte at which the first function begins."""
    at = 5
    for opcode, instruction in instructions(struct.unpack(f"<{len(spirv) // 4}I", spirv)):
        if opcode == OP_FUNCTION:
            break
        at += len(instruction)
    return 4 * at


def instructions(words):
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        yield opcode, words[at:at + count]
        at += count


def without_exactness(spirv):
    """SPIR-V without its decorations NoContraction, the word in front of which they are (types begin there), and
    their ids, rising."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    kept, types_at, exact = list(words[:5]), None, []
    for opcode, instruction in instructions(words):
        if opcode == OP_DECORATE and instruction[2] == NO_CONTRACTION:
            exact.append(instruction[1])
            continue
        if types_at is None and opcode in TYPES:
            types_at = len(kept)
        kept.extend(instruction)
    return struct.pack(f"<{len(kept)}I", *kept), types_at, sorted(exact)


def without_source_text(spirv):
    """Keeps the names that kernels/reflection.hpp compares with C++: specialization constants and members of the block
    of push constants. Other names would make a program larger, and a driver's cache miss where one changes."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    named, blocks = set(), set()
    for opcode, instruction in instructions(words):
        if opcode == OP_DECORATE and instruction[2] == SPEC_ID:
            named.add(instruction[1])
        elif opcode == OP_TYPE_POINTER and instruction[2] == PUSH_CONSTANT_STORAGE:
            blocks.add(instruction[3])
    exact = {
        instruction[1]
        for opcode, instruction in instructions(words)
        if opcode == OP_DECORATE and instruction[2] == NO_CONTRACTION
    }
    contractible = [
        instruction[2]
        for opcode, instruction in instructions(words)
        if opcode in FLOAT_ARITHMETIC and instruction[2] not in exact
    ]
    kept = list(words[:5])
    for opcode, instruction in instructions(words):
        if opcode in SOURCE_TEXT or (opcode == OP_NAME and instruction[1] not in named) or (
                opcode == OP_MEMBER_NAME and instruction[1] not in blocks):
            continue
        if opcode in TYPES and contractible:  # decorations end where types begin
            kept.extend(word for target in contractible for word in (3 << 16 | OP_DECORATE, target, NO_CONTRACTION))
            contractible = []
        if opcode == OP_LOOP_MERGE and instruction[3] == DONT_UNROLL:
            instruction = (*instruction[:3], UNROLL)
        elif opcode == OP_LOOP_MERGE and instruction[3] == DEPENDENCY_INFINITE:
            instruction = (*instruction[:3], DONT_UNROLL)
        kept.extend(instruction)
    return struct.pack(f"<{len(kept)}I", *kept)
