// SPDX-License-Identifier: MIT
// Splits text into the pieces within which byte-level BPE merges: hand-written equivalents of the published regular
// expressions, linear in the text. Bytes that are not UTF-8 count as symbols, one each. Expressions: docs of
// tokenizers, llama.cpp src/llama-vocab.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// How byte-level BPE text is cut; names as in tokenizer.ggml.pre.
enum class pretokenizer : std::uint8_t {
  llama_bpe,  ///< Llama 3: contractions in any case, letters with one leading other character, up to three digits
  qwen2,      ///< as llama_bpe, one digit at a time
  gpt2,       ///< GPT-2: contractions in lower case, an optional space before letters, digits or symbols
  starcoder,  ///< each digit on its own, then gpt2
  unnamed,    ///< llama.cpp's list for files without tokenizer.ggml.pre: punctuation, gpt2, numbers, three digits
};

struct pretokenizer_name {
  std::string_view name;
  pretokenizer kind;
};

/// The accepted values of tokenizer.ggml.pre.
inline constexpr std::array<pretokenizer_name, 16> pretokenizer_names{{
    {"llama-bpe", pretokenizer::llama_bpe},
    {"llama3", pretokenizer::llama_bpe},
    {"llama-v3", pretokenizer::llama_bpe},
    {"falcon3", pretokenizer::llama_bpe},
    {"qwen2", pretokenizer::qwen2},
    {"gpt-2", pretokenizer::gpt2},
    {"phi-2", pretokenizer::gpt2},
    {"mpt", pretokenizer::gpt2},
    {"olmo", pretokenizer::gpt2},
    {"jais", pretokenizer::gpt2},
    {"starcoder", pretokenizer::starcoder},
    {"refact", pretokenizer::starcoder},
    {"command-r", pretokenizer::starcoder},
    {"smollm", pretokenizer::starcoder},
    {"codeshell", pretokenizer::starcoder},
    {"default", pretokenizer::unnamed},
}};

/// The pre-tokenizer of that name; nothing when it is not known.
constexpr std::optional<pretokenizer> find_pretokenizer(std::string_view name) {
  for (const auto& entry : pretokenizer_names)
    if (entry.name == name) return entry.kind;
  return std::nullopt;
}

/// A position in text with the character there: what the matchers below are written in.
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
  constexpr bool letter() const { return kind == unicode_class::letter; }
  constexpr bool number() const { return kind == unicode_class::number; }
  constexpr bool space() const { return kind == unicode_class::space; }
  constexpr bool newline() const { return bytes == 1 && (value == U'\r' || value == U'\n'); }
  /// [^\s\p{L}\p{N}]
  constexpr bool symbol() const { return !end() && !letter() && !number() && !space(); }
};

namespace pretokenize {

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

/// \s+(?!\S)|\s+ at white space: the run, less its last character where a visible one follows.
constexpr std::size_t white_space(const text_cursor& start) {
  text_cursor c = start;
  std::size_t last = c.at;
  while (c.space()) last = c.at, c.step();
  return c.end() || last == start.at ? c.at : last;
}

/// End of the piece that starts at `start`, Llama 3 and Qwen 2.
constexpr std::size_t llama_piece(std::string_view text, std::size_t start, int digits) {
  const text_cursor first{text, start};
  text_cursor c = first;
  if (const std::size_t bytes = contraction(first, true)) return start + bytes;
  if (!c.letter() && !c.number() && !c.newline()) {
    const text_cursor after = c.next();
    if (after.letter()) c = after;
  }
  if (c.letter()) {
    while (c.letter()) c.step();
    return c.at;
  }
  if (c.number()) {
    for (int i = 0; i < digits && c.number(); ++i) c.step();
    return c.at;
  }
  if (c.value == U' ' && c.next().symbol()) c.step();
  if (c.symbol()) {
    while (c.symbol()) c.step();
    while (c.newline()) c.step();
    return c.at;
  }
  std::size_t after_newline = 0;
  for (c = first; c.space(); c.step())
    if (c.newline()) after_newline = c.at + c.bytes;
  return after_newline ? after_newline : white_space(first);
}

/// End of the piece that starts at `start`, GPT-2.
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

template <class Emit>
constexpr void gpt2(std::string_view text, Emit&& put) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = gpt2_piece(text, at);
    put(text.substr(at, end - at));
    at = end;
  }
}

/// Calls emit(part, matched) for the runs of characters that `matches`, and for what lies between; with `single`, one
/// character a run.
template <class Matches, class Emit>
constexpr void isolate(std::string_view text, bool single, Matches&& matches, Emit&& put) {
  std::size_t begin = 0;
  for (text_cursor c{text, 0}; !c.end();) {
    if (!matches(c)) {
      c.step();
      continue;
    }
    if (c.at > begin) put(text.substr(begin, c.at - begin), false);
    begin = c.at;
    do c.step();
    while (!single && !c.end() && matches(c));
    put(text.substr(begin, c.at - begin), true);
    begin = c.at;
  }
  if (begin < text.size()) put(text.substr(begin), false);
}

template <class Emit>
constexpr void unnamed(std::string_view text, Emit&& put) {
  const auto punctuation = [](const text_cursor& c) {
    return c.kind == unicode_class::punctuation ||
           (c.value < 0x80 && std::string_view("$+<=>^~|").find(static_cast<char>(c.value)) != std::string_view::npos);
  };
  const auto is_number = [](const text_cursor& c) { return c.number(); };
  const auto digits = [&](std::string_view run) {  // [0-9][0-9][0-9], what lies between stays whole
    std::size_t begin = 0;
    const auto digit = [&](std::size_t k) { return k < run.size() && run[k] >= '0' && run[k] <= '9'; };
    for (std::size_t at = 0; at < run.size();) {
      if (!(digit(at) && digit(at + 1) && digit(at + 2))) {
        ++at;
        continue;
      }
      if (at > begin) put(run.substr(begin, at - begin));
      put(run.substr(at, 3));
      begin = at += 3;
    }
    if (begin < run.size()) put(run.substr(begin));
  };
  isolate(text, false, punctuation, [&](std::string_view part, bool) {
    gpt2(part, [&](std::string_view piece) {
      isolate(piece, false, is_number, [&](std::string_view run, bool) { digits(run); });
    });
  });
}

}  // namespace pretokenize

/// Calls emit(piece) for each piece of `text` in order; the pieces joined are the text, and none is empty.
template <class Emit>
constexpr void split_pieces(pretokenizer kind, std::string_view text, Emit&& put) {
  switch (kind) {
    case pretokenizer::llama_bpe:
    case pretokenizer::qwen2: {
      const int digits = kind == pretokenizer::llama_bpe ? 3 : 1;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = pretokenize::llama_piece(text, at, digits);
        put(text.substr(at, end - at));
        at = end;
      }
      return;
    }
    case pretokenizer::gpt2:
      return pretokenize::gpt2(text, put);
    case pretokenizer::starcoder:
      return pretokenize::isolate(
          text, true, [](const text_cursor& c) { return c.number(); },
          [&](std::string_view part, bool digit) { digit ? put(part) : pretokenize::gpt2(part, put); });
    case pretokenizer::unnamed:
      return pretokenize::unnamed(text, put);
  }
}

}  // namespace intaglio::io
