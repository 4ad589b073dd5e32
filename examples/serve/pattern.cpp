// SPDX-License-Identifier: MIT
// Patterns as text_language::of_pattern reads them. The syntax is ECMA-262's; pattern_automaton.hpp has the states.
#include <stdexcept>
#include <utility>

#include "pattern_automaton.hpp"

namespace intaglio::serve {
namespace {

using ranges = character_ranges;
using way = pattern_automaton::way;
using piece = pattern_automaton::piece;

const ranges digits{{'0', '9'}}, word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
    space{{9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}},
    line_ends{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

/// Characters of a pattern, and the escapes and classes that denote sets of them.
class character_reader {
 protected:
  explicit character_reader(std::u32string_view text) : text_(text) {}

  [[noreturn]] static void refuse(const std::string& what) {
    throw std::invalid_argument("the pattern has " + what + ", which is not supported here");
  }
  char32_t peek() const { return at_ < text_.size() ? text_[at_] : U'\0'; }
  bool next_is(std::u32string_view text) const { return text_.substr(at_).starts_with(text); }

  /// The number of an escape's next digits.
  std::uint32_t hex(std::size_t count) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < count; ++i, ++at_) {
      const char32_t d = peek();
      const std::uint32_t value = d >= U'0' && d <= U'9'   ? d - U'0'
                                  : d >= U'a' && d <= U'f' ? d - U'a' + 10
                                  : d >= U'A' && d <= U'F' ? d - U'A' + 10
                                                           : 16;
      if (value == 16) refuse("an escape without its digits");
      out = out * 16 + value;
    }
    return out;
  }
  /// Behind `\u`: four digits, two surrogates, or digits in braces.
  ranges unicode_escape() {
    const auto one = [](std::uint32_t each) { return ranges{{each, each}}; };
    if (peek() != U'{') {
      const std::uint32_t high = hex(4);
      if (high < 0xD800 || high > 0xDBFF || !next_is(U"\\u")) return tidy(one(high));
      at_ += 2;
      const std::uint32_t low = hex(4);
      if (low < 0xDC00 || low > 0xDFFF) refuse("half of a surrogate pair");
      return one(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    }
    const auto end = text_.find(U'}', ++at_);
    if (end == std::u32string_view::npos || end == at_ || end - at_ > 6) refuse("an escape without its digits");
    const std::uint32_t out = hex(end - at_);
    ++at_;
    if (out > last_character) refuse("an escape beyond Unicode");
    return tidy(one(out));
  }

  /// Behind the backslash.
  ranges escaped(bool in_class) {
    if (at_ >= text_.size()) refuse("'\\' at its end");
    const char32_t letter = text_[at_++];
    const auto one = [](std::uint32_t each) { return ranges{{each, each}}; };
    switch (letter) {
      case U'd':
        return digits;
      case U'D':
        return inverse(digits);
      case U'w':
        return word;
      case U'W':
        return inverse(word);
      case U's':
        return space;
      case U'S':
        return inverse(space);
      case U't':
        return one('\t');
      case U'n':
        return one('\n');
      case U'r':
        return one('\r');
      case U'v':
        return one('\v');
      case U'f':
        return one('\f');
      case U'0':
        if (peek() >= U'0' && peek() <= U'9' && at_ < text_.size()) refuse("an octal escape");
        return one(0);
      case U'x':
        return one(hex(2));
      case U'u':
        return unicode_escape();
      case U'b':
        if (in_class) return one('\b');
        [[fallthrough]];
      default:
        if ((letter >= U'a' && letter <= U'z') || (letter >= U'A' && letter <= U'Z') ||
            (letter >= U'1' && letter <= U'9'))
          refuse(std::string("'\\") + static_cast<char>(letter) + "'");
        return tidy(one(letter));
    }
  }

  /// Behind the bracket.
  ranges character_class() {
    const bool negated = peek() == U'^' && at_ < text_.size();
    if (negated) ++at_;
    ranges out;
    const auto item = [&]() -> ranges {
      if (at_ >= text_.size()) refuse("'[' without ']'");
      const char32_t letter = text_[at_++];
      return letter == U'\\' ? escaped(true) : ranges{{letter, letter}};
    };
    while (peek() != U']' || at_ >= text_.size()) {
      const ranges first = item();
      if (peek() == U'-' && at_ + 1 < text_.size() && text_[at_ + 1] != U']') {
        ++at_;
        const ranges last = item();
        if (first.size() != 1 || last.size() != 1 || first[0].first != first[0].second ||
            last[0].first != last[0].second || last[0].first < first[0].first)
          refuse("a range without two ends");
        out.emplace_back(first[0].first, last[0].first);
      } else {
        out.insert(out.end(), first.begin(), first.end());
      }
    }
    ++at_;
    return negated ? inverse(out) : tidy(out);
  }

  std::u32string_view text_;
  std::size_t at_ = 0;
};

/// A reader by recursive descent, which adds states as it reads.
class pattern_reader : character_reader {
  static constexpr std::uint32_t unbounded = 0xFFFF'FFFFu;

 public:
  pattern_reader(std::u32string_view text, language_budget& budget)
      : character_reader(text), budget_(budget), states_(budget) {}

  text_language read() {
    // Lookaheads in front of the rest, (?=...) and (?!...), each as a language of its own.
    std::vector<std::pair<bool, std::u32string_view>> looks;
    const bool from_begin = text_.starts_with(U"^");
    std::size_t after_begin = from_begin ? 1 : 0;
    while (from_begin &&
           (text_.substr(after_begin).starts_with(U"(?=") || text_.substr(after_begin).starts_with(U"(?!"))) {
      const std::size_t end = closing(after_begin);
      looks.emplace_back(text_[after_begin + 2] == U'!', text_.substr(after_begin + 3, end - after_begin - 3));
      after_begin = end + 1;
    }
    if (!looks.empty() && top_level_choice(after_begin)) refuse("a lookahead beside |");
    at_ = looks.empty() ? 0 : after_begin;
    const piece whole = alternatives(0);
    if (at_ != text_.size()) refuse("')' without '('");
    text_language out = states_.language(whole, !looks.empty());
    for (const auto& [negative, text] : looks) {
      pattern_reader inner(text, budget_);
      const piece found = inner.alternatives(0);
      if (inner.at_ != text.size()) refuse("')' without '('");
      const text_language seen = inner.states_.language(found, true);
      out = negative ? out.without(seen, budget_) : out.both(seen, budget_);
    }
    return out;
  }

 private:
  /// The end of the group that opens there.
  std::size_t closing(std::size_t open) const {
    int depth = 0;
    bool in_class = false;
    for (std::size_t i = open; i < text_.size(); ++i) {
      if (text_[i] == U'\\') ++i;
      else if (in_class) in_class = text_[i] != U']';
      else if (text_[i] == U'[') in_class = true;
      else if (text_[i] == U'(') ++depth;
      else if (text_[i] == U')' && --depth == 0) return i;
    }
    refuse("'(' without ')'");
  }
  bool top_level_choice(std::size_t from) const {
    for (std::size_t i = from; i < text_.size(); ++i) {
      if (text_[i] == U'\\') ++i;
      else if (text_[i] == U'(') i = closing(i);
      else if (text_[i] == U'[')
        while (i < text_.size() && text_[i] != U']') i += text_[i] == U'\\' ? 2 : 1;
      else if (text_[i] == U'|') return true;
    }
    return false;
  }

  piece alternatives(int depth) {
    if (depth > 100) refuse("groups that nest more than 100 deep");
    piece all = sequence(depth);
    while (peek() == U'|' && at_ < text_.size()) {
      ++at_;
      const piece next = sequence(depth);
      const std::uint32_t in = states_.add({}), out = states_.add({});
      states_.join(in, all.in), states_.join(in, next.in), states_.join(all.out, out), states_.join(next.out, out);
      all = {in, out};
    }
    return all;
  }

  piece sequence(int depth) {
    piece all = states_.nothing();
    while (at_ < text_.size() && peek() != U'|' && peek() != U')') {
      const piece next = repeated(depth);
      states_.join(all.out, next.in);
      all.out = next.out;
    }
    return all;
  }

  piece repeated(int depth) {
    const std::size_t from = at_;
    piece first = atom(depth);
    const std::size_t until = at_;
    std::uint32_t least = 1, most = 1;
    if (!quantifier(least, most)) return first;
    const std::size_t after = at_;
    const auto again = [&] {  // read anew: each time is a piece of its own
      at_ = from;
      const piece out = atom(depth);
      at_ = until;
      return out;
    };
    piece all = states_.nothing();
    const auto append = [&](piece each) { states_.join(all.out, each.in), all.out = each.out; };
    bool used = false;
    const auto next = [&] { return std::exchange(used, true) ? again() : first; };
    for (std::uint32_t i = 0; i < least; ++i) append(next());
    if (most == unbounded) {
      const piece body = next();
      const std::uint32_t loop = states_.add({}), out = states_.add({});
      states_.join(loop, body.in), states_.join(loop, out), states_.join(body.out, loop);
      append({loop, out});
    } else if (most > least) {
      const std::uint32_t end = states_.add({});
      std::vector<std::uint32_t> exits;
      for (std::uint32_t i = least; i < most; ++i) {
        const piece body = next();
        const std::uint32_t choice = states_.add({});
        states_.join(choice, body.in), states_.join(choice, end);
        append({choice, body.out});
      }
      append({end, end});
    }
    at_ = after;
    return all;
  }

  /// @param most how often at most, or unbounded  @return false: none is there
  bool quantifier(std::uint32_t& least, std::uint32_t& most) {
    switch (peek()) {
      case U'*':
        least = 0, most = unbounded, ++at_;
        break;
      case U'+':
        most = unbounded, ++at_;
        break;
      case U'?':
        least = 0, ++at_;
        break;
      case U'{': {
        ++at_;
        least = number();
        most = least;
        if (peek() == U',') {
          ++at_;
          if (peek() == U'}') most = unbounded;
          else most = number();
        }
        if (peek() != U'}' || most < least) refuse("'{' that begins no quantifier");
        ++at_;
        break;
      }
      default:
        return false;
    }
    if (peek() == U'?') ++at_;  // how much is tried first changes no language
    if (std::u32string_view(U"*+?{").find(peek()) != std::u32string_view::npos && at_ < text_.size())
      refuse("a quantifier after a quantifier");
    return true;
  }
  std::uint32_t number() {
    std::uint32_t out = 0;
    const std::size_t from = at_;
    for (; peek() >= U'0' && peek() <= U'9'; ++at_)
      if ((out = out * 10 + static_cast<std::uint32_t>(peek() - U'0')) > 2000) throw std::length_error("pattern");
    if (at_ == from) refuse("'{' that begins no quantifier");
    return out;
  }

  piece atom(int depth) {
    const char32_t letter = peek();
    ++at_;
    switch (letter) {
      case U'^':
        return states_.one({way::begin, {}, 0, 0});
      case U'$':
        return states_.one({way::end, {}, 0, 0});
      case U'.':
        return states_.one({way::set, inverse(line_ends), 0, 0});
      case U'(':
        return group(depth);
      case U'[':
        return states_.one({way::set, character_class(), 0, 0});
      case U'\\':
        return states_.one({way::set, escaped(false), 0, 0});
      case U'*':
      case U'+':
      case U'?':
      case U'{':
        refuse("a quantifier with nothing in front");
      case U'}':
      case U']':
        refuse("a bracket that was not opened");
      default:
        return states_.one({way::set, tidy({{letter, letter}}), 0, 0});
    }
  }

  piece group(int depth) {
    if (peek() == U'?') {
      if (next_is(U"?:")) at_ += 2;
      else if (next_is(U"?<") && !next_is(U"?<=") && !next_is(U"?<!")) {
        const auto end = text_.find(U'>', at_);
        if (end == std::u32string_view::npos) refuse("a name without '>'");
        at_ = end + 1;
      } else if (next_is(U"?=")) {
        at_ += 2;
        const piece inner = alternatives(depth + 1);
        closed();
        states_.join(inner.out, states_.add({way::looked, {}, 0, 0}));
        const std::uint32_t out = states_.add({});
        return {states_.add({way::look, {}, out, inner.in}), out};
      } else refuse(next_is(U"?!") ? "a negative lookahead that is not at the beginning" : "'(?'");
    }
    const piece out = alternatives(depth + 1);
    closed();
    return out;
  }
  void closed() {
    if (peek() != U')' || at_ >= text_.size()) refuse("'(' without ')'");
    ++at_;
  }

  language_budget& budget_;
  pattern_automaton states_;
};

std::u32string wide(std::string_view utf8) {
  std::u32string out;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto first = static_cast<unsigned char>(utf8[i++]);
    const int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    char32_t value = more == 0 ? first : first & (0x3Fu >> more);
    for (int k = 0; k < more && i < utf8.size(); ++k)
      value = value << 6 | (static_cast<unsigned char>(utf8[i++]) & 0x3Fu);
    out += value;
  }
  return out;
}

}  // namespace

text_language text_language::of_pattern(std::string_view pattern, language_budget& budget) {
  const std::u32string text = wide(pattern);
  return pattern_reader(text, budget).read();
}

}  // namespace intaglio::serve
