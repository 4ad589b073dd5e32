// SPDX-License-Identifier: MIT
// Recognises chat templates without running them: a template is known when its code, apart from layout, is a known
// one's to the last character. One that differs anywhere is unknown; guessing would be a silent change of the
// model's input.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace intaglio::io {

/// How a conversation is written down for a model.
enum class chat_family : std::uint8_t { bitnet, llama3, mistral_v1, mistral_v01, mistral_v02, gemma2, gemma3 };

/// A chat family and the details in which its variants differ.
struct chat_style {
  chat_family family = chat_family::bitnet;
  bool writes_bos = true;       ///< the text starts with BOS
  bool always_prompts = false;  ///< the header of the answer is written even where it is not requested
  bool leftover = false;        ///< the text that a converter leaves in BitNet files; the model was not trained with it
};

/// What a template prints of the text between two tags, by Jinja's rules with trim_blocks and lstrip_blocks, as
/// transformers sets them.
/// @param after tag before the text: '}' variable, '%' block, 0 none  @param before tag after it: '{' variable, '%'
/// block, 0 none
constexpr std::string_view printed_between(std::string_view text, char after, bool after_dash, char before,
                                           bool before_dash) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  const bool line_start = after == 0;
  if (after_dash)
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  else if (after == '%' && text.starts_with('\n')) text.remove_prefix(1);
  if (before_dash)
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  else if (before == 0 && text.ends_with('\n')) text.remove_suffix(1);
  else if (before == '%') {
    std::size_t end = text.size();
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    if (end > 0 ? text[end - 1] == '\n' : line_start || after == '%') text = text.substr(0, end);
  }
  return text;
}

/// FNV-1a of a template's code. Layout that prints nothing does not count, nor the kind of quotes, nor whether a line
/// feed in a string is written as such or as an escape.
constexpr std::uint64_t chat_fingerprint(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto take = [&](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u; };
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  char quote = 0, closed = 0;
  bool code = false, closed_dash = false;
  std::size_t between = 0;
  const auto take_between = [&](std::size_t end, char opened, bool dash) {
    for (const char c : printed_between(text.substr(between, end - between), closed, closed_dash, opened, dash))
      take(c);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!code) {
      if (c != '{' || (at(i + 1) != '{' && at(i + 1) != '%')) continue;
      const bool dash = at(i + 2) == '-';
      take_between(i, at(i + 1), dash);
      take(c), take(at(i + 1)), code = true;
      i += dash ? 2 : 1;
    } else if (quote != 0) {
      if (c == quote) take('\''), quote = 0;
      else if (c == '\\' && at(i + 1) == 'n') take('\n'), ++i;
      else take(c);
    } else if (c == '\'' || c == '"') {
      take('\''), quote = c;
    } else if ((c == '}' || c == '%') && at(i + 1) == '}') {
      take(c), take('}'), code = false, closed = c, closed_dash = text[i - 1] == '-', between = ++i + 1;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n' &&
               !(c == '-' && (at(i + 1) == '}' || at(i + 1) == '%') && at(i + 2) == '}')) {
      take(c);
    }
  }
  if (!code) take_between(text.size(), 0, false);
  return hash;
}

/// The fingerprint of a published chat template, and the style that it has.
struct known_chat_template {
  std::uint64_t fingerprint;
  chat_style style;
};

/// The templates of the published models, as tests/io/chat_template.test.cpp checks them.
inline constexpr std::array<known_chat_template, 9> known_chat_templates{{
    {0x9C43363CF2401A76u, {.family = chat_family::bitnet, .writes_bos = false}},  // BitNet b1.58 2B4T
    {0x94881F1334EC3D6Fu, {.family = chat_family::bitnet}},                       // fable
    {0x9CD8E276087CBF38u,
     {.family = chat_family::bitnet, .writes_bos = false, .leftover = true}},        // published BitNet GGUF
    {0x768DC1687F9293A8u, {.family = chat_family::llama3}},                          // Llama 3 Instruct
    {0x8FD3DA219563A238u, {.family = chat_family::llama3, .always_prompts = true}},  // Llama 3 Instruct, first release
    {0xBB4524ED7672EE76u, {.family = chat_family::mistral_v01}},                     // Mistral 7B Instruct v0.1
    {0xDD39F833422AA4A9u, {.family = chat_family::mistral_v02}},                     // Mistral 7B Instruct v0.2
    {0xD9AFBF5BD37C8A7Fu, {.family = chat_family::gemma2}},                          // Gemma 2
    {0x60933F4C9D6F4865u, {.family = chat_family::gemma3}},                          // Gemma 3
}};

/// The style of a template's text; absent where the template is not known.
constexpr std::optional<chat_style> find_chat_style(std::string_view text) {
  const std::uint64_t fingerprint = chat_fingerprint(text);
  for (const auto& known : known_chat_templates)
    if (known.fingerprint == fingerprint) return known.style;
  return std::nullopt;
}

}  // namespace intaglio::io
