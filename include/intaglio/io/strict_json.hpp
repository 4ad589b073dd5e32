// SPDX-License-Identifier: MIT
// JSON from untrusted sources: depth, duplicate keys, wrong types and excessive size are refused instead of guessed at.
// Every accessor names the path of keys.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "intaglio/core/error.hpp"
#include "intaglio/io/json_text.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// The deepest nesting of a document that is read.
inline constexpr std::size_t deepest_json = 32;
/// The largest number of values of a document that is read.
inline constexpr std::size_t most_json_values = 2'000'000;
/// The largest file that is read as a document.
inline constexpr std::uint64_t largest_json_bytes = std::uint64_t{256} << 20;

/// Builds a document. A reader that needs parts as they come overrides the handlers and does not pass these parts on.
class strict_json : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;
  explicit strict_json(std::string path) : path_(std::move(path)) {}

  /// @throws file_error: not a regular file, over 256 MiB, malformed, deeper than 32, a key twice in one object
  void read_file(const std::filesystem::path& file) {
    const mapped_file bytes(file);
    if (bytes.size() > largest_json_bytes)
      throw file_error(path_, std::nullopt, "JSON", "at most " + std::to_string(largest_json_bytes) + " bytes",
                       std::to_string(bytes.size()));
    std::string text(static_cast<std::size_t>(bytes.size()), '\0');
    bytes.read(0, std::as_writable_bytes(std::span(text)));
    read_text(text);
  }
  void read_text(std::string_view text) {
    // The lexer treats NUL as the end of the text and would ignore the rest.
    if (const auto nul = text.find('\0'); nul != std::string_view::npos)
      throw file_error(path_, nul, "JSON", "text", "a NUL byte");
    if (text.find(infinity) == text.npos) parse_json(text, *this);
    else parse_json(with_numbers(text), *this);
  }

  json& root() { return root_; }
  const std::string& path() const { return path_; }
  [[noreturn, gnu::cold]] void refuse(std::string_view where, std::string_view expected, std::string_view found) const {
    throw file_error(path_, std::nullopt, where, expected, found);
  }

  bool null() override { return put(json(nullptr)); }
  bool boolean(bool value) override { return put(json(value)); }
  bool number_integer(number_integer_t value) override { return put(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return put(json(value)); }
  bool string(string_t& value) override { return put(json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return stack_.pop_back(), true; }
  bool end_array() override { return stack_.pop_back(), true; }
  bool key(string_t& name) override {
    if (stack_.back()->contains(name))
      refuse("JSON key '" + printable(name) + "'", "each key once in an object", "it twice");
    slot_ = &(*stack_.back())[name];
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception&) override {
    throw file_error(path_, position == 0 ? 0 : position - 1, "JSON", "a well-formed document",
                     "an error near '" + printable(token, 60) + "'");
  }

 protected:
  std::size_t depth() const { return stack_.size(); }

 private:
  static constexpr std::string_view infinity = "Infinity";
  /// Replaces the names of infinities, which Python's json module writes: outside of strings a number of equal length
  /// that no float reaches stands for them.
  [[gnu::cold]] static std::string with_numbers(std::string_view text) {
    std::string out(text);
    bool inside = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] == '"') inside = !inside;
      else if (inside && out[i] == '\\') ++i;
      else if (!inside && std::string_view(out).substr(i).starts_with(infinity))
        out.replace(i, infinity.size(), "1e000308");
    }
    return out;
  }

  json* put(json&& value, bool) {
    if (++values_ > most_json_values) refuse("JSON", "at most " + std::to_string(most_json_values) + " values", "more");
    if (stack_.empty()) return root_ = std::move(value), &root_;
    if (stack_.back()->is_array()) return stack_.back()->push_back(std::move(value)), &stack_.back()->back();
    return *slot_ = std::move(value), slot_;
  }
  bool put(json&& value) { return put(std::move(value), true) != nullptr; }
  bool open(json&& value) {
    if (stack_.size() >= deepest_json) refuse("JSON", "nesting of at most " + std::to_string(deepest_json), "deeper");
    stack_.push_back(put(std::move(value), true));
    return true;
  }

  std::string path_;
  json root_;
  std::vector<json*> stack_;
  json* slot_ = nullptr;
  std::size_t values_ = 0;
};

/// A value of a document together with its path of keys, for accessors that throw file_error instead of guessing.
class located_json {
 public:
  using json = nlohmann::json;
  located_json(const std::string& file, std::string where, const json* value)
      : file_(&file), where_(std::move(where)), value_(value) {}

  bool present() const { return value_ != nullptr && !value_->is_null(); }
  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  bool is_number() const { return present() && value_->is_number(); }
  bool is_string() const { return present() && value_->is_string(); }
  bool is_object() const { return present() && value_->is_object(); }
  const std::string& where() const { return where_; }
  const std::string& file() const { return *file_; }
  /// Whether the value is null, false, 0 or empty.
  bool is_unwritten() const {
    return !present() || (value_->is_boolean() && !value_->get<bool>()) ||
           (value_->is_number() && value_->get<double>() == 0) || (is_string() && text().empty()) ||
           (value_->is_structured() && value_->empty());
  }

  /// Whether two values are equal; two absent ones are.
  bool equals(const located_json& other) const {
    return present() && other.present() ? *value_ == *other.value_ : present() == other.present();
  }

  /// Member of an object; absent where this is absent or has no such member. @throws file_error: present, but no object
  located_json operator[](const char* key) const {
    const json* found = nullptr;
    if (present()) {
      if (!value_->is_object()) refuse("an object");
      if (const auto at = value_->find(key); at != value_->end()) found = &*at;
    }
    return {*file_, where_.empty() ? key : where_ + "." + key, found};
  }
  /// Names of an object's members; none where absent. @throws file_error: present, but no object
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    if (!present()) return out;
    if (!value_->is_object()) refuse("an object");
    for (const auto& [key, value] : value_->items()) out.push_back(key);
    return out;
  }
  /// All members of an object, none where absent. @throws file_error: present, but no object
  std::vector<std::pair<std::string, located_json>> members() const {
    std::vector<std::pair<std::string, located_json>> out;
    if (!present()) return out;
    if (!value_->is_object()) refuse("an object");
    for (const auto& [key, value] : value_->items())
      out.emplace_back(key, located_json{*file_, where_.empty() ? key : where_ + "." + key, &value});
    return out;
  }
  /// Elements of an array; none where absent. @throws file_error: present, but no array
  std::vector<located_json> elements() const {
    std::vector<located_json> out;
    if (!present()) return out;
    if (!value_->is_array()) refuse("an array");
    for (std::size_t i = 0; i < value_->size(); ++i)
      out.emplace_back(*file_, where_ + "[" + std::to_string(i) + "]", &(*value_)[i]);
    return out;
  }
  const std::string& text() const {
    if (!is_string()) refuse("a string");
    return value_->get_ref<const std::string&>();
  }
  std::string text_or(std::string_view absent) const { return present() ? text() : std::string(absent); }
  bool boolean_or(bool absent) const {
    if (!present()) return absent;
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
  }
  std::uint64_t natural() const {
    if (!present() || !value_->is_number_unsigned()) refuse("a natural number");
    return value_->get<std::uint64_t>();
  }
  std::int64_t integer() const {
    if (!present() || !value_->is_number_integer() ||
        (value_->is_number_unsigned() && value_->get<std::uint64_t>() > 0x7FFF'FFFF'FFFF'FFFF))
      refuse("a whole number of 64 bits");
    return value_->get<std::int64_t>();
  }
  double number() const {
    if (!present() || !value_->is_number()) refuse("a number");
    return value_->get<double>();
  }
  /// A number beyond the range of float would be infinite, which no key of a config may be.
  float real() const {
    const double value = number();
    constexpr double most = (std::numeric_limits<float>::max)();
    return value > most    ? std::numeric_limits<float>::infinity()
           : value < -most ? -std::numeric_limits<float>::infinity()
                           : static_cast<float>(value);
  }
  [[noreturn, gnu::cold]] void refuse(std::string_view expected) const {
    throw file_error(*file_, std::nullopt, where_, expected,
                     present() ? printable(value_->dump(-1, ' ', false, json::error_handler_t::replace)) : "nothing");
  }

 private:
  const std::string* file_;
  std::string where_;
  const json* value_;
};

}  // namespace intaglio::io
