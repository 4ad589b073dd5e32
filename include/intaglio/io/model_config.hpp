// SPDX-License-Identifier: MIT
// Ranges of a model's hyperparameters, and how two configs differ.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/number_text.hpp"

namespace intaglio::io {

/// Upper ends of what is accepted from a file, far above the largest published models.
struct config_limits {
  static constexpr std::uint64_t hidden_size = 1 << 20, intermediate_size = 1 << 22, num_hidden_layers = 4096,
                                 num_attention_heads = 1 << 16, head_dim = 1 << 16, vocab_size = 1 << 24,
                                 max_position_embeddings = std::uint64_t{1} << 31, num_local_experts = 1024;
};

/// Checks the whole config. @param path the file that the error names
/// @throws file_error with the key as config.json spells it, its range and its value
inline void check_config(const decoder_config& c, const std::string& path) {
  const auto refuse = [&](std::string_view key, std::string expected, std::string found) {
    throw file_error(path, std::nullopt, std::string(key), std::move(expected), std::move(found));
  };
  const auto between = [&](std::string_view key, std::uint64_t value, std::uint64_t most) {
    if (value < 1 || value > most) refuse(key, "1 to " + std::to_string(most), std::to_string(value));
  };
  between("hidden_size", c.hidden_size, config_limits::hidden_size);
  between("intermediate_size", c.intermediate_size, config_limits::intermediate_size);
  between("num_hidden_layers", c.num_hidden_layers, config_limits::num_hidden_layers);
  between("num_attention_heads", c.num_attention_heads, config_limits::num_attention_heads);
  between("num_key_value_heads", c.num_key_value_heads, c.num_attention_heads);
  between("head_dim", c.head_dim, config_limits::head_dim);
  between("vocab_size", c.vocab_size, config_limits::vocab_size);
  between("max_position_embeddings", c.max_position_embeddings, config_limits::max_position_embeddings);
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    refuse("num_key_value_heads", "a divisor of num_attention_heads " + std::to_string(c.num_attention_heads),
           std::to_string(c.num_key_value_heads));
  if (c.head_dim % 2 != 0) refuse("head_dim", "an even number", std::to_string(c.head_dim));
  if (std::uint64_t{c.num_attention_heads} * c.head_dim > config_limits::hidden_size)
    refuse("num_attention_heads * head_dim", "at most " + std::to_string(config_limits::hidden_size),
           std::to_string(std::uint64_t{c.num_attention_heads} * c.head_dim));
  if (!std::isfinite(c.rms_norm_eps) || c.rms_norm_eps <= 0.f || c.rms_norm_eps > 1.f)
    refuse("rms_norm_eps", "above 0, at most 1", number_text(c.rms_norm_eps));
  if (!std::isfinite(c.rope_theta) || c.rope_theta < 1.f)
    refuse("rope_theta", "a finite number from 1", number_text(c.rope_theta));
  if (c.rope_local_base_freq != 0.f && (!std::isfinite(c.rope_local_base_freq) || c.rope_local_base_freq < 1.f))
    refuse("rope_local_base_freq", "a finite number from 1", number_text(c.rope_local_base_freq));
  if (c.sliding_window != 0) between("sliding_window", c.sliding_window, config_limits::max_position_embeddings);
  if (c.sliding_window_pattern != 0)
    between("sliding_window_pattern", c.sliding_window_pattern, config_limits::num_hidden_layers);
  if (c.query_pre_attn_scalar != 0)
    between("query_pre_attn_scalar", c.query_pre_attn_scalar, config_limits::hidden_size);
  if (c.num_local_experts != 0) {
    between("num_local_experts", c.num_local_experts, config_limits::num_local_experts);
    between("num_experts_per_tok", c.num_experts_per_tok, c.num_local_experts);
  }
  const rope_scaling_config& scaling = c.rope_scaling;
  if (scaling.type == rope_type::plain) return;
  if (!std::isfinite(scaling.factor) || scaling.factor < 1.f)
    refuse("rope_scaling.factor", "a finite number from 1", number_text(scaling.factor));
  if (scaling.type != rope_type::llama3) return;
  between("rope_scaling.original_max_position_embeddings", scaling.original_max_position_embeddings,
          config_limits::max_position_embeddings);
  if (!std::isfinite(scaling.low_freq_factor) || scaling.low_freq_factor <= 0.f)
    refuse("rope_scaling.low_freq_factor", "a finite number above 0", number_text(scaling.low_freq_factor));
  if (!std::isfinite(scaling.high_freq_factor) || scaling.high_freq_factor <= scaling.low_freq_factor)
    refuse("rope_scaling.high_freq_factor",
           "a finite number above low_freq_factor " + number_text(scaling.low_freq_factor),
           number_text(scaling.high_freq_factor));
}

/// "linear by 8", "llama3 by 8, low 1, high 4, from 8192"; "default" for none.
inline std::string scaling_text(const rope_scaling_config& scaling) {
  std::string out(name(scaling.type));
  if (scaling.type == rope_type::plain) return out;
  out += " by " + number_text(scaling.factor);
  if (scaling.type == rope_type::llama3)
    out += ", low " + number_text(scaling.low_freq_factor) + ", high " + number_text(scaling.high_freq_factor) +
           ", from " + std::to_string(scaling.original_max_position_embeddings);
  return out;
}

/// One line for each field that differs, as "num_hidden_layers: engraved 30, file 24".
inline std::vector<std::string> config_differences(const decoder_config& engraved, const decoder_config& file) {
  std::vector<std::string> out;
  const auto compare = [&](std::string_view key, const auto& wanted, const auto& found, auto&& text) {
    if (!(wanted == found))
      out.push_back(std::string(key) + ": engraved " + std::string(text(wanted)) + ", file " +
                    std::string(text(found)));
  };
  const auto number = [](std::uint32_t value) { return std::to_string(value); };
  const auto named = [](auto value) { return name(value); };
  compare("model_type", engraved.model_type, file.model_type, named);
  compare("hidden_size", engraved.hidden_size, file.hidden_size, number);
  compare("intermediate_size", engraved.intermediate_size, file.intermediate_size, number);
  compare("num_hidden_layers", engraved.num_hidden_layers, file.num_hidden_layers, number);
  compare("num_attention_heads", engraved.num_attention_heads, file.num_attention_heads, number);
  compare("num_key_value_heads", engraved.num_key_value_heads, file.num_key_value_heads, number);
  compare("head_dim", engraved.head_dim, file.head_dim, number);
  compare("vocab_size", engraved.vocab_size, file.vocab_size, number);
  compare("max_position_embeddings", engraved.max_position_embeddings, file.max_position_embeddings, number);
  compare("rope_theta", engraved.rope_theta, file.rope_theta, number_text);
  compare("rope_scaling", engraved.rope_scaling, file.rope_scaling,
          [](const rope_scaling_config& scaling) { return scaling_text(scaling); });
  compare("rms_norm_eps", engraved.rms_norm_eps, file.rms_norm_eps, number_text);
  compare("hidden_act", engraved.hidden_act, file.hidden_act, named);
  compare("tie_word_embeddings", engraved.tie_word_embeddings, file.tie_word_embeddings,
          [](bool value) { return value ? "true" : "false"; });
  compare("activation_type", engraved.activation_type, file.activation_type, named);
  compare("sliding_window", engraved.sliding_window, file.sliding_window, number);
  if (engraved.sliding_window != 0 && file.sliding_window != 0) {
    compare("sliding_window_pattern", engraved.sliding_window_pattern, file.sliding_window_pattern, number);
    compare("rope_local_base_freq", engraved.rope_local_base_freq, file.rope_local_base_freq, number_text);
  }
  compare("num_local_experts", engraved.num_local_experts, file.num_local_experts, number);
  compare("num_experts_per_tok", engraved.num_experts_per_tok, file.num_experts_per_tok, number);
  compare("query_pre_attn_scalar", engraved.attention_scalar(), file.attention_scalar(), number);
  return out;
}

}  // namespace intaglio::io
