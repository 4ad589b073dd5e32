// SPDX-License-Identifier: MIT
// The tokens that end a generation: those that the model's files name, and control tokens with known texts. The texts
// come from llama.cpp's llama-vocab.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Texts of control tokens that end a turn or a text.
inline constexpr std::array<std::string_view, 22> end_of_generation_texts{
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<eos>",
    "</s>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<turn|>",
    "[e~[",
    "<|tool_response>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

/// Whether a control token with this text ends a generation.
constexpr bool is_end_text(std::string_view text) {
  return std::find(end_of_generation_texts.begin(), end_of_generation_texts.end(), text) !=
         end_of_generation_texts.end();
}

/// Whether the text of a user-defined token is a chat's markup, as llama.cpp's converter decides: some files do not
/// mark such tokens as special.
constexpr bool is_markup_text(std::string_view text) {
  return is_end_text(text) || (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\xEF\xBD\x9C") && text.ends_with("\xEF\xBD\x9C>")) || text == "<start_of_turn>";
}

/// The tokens after which a generation ends, ascending, each once. Ids of no token are left out.
/// @param types of all tokens of the file
[[gnu::cold]] inline std::vector<std::int32_t> end_of_generation_tokens(const vocabulary& file,
                                                                        const std::vector<token_type>& types) {
  std::vector<std::int32_t> out;
  std::optional<std::int32_t> end;  // "<|end|>"
  bool returns = false, calls = false, flushes = false;
  for (std::size_t i = 0; i < file.tokens.size(); ++i) {
    const bool markup = types[i] == token_type::control || types[i] == token_type::user_defined;
    const std::string_view text = file.tokens[i];
    if (!markup || !is_end_text(text)) continue;
    // Gemma's vocabularies have "</s>" as an HTML tag, a user-defined token.
    if (text == "</s>" && types[i] != token_type::control) continue;
    if (text == "<|end|>") end = static_cast<std::int32_t>(i);
    returns |= text == "<|return|>", flushes |= text == "<|flush|>";
    calls |= text == "<|call|>" || text == "<|calls|>";
    out.push_back(static_cast<std::int32_t>(i));
  }
  // In the Harmony format of gpt-oss, and in Solar's, <|end|> closes a message and the generation goes on.
  if (end && calls && (returns || flushes)) std::erase(out, *end);
  const auto add = [&](std::int64_t id) {
    if (id >= 0 && id < static_cast<std::int64_t>(file.tokens.size())) out.push_back(static_cast<std::int32_t>(id));
  };
  for (const auto& id : {file.eos_id, file.eot_id, file.eom_id})
    if (id) add(*id);
  for (const std::int64_t id : file.end_ids) add(id);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace intaglio::io
