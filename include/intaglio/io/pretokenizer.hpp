// SPDX-License-Identifier: MIT
// Splits text into the pieces within which byte-level BPE merges. A pre-tokenizer is a list of stages, each the
// hand-written equivalent of a published regular expression: a stage cuts out what it matches, and the next one cuts
// matches and gaps alike. Linear in the text. Bytes that are not UTF-8 count as symbols, one each. Expressions: docs of
// tokenizers, llama.cpp src/llama-vocab.cpp; names: pretokenizer_names.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "intaglio/io/cased_letters.hpp"
#include "intaglio/io/digits_and_scripts.hpp"
#include "intaglio/io/han_characters.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// A position in text with the character there; the matchers below use it.
struct text_cursor {
  std::string_view text;
  std::size_t at = 0;
  char32_t value = 0;
  std::uint32_t bytes = 0;  ///< 0 at the end of the text
  unicode_class kind = unicode_class::other;

  constexpr text_cursor(std::string_view whole, std::size_t start) : text(whole), at(start) { read(); }
  constexpr void read() {
    if (at >= text.size()) {
      bytes = 0, value = 0, kind = unicode_class::other;
      return;
    }
    const code_point next = decode_utf8(text, at);
    value = next.value, bytes = next.bytes;
    kind = next.valid ? class_of(value) : unicode_class::other;
  }
  constexpr bool end() const { return bytes == 0; }
  constexpr void step() { at += bytes, read(); }
  constexpr text_cursor next() const {
    auto out = *this;
    out.step();
    return out;
  }
  constexpr bool letter() const { return is_letter(kind); }
  constexpr bool number() const { return kind == unicode_class::number; }
  constexpr bool space() const { return kind == unicode_class::space; }
  constexpr bool mark() const { return kind == unicode_class::mark; }
  constexpr bool newline() const { return bytes == 1 && (value == U'\r' || value == U'\n'); }
  /// Matches `[^\s\p{L}\p{N}]`.
  constexpr bool symbol() const { return !end() && !letter() && !number() && !space(); }
};

namespace pretokenize {

/// A function that gives the end of a stage's match at `start`; `start` where it matches nothing.
using piece_matcher = std::size_t (*)(std::string_view text, std::size_t start);

/// Bytes of 's 't 'm 'd 're 've 'll at the apostrophe under the cursor, or 0.
constexpr std::size_t contraction(const text_cursor& at, bool any_case) {
  if (at.value != U'\'') return 0;
  const auto fold = [&](const text_cursor& c) -> char32_t {
    if (c.end()) return 0;
    if (any_case && c.value == U'\u017F')
      return U's';  // LONG S folds to s, and the published expression ignores case by Unicode's rules
    return any_case && c.value >= U'A' && c.value <= U'Z' ? c.value + 32 : c.value;
  };
  const text_cursor one = at.next();
  const char32_t first = fold(one);
  if (first == U's' || first == U't' || first == U'm' || first == U'd') return 1 + one.bytes;
  if (first != U'r' && first != U'v' && first != U'l') return 0;
  return fold(one.next()) == (first == U'l' ? U'l' : U'e') ? 3 : 0;
}

/// Matches `\s+(?!\S)|\s+` at white space: the run, less its last character where a visible one follows.
constexpr std::size_t white_space(const text_cursor& start) {
  text_cursor c = start;
  std::size_t last = c.at;
  while (c.space()) last = c.at, c.step();
  return c.end() || last == start.at ? c.at : last;
}

/// Matches `\s*[\r\n]+|\s+(?!\S)|\s+` at white space; `start` where there is none.
constexpr std::size_t lines_or_space(const text_cursor& first) {
  std::size_t after_newline = 0;
  for (text_cursor c = first; c.space(); c.step())
    if (c.newline()) after_newline = c.at + c.bytes;
  return after_newline ? after_newline : white_space(first);
}

/// The details in which the expressions of the Llama 3 kind differ.
struct llama_form {
  std::uint32_t digits = 3;  ///< largest number of digits in a piece
  bool contractions = true;
  bool marks = false;            ///< marks (M) count as letters
  bool lines_in_symbols = true;  ///< symbols include the line ends after them
};

/// `(?i:'s|'t|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
template <llama_form form>
constexpr std::size_t llama_piece(std::string_view text, std::size_t start) {
  const text_cursor first{text, start};
  text_cursor c = first;
  const auto word = [](const text_cursor& at) { return at.letter() || (form.marks && at.mark()); };
  const auto symbol = [&](const text_cursor& at) { return at.symbol() && !word(at); };
  if constexpr (form.contractions)
    if (const std::size_t bytes = contraction(first, true)) return start + bytes;
  if (!c.letter() && !c.number() && !c.newline()) {
    const text_cursor after = c.next();
    if (word(after)) c = after;
  }
  if (word(c)) {
    while (word(c)) c.step();
    return c.at;
  }
  if (c.number()) {
    for (std::uint32_t i = 0; i < form.digits && c.number(); ++i) c.step();
    return c.at;
  }
  if (c.value == U' ' && symbol(c.next())) c.step();
  if (symbol(c)) {
    while (symbol(c)) c.step();
    while (form.lines_in_symbols && c.newline()) c.step();
    return c.at;
  }
  return lines_or_space(first);
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
constexpr std::size_t gpt2_piece(std::string_view text, std::size_t start) {
  const text_cursor first{text, start};
  text_cursor c = first;
  if (const std::size_t bytes = contraction(first, false)) return start + bytes;
  if (c.value == U' ') {
    const text_cursor after = c.next();
    if (!after.end() && !after.space()) c = after;
  }
  if (c.letter()) {
    while (c.letter()) c.step();
  } else if (c.number()) {
    while (c.number()) c.step();
  } else if (c.symbol()) {
    while (c.symbol()) c.step();
  } else {
    return white_space(first);
  }
  return c.at;
}

/// The details in which the expressions of the o200k kind differ.
struct o200k_form {
  std::uint32_t digits = 3;  ///< largest number of digits in a piece
  bool contractions = true;
  bool slashes = true;  ///< symbols include the slashes and line ends after them; else only the line ends
  bool han = false;     ///< runs of Han characters are pieces, and words have none
};

/// A word of o200k from `c` on: [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, or with `upper` the other
/// alternative, + and * exchanged. @return its end, or where it would begin if there is none
constexpr std::size_t o200k_word(const o200k_form& form, text_cursor c, bool upper) {
  const std::size_t begin = c.at;
  std::size_t after_caseless = begin;  // after the last character that may belong to both parts
  const auto other = [&](const text_cursor& at) { return form.han && is_han(at.value); };
  for (; (c.kind == unicode_class::upper || c.kind == unicode_class::caseless || c.mark()) && !other(c); c.step())
    if (c.kind != unicode_class::upper) after_caseless = c.at + c.bytes;
  if (upper && c.at == begin) return begin;
  if (c.kind != unicode_class::lower) return upper ? c.at : after_caseless;
  while ((c.kind == unicode_class::lower || c.kind == unicode_class::caseless || c.mark()) && !other(c)) c.step();
  return c.at;
}

/// `[^\r\n\p{L}\p{N}]?WORD(?i:'s|'t|...)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
/// One function for all forms, which is a third of the code of one for each.
[[gnu::noinline]] constexpr std::size_t o200k_piece_of(const o200k_form& form, std::string_view text,
                                                       std::size_t start) {
  const text_cursor first{text, start};
  text_cursor c = first;
  if (form.han) {
    while (!c.end() && is_han(c.value)) c.step();
    if (c.at != start) return c.at;
  }
  const bool prefix = !c.letter() && !c.number() && !c.newline();
  for (const bool upper : {false, true})
    for (const bool with_prefix : {true, false}) {
      if (with_prefix && !prefix) continue;
      const text_cursor word = with_prefix ? first.next() : first;
      const std::size_t end = o200k_word(form, word, upper);
      if (end > word.at) return form.contractions ? end + contraction({text, end}, true) : end;
    }
  if (c.number()) {
    for (std::uint32_t i = 0; i < form.digits && c.number(); ++i) c.step();
    return c.at;
  }
  if (c.value == U' ' && c.next().symbol()) c.step();
  if (c.symbol()) {
    while (c.symbol()) c.step();
    while (c.newline() || (form.slashes && c.value == U'/')) c.step();
    return c.at;
  }
  return lines_or_space(first);
}
/// o200k_piece_of for one form.
template <o200k_form form>
constexpr std::size_t o200k_piece(std::string_view text, std::size_t start) {
  return o200k_piece_of(form, text, start);
}

/// `[!-\/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
constexpr std::size_t deepseek_piece(std::string_view text, std::size_t start) {
  const text_cursor first{text, start};
  text_cursor c = first;
  const auto printed = [](const text_cursor& at) {
    return at.kind == unicode_class::punctuation || at.kind == unicode_class::symbol;
  };
  const auto word = [](const text_cursor& at) { return at.letter() || at.mark(); };
  const auto latin = [](const text_cursor& at) { return at.bytes == 1 && at.letter(); };
  if (c.bytes == 1 && printed(c) && latin(c.next())) {
    for (c.step(); latin(c);) c.step();
    return c.at;
  }
  if (!c.newline() && !c.letter() && !printed(c) && word(c.next())) c.step();
  if (word(c)) {
    while (word(c)) c.step();
    return c.at;
  }
  if (c.value == U' ' && printed(c.next())) c.step();
  if (printed(c)) {
    while (printed(c)) c.step();
    while (c.newline()) c.step();
    return c.at;
  }
  return lines_or_space(first);
}

/// A run of characters that `matches`, at most `most`.
template <auto matches, std::uint32_t most = 0xFFFFFFFF>
constexpr std::size_t run(std::string_view text, std::size_t start) {
  text_cursor c{text, start};
  for (std::uint32_t i = 0; i < most && !c.end() && matches(c); ++i) c.step();
  return c.at;
}
/// Matches `\s?X+`.
template <auto matches>
constexpr std::size_t spaced_run(std::string_view text, std::size_t start) {
  const text_cursor c{text, start};
  const std::size_t from = c.space() ? c.at + c.bytes : start, end = run<matches>(text, from);
  return end > from ? end : run<matches>(text, start);
}
/// Matches `\s+$`.
constexpr std::size_t last_space(std::string_view text, std::size_t start) {
  text_cursor c{text, start};
  std::size_t before = start;  // a run of white space that does not end the text was looked at where it begins
  while (before > 0 && start - before < 3 && (static_cast<unsigned char>(text[before - 1]) & 0xC0) == 0x80) --before;
  if (before > 0 && text_cursor{text, before - 1}.space()) return start;
  while (c.space()) c.step();
  return c.end() ? c.at : start;
}
/// Matches `[0-9][0-9][0-9]`.
constexpr std::size_t three_digits(std::string_view text, std::size_t start) {
  for (std::size_t i = start; i < start + 3; ++i)
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return start;
  return start + 3;
}
/// Whether a character is a decimal digit (\p{Nd}).
constexpr bool is_digit(const text_cursor& c) { return is_decimal_digit(c.value); }
/// `\A\p{Nd}{1,2}(?=(?:\p{Nd}{3})+\z)`: digits in front of groups of three. A text with a digit has digits only.
constexpr std::size_t leading_digits(std::string_view text, std::size_t start) {
  text_cursor c{text, start};
  if (start != 0 || c.end() || !is_digit(c)) return start;
  std::array<std::size_t, 3> ends{};  // of none, one and two digits
  std::size_t digits = 0;
  for (; !c.end() && is_digit(c); c.step(), ++digits)
    if (digits < ends.size()) ends[digits] = c.at;
  return c.end() && digits > 3 ? ends[digits % 3] : start;
}
/// A run of characters of one script.
constexpr std::size_t script_run(std::string_view text, std::size_t start) {
  text_cursor c{text, start};
  const std::uint8_t script = c.end() ? 0 : script_of(c.value);
  while (script != 0 && !c.end() && script_of(c.value) == script) c.step();
  return c.at;
}
/// Whether a character is a number (\p{N}).
constexpr bool is_number(const text_cursor& c) { return c.number(); }
constexpr bool is_letter_at(const text_cursor& c) { return c.letter(); }                              ///< \p{L}
constexpr bool is_line_end(const text_cursor& c) { return c.newline(); }                              ///< \r or \n
constexpr bool is_punctuation(const text_cursor& c) { return c.kind == unicode_class::punctuation; }  ///< \p{P}
/// Matches `[\p{P}\$\+<=>\^~\|]`; with `backtick` a backtick too.
template <bool backtick>
constexpr bool is_printed(const text_cursor& c) {
  constexpr std::string_view more = backtick ? "$+<=>^~|`" : "$+<=>^~|";
  return is_punctuation(c) || (c.bytes == 1 && more.find(static_cast<char>(c.value)) != std::string_view::npos);
}
constexpr bool is_cased(const text_cursor& c) { return c.letter() && is_cased_letter(c.value); }  ///< letter with case
/// Matches `[!-\/:-~]` and the wide forms of these characters, quotation marks, and U+3000 to U+3002.
constexpr bool is_deepseek_mark(const text_cursor& c) {
  const auto in = [&](char32_t first, char32_t last) { return c.value >= first && c.value <= last; };
  return in(0x21, 0x2F) || in(0x3A, 0x7E) || in(0xFF01, 0xFF0F) || in(0xFF1A, 0xFF5E) || in(0x2018, 0x201F) ||
         in(0x3000, 0x3002);
}
/// Chinese characters and kana.
constexpr bool is_cjk(const text_cursor& c) {
  return (c.value >= 0x4E00 && c.value <= 0x9FA5) || (c.value >= 0x3040 && c.value <= 0x30FF);
}
/// Whether a character is in U+0800 to U+9FA5 or in U+AC00 to U+D7FF.
constexpr bool is_asian(const text_cursor& c) {
  return (c.value >= 0x800 && c.value <= 0x9FA5) || (c.value >= 0xAC00 && c.value <= 0xD7FF);
}

/// Calls put(piece) for each piece that the stages make of `text`.
template <class Emit>
constexpr void split_stages(std::span<const piece_matcher> stages, std::string_view text, Emit& put) {
  if (stages.empty() || stages.front() == nullptr) {
    put(text);
    return;
  }
  const auto rest = stages.subspan(1);
  std::size_t gap = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = stages.front()(text, at);
    if (end == at) {
      at += decode_utf8(text, at).bytes;
      continue;
    }
    if (at > gap) split_stages(rest, text.substr(gap, at - gap), put);
    split_stages(rest, text.substr(at, end - at), put);
    gap = at = end;
  }
  if (gap < text.size()) split_stages(rest, text.substr(gap), put);
}

}  // namespace pretokenize

/// How text is cut for byte-level BPE; the enumerators are the rows of pretokenizer_stages.
enum class pretokenizer : std::uint8_t {
  llama_bpe,  ///< Llama 3: contractions in any case, letters with one leading other character, up to three digits
  qwen2,      ///< as llama_bpe, one digit at a time
  qwen35,     ///< as qwen2, marks count as letters
  gpt2,       ///< GPT-2: contractions in lower case, an optional space before letters, digits or symbols
  starcoder,  ///< each digit on its own, then gpt2
  unnamed,    ///< llama.cpp's list for files without tokenizer.ggml.pre: punctuation, gpt2, numbers, three digits
  falcon,     ///< punctuation, gpt2, three digits
  gpt4o,      ///< o200k: words end where upper case follows lower case, and take contractions along
  tekken,     ///< o200k without contractions, one digit at a time
  deepseek_v3,
  deepseek_coder,
  seed_coder,    ///< as qwen2, line ends apart from symbols
  minicpm5,      ///< digits by three from the left, then llama_bpe
  ufakzeka,      ///< as qwen2 without contractions
  deepseek_llm,  ///< line ends, words of letters that have cases, marks, Chinese and kana, each digit on its own
  kimi_k2,       ///< as gpt4o, runs of Han characters apart from words, and no slashes after symbols
  afmoe,         ///< digits by three from the right, runs of one script, then as deepseek_v3's last stage
};
/// Largest number of stages of a pre-tokenizer.
inline constexpr std::size_t most_stages = 6;

/// The stages of each pre-tokenizer, in the order of the enumeration.
inline constexpr auto pretokenizer_stages = [] {
  using namespace pretokenize;
  using stages = std::array<piece_matcher, most_stages>;
  return std::array{
      stages{llama_piece<llama_form{}>},
      stages{llama_piece<llama_form{.digits = 1}>},
      stages{llama_piece<llama_form{.digits = 1, .marks = true}>},
      stages{gpt2_piece},
      stages{run<is_number, 1>, gpt2_piece},
      stages{run<is_printed<false>>, gpt2_piece, run<is_number>, three_digits},
      stages{run<is_printed<true>>, gpt2_piece, three_digits},
      stages{o200k_piece<o200k_form{}>},
      stages{o200k_piece<o200k_form{.digits = 1, .contractions = false}>},
      stages{run<is_number, 3>, run<is_cjk>, deepseek_piece},
      stages{run<is_line_end, 1>, spaced_run<is_letter_at>, spaced_run<is_punctuation>, run<is_asian>,
             run<is_number, 1>},
      stages{llama_piece<llama_form{.digits = 1, .lines_in_symbols = false}>},
      stages{run<is_number, 3>, llama_piece<llama_form{}>},
      stages{llama_piece<llama_form{.digits = 1, .contractions = false}>},
      stages{run<is_line_end, 1>, spaced_run<is_cased>, spaced_run<is_deepseek_mark>, last_space, run<is_asian>,
             run<is_number, 1>},
      stages{o200k_piece<o200k_form{.slashes = false, .han = true}>},
      stages{run<is_digit>, leading_digits, run<is_digit, 3>, script_run, deepseek_piece},
  };
}();
static_assert(pretokenizer_stages.size() == static_cast<std::size_t>(pretokenizer::afmoe) + 1);

/// Calls put(piece) for each piece of `text` in order; the pieces joined are the text, and none is empty.
template <class Emit>
constexpr void split_pieces(pretokenizer kind, std::string_view text, Emit&& put) {
  if (text.empty()) return;
  pretokenize::split_stages(pretokenizer_stages[static_cast<std::size_t>(kind)], text, put);
}

}  // namespace intaglio::io
