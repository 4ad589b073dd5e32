# SPDX-License-Identifier: MIT
"""Words of SPIR-V as C++ literals, which kernels/module_text.hpp reads (tools/embed_shaders writes them)."""

import collections

LEAST_SHARED = 3  # instructions with the same first and second word, from which on these are one beginning


def instruction_numbers(words, bound):
    """The numbers from which kernels/module_text.hpp, instruction_reader, has the words of whole instructions. @param
    bound of the module's ids"""
    found, at = [], 0
    while at < len(words):
        found.append(words[at:at + (words[at] >> 16)])
        at += words[at] >> 16
    both = collections.Counter(each[:2] for each in found if len(each) > 2)
    begun = [each[:2] if both[each[:2]] >= LEAST_SHARED else each[:1] for each in found]
    uses = collections.Counter(begun)
    beginnings = sorted(uses, key=lambda each: (-uses[each], each))
    indices = {each: index for index, each in enumerate(beginnings)}
    out, latest = [len(beginnings)], 0
    for each in beginnings:
        out += [each[0] >> 16, 2 * (each[0] & 0xFFFF) + len(each) - 1, *each[1:]]
    for each, beginning in zip(found, begun):
        out.append(indices[beginning])
        for word in each[len(beginning):]:
            near = 2 * (latest + 1 - word) + 1
            out.append(near if 0 <= near and len(spelled([near])) <= len(spelled([2 * word])) else 2 * word)
            if latest < word < bound:
                latest = word
    return out


def spelled(words):
    """Each number by 5 bits a character, the lowest first; a character with 32 has more behind it. No character needs
    an escape."""
    alphabet = "".join(map(chr, range(35, 99))).replace("?", "c").replace("\\", "d")
    out = []
    for word in words:
        while word >= 32:
            out.append(alphabet[32 | word & 31])
            word >>= 5
        out.append(alphabet[word])
    return "".join(out)


def escaped(data):
    """The shortest spelling of each byte in a C++ literal, as a list."""
    out = []
    for byte, behind in zip(data, [*data[1:], 0]):
        character = chr(byte)
        if character in '"\\?':
            out.append("\\" + character)
        elif 32 <= byte < 127:
            out.append(character)
        else:
            out.append(f"\\{byte:03o}" if chr(behind) in "01234567" else f"\\{byte:o}")
    return out


def quoted(text, width=112):
    """Literals of one line each, which follow each other; no escape is cut, and none is made longer by what the next
    line begins with."""
    if not text:
        return '    ""'
    lines, line = [], ""
    for each in text:
        if len(line) + len(each) > width:
            lines.append(line)
            line = ""
        line += each
    return "\n".join(f'    "{each}"' for each in [*lines, line])
