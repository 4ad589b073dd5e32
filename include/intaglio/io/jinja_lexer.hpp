// SPDX-License-Identifier: MIT
// The tokens of a chat template in Jinja: text, and the content of tags. Layout as transformers sets it: trim_blocks,
// lstrip_blocks, and a line end at the end of the template is removed. Rules: jinja2's lexer.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/jinja_value.hpp"

namespace intaglio::io::jinja {

/// The kinds of tokens of a template.
enum class token_kind : std::uint8_t {
  data,
  print,
  print_end,
  block,
  block_end,
  name,
  string,
  integer,
  real,
  sign,
  end
};

/// A token of a template, and its line, counted from 1.
struct token {
  token_kind kind = token_kind::end;
  std::string text;
  std::size_t line = 1;
};

/// Splits a Jinja template into tokens.
class lexer {
 public:
  explicit lexer(std::string_view source) {
    for (std::size_t i = 0; i < source.size(); ++i)
      if (source[i] != '\r') text_ += source[i];
      else if (text_ += '\n'; i + 1 < source.size() && source[i + 1] == '\n') ++i;
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<token> tokens() && {
    while (at_ < text_.size()) read_data();
    out_.push_back({token_kind::end, "", line_});
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw template_error("line " + std::to_string(line_) + ": " + what);
  }
  bool next_is(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }
  void step(std::size_t bytes) {
    for (const std::size_t end = at_ + bytes; at_ < end; ++at_) line_ += text_[at_] == '\n';
  }
  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f'; }
  void skip_blanks() {
    while (at_ < text_.size() && blank(text_[at_])) step(1);
  }

  /// Reads text up to the next tag, and the tag.
  void read_data() {
    std::size_t tag = at_;
    while ((tag = text_.find('{', tag)) != std::string::npos && tag + 1 < text_.size() && text_[tag + 1] != '{' &&
           text_[tag + 1] != '%' && text_[tag + 1] != '#')
      ++tag;
    if (tag == std::string::npos || tag + 1 >= text_.size()) tag = text_.size();
    std::string_view data = std::string_view(text_).substr(at_, tag - at_);
    const char kind = tag < text_.size() ? text_[tag + 1] : 0, sign = tag + 2 < text_.size() ? text_[tag + 2] : 0;
    if (kind != 0 && sign == '-')
      while (!data.empty() && blank(data.back())) data.remove_suffix(1);
    else if (kind != 0 && kind != '{' && sign != '+') data = without_indent(data);
    if (!data.empty()) out_.push_back({token_kind::data, std::string(data), line_});
    step(tag - at_);
    if (kind == 0) return;
    step(sign == '-' || sign == '+' ? 3 : 2);
    if (kind == '#') return read_comment();
    if (kind == '%' && is_raw()) return read_raw();
    out_.push_back({kind == '{' ? token_kind::print : token_kind::block, "", line_});
    read_code(kind == '{');
  }
  /// lstrip_blocks: removes blanks between the start of a line and the tag.
  std::string_view without_indent(std::string_view data) const {
    const std::size_t line = data.rfind('\n');
    const std::size_t from = line == data.npos ? 0 : line + 1;
    if (from == 0 && !line_starts_) return data;
    for (std::size_t i = from; i < data.size(); ++i)
      if (!blank(data[i])) return data;
    return data.substr(0, from);
  }
  /// Handles the end of a tag. @param trims a line end after it is removed, as for all tags except those that print
  void end_tag(bool dash, bool plus, bool trims) {
    line_starts_ = false;
    if (dash) {
      const std::size_t before = at_;
      skip_blanks();
      line_starts_ = at_ > before && text_[at_ - 1] == '\n';
    } else if (trims && !plus && at_ < text_.size() && text_[at_] == '\n') {
      step(1);
      line_starts_ = true;
    }
  }

  void read_comment() {
    const std::size_t end = text_.find("#}", at_);
    if (end == std::string::npos) refuse("a comment without end");
    const char sign = end > at_ ? text_[end - 1] : 0;
    step(end + 2 - at_);
    end_tag(sign == '-', sign == '+', true);
  }
  bool is_raw() const {
    std::size_t i = at_;
    while (i < text_.size() && blank(text_[i])) ++i;
    if (text_.compare(i, 3, "raw") != 0) return false;
    for (i += 3; i < text_.size() && blank(text_[i]);) ++i;
    return text_.compare(i, 2, "%}") == 0 || text_.compare(i, 3, "-%}") == 0;
  }
  void read_raw() {
    std::size_t end = text_.find("%}", at_);
    const bool strips = text_[end - 1] == '-';
    step(end + 2 - at_);
    if (strips) skip_blanks();
    const std::size_t begin = at_;
    for (std::size_t tag = begin; (tag = text_.find("{%", tag)) != std::string::npos; ++tag) {
      std::size_t i = tag + 2;
      const bool dash = i < text_.size() && text_[i] == '-';
      if (dash || (i < text_.size() && text_[i] == '+')) ++i;
      while (i < text_.size() && blank(text_[i])) ++i;
      if (text_.compare(i, 6, "endraw") != 0) continue;
      std::string_view data = std::string_view(text_).substr(begin, tag - begin);
      while (dash && !data.empty() && blank(data.back())) data.remove_suffix(1);
      out_.push_back({token_kind::data, std::string(data), line_});
      end = text_.find("%}", i);
      if (end == std::string::npos) break;
      const char sign = text_[end - 1];
      step(end + 2 - at_);
      return end_tag(sign == '-', sign == '+', true);
    }
    refuse("raw without endraw");
  }

  void read_code(bool print) {
    const std::string_view close = print ? "}}" : "%}";
    int open = 0;  // braces of dicts
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) refuse("a tag without end");
      const char c = text_[at_];
      const bool dash = c == '-' || (c == '+' && !print);
      if (open == 0 && (next_is(close) || (dash && text_.compare(at_ + 1, 2, close) == 0))) {
        step(dash ? 3 : 2);
        out_.push_back({print ? token_kind::print_end : token_kind::block_end, "", line_});
        return end_tag(c == '-', c == '+', !print);
      }
      if (c == '\'' || c == '"') read_string(c);
      else if (c >= '0' && c <= '9') read_number();
      else if (is_word(c)) read_name();
      else read_sign(open);
    }
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80) != 0;
  }
  void read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    out_.push_back({token_kind::name, text_.substr(begin, at_ - begin), line_});
  }
  void read_number() {
    const auto digit = [&](std::size_t i) { return i < text_.size() && text_[i] >= '0' && text_[i] <= '9'; };
    std::string out;
    const auto digits = [&] {
      for (; digit(at_) || (at_ < text_.size() && text_[at_] == '_' && digit(at_ + 1)); ++at_)
        if (text_[at_] != '_') out += text_[at_];
    };
    digits();
    bool real = false;
    if (at_ < text_.size() && text_[at_] == '.' && digit(at_ + 1)) out += text_[at_++], digits(), real = true;
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      const std::size_t sign = at_ + 1 < text_.size() && (text_[at_ + 1] == '-' || text_[at_ + 1] == '+') ? 2 : 1;
      if (digit(at_ + sign)) {
        out.append(text_, at_, sign);
        at_ += sign;
        digits(), real = true;
      }
    }
    out_.push_back({real ? token_kind::real : token_kind::integer, out, line_});
  }
  void read_sign(int& open) {
    for (const std::string_view sign : {"**", "//", "==", "!=", ">=", "<="})
      if (next_is(sign)) {
        out_.push_back({token_kind::sign, std::string(sign), line_});
        return step(2);
      }
    const char c = text_[at_];
    if (std::string_view("+-*/%~[](){}<>=.:|,;").find(c) == std::string_view::npos)
      refuse(std::string("unexpected character '") + c + "'");
    open += c == '{' || c == '[' || c == '(' ? 1 : 0;
    if ((c == '}' || c == ']' || c == ')') && open-- == 0) refuse(std::string("unexpected '") + c + "'");
    out_.push_back({token_kind::sign, std::string(1, c), line_});
    step(1);
  }
  /// Reads a string with Python's escapes; a backslash before another character is kept.
  void read_string(char quote) {
    std::string out;
    const std::size_t line = line_;
    for (step(1); at_ < text_.size() && text_[at_] != quote;) {
      if (text_[at_] != '\\' || at_ + 1 >= text_.size()) {
        out += text_[at_];
        step(1);
        continue;
      }
      step(1);
      read_escape(out);
    }
    if (at_ >= text_.size()) refuse("a string without end");
    step(1);
    out_.push_back({token_kind::string, std::move(out), line});
  }
  void read_escape(std::string& out) {
    constexpr std::string_view plain = "nrtabfv\\'\"0", meant{"\n\r\t\a\b\f\v\\'\"\0", 11};
    const char c = text_[at_];
    step(1);
    if (c == '\n') return;
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits != 0 && at_ + digits <= text_.size()) {
      std::uint32_t code = 0;
      const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + at_ + digits, code, 16);
      if (problem == std::errc{} && end == text_.data() + at_ + digits && code <= 0x10FFFF) {
        append_utf8(out, static_cast<char32_t>(code));
        return step(digits);
      }
    }
    if (const std::size_t known = plain.find(c); known != plain.npos) out += meant[known];
    else out += '\\', out += c;
  }

  std::string text_;
  std::vector<token> out_;
  std::size_t at_ = 0, line_ = 1;
  bool line_starts_ = true;
};

}  // namespace intaglio::io::jinja
