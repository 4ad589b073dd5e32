#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes include/intaglio/io/unicode_tables.hpp: the classes of code points that pre-tokenizers ask for.

usage: pip install unicodedata2 && python3 tools/generate_unicode_tables.py > include/intaglio/io/unicode_tables.hpp
"""
import unicodedata2

# The White_Space property (PropList.txt); unchanged since Unicode 6.3.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
CLASSES = {"L": 1, "N": 2, "P": 4}
SPACE = 3


def class_of(code_point):
    if code_point in WHITE_SPACE:
        return SPACE
    return CLASSES.get(unicodedata2.category(chr(code_point))[0], 0)


def main():
    entries, previous = [], None
    for code_point in range(0x110000):
        found = class_of(code_point)
        if found != previous:
            entries.append(code_point << 3 | found)
            previous = found
    print(f"""// SPDX-License-Identifier: MIT
// Written by tools/generate_unicode_tables.py from Unicode {unicodedata2.unidata_version}; do not edit.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::io {{

/// Starts of runs of code points of one class, ascending: (first code point << 3) | class.
/// Classes: 0 other, 1 letter (L), 2 number (N), 3 white space (White_Space), 4 punctuation (P).
inline constexpr std::uint32_t unicode_class_runs[] = {{""")
    for i in range(0, len(entries), 14):
        print("    " + ", ".join(f"0x{entry:x}" for entry in entries[i:i + 14]) + ",")
    print("};\n\n}  // namespace intaglio::io")


main()
