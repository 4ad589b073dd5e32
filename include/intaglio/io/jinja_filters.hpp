// SPDX-License-Identifier: MIT
// Filters, tests and methods of Jinja (jinja2's filters.py and tests.py), with tojson as transformers has it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/number_text.hpp"
#include "intaglio/io/jinja_text.hpp"

namespace intaglio::io::jinja {

/// How JSON is written.
struct json_form {
  std::int64_t indent = -1;  ///< columns of each level; negative: one line
  std::string comma = ", ", colon = ": ";
  bool sorted = false, ascii = false;  ///< keys in their order; escapes in place of letters outside of ASCII
};
/// Writes JSON as Python's json.dumps does.
inline void write_json(const value& from, const json_form& form, std::size_t depth, std::string& out) {
  if (depth > 64) throw template_error("tojson: nested too deeply");
  const auto line = [&](std::size_t to) {
    if (form.indent >= 0) out += '\n', out.append(to * static_cast<std::size_t>(form.indent), ' ');
  };
  if (from.is_string()) {
    out += nlohmann::json(from.text()).dump(-1, ' ', form.ascii, nlohmann::json::error_handler_t::replace);
  } else if (from.is_list()) {
    out += '[';
    for (std::size_t i = 0; i < from.items().size(); ++i) {
      if (i != 0) out += form.comma;
      line(depth + 1);
      write_json(from.items()[i], form, depth + 1, out);
    }
    if (!from.items().empty()) line(depth);
    out += ']';
  } else if (from.is_dict()) {
    auto members = from.members().members;
    if (form.sorted)
      std::stable_sort(members.begin(), members.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i != 0) out += form.comma;
      line(depth + 1);
      const value& key = members[i].first;
      write_json(key.is_string() ? key : value(key.print()), form, depth + 1, out);
      out += form.colon;
      write_json(members[i].second, form, depth + 1, out);
    }
    if (!members.empty()) line(depth);
    out += '}';
  } else if (from.is_none()) {
    out += "null";
  } else if (from.is_boolean()) {
    out += from.truth() ? "true" : "false";
  } else if (from.is_number()) {
    out += from.print();
  } else {
    throw template_error(std::string("tojson: ") + from.kind() + " is not JSON");
  }
}
/// The filter tojson: a value as JSON. Its arguments are ensure_ascii, indent, separators and sort_keys.
inline std::string to_json(const arguments& a) {
  const auto truth = [&](std::size_t position, const char* key) {
    const value* found = a.find(position, key);
    return found != nullptr && found->truth();
  };
  const value* indent = a.find(2, "indent");
  json_form form;
  if (indent != nullptr && !indent->is_none()) form.indent = indent->integer(), form.comma = ",";
  if (form.indent > 64 || form.indent < (form.comma == "," ? 0 : -1))
    throw template_error("tojson: expected an indent 0 .. 64");
  if (const value* signs = a.find(3, "separators"); signs != nullptr && !signs->is_none()) {
    if (signs->items().size() != 2) throw template_error("tojson: expected two separators");
    form.comma = signs->items()[0].text(), form.colon = signs->items()[1].text();
  }
  form.ascii = truth(1, "ensure_ascii"), form.sorted = truth(4, "sort_keys");
  std::string out;
  write_json(a.positional.at(0), form, 0, out);
  return out;
}

/// An attribute or item of a value; undefined where it has none.
value attribute(const value& of, const std::string& name);
value item(const value& of, const value& key);  ///< an item by index or key; undefined where there is none

/// The attribute "a.b.0" of a value, in the form that filters take.
inline value attribute_path(const value& of, const value& path) {
  if (path.is_integer()) return item(of, path);
  value out = of;
  for (const value& part : split(path.text(), ".", -1, false)) {
    const std::string& name = part.text();
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 10;
    const value found = number ? item(out, std::int64_t{std::stoi(name)}) : item(out, name);
    out = found;
  }
  return out;
}
/// A test: whether a value passes it, with the arguments after the test's name.
using test = bool (*)(const value&, const arguments&);

/// The tests that may follow `is`.
inline const std::map<std::string, test, std::less<>>& tests() {
  using v = const value&;
  using a = const arguments&;
  static constexpr auto other = [](a given) -> v {
    if (given.positional.empty()) throw template_error("a test misses its argument");
    return given.positional[0];
  };
  static const std::map<std::string, test, std::less<>> out{
      {"defined", [](v x, a) { return !x.is_undefined(); }},
      {"undefined", [](v x, a) { return x.is_undefined(); }},
      {"none", [](v x, a) { return x.is_none(); }},
      {"boolean", [](v x, a) { return x.is_boolean(); }},
      {"true", [](v x, a) { return x.is_boolean() && x.truth(); }},
      {"false", [](v x, a) { return x.is_boolean() && !x.truth(); }},
      {"integer", [](v x, a) { return x.is_integer(); }},
      {"float", [](v x, a) { return x.is_float(); }},
      {"number", [](v x, a) { return x.is_number(); }},
      {"string", [](v x, a) { return x.is_string(); }},
      {"mapping", [](v x, a) { return x.is_dict(); }},
      {"sequence", [](v x, a) { return x.is_list() || x.is_dict() || x.is_string() || x.is_undefined(); }},
      {"iterable",
       [](v x, a) { return x.is_list() || x.is_dict() || x.is_string() || x.is_undefined() || x.is_generator(); }},
      {"callable", [](v x, a) { return x.is_callable(); }},
      {"odd", [](v x, a) { return x.integer() % 2 != 0; }},
      {"even", [](v x, a) { return x.integer() % 2 == 0; }},
      {"divisibleby",
       [](v x, a given) {
         if (other(given).integer() == 0) throw template_error("divisibleby: 0");
         return x.integer() % other(given).integer() == 0;
       }},
      {"upper", [](v x, a) { return text_method(x.print(), "isupper").call({}).truth(); }},
      {"lower", [](v x, a) { return text_method(x.print(), "islower").call({}).truth(); }},
      {"in",
       [](v x, a given) {
         if (other(given).is_string()) return other(given).text().find(x.text()) != std::string::npos;
         list all = elements(other(given));
         const auto found = std::find(all.begin(), all.end(), x);
         if (found == all.end()) return false;
         if (other(given).is_generator()) other(given).unread().assign(found + 1, all.end());
         return true;
       }},
      {"eq", [](v x, a given) { return x == other(given); }},
      {"ne", [](v x, a given) { return !(x == other(given)); }},
      {"lt", [](v x, a given) { return less(x, other(given)); }},
      {"gt", [](v x, a given) { return less(other(given), x); }},
      {"le", [](v x, a given) { return !less(other(given), x); }},
      {"ge", [](v x, a given) { return !less(x, other(given)); }},
      {"sameas", [](v x, a given) { return x.kind() == other(given).kind() && x == other(given); }},
  };
  return out;
}
inline bool run_test(std::string name, const value& of, const arguments& given) {  ///< runs a test by its name
  static const std::map<std::string, std::string, std::less<>> names{
      {"==", "eq"}, {"equalto", "eq"},     {"!=", "ne"}, {"<", "lt"}, {"lessthan", "lt"},
      {">", "gt"},  {"greaterthan", "gt"}, {"<=", "le"}, {">=", "ge"}};
  if (const auto known = names.find(name); known != names.end()) name = known->second;
  const auto found = tests().find(name);
  if (found == tests().end()) throw template_error("no test named '" + name + "'");
  return found->second(of, given);
}
/// Runs a filter by its name. @throws template_error for an unknown filter
value run_filter(const std::string& name, const arguments& given);
value dict_method(const std::shared_ptr<dict>& of, const std::string& name);  ///< the methods get, items, keys, values

/// The filters select, reject, selectattr, rejectattr and map.
inline value choose(const std::string& name, const arguments& a) {
  const bool attributed = name.ends_with("attr"), keeps = name.starts_with("select");
  std::size_t next = 1;
  const auto text_at = [&]() -> std::optional<std::string> {
    return next < a.positional.size() ? std::optional(a.positional[next++].text()) : std::nullopt;
  };
  list out;
  if (!a.positional.at(0).truth()) return generator{};  // as in jinja2, also of none
  if (name == "map") {
    const value* path = a.find(99, "attribute");
    const value* otherwise = a.find(99, "default");
    const auto filter = path == nullptr ? text_at() : std::nullopt;
    if (path == nullptr && !filter) throw template_error("map: expected a filter or an attribute");
    for (const value& each : elements(a.positional.at(0))) {
      if (path != nullptr) {
        const value found = attribute_path(each, *path);
        out.push_back(found.is_undefined() && otherwise != nullptr ? *otherwise : found);
        continue;
      }
      arguments given{{each}, a.named};
      given.positional.insert(given.positional.end(), a.positional.begin() + 2, a.positional.end());
      out.push_back(run_filter(*filter, given));
    }
    return generator{std::move(out)};
  }
  const auto path = attributed ? text_at() : std::nullopt;
  if (attributed && !path) throw template_error(name + ": expected an attribute");
  const auto tested = text_at();
  arguments more;
  more.positional.assign(a.positional.begin() + static_cast<std::ptrdiff_t>((std::min)(next, a.positional.size())),
                         a.positional.end());
  for (const value& each : elements(a.positional.at(0))) {
    const value of = path ? attribute_path(each, *path) : each;
    if ((tested ? run_test(*tested, of, more) : of.truth()) == keeps) out.push_back(each);
  }
  return generator{std::move(out)};
}

/// The filters sort, unique, min, max and dictsort.
inline value ordered(const std::string& name, const arguments& a) {
  const bool dicts = name == "dictsort";
  const auto argument = [&](std::size_t position, const char* key) { return a.find(position, key); };
  const auto truth = [](const value* found, bool absent) { return found == nullptr ? absent : found->truth(); };
  const bool extreme = name == "min" || name == "max", unique = name == "unique";
  const bool cased_too = truth(argument(dicts || extreme || unique ? 1 : 2, "case_sensitive"), false);
  const bool backwards = truth(argument(dicts ? 3 : 1, "reverse"), false) && !extreme && !unique;
  const value* by = argument(dicts ? 2 : extreme || unique ? 2 : 3, dicts ? "by" : "attribute");
  list all;
  if (dicts)
    for (const auto& [key, each] : a.positional.at(0).members().members) all.push_back(list{key, each});
  else all = elements(a.positional.at(0));
  const auto key_of = [&](const value& each) {
    value key = dicts                  ? each.items()[by != nullptr && by->text() == "value" ? 1 : 0]
                : by && !by->is_none() ? attribute_path(each, *by)
                                       : each;
    return key.is_string() && !cased_too ? value(cased(key.text(), false)) : key;
  };
  if (unique) {
    list out, seen;
    for (const value& each : all)
      if (const value key = key_of(each); std::find(seen.begin(), seen.end(), key) == seen.end())
        seen.push_back(key), out.push_back(each);
    return generator{std::move(out)};
  }
  const auto before = [&](const value& x, const value& y) { return less(key_of(x), key_of(y)); };
  if (extreme) {
    if (all.empty()) return undefined{name};
    return name == "min" ? *std::min_element(all.begin(), all.end(), before)
                         : *std::max_element(all.begin(), all.end(), before);
  }
  if (backwards) std::stable_sort(all.begin(), all.end(), [&](const value& x, const value& y) { return before(y, x); });
  else std::stable_sort(all.begin(), all.end(), before);
  return all;
}
/// The filters abs, int, float and round.
inline value number_filter(const std::string& name, const arguments& a) {
  const value& of = a.positional.at(0);
  if (name == "abs")
    return of.is_float() ? value(std::fabs(of.number())) : value(of.integer() < 0 ? -of.integer() : of.integer());
  if (name == "int" || name == "float") {
    const value* otherwise = a.find(1, "default");
    if (of.is_number() && name == "float") return of.number();
    if (of.is_number()) return of.is_float() ? static_cast<std::int64_t>(of.number()) : of.integer();
    const auto out = number_of_text(of.is_string() ? strip(of.text(), std::nullopt, true, true) : "");
    if (!out || std::fabs(*out) > 9e18)
      return otherwise != nullptr ? *otherwise : name == "int" ? value(std::int64_t{0}) : value(0.0);
    return name == "int" ? value(static_cast<std::int64_t>(*out)) : value(*out);
  }
  // round: Python rounds by the decimal digits, exact ties to even.
  const value *precision = a.find(1, "precision"), *method = a.find(2, "method");
  const std::int64_t digits_after = precision == nullptr ? 0 : precision->integer();
  if (digits_after < 0 || digits_after > 15) throw template_error("round: expected a precision 0 .. 15");
  const std::string how = method == nullptr ? "common" : method->text();
  const double scale = std::pow(10.0, static_cast<double>(digits_after));
  if (how == "ceil") return std::ceil(of.number() * scale) / scale;
  if (how == "floor") return std::floor(of.number() * scale) / scale;
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(digits_after), of.number());
  return std::strtod(digits, nullptr);  // in the locale that snprintf used
}

/// Filters of lists and other values with elements.
inline std::optional<value> list_filter(const std::string& name, const arguments& a) {
  const value& of = a.positional.at(0);
  if (of.is_generator() && (name == "length" || name == "count" || name == "last"))
    throw template_error(name + ": expected a list, found " + of.kind());
  if (name == "length" || name == "count")
    return value::of_size(of.is_dict() ? of.members().members.size() : elements(of).size());
  if (name == "first" || name == "last") {
    const list all = elements(of);
    if (of.is_generator() && !all.empty()) of.unread().assign(all.begin() + 1, all.end());
    return all.empty() ? value(undefined{name}) : name == "first" ? all.front() : all.back();
  }
  if (name == "list") return value(elements(of));
  if (name == "reverse") {
    list all = elements(of);
    std::reverse(all.begin(), all.end());
    if (of.is_generator()) return value(std::move(all));
    if (!of.is_string()) return generator{std::move(all)};
    std::string out;
    for (const value& each : all) out += each.text();
    return value(out);
  }
  if (name == "join") {
    const value *separator = a.find(1, "d"), *path = a.find(2, "attribute");
    std::string out;
    bool first = true;
    for (const value& each : elements(of)) {
      out += (first || separator == nullptr ? "" : separator->print());
      out += (path != nullptr ? attribute_path(each, *path) : each).print();
      first = false;
    }
    return value(out);
  }
  if (name == "sum") {
    const value* path = a.find(1, "attribute");
    double out = 0;
    bool whole = true;
    for (const value& each : elements(of)) {
      const value part = path != nullptr ? attribute_path(each, *path) : each;
      out += part.number(), whole = whole && !part.is_float();
    }
    return whole ? value(static_cast<std::int64_t>(out)) : value(out);
  }
  if (name == "items") {
    list out;
    if (of.is_undefined()) return generator{std::move(out)};
    for (const auto& [key, each] : of.members().members) out.push_back(list{key, each});
    return generator{std::move(out)};
  }
  for (const char* chooses : {"select", "reject", "selectattr", "rejectattr", "map"})
    if (name == chooses) return choose(name, a);
  for (const char* orders : {"sort", "unique", "min", "max", "dictsort"})
    if (name == orders) return ordered(name, a);
  return std::nullopt;
}

/// Filters of strings; other values are converted to strings first.
inline std::optional<value> text_filter(const std::string& name, const arguments& a) {
  const value& of = a.positional.at(0);
  const auto method = [&](const char* known) {
    const value out = text_method(of.print(), known).call({{a.positional.begin() + 1, a.positional.end()}, a.named});
    return of.is_safe() && name != "replace" ? value::safe(out.text()) : out;
  };
  if (name == "string") return of.is_safe() ? of : value(of.print());
  if (name == "safe") return value::safe(of.print());
  if (name == "trim") return method("strip");
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize" || name == "replace")
    return method(name.c_str());
  if (name == "wordcount") return value::of_size(split(of.print(), std::nullopt, -1, false).size());
  if (name == "format") return value(formatted(of.print(), {a.positional.begin() + 1, a.positional.end()}));
  if (name == "escape" || name == "e") return value::safe(escaped(of));
  if (name == "indent") {
    const value *width = a.find(1, "width"), *first = a.find(2, "first"), *blank = a.find(3, "blank");
    const std::int64_t columns = width == nullptr ? 4 : width->is_string() ? 0 : width->integer();
    if (columns < 0 || columns > 1000) throw template_error("indent: expected a width 0 .. 1000");
    const std::string space =
        width != nullptr && width->is_string() ? width->text() : std::string(static_cast<std::size_t>(columns), ' ');
    std::string out;
    bool head = true;
    for (const value& line : split(of.print(), "\n", -1, false)) {
      if (!head) out += '\n';
      const bool wanted =
          head ? first != nullptr && first->truth() : !line.text().empty() || (blank != nullptr && blank->truth());
      out += (wanted ? space : "") + line.text();
      head = false;
    }
    return of.is_safe() ? value::safe(std::move(out)) : value(std::move(out));
  }
  return std::nullopt;
}
/// Runs a filter by its name.
/// @throws template_error: no such filter, or a value that it does not accept
inline value run_filter(const std::string& name, const arguments& a) {
  const value& of = a.positional.at(0);
  if (name == "default" || name == "d") {
    const value *otherwise = a.find(1, "default_value"), *falsy = a.find(2, "boolean");
    const bool absent = of.is_undefined() || (falsy != nullptr && falsy->truth() && !of.truth());
    return !absent ? of : otherwise != nullptr ? *otherwise : value("");
  }
  if (name == "tojson") return to_json(a);
  if (name == "attr") {  // attr reads only the methods of a dict
    const std::string& wanted = a.positional.at(1).text();
    return of.is_dict() ? dict_method(*of.dict_pointer(), wanted) : attribute(of, wanted);
  }
  if (name == "abs" || name == "int" || name == "float" || name == "round") return number_filter(name, a);
  if (auto found = list_filter(name, a)) return *found;
  if (auto found = text_filter(name, a)) return *found;
  throw template_error("no filter named '" + name + "'");
}

inline value dict_method(const std::shared_ptr<dict>& of, const std::string& name) {
  if (name == "get")
    return function([of](const arguments& a) -> value {
      const value* found = of->find(a.positional.at(0));
      const value* otherwise = a.find(1, "default");
      return found != nullptr ? *found : otherwise != nullptr ? *otherwise : value(nullptr);
    });
  if (name == "items" || name == "keys" || name == "values")
    return function([of, name](const arguments&) -> value {
      list out;
      for (const auto& [key, each] : of->members)
        out.push_back(name == "items" ? value(list{key, each}) : name == "keys" ? key : each);
      return out;
    });
  return undefined{name};
}

inline value item(const value& of, const value& key) {
  if (of.is_dict()) {
    const value* found = of.members().find(key);
    return found != nullptr ? *found : value(undefined{key.print()});
  }
  if (of.is_undefined()) (void)of.text();  // throws the error that names it
  if (of.is_none()) return undefined{key.print()};
  if (!key.is_integer() && !key.is_boolean()) return undefined{key.print()};
  if (!of.is_list() && !of.is_string()) return undefined{key.print()};
  const list all = elements(of);
  const std::int64_t at = key.integer() < 0 ? key.integer() + static_cast<std::int64_t>(all.size()) : key.integer();
  return at < 0 || at >= static_cast<std::int64_t>(all.size()) ? value(undefined{key.print()})
                                                               : all[static_cast<std::size_t>(at)];
}

inline value attribute(const value& of, const std::string& name) {
  if (of.is_undefined()) (void)of.text();
  value method = undefined{name};
  if (of.is_string()) method = text_method(of.text(), name);
  if (of.is_safe() && !method.is_undefined())
    method = function([of = method](const arguments& a) -> value {
      const value out = of.call(a);
      return out.is_string() ? value::safe(out.text()) : out;
    });
  if (of.is_dict() && !of.members().is_namespace) {
    // A method goes before a key of the same name, as in Python.
    const auto* shared = of.dict_pointer();
    method = dict_method(*shared, name);
  }
  if (of.is_list() && (name == "index" || name == "count"))
    method = function([of, name](const arguments& a) -> value {
      const auto& all = of.items();
      if (name == "count") return static_cast<std::int64_t>(std::count(all.begin(), all.end(), a.positional.at(0)));
      const auto found = std::find(all.begin(), all.end(), a.positional.at(0));
      if (found == all.end()) throw template_error("index: value not in list");
      return static_cast<std::int64_t>(found - all.begin());
    });
  return method.is_undefined() ? item(of, name) : method;
}

}  // namespace intaglio::io::jinja
