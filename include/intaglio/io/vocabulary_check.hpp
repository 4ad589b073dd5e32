// SPDX-License-Identifier: MIT
// Validates a vocabulary before anything is built from it: every count, type, number and id in the file. The encoders
// validate byte tokens, scores and merges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/end_of_generation.hpp"
#include "intaglio/io/pretokenizer_names.hpp"
#include "intaglio/io/token_texts.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// The longest text of a token.
inline constexpr std::size_t longest_token_bytes = 4096;  ///< longer tokens are refused; real ones stay below 1 KiB
inline constexpr std::size_t longest_special_token_bytes =
    1024;  ///< bounds the search for special tokens per byte of text

/// Whether an architecture is one of BitNet b1.58 2B4T's files, which lack tokenizer.ggml.pre and embed a wrong chat
/// template.
constexpr bool is_bitnet_b158(std::string_view architecture) {
  return architecture == "bitnet-b1.58" || architecture == "bitnet-25";
}

/// The types of tokens in a file without types, derived from the ids that the file names and from the texts.
inline std::vector<token_type> inferred_token_types(const vocabulary& file) {
  std::vector<token_type> out(file.tokens.size(), token_type::normal);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (file.model == "llama" && byte_token_value(file.tokens[i])) out[i] = token_type::byte;
    else if (is_end_text(file.tokens[i])) out[i] = token_type::control;
  const auto set = [&](const std::optional<std::int64_t>& id, token_type type) {
    if (!id || *id < 0 || *id >= static_cast<std::int64_t>(out.size())) return;
    token_type& found = out[static_cast<std::size_t>(*id)];
    if (found == token_type::normal) found = type;
  };
  set(file.unknown_id, token_type::unknown);
  for (const auto& id : {file.bos_id, file.eos_id, file.eot_id, file.eom_id, file.padding_id})
    set(id, token_type::control);
  return out;
}

/// Types of all tokens; inferred where the file has none. @throws file_error: wrong count, unknown number
inline std::vector<token_type> checked_token_types(const vocabulary& file) {
  if (file.token_types.empty()) return inferred_token_types(file);
  std::vector<token_type> out(file.tokens.size(), token_type::normal);
  if (file.token_types.size() != file.tokens.size())
    throw file_error(file.source, std::nullopt, "tokenizer.ggml.token_type",
                     std::to_string(file.tokens.size()) + " entries, as tokens",
                     std::to_string(file.token_types.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int32_t type = file.token_types[i];
    if (type < 1 || type > 6)
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.token_type[" + std::to_string(i) + "]",
                       "a type 1 .. 6", std::to_string(type));
    out[i] = static_cast<token_type>(type);
  }
  return out;
}
/// Checks the texts of all tokens.
/// @throws file_error: no tokens, more than rows, too long, not UTF-8, all alike
inline void check_token_texts(const vocabulary& file, const std::vector<token_type>& types,
                              std::optional<std::uint64_t> embedding_rows) {
  const auto refuse = [&](const std::string& what, const std::string& expected, const std::string& found) {
    throw file_error(file.source, std::nullopt, what, expected, found);
  };
  const std::size_t count = file.tokens.size();
  if (count == 0) refuse("tokenizer.ggml.tokens", "at least one token", "none");
  if (count > 0x7FFFFFFF) refuse("tokenizer.ggml.tokens", "at most 2147483647 tokens", std::to_string(count));
  if (embedding_rows && count > *embedding_rows)
    refuse("tokenizer.ggml.tokens",
           "at most " + std::to_string(*embedding_rows) + " tokens, the rows of token_embd.weight",
           std::to_string(count));
  for (std::size_t i = 0; i < count; ++i) {
    const auto where = [&] { return "tokenizer.ggml.tokens[" + std::to_string(i) + "]"; };
    const std::string& text = file.tokens[i];
    const bool special =
        types[i] == token_type::control || types[i] == token_type::unknown || types[i] == token_type::user_defined;
    const std::size_t limit = special ? longest_special_token_bytes : longest_token_bytes;
    if (text.size() > limit)
      refuse(where(), "at most " + std::to_string(limit) + " bytes", std::to_string(text.size()));
    if (!is_utf8(text)) refuse(where(), "UTF-8 text", "'" + printable(text) + "'");
  }
  if (count > 1 &&
      std::all_of(file.tokens.begin(), file.tokens.end(), [&](const std::string& t) { return t == file.tokens[0]; }))
    refuse("tokenizer.ggml.tokens", "tokens that differ",
           std::to_string(count) + " times '" + printable(file.tokens[0]) + "'");
}
/// Checks the scores of tokens.
/// @throws file_error: wrong count, not finite
inline void check_scores(const vocabulary& file) {
  if (file.scores.empty()) return;
  if (file.scores.size() != file.tokens.size())
    throw file_error(file.source, std::nullopt, "tokenizer.ggml.scores",
                     std::to_string(file.tokens.size()) + " entries, as tokens", std::to_string(file.scores.size()));
  for (std::size_t i = 0; i < file.scores.size(); ++i)
    if (!std::isfinite(file.scores[i]))
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.scores[" + std::to_string(i) + "]", "a finite number",
                       std::isnan(file.scores[i]) ? "NaN" : "infinity");
}

/// Checks an id. @return the id as the encoder uses it  @throws file_error: not 0 .. tokens - 1
inline std::optional<std::int32_t> checked_special_id(const vocabulary& file, const char* key,
                                                      std::optional<std::int64_t> id) {
  if (!id) return std::nullopt;
  if (*id < 0 || *id >= static_cast<std::int64_t>(file.tokens.size()))
    throw file_error(file.source, std::nullopt, key, "an id 0 .. " + std::to_string(file.tokens.size() - 1),
                     std::to_string(*id));
  return static_cast<std::int32_t>(*id);
}

/// Tokens that a tokenizer knows by their ids.
struct special_ids {
  std::optional<std::int32_t> bos, eos, unknown, padding;
};
/// The ids of special tokens, checked. @throws file_error: an id of no token, a normaliser of another model
[[gnu::cold]] inline special_ids checked_special_ids(const vocabulary& file, std::vector<std::string>& warnings) {
  special_ids out;
  out.bos = checked_special_id(file, "tokenizer.ggml.bos_token_id", file.bos_id);
  out.eos = checked_special_id(file, "tokenizer.ggml.eos_token_id", file.eos_id);
  checked_special_id(file, "tokenizer.ggml.eot_token_id", file.eot_id);
  checked_special_id(file, "tokenizer.ggml.eom_token_id", file.eom_id);
  const auto size = static_cast<std::int64_t>(file.tokens.size());
  for (const added_token& token : file.added) checked_special_id(file, "added token", token.id);
  for (const std::int64_t id : file.end_ids)
    if (id < 0 || id >= size)
      warnings.push_back("eos_token_id " + std::to_string(id) + " is not a token and is ignored");
  out.unknown = checked_special_id(file, "tokenizer.ggml.unknown_token_id", file.unknown_id);
  if (file.padding_id && (*file.padding_id < 0 || *file.padding_id >= size))
    warnings.push_back("tokenizer.ggml.padding_token_id " + std::to_string(*file.padding_id) +
                       " is not a token and is ignored");
  else out.padding = checked_special_id(file, "tokenizer.ggml.padding_token_id", file.padding_id);
  if (file.remove_extra_whitespaces.value_or(false) && file.model != "t5")
    throw file_error(file.source, std::nullopt, "tokenizer.ggml.remove_extra_whitespaces", "false", "true");
  return out;
}

/// Checks merges against the tokens that they should make: a token of several bytes can come only from a merge, unless
/// whole pieces are looked up first.
/// @param ordinary tokens that text may become  @param texts their bytes
/// @return a warning where there are too few merges; else empty  @throws file_error: there are none, though they are
/// needed
inline std::string check_merges(const vocabulary& file, const std::vector<std::int32_t>& ordinary,
                                const token_texts& texts, bool ignore_merges) {
  const auto several = static_cast<std::size_t>(
      std::count_if(ordinary.begin(), ordinary.end(), [&](std::int32_t id) { return texts[id].size() > 1; }));
  if (file.merges.empty() && several != 0)
    throw file_error(file.source, std::nullopt, "tokenizer.ggml.merges",
                     "merges that make the " + std::to_string(several) + " tokens of several bytes", "none");
  if (ignore_merges || file.merges.size() >= several) return {};
  return std::to_string(file.merges.size()) + " merges make fewer than the " + std::to_string(several) +
         " tokens of several bytes: at least " + std::to_string(several - file.merges.size()) +
         " never come out of text";
}
/// Checks the types of special tokens.
/// @throws file_error: the unknown token, or BOS, is a byte token
inline void check_special_types(const vocabulary& file, const std::vector<token_type>& types) {
  const auto expect = [&](const char* key, const std::optional<std::int64_t>& id) {
    if (id && types[static_cast<std::size_t>(*id)] == token_type::byte)
      throw file_error(file.source, std::nullopt, key, "a token that is no byte token",
                       std::to_string(*id) + ", '" + printable(file.tokens[static_cast<std::size_t>(*id)]) + "'");
  };
  expect("tokenizer.ggml.unknown_token_id", file.unknown_id);
  expect("tokenizer.ggml.bos_token_id", file.bos_id);
}

/// The warning about tokens without a text; empty where there are none.
inline std::string empty_tokens_warning(const vocabulary& file) {
  const auto empty = [](const std::string& text) { return text.empty(); };
  const auto count = std::count_if(file.tokens.begin(), file.tokens.end(), empty);
  if (count == 0) return {};
  const auto first = std::find_if(file.tokens.begin(), file.tokens.end(), empty) - file.tokens.begin();
  return std::to_string(count) + (count == 1 ? " token has" : " tokens have") + " no text (the first is " +
         std::to_string(first) + "): text never becomes one, and one that the model draws prints nothing";
}

/// The pre-tokenizer of a byte-level vocabulary, corrected for BitNet b1.58 files. @throws file_error: unknown name
[[gnu::cold]] inline pretokenizer_name resolved_pretokenizer(const vocabulary& file,
                                                             std::vector<std::string>& warnings) {
  const bool named = file.pre_tokenizer && *file.pre_tokenizer != "default";
  if (!named && is_bitnet_b158(file.architecture)) return *find_pretokenizer("llama-bpe");
  if (!file.pre_tokenizer) {
    warnings.push_back(
        "tokenizer.ggml.pre is missing: text is cut by llama.cpp's default list, which is seldom what the model was "
        "trained with");
    return *find_pretokenizer("default");
  }
  if (const auto* found = find_pretokenizer(*file.pre_tokenizer)) return *found;
  std::string known;
  for (std::size_t kind = 0; kind < pretokenizer_stages.size(); ++kind)
    known += std::string(name_of(static_cast<pretokenizer>(kind)).name) + ", ";
  throw file_error(file.source, std::nullopt, "tokenizer.ggml.pre", "one of " + known + "or a relative",
                   "'" + printable(*file.pre_tokenizer) + "'");
}

}  // namespace intaglio::io
