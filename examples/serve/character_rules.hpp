// SPDX-License-Identifier: MIT
// Rules for single characters of Unicode as UTF-8: as they are, or as they stand between the quotes of JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar.hpp"
#include "text_language.hpp"

namespace intaglio::serve {

/// Writes sets of characters into a grammar.
class character_writer {
 public:
  character_writer(grammar& to, character_form form) : g(to), form_(form) {}
  using ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  /// A rule for one character of the ranges, the same for the same ones.
  grammar::rule rule_of(const ranges& set) {
    const auto [known, fresh] = rules_.try_emplace(set, 0);
    if (!fresh) return known->second;
    const grammar::rule out = known->second = g.add_rule();
    byte_set plain;
    for (const auto& [first, last] : set) {
      for (std::uint32_t each = first; each <= std::min(last, 0x7Fu); ++each) {
        if (form_ == character_form::plain || (each >= 0x20 && each != '"' && each != '\\' && each != 0x7F))
          plain.set(each);
        else add_escaped(out, each);
      }
      struct {
        std::uint32_t first, last;
      } constexpr parts[]{{0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
      for (const auto& part : parts)
        if (std::max(first, part.first) <= std::min(last, part.last))
          add_bytes(out, bytes_of(std::max(first, part.first)), bytes_of(std::min(last, part.last)), {});
    }
    if (plain.any()) g.add(out, {plain});
    return out;
  }

 private:
  void add_escaped(grammar::rule to, std::uint32_t each) {
    constexpr std::string_view letters = "bfnrt", values = "\b\f\n\r\t";
    if (each == '"' || each == '\\') return g.add(to, {std::string{'\\', static_cast<char>(each)}});
    if (const auto at = values.find(static_cast<char>(each)); each != 0 && at != std::string_view::npos)
      return g.add(to, {std::string{'\\', letters[at]}});
    constexpr std::string_view hex = "0123456789abcdef";
    g.add(to, {std::string("\\u00") + hex[each >> 4] + hex[each & 15]});
  }
  static std::string bytes_of(std::uint32_t c) {
    const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
    if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
    if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
    return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  }
  static byte_set set(char first, char last) {
    return bytes_between(static_cast<unsigned char>(first), static_cast<unsigned char>(last));
  }
  /// Sequences of bytes of one length, from one to another.
  void add_bytes(grammar::rule to, const std::string& first, const std::string& last,
                 std::vector<grammar::part> before) {
    const std::string low(first.size() - 1, '\x80'), high(first.size() - 1, '\xBF');
    const auto after = [&](const byte_set& each) {
      std::vector<grammar::part> out = before;
      out.emplace_back(each);
      return out;
    };
    if (first.substr(1) == low && last.substr(1) == high) {
      std::vector<grammar::part> all = after(set(first[0], last[0]));
      for (std::size_t i = 1; i < first.size(); ++i) all.emplace_back(set('\x80', '\xBF'));
      return g.add(to, all);
    }
    if (first[0] == last[0]) return add_bytes(to, first.substr(1), last.substr(1), after(set(first[0], first[0])));
    const auto next = [](char each, int by) { return static_cast<char>(static_cast<unsigned char>(each) + by); };
    char from = first[0], until = last[0];
    if (first.substr(1) != low) {
      add_bytes(to, first.substr(1), high, after(set(from, from)));
      from = next(from, 1);
    }
    const bool cut = last.substr(1) != high;
    if (cut) until = next(until, -1);
    if (static_cast<unsigned char>(from) <= static_cast<unsigned char>(until))
      add_bytes(to, from + low, until + high, before);
    if (cut) add_bytes(to, low, last.substr(1), after(set(last[0], last[0])));
  }
  grammar& g;
  character_form form_;
  std::map<ranges, grammar::rule> rules_;
};

}  // namespace intaglio::serve
