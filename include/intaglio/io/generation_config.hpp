// SPDX-License-Identifier: MIT
// generation_config.json of a Hugging Face folder: the tokens that end a generation, and its other keys. The program
// that runs the model sets sampling, so the other keys are not followed, but each is reported. Keys and defaults:
// transformers' GenerationConfig.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

/// A key that the library does not use, with its value as JSON.
struct unused_key {
  std::string key, value;
};

/// What a generation_config.json states.
struct generation_config {
  std::vector<std::int64_t> eos_ids;    ///< tokens that end a generation
  std::vector<unused_key> unused;       ///< all other keys
  std::vector<std::string> warnings{};  ///< warnings for unused keys that would change even greedy text
};

/// eos_token_id as it may be in a config.json or generation_config.json: a number, a list of numbers, or null.
/// @throws file_error: anything else
inline std::vector<std::int64_t> eos_ids_of(const located_json& field) {
  std::vector<std::int64_t> out;
  if (!field.present()) return out;
  if (field.is_number()) return {field.integer()};
  for (const located_json& each : field.elements()) out.push_back(each.integer());
  return out;
}

/// A key that changes greedy text unless it has its neutral value; null is always neutral.
struct text_changing_key {
  std::string_view key;
  std::optional<double> neutral;
};
/// Keys of generation_config.json that change greedy text.
inline constexpr std::array<text_changing_key, 21> text_changing_keys{{
    {"repetition_penalty", 1},
    {"encoder_repetition_penalty", 1},
    {"no_repeat_ngram_size", 0},
    {"encoder_no_repeat_ngram_size", 0},
    {"num_beams", 1},
    {"num_beam_groups", 1},
    {"diversity_penalty", 0},
    {"penalty_alpha", 0},
    {"guidance_scale", 1},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"bad_words_ids", {}},
    {"force_words_ids", {}},
    {"suppress_tokens", {}},
    {"begin_suppress_tokens", {}},
    {"forced_bos_token_id", {}},
    {"forced_eos_token_id", {}},
    {"sequence_bias", {}},
    {"exponential_decay_length_penalty", {}},
    {"stop_strings", {}},
    {"watermarking_config", {}},
}};
/// Reads generation_config.json.
/// @throws file_error: malformed, or an eos_token_id that is neither a number nor a list of numbers
[[gnu::cold]] inline generation_config read_generation_config(const std::filesystem::path& path) {
  strict_json document(path.string());
  document.read_file(path);
  const located_json root(document.path(), "", &document.root());
  if (!root.is_object()) document.refuse("generation_config.json", "a JSON object", document.root().type_name());
  generation_config out{eos_ids_of(root["eos_token_id"]), {}};
  for (const auto& [key, value] : document.root().items()) {
    if (key == "eos_token_id") continue;
    std::string shown = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (const text_changing_key& each : text_changing_keys) {
      if (each.key != key || value.is_null()) continue;
      if (each.neutral && value.is_number() && value.get<double>() == *each.neutral) continue;
      if (value.is_array() && value.empty()) continue;
      out.warnings.push_back(printable(path.string(), 240) + ": " + key + " " + printable(shown, 60) +
                             " is not used: sampling is set by the program that runs the model");
    }
    out.unused.push_back({key, std::move(shown)});
  }
  return out;
}

}  // namespace intaglio::io
