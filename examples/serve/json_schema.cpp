// SPDX-License-Identifier: MIT
#include "json_schema.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <intaglio/core/error.hpp>

#include "api_error.hpp"

namespace intaglio::serve {
namespace {

using rule = grammar::rule;
using part = grammar::part;

/// The pieces that all JSON is made of.
class json_rules {
 public:
  explicit json_rules(grammar& to) : g(to) {
    const byte_set blank = bytes_between(' ', ' '), digit = bytes_between('0', '9'), follow = bytes_between(0x80, 0xBF);
    rule indent = g.add_rule({});
    for (int i = 0; i < 20; ++i) {
      const rule longer = g.add_rule({});
      g.add(longer, {blank, indent});
      indent = longer;
    }
    space = g.add_rule({});
    g.add(space, {blank});
    g.add(space, {"\n", indent});

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
  rule object_of(rule value) {
    const rule member = g.add_rule({string, ":", space, value}), next = g.add_rule({",", space, member}),
               out = g.add_rule({"{", space, "}"});
    g.add(out, {"{", space, member, repeated(next, 0, {}), space, "}"});
    return out;
  }

  grammar& g;
  rule space = 0, character = 0, string = 0, natural = 0, integer = 0, number = 0, any = 0, any_object = 0;
};

/// Integers of a range, digit by digit.
class integer_range {
 public:
  explicit integer_range(grammar& to) : g(to) {}
  rule of(std::int64_t least, std::int64_t most) {
    const rule out = g.add_rule();
    if (least < 0) {
      const std::int64_t nearest = std::min<std::int64_t>(most, -1);
      naturals(out, "-", static_cast<std::uint64_t>(-nearest), static_cast<std::uint64_t>(-least));
    }
    if (most >= 0)
      naturals(out, "", static_cast<std::uint64_t>(std::max<std::int64_t>(least, 0)), static_cast<std::uint64_t>(most));
    return out;
  }

 private:
  /// By the number of digits, since none begins with a zero.
  void naturals(rule to, const std::string& sign, std::uint64_t least, std::uint64_t most) {
    const std::string low = std::to_string(least), high = std::to_string(most);
    for (std::size_t size = low.size(); size <= high.size(); ++size) {
      std::string from = size == low.size() ? low : "1" + std::string(size - 1, '0'),
                  until = size == high.size() ? high : std::string(size, '9');
      g.add(to, {sign, between(from, until)});
    }
  }
  /// Texts of digits of one length.
  rule between(const std::string& from, const std::string& until) {
    const rule out = g.add_rule();
    const auto set = [](char a, char b) {
      return bytes_between(static_cast<unsigned char>(a), static_cast<unsigned char>(b));
    };
    if (from.size() == 1) {
      g.add(out, {set(from[0], until[0])});
      return out;
    }
    if (from == std::string(from.size(), '0') && until == std::string(until.size(), '9')) {
      g.add(out, std::vector<part>(from.size(), set('0', '9')));
      return out;
    }
    const std::string from_rest = from.substr(1), until_rest = until.substr(1), zeros(from_rest.size(), '0'),
                      nines(from_rest.size(), '9');
    if (from[0] == until[0]) {
      g.add(out, {set(from[0], from[0]), between(from_rest, until_rest)});
      return out;
    }
    g.add(out, {set(from[0], from[0]), between(from_rest, nines)});
    if (until[0] - from[0] > 1) {
      std::vector<part> parts{set(static_cast<char>(from[0] + 1), static_cast<char>(until[0] - 1))};
      for (std::size_t i = 0; i < from_rest.size(); ++i) parts.emplace_back(set('0', '9'));
      g.add(out, parts);
    }
    g.add(out, {set(until[0], until[0]), between(zeros, until_rest)});
    return out;
  }
  grammar& g;
};

constexpr std::array<std::string_view, 14> describing{
    "title", "description", "default",  "examples",  "example", "$comment",    "$schema",
    "$id",   "deprecated",  "readOnly", "writeOnly", "$defs",   "definitions", "$anchor"};
constexpr std::uint32_t most_repeats = 2000;

class schema_reader {
 public:
  schema_reader(grammar& to, const json& root, std::string where)
      : g_(to), rules_(to), root_(root), where_(std::move(where)) {}
  rule read() { return value(root_, where_, 0); }

 private:
  [[noreturn]] static void refuse(const std::string& at, const std::string& why) {
    throw api_error(400, at + ": " + why, "response_format", "unsupported_schema");
  }

  /// Refuses words outside of `known`.
  static void only(const json& schema, const std::string& at, std::initializer_list<std::string_view> known) {
    for (const auto& [word, value] : schema.items())
      if (std::find(describing.begin(), describing.end(), word) == describing.end() &&
          std::find(known.begin(), known.end(), word) == known.end())
        refuse(at, "'" + printable(word, 40) + "' is not among the words of JSON schema that are supported here");
  }

  rule value(const json& schema, const std::string& at, int depth) {
    if (depth > 64) refuse(at, "schemas nest at most 64 deep");
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) refuse(at, "no value holds to false");
      return rules_.any;
    }
    if (!schema.is_object()) refuse(at, "expected a schema, an object or true");
    if (schema.contains("$ref")) return reference(schema, at, depth);
    if (schema.contains("const") || schema.contains("enum")) return listed(schema, at);
    for (const char* const word : {"anyOf", "allOf"})
      if (schema.contains(word)) return combined(schema, word, at, depth);
    const auto type = schema.find("type");
    if (type == schema.end()) {
      if (schema.contains("properties")) return object(schema, at, depth);
      if (schema.contains("items") || schema.contains("prefixItems")) return array(schema, at, depth);
      only(schema, at, {});
      return rules_.any;
    }
    if (type->is_string()) return of_type(type->get<std::string>(), schema, at, depth);
    if (!type->is_array() || type->empty()) refuse(at + ".type", "expected a name or a list of names");
    const rule out = g_.add_rule();
    for (const auto& each : *type) {
      if (!each.is_string()) refuse(at + ".type", "expected names");
      const std::string name = each.get<std::string>();
      // Words of one type say nothing of the others.
      json alone = json::object();
      for (const auto& [word, inside] : schema.items())
        if (word != "type" && (belongs_to(word).empty() || belongs_to(word) == name)) alone[word] = inside;
      g_.add(out, {of_type(name, alone, at, depth)});
    }
    return out;
  }

  static std::string_view belongs_to(std::string_view word) {
    for (const std::string_view each : {"properties", "required", "additionalProperties"})
      if (word == each) return "object";
    for (const std::string_view each : {"items", "prefixItems", "minItems", "maxItems"})
      if (word == each) return "array";
    for (const std::string_view each : {"minLength", "maxLength"})
      if (word == each) return "string";
    for (const std::string_view each : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (word == each) return "integer";
    return {};
  }

  rule of_type(const std::string& type, const json& schema, const std::string& at, int depth) {
    if (type == "object") return object(schema, at, depth);
    if (type == "array") return array(schema, at, depth);
    if (type == "string") {
      only(schema, at, {"type", "minLength", "maxLength"});
      const std::uint32_t least = count(schema, "minLength", at).value_or(0);
      const auto most = count(schema, "maxLength", at);
      if (most && *most < least) refuse(at, "maxLength is less than minLength");
      return least == 0 && !most ? rules_.string
                                 : g_.add_rule({"\"", rules_.repeated(rules_.character, least, most), "\""});
    }
    if (type == "integer") return integer(schema, at);
    only(schema, at, {"type"});
    if (type == "number") return rules_.number;
    if (type == "null") return g_.add_rule({"null"});
    if (type != "boolean") refuse(at + ".type", "'" + printable(type, 40) + "' is no type of JSON");
    const rule out = g_.add_rule({"true"});
    g_.add(out, {"false"});
    return out;
  }

  rule integer(const json& schema, const std::string& at) {
    only(schema, at, {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"});
    constexpr std::int64_t widest = 999'999'999'999'999;
    std::int64_t least = -widest, most = widest;
    const auto bound = [&](const char* word) -> std::optional<std::int64_t> {
      const auto found = schema.find(word);
      if (found == schema.end()) return {};
      if (!found->is_number_integer() ||
          (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(widest)) ||
          std::abs(found->get<double>()) > static_cast<double>(widest))
        refuse(at + "." + word, "expected an integer of at most 15 digits");
      return found->get<std::int64_t>();
    };
    if (const auto b = bound("minimum")) least = std::max(least, *b);
    if (const auto b = bound("exclusiveMinimum")) least = std::max(least, *b + 1);
    if (const auto b = bound("maximum")) most = std::min(most, *b);
    if (const auto b = bound("exclusiveMaximum")) most = std::min(most, *b - 1);
    if (least > most) refuse(at, "no integer is in the range");
    return least == -widest && most == widest ? rules_.integer : integer_range(g_).of(least, most);
  }

  rule object(const json& schema, const std::string& at, int depth) {
    only(schema, at, {"type", "properties", "required", "additionalProperties"});
    const auto listed = schema.find("properties"), others = schema.find("additionalProperties"),
               required = schema.find("required");
    json members = listed == schema.end() ? json::object() : *listed;
    if (!members.is_object()) refuse(at + ".properties", "expected an object");
    std::vector<std::string> needed;
    if (required != schema.end()) {
      if (!required->is_array()) refuse(at + ".required", "expected an array of names");
      for (const auto& each : *required) {
        if (!each.is_string()) refuse(at + ".required", "expected names");
        needed.push_back(each.get<std::string>());
        if (members.contains(needed.back())) continue;
        members[needed.back()] = others == schema.end() ? json(true) : *others;
      }
    }
    const bool closed = others != schema.end() && others->is_boolean() && !others->get<bool>();
    if (members.empty()) {
      if (closed) return g_.add_rule({"{", rules_.space, "}"});
      return others == schema.end() || others->is_boolean()
                 ? rules_.any_object
                 : rules_.object_of(value(*others, at + ".additionalProperties", depth + 1));
    }
    // What may follow when the members before this one are written: behind one that was (a comma is due), and behind
    // none.
    rule behind_some = g_.add_rule({}), behind_none = g_.add_rule({});
    const auto& list = members.get_ref<const json::object_t&>();
    for (auto at_member = list.rbegin(); at_member != list.rend(); ++at_member) {
      const auto& [name, schema_of] = *at_member;
      const rule member = g_.add_rule({json_text(json(name)) + ":", rules_.space,
                                       value(schema_of, at + ".properties." + printable(name, 40), depth + 1)});
      const rule some = g_.add_rule({",", rules_.space, member, behind_some}),
                 none = g_.add_rule({member, behind_some});
      if (std::find(needed.begin(), needed.end(), name) == needed.end()) {
        g_.add(some, {behind_some});
        g_.add(none, {behind_none});
      }
      behind_some = some;
      behind_none = none;
    }
    return g_.add_rule({"{", rules_.space, behind_none, rules_.space, "}"});
  }

  rule array(const json& schema, const std::string& at, int depth) {
    only(schema, at, {"type", "items", "prefixItems", "minItems", "maxItems"});
    const std::uint32_t least = count(schema, "minItems", at).value_or(0);
    const auto most = count(schema, "maxItems", at);
    if (most && *most < least) refuse(at, "maxItems is less than minItems");
    const auto items = schema.find("items"), first = schema.find("prefixItems");
    if (first == schema.end())
      return rules_.array_of(items == schema.end() ? rules_.any : value(*items, at + ".items", depth + 1), least, most);
    // As many as are listed, no more.
    if (!first->is_array() || first->empty()) refuse(at + ".prefixItems", "expected schemas");
    if (least > first->size() || (most && *most < first->size()))
      refuse(at, "with prefixItems, minItems and maxItems can only be its length");
    std::vector<part> parts{"[", rules_.space};
    for (std::size_t i = 0; i < first->size(); ++i) {
      if (i != 0) parts.insert(parts.end(), {",", rules_.space});
      parts.emplace_back(value((*first)[i], at + ".prefixItems[" + std::to_string(i) + "]", depth + 1));
    }
    parts.insert(parts.end(), {rules_.space, "]"});
    const rule out = g_.add_rule();
    g_.add(out, parts);
    return out;
  }

  rule listed(const json& schema, const std::string& at) {
    only(schema, at, {"const", "enum", "type"});
    if (schema.contains("const") && schema.contains("enum")) refuse(at, "const or enum, not both");
    const json list = schema.contains("const") ? json::array({schema["const"]}) : schema["enum"];
    if (!list.is_array()) refuse(at + ".enum", "expected an array");
    const rule out = g_.add_rule();
    std::size_t kept = 0;
    for (const auto& each : list) {
      if (const auto type = schema.find("type"); type != schema.end() && !holds(each, *type)) continue;
      g_.add(out, {json_text(each)});
      ++kept;
    }
    if (kept == 0) refuse(at, "no value of the list holds to the schema");
    return out;
  }
  static bool holds(const json& value, const json& type) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(), [&](const json& each) { return holds(value, each); });
    if (!type.is_string()) return false;
    const std::string name = type.get<std::string>();
    return name == "object"    ? value.is_object()
           : name == "array"   ? value.is_array()
           : name == "string"  ? value.is_string()
           : name == "boolean" ? value.is_boolean()
           : name == "null"    ? value.is_null()
           : name == "integer" ? value.is_number_integer()
                               : name == "number" && value.is_number();
  }

  rule combined(const json& schema, const std::string& word, const std::string& at, int depth) {
    only(schema, at, {word});
    const json& list = schema[word];
    if (!list.is_array() || list.empty()) refuse(at + "." + word, "expected schemas");
    if (word == "allOf" && list.size() != 1) refuse(at + ".allOf", "only one schema is supported in it");
    const rule out = g_.add_rule();
    for (std::size_t i = 0; i < list.size(); ++i)
      g_.add(out, {value(list[i], at + "." + word + "[" + std::to_string(i) + "]", depth + 1)});
    return out;
  }

  rule reference(const json& schema, const std::string& at, int) {
    only(schema, at, {"$ref"});
    if (!schema["$ref"].is_string()) refuse(at + ".$ref", "expected a text");
    const std::string path = schema["$ref"].get<std::string>();
    if (const auto known = references_.find(path); known != references_.end()) return known->second;
    if (path != "#" && !path.starts_with("#/")) refuse(at + ".$ref", "expected a place in this document: '#/...'");
    const json* target = nullptr;
    try {
      target = &root_.at(json::json_pointer(path.substr(1)));
    } catch (const json::exception&) { refuse(at + ".$ref", "'" + printable(path, 60) + "' is not in the document"); }
    // Known before it is read: a schema may hold itself.
    const rule out = g_.add_rule();
    references_.emplace(path, out);
    if (references_.size() > 500) refuse(at, "at most 500 references");
    g_.add(out, {value(*target, where_ + path.substr(1), 0)});
    return out;
  }

  static std::optional<std::uint32_t> count(const json& schema, const char* word, const std::string& at) {
    const auto found = schema.find(word);
    if (found == schema.end()) return {};
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > most_repeats)
      refuse(at + "." + word, "expected 0 .. " + std::to_string(most_repeats));
    return found->get<std::uint32_t>();
  }

  grammar& g_;
  json_rules rules_;
  const json& root_;
  std::string where_;
  std::map<std::string, rule> references_;
};

}  // namespace

grammar any_json_object() {
  grammar out;
  json_rules rules(out);
  const rule start = out.add_rule({rules.space, rules.any_object});
  out.finish(start);
  return out;
}

grammar grammar_of_schema(const json& schema, const std::string& where) {
  grammar out;
  try {
    schema_reader reader(out, schema, where);
    const rule value = reader.read(), blank = out.add_rule({});
    out.add(blank, {" "});
    out.finish(out.add_rule({blank, value}));
  } catch (const std::length_error&) {
    throw api_error(400, where + ": the schema is too large", "response_format", "unsupported_schema");
  } catch (const std::invalid_argument& problem) {
    throw api_error(400, where + ": " + problem.what(), "response_format", "unsupported_schema");
  }
  return out;
}

}  // namespace intaglio::serve
