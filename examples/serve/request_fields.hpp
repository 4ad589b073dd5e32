// SPDX-License-Identifier: MIT
// Reads members of a request's object one by one with their types and ranges; at the end, members that no code has read
// are refused by name.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/core/letters_between.hpp>
#include <intaglio/core/number_text.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api_error.hpp"
#include "json_document.hpp"

namespace intaglio::serve {

/// The value as errors show it, cut and escaped.
inline std::string shown(const json& value) { return printable(json_text(value).substr(0, 400), 60); }

/// The field of an array's item.
inline std::string index(const std::string& name, std::size_t i) { return name + "[" + std::to_string(i) + "]"; }

/// The JSON in a text, as some clients send it. @throws api_error 400 naming the field
inline json json_in_text(const json& text, const std::string& name, const std::string& expected, const limits& limit) {
  try {
    return parse_json(text.get_ref<const std::string&>(), limit);
  } catch (const api_error&) { refuse_field(name, expected, shown(text)); }
}

/// Refuses a name that is none of those known, and says the most similar one.
/// @param shown the name as errors have it  @param expected "a field that this server knows"
inline void require_known(std::string_view name, const std::vector<std::string_view>& known, const std::string& shown,
                          const std::string& expected) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string_view nearest;
  std::size_t least = 3;  // letters to change, add or leave out
  for (const std::string_view each : known) {
    if (name.size() < 4 || name.size() > each.size() + 2 || each.size() > name.size() + 2) continue;
    if (const std::size_t found = letters_between(name, each); found < least) least = found, nearest = each;
  }
  refuse_field(shown, expected + (nearest.empty() ? std::string() : " (" + std::string(nearest) + "?)"), "another",
               "unknown_parameter");
}

/// null counts as absent, as clients send it for defaults.
class fields {
 public:
  fields(const json& of, std::string where) : of_(of), where_(std::move(where)) {
    if (!of_.is_object()) refuse_field(where_.empty() ? "body" : where_, "an object", shown(of_));
  }
  std::string name(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  const json* find(std::string_view key) const {
    known_.emplace_back(key);
    const auto at = of_.find(std::string(key));
    return at == of_.end() || at->is_null() ? nullptr : &*at;
  }
  const json& need(std::string_view key, const std::string& expected) const {
    const json* const value = find(key);
    if (value == nullptr) refuse_field(name(key), expected, "nothing");
    return *value;
  }
  std::string text(std::string_view key) const {
    const json& value = need(key, "a string");
    if (!value.is_string()) refuse_field(name(key), "a string", shown(value));
    return value.get<std::string>();
  }
  bool boolean(std::string_view key, bool absent) const {
    const json* const value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) refuse_field(name(key), "true or false", shown(*value));
    return value->get<bool>();
  }
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most) const {
    const json* const value = find(key);
    if (value == nullptr) return {};
    const auto range = [&] { return "an integer of " + std::to_string(least) + " .. " + std::to_string(most); };
    if (!value->is_number_integer()) refuse_field(name(key), range(), shown(*value));
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      refuse_field(name(key), range(), shown(*value));
    const auto out = value->get<std::int64_t>();
    if (out < least || out > most) refuse_field(name(key), range(), shown(*value));
    return out;
  }
  std::optional<std::uint32_t> natural(std::string_view key, std::uint32_t least, std::uint32_t most) const {
    const auto out = integer(key, least, most);
    return out ? std::optional(static_cast<std::uint32_t>(*out)) : std::nullopt;
  }
  std::optional<float> number(std::string_view key, double least, double most) const {
    const json* const value = find(key);
    if (value == nullptr) return {};
    const auto range = [&] {
      return "a number of " + number_text(static_cast<float>(least)) + " .. " + number_text(static_cast<float>(most));
    };
    if (!value->is_number()) refuse_field(name(key), range(), shown(*value));
    const double out = value->get<double>();
    if (!(out >= least && out <= most)) refuse_field(name(key), range(), shown(*value));
    return static_cast<float>(out);
  }
  /// Fields that ask for what this server has not: taken where they ask for nothing, else refused.
  void refuse_unless_absent(std::string_view key, const std::string& why) const {
    const json* const value = find(key);
    if (value == nullptr || (value->is_boolean() && !value->get<bool>()) ||
        ((value->is_array() || value->is_object()) && value->empty()) || *value == "")
      return;
    refuse_field(name(key), "nothing: " + why, shown(*value), "unsupported_parameter");
  }
  void refuse_unless_absent(std::initializer_list<std::string_view> keys, const std::string& why) const {
    for (const std::string_view each : keys) refuse_unless_absent(each, why);
  }
  /// Fields that change nothing of the answer, whatever they say.
  void without_effect(std::initializer_list<std::string_view> keys) const {
    known_.insert(known_.end(), keys.begin(), keys.end());
  }
  /// Call it when all known fields were read. @throws api_error 400 naming one that was not
  void refuse_unknown(bool ignore) const {
    if (ignore) return;
    for (const auto& [key, value] : of_.items())
      require_known(key, known_, name(printable(key, 60)), "a field that this server knows");
  }

 private:
  const json& of_;
  std::string where_;
  mutable std::vector<std::string_view> known_;
};

}  // namespace intaglio::serve
