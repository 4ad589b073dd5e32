// SPDX-License-Identifier: MIT
// The pieces that all JSON is made of, as rules of a grammar.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "grammar.hpp"

namespace intaglio::serve {

/// Nesting of values that no schema describes.
inline constexpr int free_depth = 12;

/// The pieces that all JSON is made of.
class json_rules {
 public:
  using rule = grammar::rule;
  using part = grammar::part;
  explicit json_rules(grammar& to) : g(to) {
    add_space();
    add_texts();
    add_numbers();
    add_values();
  }

  /// At most `most` bytes of a set.
  rule at_most(const byte_set& bytes, int most) {
    rule out = g.add_rule({});
    for (int i = 0; i < most; ++i) {
      const rule longer = g.add_rule({});
      g.add(longer, {bytes, out});
      out = longer;
    }
    return out;
  }
  /// `least` to `most` times one after the other.
  rule repeated(rule each, std::uint32_t least, std::optional<std::uint32_t> most) {
    rule out = g.add_rule({});
    if (!most) g.add(out, {each, out});
    for (std::uint32_t i = least; most && i < *most; ++i) {
      const rule longer = g.add_rule({});
      g.add(longer, {each, out});
      out = longer;
    }
    for (std::uint32_t i = 0; i < least; ++i) out = g.add_rule({each, out});
    return out;
  }
  rule array_of(rule item, std::uint32_t least, std::optional<std::uint32_t> most) {
    const rule out = g.add_rule();
    if (least == 0) g.add(out, {"[", space, "]"});
    if (most && *most == 0) return out;
    const rule next = g.add_rule({",", space, item});
    g.add(out,
          {"[", space, item, repeated(next, least == 0 ? 0 : least - 1, most ? std::optional(*most - 1) : std::nullopt),
           space, "]"});
    return out;
  }
  rule object_of(rule value) { return members_of(g.add_rule({string, ":", space, value}), 0, {}); }
  /// An object of `least` to `most` members.
  rule members_of(rule member, std::uint32_t least, std::optional<std::uint32_t> most) {
    const rule out = g.add_rule();
    if (least == 0) g.add(out, {"{", space, "}"});
    if (most && *most == 0) return out;
    const rule next = g.add_rule({",", space, member});
    g.add(out,
          {"{", space, member,
           repeated(next, least == 0 ? 0 : least - 1, most ? std::optional(*most - 1) : std::nullopt), space, "}"});
    return out;
  }

  grammar& g;
  rule space = 0, character = 0, string = 0, natural = 0, integer = 0, number = 0, any = 0, any_object = 0;

 private:
  /// A blank, or the end of a line and an indent of the next.
  void add_space() {
    const byte_set blank = bytes_between(' ', ' ');
    rule indent = g.add_rule({});
    for (int i = 0; i < 20; ++i) {
      const rule longer = g.add_rule({});
      g.add(longer, {blank, indent});
      indent = longer;
    }
    space = g.add_rule({});
    g.add(space, {blank});
    g.add(space, {"\n", indent});
  }
  /// Texts of valid UTF-8.
  void add_texts() {
    const byte_set digit = bytes_between('0', '9'), follow = bytes_between(0x80, 0xBF);
    byte_set plain = bytes_between(0x20, 0x7E);
    plain.reset('"').reset('\\');
    byte_set hex = digit | bytes_between('a', 'f') | bytes_between('A', 'F');
    byte_set simple;
    for (const char each : {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'}) simple.set(static_cast<unsigned char>(each));
    byte_set no_d = hex;
    no_d.reset('d').reset('D');
    byte_set d;
    d.set('d').set('D');
    character = g.add_rule({plain});
    g.add(character, {"\\", simple});
    // No surrogates: half of a pair is no character.
    g.add(character, {"\\u", no_d, hex, hex, hex});
    g.add(character, {"\\u", d, bytes_between('0', '7'), hex, hex});
    g.add(character, {bytes_between(0xC2, 0xDF), follow});
    g.add(character, {bytes_between(0xE0, 0xE0), bytes_between(0xA0, 0xBF), follow});
    g.add(character, {bytes_between(0xE1, 0xEC) | bytes_between(0xEE, 0xEF), follow, follow});
    g.add(character, {bytes_between(0xED, 0xED), bytes_between(0x80, 0x9F), follow});
    g.add(character, {bytes_between(0xF0, 0xF0), bytes_between(0x90, 0xBF), follow, follow});
    g.add(character, {bytes_between(0xF1, 0xF3), follow, follow, follow});
    g.add(character, {bytes_between(0xF4, 0xF4), bytes_between(0x80, 0x8F), follow, follow});
    string = g.add_rule({"\"", repeated(character, 0, {}), "\""});
  }
  void add_numbers() {
    const byte_set digit = bytes_between('0', '9');
    // Few enough digits that every reader takes the number for what it is.
    const rule digits = at_most(digit, 14);
    natural = g.add_rule({"0"});
    g.add(natural, {bytes_between('1', '9'), digits});
    integer = g.add_rule({natural});
    g.add(integer, {"-", natural});
    byte_set exponent;
    exponent.set('e').set('E');
    byte_set sign;
    sign.set('+').set('-');
    const rule fraction = g.add_rule({}), power = g.add_rule({}), sign_or_none = g.add_rule({});
    g.add(fraction, {".", digit, digits});
    g.add(sign_or_none, {sign});
    g.add(power, {exponent, sign_or_none, digit});
    g.add(power, {exponent, sign_or_none, digit, digit});
    number = g.add_rule({integer, fraction, power});
  }
  /// Values that no schema describes, nested up to free_depth.
  void add_values() {
    rule scalar = g.add_rule({string});
    for (const part& each : std::array<part, 4>{number, "true", "false", "null"}) g.add(scalar, {each});
    any = scalar;
    for (int depth = 0; depth < free_depth; ++depth) {
      const rule members = object_of(any), list = array_of(any, 0, {}), value = g.add_rule({scalar});
      g.add(value, {members});
      g.add(value, {list});
      any_object = members;
      any = value;
    }
  }
};

}  // namespace intaglio::serve
