// SPDX-License-Identifier: MIT
// Maps of a SentencePiece normaliser for tests: one that sentencepiece made, and a maker of others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/tiktoken_list.hpp"

namespace intaglio::test {

/// What sentencepiece 0.2.3 made of the rules U+FB01 -> fi, U+2460 -> 1, U+FF76 U+FF9E -> U+30AC, U+FF76 -> U+30AB, tab
/// and U+3000 -> space, e U+0301 -> U+00E9, U+200B -> nothing, U+2026 -> "...".
inline std::string published_charsmap() {
  return *io::decode_base64(
      "AAQAAAAgAAAJDQAAAQAAgMwYAgCBBQAADAAAgIAoAgCLOQAAoA0AAAAAAIADAACABwAAgKx0AgCADAIAgDEAAAkAAICBfQAAtg0AAA8A"
      "AIC+ZAIAngUAABMAAIAXAAAAkfwCABkAAAAYAAAAGwAAABoAAAAdAAAAvegCAB8AAAAeAAAAIQAAACAAAAAjAAAAIgAAACUAAAAkAAAA"
      "JwAAACYAAAApAAAAKAAAAKaBAAAqAAAALQAAACwAAAAvAAAALgAAADEAAAAwAAAAMwAAADIAAAA1AAAANAAAADcAAAA2AAAAOQAAADgA"
      "AAA7AAAAOgAAAD0AAAA8AAAAPwAAAD4AAABBAAAAQAAAAEMAAABCAAAARQAAAEQAAABHAAAARgAAAEkAAABIAAAASwAAAEoAAABNAAAA"
      "TAAAAE8AAABOAAAAUQAAAFAAAABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAAABfAAAAXgAAAGEA"
      "AABgAAAAYwAAAGIAAABlAAAAZAAAAGcAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABliAIAbwAAAG4AAABxAAAAcAAAAHMAAAByAAAA"
      "dQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAAAHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAACDAAAAggAAAIUAAACEAAAAhwAAAIYA"
      "AACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjgAAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbAAAA"
      "mgAAAJ0AAACcAAAAnwAAAJ4AAAChAAAAoAAAAKMAAACiAAAApQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8A"
      "AACuAAAAsQAAALAAAACzAAAAsgAAALUAAAC0AAAAtwAAALYAAAC5AAAAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAA"
      "wwAAAMIAAADFAAAAxAAAAMcAAADGAAAAyQAAAMgAAADLAAAAygAAAM0AAADMAAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQA"
      "AADXAAAA1gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAADjAAAA4gAAAOUAAADkAAAA5wAAAO8cAQDpAAAA"
      "6AAAAOKwAQDjmAEA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcAAAD2AAAA+QAAAPgAAAD7AAAA+gAAAP0A"
      "AADvQAEA/wAAAP4AAAAAIAAuLi4AMQBmaQDDqQDjgqsA44KsAA==");
}

inline void append_word(std::string& out, std::uint32_t word) {
  for (unsigned i = 0; i < 32; i += 8) out.push_back(static_cast<char>(word >> i & 0xFF));
}
/// A unit of the trie. @param offset to its children's block of bytes, below 2^21
constexpr std::uint32_t trie_unit(std::uint32_t label, std::uint32_t offset, bool value) {
  return offset << 10 | (value ? 0x100u : 0u) | label;
}
inline std::string charsmap_of(const std::vector<std::uint32_t>& units, std::string_view texts) {
  std::string out;
  append_word(out, static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) append_word(out, unit);
  return out.append(texts);
}
/// Each node of the trie has a block of 256 units for its children, of which unit 0 is its value.
inline std::string charsmap_of(const std::map<std::string, std::string>& rules) {
  std::vector<std::uint32_t> units(256);
  std::string texts;
  const auto block_of = [&](std::size_t unit) { return unit ^ (units[unit] >> 10); };
  const auto new_block = [&](std::size_t unit, std::uint32_t label) {
    const auto block = static_cast<std::uint32_t>(units.size());
    units.resize(units.size() + 256);
    units[unit] = trie_unit(label, static_cast<std::uint32_t>(unit) ^ block, (units[unit] & 0x100) != 0);
  };
  new_block(0, 0);
  for (const auto& [key, value] : rules) {
    std::size_t unit = 0;
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      unit = block_of(unit) ^ byte;
      if ((units[unit] & 0x800000FF) != byte) new_block(unit, byte);
    }
    units[unit] |= 0x100;
    units[block_of(unit)] = 0x80000000u | static_cast<std::uint32_t>(texts.size());
    texts.append(value).push_back('\0');
  }
  return charsmap_of(units, texts);
}

}  // namespace intaglio::test
