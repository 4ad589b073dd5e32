// SPDX-License-Identifier: MIT
#include "gbnf.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/io/unicode.hpp>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "character_rules.hpp"

namespace intaglio::serve {
namespace {

constexpr std::uint32_t most_copies = 2000;
constexpr int most_brackets = 64;

class gbnf_reader {
 public:
  gbnf_reader(grammar& to, std::string_view text) : g(to), text_(text), characters_(to, character_form::plain) {}

  grammar::rule read() {
    if (!io::is_utf8(text_)) throw std::invalid_argument("expected UTF-8, found other bytes");
    blank(true);
    while (at_ < text_.size()) {
      named& of = named_of(name());
      blank(false);
      if (!take("::=")) refuse("'::='");
      if (of.known) refuse("one definition of a rule");
      of.known = true;
      alternatives(of.is, 0);
      if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') refuse("the end of the line");
      blank(true);
    }
    for (const auto& [known, of] : names_)
      if (!of.known)
        throw std::invalid_argument("expected a definition of the rule '" + printable(known, 60) + "', found none");
    const auto root = names_.find("root");
    if (root == names_.end()) throw std::invalid_argument("expected a rule called root, found none");
    return root->second.is;
  }

 private:
  struct named {
    grammar::rule is = 0;
    bool known = false;
  };

  [[noreturn]] void refuse(const std::string& expected) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i)
      if (text_[i] == '\n') ++line, column = 1;
      else ++column;
    throw std::invalid_argument("line " + std::to_string(line) + ", column " + std::to_string(column) + ": expected " +
                                expected + ", found " +
                                (at_ < text_.size() ? "'" + printable(text_.substr(at_, 12), 40) + "'" : "the end"));
  }
  bool looks_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  /// Blanks and comments; line ends too where a rule goes on in the next line.
  void blank(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) ++at_;
      else return;
    }
  }
  static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    if (at_ == begin) refuse("the name of a rule");
    return std::string(text_.substr(begin, at_ - begin));
  }
  named& named_of(const std::string& of) {
    const auto [at, fresh] = names_.try_emplace(of);
    if (fresh) at->second.is = g.add_rule();
    return at->second;
  }

  void alternatives(grammar::rule to, int depth) {
    if (depth > most_brackets) refuse("at most 64 brackets in one another");
    do {
      blank(true);
      g.add(to, sequence(depth));
    } while (take("|"));
  }
  std::vector<grammar::part> sequence(int depth) {
    std::vector<grammar::part> out;
    for (;;) {
      blank(depth > 0);
      if (at_ >= text_.size()) return out;
      const char c = text_[at_];
      std::optional<grammar::part> next;
      if (c == '"') next = literal();
      else if (c == '[') next = set();
      else if (c == '.') ++at_, next = characters_.rule_of({{0, 0xD7FF}, {0xE000, 0x10FFFF}});
      else if (c == '(') next = bracket(depth);
      else if (is_of_name(c)) next = named_of(name()).is;
      else return out;
      out.push_back(repeated(*next, depth));
    }
  }
  grammar::part bracket(int depth) {
    ++at_;
    const grammar::rule out = g.add_rule();
    alternatives(out, depth + 1);
    if (!take(")")) refuse("')'");
    return out;
  }
  grammar::part literal() {
    ++at_;
    std::string out;
    while (!looks_at('"')) {
      if (at_ >= text_.size() || looks_at('\n')) refuse("'\"'");
      io::append_utf8(out, character());
    }
    ++at_;
    return out;
  }
  grammar::part set() {
    ++at_;
    const bool other = take("^");
    std::map<std::uint32_t, std::uint32_t> found;  // first: last
    while (!looks_at(']')) {
      if (at_ >= text_.size() || looks_at('\n')) refuse("']'");
      const std::uint32_t first = character();
      std::uint32_t last = first;
      if (looks_at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') ++at_, last = character();
      if (last < first) refuse("a range that ascends");
      std::uint32_t& to = found[first];
      to = (std::max)(to, last);
    }
    ++at_;
    return characters_.rule_of(ranges_of(found, other));
  }
  /// Without surrogates. @param other all characters but these
  character_writer::ranges ranges_of(const std::map<std::uint32_t, std::uint32_t>& found, bool other) const {
    character_writer::ranges merged, out;
    for (const auto& [first, last] : found)
      if (!merged.empty() && first <= merged.back().second + 1)
        merged.back().second = (std::max)(merged.back().second, last);
      else merged.emplace_back(first, last);
    if (other) {
      std::uint32_t next = 0;
      character_writer::ranges rest;
      for (const auto& [first, last] : merged) {
        if (first > next) rest.emplace_back(next, first - 1);
        next = last + 1;
      }
      if (next <= 0x10FFFF) rest.emplace_back(next, 0x10FFFF);
      merged = std::move(rest);
    }
    for (const auto& [first, last] : merged) {
      if (first < 0xD800) out.emplace_back(first, (std::min)(last, 0xD7FFu));
      if (last > 0xDFFF) out.emplace_back((std::max)(first, 0xE000u), last);
    }
    return out;
  }
  char32_t character() {
    if (!take("\\")) {
      const io::code_point found = io::decode_utf8(text_, at_);
      at_ += found.bytes;
      return found.value;
    }
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
        return static_cast<char32_t>(c);
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        --at_;
        refuse("one of n r t \\ \" [ ] - ^ / xHH uHHHH UHHHHHHHH after '\\'");
    }
  }
  char32_t hex(std::size_t digits) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const int value = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) refuse(std::to_string(digits) + " hexadecimal digits");
      out = out << 4 | static_cast<std::uint32_t>(value);
      ++at_;
    }
    if (out > 0x10FFFF || (out >= 0xD800 && out <= 0xDFFF)) refuse("a character of Unicode in front");
    return out;
  }

  std::uint32_t count() {
    std::uint32_t out = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if ((out = out * 10 + static_cast<std::uint32_t>(text_[at_] - '0')) > most_copies) refuse("at most 2000 repeats");
    if (at_ == begin) refuse("a number of repeats");
    return out;
  }
  /// The repetitions after an item: * + ? {n} {n,} {n,m}; there may be several.
  grammar::part repeated(grammar::part item, int depth) {
    for (;;) {
      blank(depth > 0);
      if (take("*")) item = repeated(item, 0, {});
      else if (take("+")) item = repeated(item, 1, {});
      else if (take("?")) item = repeated(item, 0, 1);
      else if (take("{")) {
        blank(false);
        const std::uint32_t least = looks_at(',') ? 0 : count();
        std::optional<std::uint32_t> most = least;
        blank(false);
        if (take(",")) {
          blank(false);
          most = looks_at('}') ? std::nullopt : std::optional(count());
        }
        blank(false);
        if (!take("}")) refuse("'}'");
        if (most && *most < least) refuse("as many repeats at most as at least");
        item = repeated(item, least, most);
      } else {
        return item;
      }
    }
  }
  grammar::part repeated(const grammar::part& item, std::uint32_t least, std::optional<std::uint32_t> most) {
    grammar::rule rest = g.add_rule({});
    if (!most) {
      g.add(rest, {item, rest});
    } else {
      for (std::uint32_t i = least; i < *most; ++i) {
        const grammar::rule longer = g.add_rule({});
        g.add(longer, {item, rest});
        rest = longer;
      }
    }
    std::vector<grammar::part> all(least, item);
    all.emplace_back(rest);
    const grammar::rule out = g.add_rule();
    g.add(out, all);
    return out;
  }

  grammar& g;
  std::string_view text_;
  std::size_t at_ = 0;
  character_writer characters_;
  std::map<std::string, named> names_;
};

}  // namespace

grammar::rule add_gbnf(grammar& to, std::string_view text) { return gbnf_reader(to, text).read(); }

}  // namespace intaglio::serve
