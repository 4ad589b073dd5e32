// SPDX-License-Identifier: MIT
// Patterns as automata: text_language::of_pattern. The syntax is ECMA-262's, the automaton Thompson's, made
// deterministic by sets of its states.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "text_language.hpp"

namespace intaglio::serve {
namespace pattern_parts {

using range = std::pair<std::uint32_t, std::uint32_t>;
using ranges = std::vector<range>;  ///< characters, both ends among them

constexpr std::uint32_t last_character = 0x10FFFF;

/// Ascending, apart, without surrogates.
inline ranges tidy(ranges of) {
  std::sort(of.begin(), of.end());
  ranges out;
  for (const auto& [first, last] : of)
    for (const auto& [from, until] : {range{0, 0xD7FF}, range{0xE000, last_character}}) {
      const std::uint32_t low = std::max(first, from), high = std::min(last, until);
      if (low > high) continue;
      if (!out.empty() && low <= out.back().second + 1) out.back().second = std::max(out.back().second, high);
      else out.emplace_back(low, high);
    }
  return out;
}
inline ranges inverse(const ranges& of) {
  ranges out;
  std::uint32_t next = 0;
  for (const auto& [first, last] : tidy(of)) {
    if (next < first) out.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= last_character) out.emplace_back(next, last_character);
  return tidy(out);
}
const ranges digits{{'0', '9'}}, word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
    space{{9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}},
    line_ends{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

/// States with at most two ways on, of one kind each.
struct way {
  enum : std::uint8_t { free, set, begin, end, look, looked } kind = free;
  ranges characters;
  std::uint32_t to = 0, other = 0;  ///< other: a second way of kind free, 0: none; what a lookahead asks for
};

/// A piece with one way in and one out.
struct piece {
  std::uint32_t in, out;
};

}  // namespace pattern_parts
using namespace pattern_parts;

class pattern_reader {
 public:
  pattern_reader(std::u32string_view text, language_budget& budget) : text_(text), budget_(budget) {
    ways_.emplace_back();
  }

  text_language read() {
    // What stands in front of the rest: (?=...) and (?!...), each as a language of its own.
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
    text_language out = automaton(whole, !looks.empty());
    for (const auto& [negative, text] : looks) {
      pattern_reader inner(text, budget_);
      const piece found = inner.alternatives(0);
      if (inner.at_ != text.size()) refuse("')' without '('");
      const text_language seen = inner.automaton(found, true);
      out = negative ? out.without(seen, budget_) : out.both(seen, budget_);
    }
    return out;
  }

 private:
  static constexpr std::size_t most_ways = 20'000;

  [[noreturn]] static void refuse(const std::string& what) {
    throw std::invalid_argument("the pattern has " + what + ", which is not supported here");
  }
  char32_t peek() const { return at_ < text_.size() ? text_[at_] : U'\0'; }
  bool next_is(std::u32string_view text) const { return text_.substr(at_).starts_with(text); }
  std::uint32_t add(way each) {
    if (ways_.size() >= most_ways) throw std::length_error("pattern");
    budget_.spend(10);
    ways_.push_back(std::move(each));
    return static_cast<std::uint32_t>(ways_.size() - 1);
  }
  piece nothing() {
    const std::uint32_t at = add({});
    return {at, at};
  }
  void join(std::uint32_t from, std::uint32_t to) {
    way& at = ways_[from];
    if (at.to == 0) at.to = to;
    else if (at.other == 0) at.other = to;
    else throw std::logic_error("pattern: three ways");
  }
  piece one(way each) {
    const std::uint32_t out = add({});
    each.to = out;
    return {add(std::move(each)), out};
  }

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
      const std::uint32_t in = add({}), out = add({});
      join(in, all.in), join(in, next.in), join(all.out, out), join(next.out, out);
      all = {in, out};
    }
    return all;
  }

  piece sequence(int depth) {
    piece all = nothing();
    while (at_ < text_.size() && peek() != U'|' && peek() != U')') {
      const piece next = repeated(depth);
      join(all.out, next.in);
      all.out = next.out;
    }
    return all;
  }

  piece repeated(int depth) {
    const std::size_t from = at_;
    piece first = atom(depth);
    const std::size_t until = at_;
    std::uint32_t least = 1;
    std::optional<std::uint32_t> most = 1;
    if (!quantifier(least, most)) return first;
    const std::size_t behind = at_;
    const auto again = [&] {  // read anew: each time is a piece of its own
      at_ = from;
      const piece out = atom(depth);
      at_ = until;
      return out;
    };
    piece all = nothing();
    const auto append = [&](piece each) { join(all.out, each.in), all.out = each.out; };
    bool used = false;
    const auto next = [&] { return std::exchange(used, true) ? again() : first; };
    for (std::uint32_t i = 0; i < least; ++i) append(next());
    if (!most) {
      const piece body = next();
      const std::uint32_t loop = add({}), out = add({});
      join(loop, body.in), join(loop, out), join(body.out, loop);
      append({loop, out});
    } else if (*most > least) {
      const std::uint32_t end = add({});
      std::vector<std::uint32_t> exits;
      for (std::uint32_t i = least; i < *most; ++i) {
        const piece body = next();
        const std::uint32_t choice = add({});
        join(choice, body.in), join(choice, end);
        append({choice, body.out});
      }
      append({end, end});
    }
    at_ = behind;
    return all;
  }

  bool quantifier(std::uint32_t& least, std::optional<std::uint32_t>& most) {
    switch (peek()) {
      case U'*':
        least = 0, most.reset(), ++at_;
        break;
      case U'+':
        most.reset(), ++at_;
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
          if (peek() == U'}') most.reset();
          else most = number();
        }
        if (peek() != U'}' || (most && *most < least)) refuse("'{' that begins no quantifier");
        ++at_;
        break;
      }
      default:
        return false;
    }
    if (peek() == U'?') ++at_;  // how much is tried first changes no language
    if (std::u32string_view(U"*+?{").find(peek()) != std::u32string_view::npos && at_ < text_.size())
      refuse("a quantifier behind a quantifier");
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
        return one({way::begin, {}, 0, 0});
      case U'$':
        return one({way::end, {}, 0, 0});
      case U'.':
        return one({way::set, inverse(line_ends), 0, 0});
      case U'(':
        return group(depth);
      case U'[':
        return one({way::set, character_class(), 0, 0});
      case U'\\':
        return one({way::set, escaped(false), 0, 0});
      case U'*':
      case U'+':
      case U'?':
      case U'{':
        refuse("a quantifier with nothing in front");
      case U'}':
      case U']':
        refuse("a bracket that was not opened");
      default:
        return one({way::set, tidy({{letter, letter}}), 0, 0});
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
        join(inner.out, add({way::looked, {}, 0, 0}));
        const std::uint32_t out = add({});
        return {add({way::look, {}, out, inner.in}), out};
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

  /// Behind the backslash.
  ranges escaped(bool in_class) {
    if (at_ >= text_.size()) refuse("'\\' at its end");
    const char32_t letter = text_[at_++];
    const auto hex = [&](std::size_t count) {
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
    };
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
      case U'u': {
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

  /// A reading: where the pattern is, and where the lookaheads are that have not been seen to match yet.
  using reading = std::pair<std::uint32_t, std::set<std::uint32_t>>;
  using readings = std::set<reading>;

  /// What follows for free. @param at_begin, at_end of the text
  void close(readings& list, bool at_begin, bool at_end) {
    std::vector<reading> open(list.begin(), list.end());
    readings out;
    readings met = list;
    const auto more = [&](reading each) {
      budget_.spend(20 + 10 * each.second.size());
      if (met.insert(each).second) open.push_back(std::move(each));
    };
    while (!open.empty()) {
      const reading at = std::move(open.back());
      open.pop_back();
      const auto passes = [&](const way& each) {
        return each.kind == way::free || (each.kind == way::begin && at_begin) || (each.kind == way::end && at_end);
      };
      const way& main = ways_[at.first];
      if (main.kind == way::look) {
        reading next{main.to, at.second};
        next.second.insert(main.other);
        more(std::move(next));
        continue;
      }
      if (passes(main)) {
        for (const std::uint32_t to : {main.to, main.other})
          if (to != 0) more({to, at.second});
        if (main.to != 0) continue;
      }
      const auto moves = std::find_if(at.second.begin(), at.second.end(), [&](std::uint32_t each) {
        return ways_[each].kind == way::looked || (passes(ways_[each]) && ways_[each].to != 0);
      });
      if (moves == at.second.end()) {
        out.insert(at);
        continue;
      }
      reading rest = at;
      rest.second.erase(*moves);
      if (ways_[*moves].kind == way::looked) {
        more(std::move(rest));
        continue;
      }
      for (const std::uint32_t to : {ways_[*moves].to, ways_[*moves].other}) {
        if (to == 0) continue;
        reading next = rest;
        next.second.insert(to);
        more(std::move(next));
      }
    }
    list = std::move(out);
  }

  /// Behind a character; nothing where it does not fit.
  std::optional<reading> behind(const reading& of, std::uint32_t character, std::uint32_t done) const {
    const auto step = [&](std::uint32_t at) -> std::uint32_t {
      if (at == done) return done;
      const way& each = ways_[at];
      if (each.kind != way::set) return 0;
      const bool within = std::any_of(each.characters.begin(), each.characters.end(),
                                      [&](const range& r) { return r.first <= character && character <= r.second; });
      return within ? each.to : 0;
    };
    reading out{step(of.first), {}};
    if (out.first == 0) return {};
    for (const std::uint32_t each : of.second) {
      const std::uint32_t next = step(each);
      if (next == 0) return {};
      out.second.insert(next);
    }
    return out;
  }

  /// @param anchored the pattern begins where the text does
  text_language automaton(piece whole, bool anchored) {
    const std::uint32_t done = add({});  // the pattern has matched: anything may follow
    join(whole.out, done);
    std::set<std::uint32_t> edges{0};
    for (const way& each : ways_)
      for (const auto& [first, last] : each.characters) edges.insert(first), edges.insert(last + 1);
    edges.insert(0xD800), edges.insert(0xE000), edges.erase(last_character + 1);
    text_language out;
    out.cuts_.assign(edges.begin(), edges.end());
    const reading matched{done, {}};
    std::map<readings, std::uint32_t> places;
    std::vector<readings> list;
    const auto place_of = [&](readings each) {
      if (each.empty()) return text_language::none;
      if (each.count(matched) != 0) each = {matched};
      const auto [at, fresh] = places.try_emplace(each, static_cast<std::uint32_t>(list.size()));
      if (fresh) list.push_back(std::move(each));
      if (list.size() > text_language::most_states) throw std::length_error("pattern");
      return at->second;
    };
    readings first{{whole.in, {}}};
    close(first, true, false);
    // The state in front of all is its own: ^ holds there alone.
    list.push_back(first.count(matched) != 0 ? readings{matched} : first);
    for (std::size_t i = 0; i < list.size(); ++i) {
      readings at_end = list[i];
      close(at_end, i == 0, true);
      out.accepts_.push_back(at_end.count(matched) != 0);
      text_language::row row(out.cuts_.size(), text_language::none);
      for (std::size_t k = 0; k < row.size(); ++k) {
        const std::uint32_t character = out.cuts_[k];
        if (character >= 0xD800 && character < 0xE000) continue;
        readings next;
        budget_.spend(3 * list[i].size() + 5);
        for (const reading& each : list[i])
          if (auto found = behind(each, character, done)) next.insert(std::move(*found));
        if (!anchored && next.count(matched) == 0) next.insert({whole.in, {}});  // or it begins behind this character
        close(next, false, false);
        row[k] = place_of(std::move(next));
      }
      out.next_.push_back(std::move(row));
    }
    out.trim();
    return out;
  }

  std::u32string_view text_;
  language_budget& budget_;
  std::size_t at_ = 0;
  std::vector<way> ways_;
};

namespace {

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

std::optional<text_language> language_of_format(std::string_view format, language_budget& budget) {
  // Days that each year has: the 29th of February is left out. RFC 3339, 4122, 4291, 5321, 3986, ISO 8601.
  const std::string date =
                        "(?:[1-9]\\d{3})-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]"
                        "\\d|30)|02-(?:0[1-9]|1\\d|2[0-"
                        "8]))",
                    clock = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?",
                    zone = "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)",
                    label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?", host = label + "(?:\\." + label + "){0,5}",
                    byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)", four = byte + "(?:\\." + byte + "){3}",
                    group = "[0-9a-fA-F]{1,4}",
                    six = "(?:(?:" + group + ":){7}" + group + "|(?:" + group + ":){1,6}:" + group + "|::" + group +
                          "|::)",
                    letters = "[A-Za-z0-9_+-]";
  const std::string uri = "[a-z][a-z0-9+.-]{0,15}://" + host +
                          "(?::[1-9]\\d{0,3})?(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*)?" +
                          "(?:\\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*)?(?:#[A-Za-z0-9._~/-]*)?";
  const std::map<std::string_view, std::string> known{
      {"date", date},
      {"time", clock + zone},
      {"date-time", date + "T" + clock + zone},
      {"duration", "P(?:\\d{1,6}D(?:T\\d{1,5}[HMS])?|\\d{1,5}W|T(?:\\d{1,5}H)?(?:\\d{1,5}M)?\\d{1,5}S|\\d{1,4}[YM])"},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"},
      {"email", letters + "+(?:\\." + letters + "+){0,5}@" + label + "(?:\\." + label + "){0,4}\\.[A-Za-z]{2,12}"},
      {"hostname", host},
      {"ipv4", four},
      {"ipv6", six},
      {"ipvanyaddress", four + "|" + six},
      {"ipv4interface", four},
      {"ipv6interface", six},
      {"ipvanyinterface", four + "|" + six},
      {"ipv4network", four + "/32"},
      {"ipv6network", six + "/128"},
      {"ipvanynetwork", four + "/32"},
      {"cidrv4", four + "/(?:[12]?\\d|3[0-2])"},
      {"e164", "\\+[1-9]\\d{6,14}"},
      {"uri", uri},
      {"url", uri},
      {"base64", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"},
      {"byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"},
      {"base64url", "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?"},
  };
  // They say what a text is for, not what it looks like.
  for (const std::string_view any : {"password", "binary", "path", "file-path", "directory-path"})
    if (format == any) return text_language::all();
  const auto found = known.find(format);
  if (found == known.end()) return {};
  return text_language::of_pattern("^(?:" + found->second + ")$", budget);
}

}  // namespace intaglio::serve
