#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes include/intaglio/io/unicode_tables.hpp, nfc_unicode_tables.hpp and case_unicode_tables.hpp: the classes of code
points that pre-tokenizers ask for, what composing characters (NFC) takes, and what BERT's normaliser asks for besides.

usage: pip install unicodedata2 && python3 tools/generate_unicode_tables.py include/intaglio/io
"""
import sys
import unicodedata
import unicodedata2 as data

# The White_Space property (PropList.txt); unchanged since Unicode 6.3.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
# As unicode_class in unicode.hpp.
CLASSES = {"Lu": 5, "Lt": 5, "Ll": 6, "L": 1, "N": 2, "P": 4, "M": 7, "S": 8}
SPACE = 3
HANGUL = range(0xAC00, 0xD7A4)  # composed by arithmetic
HEAD = """// SPDX-License-Identifier: MIT
// Written by tools/generate_unicode_tables.py from Unicode {version}; do not edit.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::io {{
"""


def class_of(code_point):
    if code_point in WHITE_SPACE:
        return SPACE
    category = data.category(chr(code_point))
    return CLASSES.get(category, CLASSES.get(category[0], 0))


def runs(value_of, shift):
    out, previous = [], None
    for code_point in range(0x110000):
        found = value_of(code_point)
        if found != previous:
            out.append(code_point << shift | found)
            previous = found
    return out


def lines(values, count=12):
    return "".join("    " + ", ".join(values[i:i + count]) + ",\n" for i in range(0, len(values), count))


def array(comment, name, values):
    return f"\n{comment}\ninline constexpr std::uint32_t {name}[] = {{\n{lines([hex(v) for v in values])}}};\n"


def write_classes(folder):
    with open(folder + "/unicode_tables.hpp", "w") as out:
        out.write(HEAD.format(version=data.unidata_version))
        out.write(array("""/// Starts of runs of code points of one class, ascending: (first code point << 4) | class.
/// Classes: 0 other, 1 letter without case (Lm, Lo), 2 number (N), 3 white space (White_Space), 4 punctuation (P),
/// 5 upper case (Lu, Lt), 6 lower case (Ll), 7 mark (M), 8 symbol (S).""", "unicode_class_runs", runs(class_of, 4)))
        out.write("\n}  // namespace intaglio::io\n")


def write_normal_forms(folder):
    rows, pairs = [], []
    for code_point in range(0x110000):
        text = data.decomposition(chr(code_point))
        if not text or text.startswith("<") or code_point in HANGUL:
            continue
        parts = [int(part, 16) for part in text.split()]
        rows.append((code_point, parts[0], parts[1] if len(parts) > 1 else 0))
        if len(parts) == 2 and data.normalize("NFC", chr(code_point)) == chr(code_point):
            pairs.append((parts[0], parts[1], code_point))
    with open(folder + "/nfc_unicode_tables.hpp", "w") as out:
        out.write(HEAD.format(version=data.unidata_version))
        out.write(array("/// Starts of runs of one canonical combining class, ascending: (first code point << 8) | class.",
                        "combining_class_runs", runs(lambda c: data.combining(chr(c)), 8)))
        out.write("""
/// Canonical decompositions, one step each, ascending by the composed character; without Hangul syllables: composed
/// character << 40 | first << 20 | second; second 0: a single character.
inline constexpr std::uint64_t canonical_decompositions[] = {
""" + lines(["%#x" % (whole << 40 | first << 20 | second) for whole, first, second in rows], 6) + "};\n")
        indices = {whole: index for index, (whole, _, _) in enumerate(rows)}
        out.write("""
/// Indices in canonical_decompositions of those that composing makes, ascending by the first and then the second
/// character.
inline constexpr std::uint16_t canonical_compositions[] = {
""" + lines([str(indices[whole]) for _, _, whole in sorted(pairs)], 16) + "};\n")
        out.write("\n}  // namespace intaglio::io\n")


def lower_runs():
    """[first, last, step, difference] of neighbours, or of every second one, that differ from their lower case by as much."""
    out = []
    for code_point in range(0x110000):
        lower = chr(code_point).lower()
        if len(lower) != 1 or lower == chr(code_point):
            continue
        difference = ord(lower) - code_point
        last = out[-1] if out else None
        gap = code_point - last[1] if last else 0
        if last and last[3] == difference and gap in (1, 2) and (last[0] == last[1] or last[2] == gap):
            last[1], last[2] = code_point, gap
        else:
            out.append([code_point, code_point, 1, difference])
    return out


def write_cases(folder):
    with open(folder + "/case_unicode_tables.hpp", "w") as out:
        out.write(HEAD.format(version=f"{data.unidata_version} (marks) and {unicodedata.unidata_version} (lower case)"))
        out.write("""
/// Characters with another lower case, ascending: first << 43 | last << 22 | step - 1 << 21 | difference + 2^20, for every
/// `step`-th code point from first to last. Without U+0130, whose lower case is two characters.
inline constexpr std::uint64_t lower_case_runs[] = {
""" + lines(["%#x" % (a << 43 | b << 22 | (step - 1) << 21 | (d + (1 << 20))) for a, b, step, d in lower_runs()], 6) + "};\n")
        out.write(array("""/// Starts of runs of marks that take space or enclose (Mc, Me), and of others, ascending: (first code point << 1) | 1
/// for the former.""", "spacing_mark_runs",
                        runs(lambda c: int(data.category(chr(c)) in ("Mc", "Me")), 1)))
        out.write(array("""/// Starts of runs of control, format and private characters and surrogates (Cc, Cf, Co, Cs), and of others, ascending:
/// (first code point << 1) | 1 for the former.""", "control_runs",
                        runs(lambda c: int(data.category(chr(c)) in ("Cc", "Cf", "Co", "Cs")), 1)))
        out.write("\n}  // namespace intaglio::io\n")


write_classes(sys.argv[1])
write_normal_forms(sys.argv[1])
write_cases(sys.argv[1])
