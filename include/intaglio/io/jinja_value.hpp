// SPDX-License-Identifier: MIT
// The values of a chat template in Jinja: the Python values that templates use, with Python's names for them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "intaglio/io/unicode.hpp"

namespace intaglio::io::jinja {

/// A template that cannot be parsed or run, or that refuses its input.
struct template_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The value of a name without a value.
struct undefined {
  std::string name;
};

class value;
/// A list of a template.
using list = std::vector<value>;
struct dict;
/// What some filters give: elements that are read once, as those of Python's generators.
struct generator {
  list rest;
};

/// Positional and named arguments of a call.
struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
  const value* find(std::size_t position, std::string_view name) const;
};
/// A function that a template can call.
using function = std::function<value(const arguments&)>;

/// A value. Lists, dicts and functions are shared, as in Python.
class value {
 public:
  using content =
      std::variant<undefined, std::nullptr_t, bool, std::int64_t, double, std::string, std::shared_ptr<list>,
                   std::shared_ptr<dict>, std::shared_ptr<function>, std::shared_ptr<generator>>;
  value() = default;
  value(std::nullptr_t) : content_(nullptr) {}
  value(bool v) : content_(v) {}
  value(std::int64_t v) : content_(v) {}
  value(double v) : content_(v) {}
  value(std::string v) : content_(std::move(v)) {}
  value(std::string_view v) : content_(std::string(v)) {}
  value(const char* v) : content_(std::string(v)) {}
  value(undefined v) : content_(std::move(v)) {}
  value(list v) : content_(std::make_shared<list>(std::move(v))) {}
  value(std::shared_ptr<dict> v) : content_(std::move(v)) {}
  value(function v) : content_(std::make_shared<function>(std::move(v))) {}
  value(generator v) : content_(std::make_shared<generator>(std::move(v))) {}
  /// A text that the filters safe and escape give: where another text is added to it, that one is escaped.
  static value safe(std::string text) {
    value out(std::move(text));
    out.safe_ = true;
    return out;
  }
  bool is_safe() const { return safe_; }
  static value of_size(std::size_t v) { return static_cast<std::int64_t>(v); }
  static value of_json(const nlohmann::ordered_json& from);

  bool is_undefined() const { return std::holds_alternative<undefined>(content_); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(content_); }
  bool is_boolean() const { return std::holds_alternative<bool>(content_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(content_); }
  bool is_float() const { return std::holds_alternative<double>(content_); }
  bool is_number() const { return is_integer() || is_float() || is_boolean(); }
  bool is_string() const { return std::holds_alternative<std::string>(content_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<list>>(content_); }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<dict>>(content_); }
  bool is_callable() const { return std::holds_alternative<std::shared_ptr<function>>(content_); }
  bool is_generator() const { return std::holds_alternative<std::shared_ptr<generator>>(content_); }

  const std::string& text() const { return expect<std::string>("a string"); }
  const list& items() const { return *expect<std::shared_ptr<list>>("a list"); }
  dict& members() const { return *expect<std::shared_ptr<dict>>("a dict"); }
  /// The elements of a generator that nobody has read.
  list& unread() const { return expect<std::shared_ptr<generator>>("a generator")->rest; }
  const std::shared_ptr<dict>* dict_pointer() const { return std::get_if<std::shared_ptr<dict>>(&content_); }
  value call(const arguments& given) const { return (*expect<std::shared_ptr<function>>("a function"))(given); }
  std::int64_t integer() const {
    if (is_boolean()) return std::get<bool>(content_) ? 1 : 0;
    return expect<std::int64_t>("a whole number");
  }
  double number() const { return is_float() ? std::get<double>(content_) : static_cast<double>(integer()); }

  bool truth() const;
  std::string print() const;  ///< Python's str()
  std::string repr() const;   ///< Python's repr()
  const char* kind() const;   ///< for messages
  friend bool operator==(const value& a, const value& b);
  /// Python's < operator. @throws template_error: values without an order
  friend bool less(const value& a, const value& b);

 private:
  template <class T>
  const T& expect(const char* what) const {
    if (const auto* found = std::get_if<T>(&content_)) return *found;
    if (is_undefined()) throw template_error("'" + std::get<undefined>(content_).name + "' is undefined");
    throw template_error(std::string("expected ") + what + ", found " + kind());
  }
  content content_;
  bool safe_ = false;
};

/// A dict; keys keep the order in which they were added.
struct dict {
  std::vector<std::pair<value, value>> members;
  bool is_namespace = false;

  const value* find(const value& key) const {
    for (const auto& [known, found] : members)
      if (known == key) return &found;
    return nullptr;
  }
  void set(const value& key, value to) {
    for (auto& [known, found] : members)
      if (known == key) {
        found = std::move(to);
        return;
      }
    members.emplace_back(key, std::move(to));
  }
};

inline const value* arguments::find(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [known, found] : named)
    if (known == name) return &found;
  return nullptr;
}

inline value value::of_json(const nlohmann::ordered_json& from) {
  if (from.is_null()) return nullptr;
  if (from.is_boolean()) return from.get<bool>();
  if (from.is_number_integer()) return from.get<std::int64_t>();
  if (from.is_number()) return from.get<double>();
  if (from.is_string()) return from.get<std::string>();
  if (from.is_array()) {
    list out;
    for (const auto& each : from) out.push_back(of_json(each));
    return out;
  }
  auto out = std::make_shared<dict>();
  for (const auto& [key, each] : from.items()) out->members.emplace_back(key, of_json(each));
  return out;
}

inline const char* value::kind() const {
  constexpr const char* names[] = {"an undefined value", "none",   "a boolean", "a whole number", "a number",
                                   "a string",           "a list", "a dict",    "a function",     "a generator"};
  return names[content_.index()];
}

inline bool value::truth() const {
  if (is_boolean()) return std::get<bool>(content_);
  if (is_integer()) return integer() != 0;
  if (is_float()) return number() != 0;
  if (is_string()) return !text().empty();
  if (is_list()) return !items().empty();
  if (is_dict()) return !members().members.empty() || members().is_namespace;
  return is_callable() || is_generator();
}

/// Python's repr() of a float: the shortest digits that read back as the same number, with a point or an exponent.
inline std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char digits[64];
  const double size = std::fabs(v);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end =
      std::to_chars(digits, digits + sizeof digits, v, plain ? std::chars_format::fixed : std::chars_format::scientific)
          .ptr;
  std::string out(digits, end);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

/// Python's repr() of a string.
inline std::string quoted_text(std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\', out += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else out += c;
  }
  return out + quote;
}

inline std::string value::repr() const {
  if (is_string()) return quoted_text(text());
  if (is_undefined()) return "Undefined";
  return print();
}

inline std::string value::print() const {
  if (is_undefined()) return {};
  if (is_none()) return "None";
  if (is_boolean()) return truth() ? "True" : "False";
  if (is_integer()) return std::to_string(integer());
  if (is_float()) return float_text(number());
  if (is_string()) return text();
  if (is_generator()) throw template_error("a generator has no text; the filter list reads it");
  std::string out;
  if (is_list()) {
    for (const value& each : items()) out += (out.empty() ? "" : ", ") + each.repr();
    return "[" + out + "]";
  }
  if (!is_dict()) return "<function>";
  for (const auto& [key, each] : members().members) out += (out.empty() ? "" : ", ") + key.repr() + ": " + each.repr();
  return "{" + out + "}";
}

inline bool operator==(const value& a, const value& b) {
  if (a.is_number() && b.is_number())
    return a.is_float() || b.is_float() ? a.number() == b.number() : a.integer() == b.integer();
  if (a.content_.index() != b.content_.index()) return false;
  if (a.is_string()) return a.text() == b.text();
  if (a.is_list()) return a.items() == b.items();
  if (a.is_dict()) {
    const auto &one = a.members(), &other = b.members();
    if (one.members.size() != other.members.size()) return false;
    for (const auto& [key, each] : one.members)
      if (const value* found = other.find(key); found == nullptr || !(*found == each)) return false;
    return true;
  }
  return (!a.is_callable() && !a.is_generator()) || &a == &b;
}
/// Whether a is in front of b. @throws template_error for values without an order
inline bool less(const value& a, const value& b) {
  if (a.is_number() && b.is_number())
    return a.is_float() || b.is_float() ? a.number() < b.number() : a.integer() < b.integer();
  if (a.is_string() && b.is_string()) return a.text() < b.text();  // UTF-8 has the order of the code points
  if (a.is_list() && b.is_list())
    return std::lexicographical_compare(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                                        [](const value& x, const value& y) { return less(x, y); });
  throw template_error(std::string("no order between ") + a.kind() + " and " + b.kind());
}

/// The code points of a text, each as its bytes: Python counts, cuts and reverses by code points.
inline std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size(); at += out.back().size())
    out.push_back(text.substr(at, decode_utf8(text, at).bytes));
  return out;
}

/// The elements that a loop or a filter iterates over: of a list, keys of a dict, characters of a string. A generator
/// has none afterwards.
inline list elements(const value& of) {
  if (of.is_list()) return of.items();
  if (of.is_generator()) return std::exchange(of.unread(), {});
  list out;
  if (of.is_dict())
    for (const auto& member : of.members().members) out.push_back(member.first);
  else if (of.is_string())
    for (const std::string_view each : characters(of.text())) out.emplace_back(each);
  else if (!of.is_undefined()) throw template_error(std::string("expected a list, found ") + of.kind());
  return out;
}

}  // namespace intaglio::io::jinja
