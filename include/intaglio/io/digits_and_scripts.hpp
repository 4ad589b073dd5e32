// SPDX-License-Identifier: MIT
// Decimal digits, and the scripts whose runs AFMoE's tokenizer keeps apart from other text. Digits: Unicode 18.0.0,
// category Nd. Scripts: the expression in the tokenizer.json of arcee-ai/Trinity-Nano-Preview.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "intaglio/io/cased_letters.hpp"

namespace intaglio::io {

/// The decimal digits (Nd), in order.
inline constexpr auto decimal_digits = std::to_array<letter_range>(
    {{0x30, 0x39},       {0x660, 0x669},     {0x6F0, 0x6F9},     {0x7C0, 0x7C9},     {0x966, 0x96F},
     {0x9E6, 0x9EF},     {0xA66, 0xA6F},     {0xAE6, 0xAEF},     {0xB66, 0xB6F},     {0xBE6, 0xBEF},
     {0xC66, 0xC6F},     {0xCE6, 0xCEF},     {0xD66, 0xD6F},     {0xDE6, 0xDEF},     {0xE50, 0xE59},
     {0xED0, 0xED9},     {0xF20, 0xF29},     {0x1040, 0x1049},   {0x1090, 0x1099},   {0x17E0, 0x17E9},
     {0x1810, 0x1819},   {0x1946, 0x194F},   {0x19D0, 0x19D9},   {0x1A80, 0x1A89},   {0x1A90, 0x1A99},
     {0x1B50, 0x1B59},   {0x1BB0, 0x1BB9},   {0x1C40, 0x1C49},   {0x1C50, 0x1C59},   {0xA620, 0xA629},
     {0xA8D0, 0xA8D9},   {0xA900, 0xA909},   {0xA9D0, 0xA9D9},   {0xA9F0, 0xA9F9},   {0xAA50, 0xAA59},
     {0xABF0, 0xABF9},   {0xFF10, 0xFF19},   {0x104A0, 0x104A9}, {0x10D30, 0x10D39}, {0x10D40, 0x10D49},
     {0x11066, 0x1106F}, {0x110F0, 0x110F9}, {0x11136, 0x1113F}, {0x111D0, 0x111D9}, {0x112F0, 0x112F9},
     {0x11450, 0x11459}, {0x114D0, 0x114D9}, {0x11650, 0x11659}, {0x116C0, 0x116C9}, {0x116D0, 0x116E3},
     {0x11730, 0x11739}, {0x118E0, 0x118E9}, {0x11950, 0x11959}, {0x11BF0, 0x11BF9}, {0x11C50, 0x11C59},
     {0x11D50, 0x11D59}, {0x11DA0, 0x11DA9}, {0x11DE0, 0x11DE9}, {0x11F50, 0x11F59}, {0x16130, 0x16139},
     {0x16A60, 0x16A69}, {0x16AC0, 0x16AC9}, {0x16B50, 0x16B59}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9},
     {0x1D7CE, 0x1D7FF}, {0x1E140, 0x1E149}, {0x1E2F0, 0x1E2F9}, {0x1E4F0, 0x1E4F9}, {0x1E5F1, 0x1E5FA},
     {0x1E950, 0x1E959}, {0x1FBF0, 0x1FBF9}});

/// Characters of a script from `first` to `last`.
struct script_range {
  char32_t first, last;
  std::uint8_t script;
};
/// The scripts: 1 Chinese characters and kana, 2 Thai, 3 Lao, 4 Khmer, 5 Burmese, 6 Hangul.
inline constexpr auto script_ranges = std::to_array<script_range>({{0x4E00, 0x9FFF, 1},
                                                                   {0x3040, 0x30FF, 1},
                                                                   {0x3400, 0x4DBF, 1},
                                                                   {0xF900, 0xFAFF, 1},
                                                                   {0xFF65, 0xFF9F, 1},
                                                                   {0x2F00, 0x2FDF, 1},
                                                                   {0xE00, 0xE7F, 2},
                                                                   {0xE80, 0xEFF, 3},
                                                                   {0x1780, 0x17FF, 4},
                                                                   {0x1000, 0x109F, 5},
                                                                   {0xAA60, 0xAA7F, 5},
                                                                   {0xA9E0, 0xA9FF, 5},
                                                                   {0xAC00, 0xD7AF, 6},
                                                                   {0x1100, 0x11FF, 6}});

/// Whether a character is a decimal digit.
constexpr bool is_decimal_digit(char32_t value) {
  return value < 0x80 ? value >= U'0' && value <= U'9' : is_in(decimal_digits, value);
}
/// The script of a character; 0 for other characters.
constexpr std::uint8_t script_of(char32_t value) {
  for (const script_range& each : script_ranges)
    if (value >= each.first && value <= each.last) return each.script;
  return 0;
}

}  // namespace intaglio::io
