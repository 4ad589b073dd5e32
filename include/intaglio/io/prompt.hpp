// SPDX-License-Identifier: MIT
// The tokens of a complete prompt: text that may hold a model's markup, written by the sender. For text that a stranger
// typed into a conversation see io/chat_template.hpp, which keeps it apart from the markup.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/io/prompt_markup.hpp"
#include "intaglio/io/tokenizer.hpp"

namespace intaglio::io {

/// Tokens of a prompt after the BOS that the model needs. There is one BOS, even where the prompt has its own.
/// @throws argument_error: more than 1 GiB of text
inline std::vector<std::int32_t> encode_prompt(const tokenizer& tokens, std::string_view text,
                                               prompt_markup markup = prompt_markup::read) {
  return tokens.encode(text, {.parse_special = markup == prompt_markup::read, .add_bos = tokens.adds_bos()});
}

/// Tokens of a text that becomes a vector, with the BOS and EOS that the model's tokenizer puts around a text. Control
/// tokens written in the text are plain text.
/// @throws argument_error: more than 1 GiB of text
inline std::vector<std::int32_t> encode_for_embedding(const tokenizer& tokens, std::string_view text) {
  return tokens.encode(text, {.add_bos = tokens.adds_bos(), .add_eos = tokens.adds_eos()});
}

/// Tokens of two texts that an encoder reads together, and where the second one begins.
struct text_pair {
  std::vector<std::int32_t> ids;
  std::uint32_t second = 0;
};
/// The first text as for an embedding, then the second one and its EOS, as BERT was trained; RoBERTa has another EOS in
/// front of the second one.
/// @throws argument_error: more than 1 GiB of text
inline text_pair encode_pair(const tokenizer& tokens, std::string_view first, std::string_view second) {
  text_pair out{encode_for_embedding(tokens, first), 0};
  if (tokens.doubles_separator() && tokens.adds_eos()) out.ids.push_back(*tokens.eos());
  out.second = static_cast<std::uint32_t>(out.ids.size());
  const std::vector<std::int32_t> after = tokens.encode(second, {.add_eos = tokens.adds_eos()});
  out.ids.insert(out.ids.end(), after.begin(), after.end());
  return out;
}

}  // namespace intaglio::io
