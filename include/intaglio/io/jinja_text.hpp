// SPDX-License-Identifier: MIT
// Python's string functions that chat templates use, by code points, not bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/jinja_value.hpp"

namespace intaglio::io::jinja {

/// Whether a character is white space for str.strip() and str.split().
inline bool is_blank(std::string_view character) {
  const code_point c = decode_utf8(character, 0);
  return c.valid && (class_of(c.value) == unicode_class::space || (c.value >= 0x1C && c.value <= 0x1F));
}

/// Python's str.strip(), lstrip() and rstrip(). @param set characters to remove; none: white space
inline std::string strip(std::string_view text, const std::optional<std::string>& set, bool left, bool right) {
  const auto parts = characters(text);
  const auto goes = [&](std::string_view c) { return set ? set->find(c) != std::string::npos : is_blank(c); };
  std::size_t begin = 0, end = parts.size();
  while (left && begin < end && goes(parts[begin])) ++begin;
  while (right && end > begin && goes(parts[end - 1])) --end;
  std::string out;
  for (; begin < end; ++begin) out += parts[begin];
  return out;
}

/// Python's str.split() and rsplit(). @param most number of cuts; negative: any number
inline list split(std::string_view text, const std::optional<std::string>& separator, std::int64_t most, bool right) {
  std::vector<std::string> out;
  if (separator && separator->empty()) throw template_error("split: empty separator");
  if (!separator) {
    const auto parts = characters(text);
    for (std::size_t i = 0; i < parts.size();) {
      while (i < parts.size() && is_blank(parts[i])) ++i;
      if (i == parts.size()) break;
      std::string word;
      const bool last = most >= 0 && static_cast<std::int64_t>(out.size()) == most;
      while (i < parts.size() && (last || !is_blank(parts[i]))) word += parts[i++];
      out.push_back(last ? strip(word, std::nullopt, false, true) : word);
    }
  } else if (right) {
    std::size_t end = text.size();
    while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
      const std::size_t at = end < separator->size() ? text.npos : text.rfind(*separator, end - separator->size());
      if (at == text.npos) break;
      out.emplace(out.begin(), text.substr(at + separator->size(), end - at - separator->size()));
      end = at;
    }
    out.emplace(out.begin(), text.substr(0, end));
  } else {
    std::size_t begin = 0;
    while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
      const std::size_t at = text.find(*separator, begin);
      if (at == text.npos) break;
      out.emplace_back(text.substr(begin, at - begin));
      begin = at + separator->size();
    }
    out.emplace_back(text.substr(begin));
  }
  list values;
  for (std::string& each : out) values.emplace_back(std::move(each));
  return values;
}

/// Python's str.replace(). @param most number of replacements; negative: any number
inline std::string replaced(std::string_view text, std::string_view from, std::string_view to, std::int64_t most) {
  std::string out;
  std::size_t at = 0;
  if (from.empty()) {
    for (const std::string_view each : characters(text)) {
      if (most != 0) out += to, --most;
      out += each;
    }
    return most != 0 ? out.append(to) : out;
  }
  for (std::size_t found; most != 0 && (found = text.find(from, at)) != text.npos; --most) {
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return out.append(text.substr(at));
}

/// The text of a value for HTML, as the filter escape gives it; a safe text is unchanged.
inline std::string escaped(const value& of) {
  std::string out = of.print();
  if (of.is_safe()) return out;
  for (const auto& [from, to] :
       {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}})
    out = replaced(out, from, to, -1);
  return out;
}

/// Converts letters of ASCII, Latin-1, Greek and Cyrillic to upper or lower case; other letters are unchanged.
inline std::string cased(std::string_view text, bool upper) {
  std::string out;
  for (const std::string_view each : characters(text)) {
    const code_point c = decode_utf8(each, 0);
    char32_t to = c.value;
    const auto in = [&](char32_t first, char32_t last) { return c.value >= first && c.value <= last; };
    if (upper) {
      if (in('a', 'z') || (in(0xE0, 0xFE) && c.value != 0xF7) || (in(0x3B1, 0x3C9) && c.value != 0x3C2) ||
          in(0x430, 0x44F))
        to -= 32;
      else if (in(0x450, 0x45F)) to -= 80;
    } else {
      if (in('A', 'Z') || (in(0xC0, 0xDE) && c.value != 0xD7) || (in(0x391, 0x3A9) && c.value != 0x3A2) ||
          in(0x410, 0x42F))
        to += 32;
      else if (in(0x400, 0x40F)) to += 80;
    }
    if (c.valid) append_utf8(out, to);
    else out += each;
  }
  return out;
}

/// Converts the first letter to upper case and the others to lower case; for each word with `words`.
inline std::string capitalized(std::string_view text, bool words) {
  std::string out;
  bool first = true;
  for (const std::string_view each : characters(text)) {
    out += cased(each, first);
    const code_point c = decode_utf8(each, 0);
    first = words && !(c.valid && is_letter(class_of(c.value)));
  }
  return out;
}

/// The indices of a Python slice of `size` elements, in order.
inline std::vector<std::size_t> sliced(std::size_t size, const value& from, const value& to, const value& by) {
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t step = by.is_none() ? 1 : by.integer();
  if (step == 0) throw template_error("slice step cannot be zero");
  const auto bound = [&](const value& given, std::int64_t absent) {
    if (given.is_none()) return absent;
    const std::int64_t at = given.integer() < 0 ? given.integer() + count : given.integer();
    return std::clamp<std::int64_t>(at, step < 0 ? -1 : 0, step < 0 ? count - 1 : count);
  };
  const std::int64_t begin = bound(from, step < 0 ? count - 1 : 0), end = bound(to, step < 0 ? -1 : count);
  std::vector<std::size_t> out;
  for (std::int64_t i = begin; step < 0 ? i > end : i < end; i += step) {
    out.push_back(static_cast<std::size_t>(i));
    if ((step < 0 ? i - end : end - i) <= (step < 0 ? -step : step)) break;
  }
  return out;
}

/// Python's % for strings: %s %r %d %i %f %x and %%, with flags, width and precision.
inline std::string formatted(std::string_view text, const list& given) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    std::string form = "%";
    while (++at < text.size() && std::string_view("-+ 0#.123456789").find(text[at]) != text.npos) form += text[at];
    const char kind = at < text.size() ? text[at] : 0;
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (next >= given.size() || form.size() > 12) throw template_error("%: not enough arguments for a format");
    const value& each = given[next++];
    char digits[512];
    if (kind == 's' || kind == 'r') {
      const std::string shown = kind == 's' ? each.print() : each.repr();
      std::string room(shown.size() + 512, '\0');
      room.resize(static_cast<std::size_t>(
          (std::max)(0, std::snprintf(room.data(), room.size(), (form + "s").c_str(), shown.c_str()))));
      out += room;
    } else if (kind == 'd' || kind == 'i' || kind == 'x' || kind == 'X') {
      const long long number = each.is_float() ? static_cast<long long>(each.number()) : each.integer();
      std::snprintf(digits, sizeof digits, (form + "ll" + kind).c_str(), number);
      out += digits;
    } else if (kind == 'f' || kind == 'e' || kind == 'g') {
      std::snprintf(digits, sizeof digits, (form + kind).c_str(), each.number());
      out += digits;
    } else {
      throw template_error(std::string("%: unknown format '") + kind + "'");
    }
  }
  if (next < given.size()) throw template_error("%: not all arguments converted");
  return out;
}

/// Python's str.format() for fields that are numbered, named or in turn, without attributes and format specifications.
/// @throws template_error for other fields, and where an argument misses
inline std::string filled(std::string_view text, const arguments& given) {
  std::string out;
  std::size_t next = 0;
  bool in_turn = false, numbered = false;
  const auto argument = [&](std::string_view field) -> const value& {
    const bool digits = field.find_first_not_of("0123456789") == field.npos && field.size() < 9;
    if (!digits) {
      for (const auto& [name, each] : given.named)
        if (name == field) return each;
      throw template_error("format: no argument named '" + std::string(field) + "'");
    }
    (field.empty() ? in_turn : numbered) = true;
    if (in_turn && numbered) throw template_error("format: fields in turn beside numbered ones");
    const std::size_t at = field.empty() ? next++ : std::stoul(std::string(field));
    if (at >= given.positional.size()) throw template_error("format: not enough arguments");
    return given.positional[at];
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char sign = text[at];
    if (sign != '{' && sign != '}') {
      out += sign;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == sign) {
      out += sign, ++at;
      continue;
    }
    const std::size_t end = sign == '{' ? text.find('}', at) : text.npos;
    if (end == text.npos) throw template_error("format: a brace without its other one");
    std::string_view field = text.substr(at + 1, end - at - 1);
    const bool shown = field.ends_with("!r");
    if (shown || field.ends_with("!s")) field.remove_suffix(2);
    if (field.find_first_of(".[:!{") != field.npos)
      throw template_error("format: expected a number or a name in braces, found '" + std::string(field) + "'");
    const value& each = argument(field);
    out += shown ? each.repr() : each.print();
    at = end;
  }
  return out;
}

/// A method of strings; undefined where there is none of this name.
inline value text_method(const std::string& text, const std::string& name) {
  const auto optional_text = [](const arguments& a, std::size_t at, const char* key) -> std::optional<std::string> {
    const value* found = a.find(at, key);
    return found == nullptr || found->is_none() ? std::nullopt : std::optional(found->text());
  };
  const auto needed = [](const arguments& a, std::size_t position) -> const value& {
    if (position >= a.positional.size()) throw template_error("a method of a string misses an argument");
    return a.positional[position];
  };
  const auto count = [](const arguments& a, std::size_t position, const char* key) {
    const value* found = a.find(position, key);
    return found == nullptr ? std::int64_t{-1} : found->integer();
  };
  const bool left = name == "lstrip", right = name == "rstrip";
  if (name == "strip" || left || right)
    return function(
        [=](const arguments& a) -> value { return strip(text, optional_text(a, 0, "chars"), !right, !left); });
  if (name == "split" || name == "rsplit")
    return function([=](const arguments& a) -> value {
      return split(text, optional_text(a, 0, "sep"), count(a, 1, "maxsplit"), name == "rsplit");
    });
  if (name == "startswith" || name == "endswith")
    return function([=](const arguments& a) -> value {
      const value& wanted = needed(a, 0);
      for (const value& each : wanted.is_list() ? wanted.items() : list{wanted})
        if (name == "startswith" ? text.starts_with(each.text()) : text.ends_with(each.text())) return true;
      return false;
    });
  if (name == "replace")
    return function([=](const arguments& a) -> value {
      return replaced(text, needed(a, 0).text(), needed(a, 1).text(), count(a, 2, "count"));
    });
  if (name == "upper" || name == "lower")
    return function([=](const arguments&) -> value { return cased(text, name == "upper"); });
  if (name == "title" || name == "capitalize")
    return function([=](const arguments&) -> value { return capitalized(text, name == "title"); });
  if (name == "find" || name == "rfind" || name == "index")
    return function([=](const arguments& a) -> value {
      const std::string& part = needed(a, 0).text();
      const std::size_t at = name == "rfind" ? text.rfind(part) : text.find(part);
      if (at == std::string::npos && name == "index") throw template_error("index: substring not found");
      if (at == std::string::npos) return std::int64_t{-1};
      return value::of_size(characters(std::string_view(text).substr(0, at)).size());
    });
  if (name == "count")
    return function([=](const arguments& a) -> value {
      const std::string& part = needed(a, 0).text();
      std::size_t out = part.empty() ? characters(text).size() + 1 : 0;
      for (std::size_t at = 0; !part.empty() && (at = text.find(part, at)) != std::string::npos; at += part.size())
        ++out;
      return value::of_size(out);
    });
  if (name == "join")
    return function([=](const arguments& a) -> value {
      std::string out;
      bool first = true;
      for (const value& each : elements(needed(a, 0))) out += (first ? "" : text) + each.text(), first = false;
      return out;
    });
  if (name == "format") return function([=](const arguments& a) -> value { return filled(text, a); });
  if (name == "splitlines")
    return function([=](const arguments&) -> value {
      list out = split(replaced(replaced(text, "\r\n", "\n", -1), "\r", "\n", -1), "\n", -1, false);
      if (!out.empty() && out.back().text().empty()) out.pop_back();
      return out;
    });
  if (name == "removeprefix" || name == "removesuffix")
    return function([=](const arguments& a) -> value {
      const std::string& part = needed(a, 0).text();
      if (name == "removeprefix") return text.starts_with(part) ? text.substr(part.size()) : text;
      return text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text;
    });
  if (name == "isdigit" || name == "isalpha" || name == "isalnum" || name == "isspace" || name == "isupper" ||
      name == "islower")
    return function([=](const arguments&) -> value {
      bool any = false;
      for (const std::string_view each : characters(text)) {
        const unicode_class kind = class_of(decode_utf8(each, 0).value);
        const bool cased_only = name == "isupper" || name == "islower";
        if (cased_only && kind != unicode_class::upper && kind != unicode_class::lower) continue;
        const bool fits = name == "isdigit"   ? kind == unicode_class::number
                          : name == "isalpha" ? is_letter(kind)
                          : name == "isalnum" ? is_letter(kind) || kind == unicode_class::number
                          : name == "isspace" ? is_blank(each)
                                              : (kind == unicode_class::upper) == (name == "isupper");
        if (!fits) return false;
        any = true;
      }
      return any;
    });
  return undefined{name};
}

}  // namespace intaglio::io::jinja
