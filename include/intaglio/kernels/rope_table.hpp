// SPDX-License-Identifier: MIT
// The table that a layer's rotary embedding reads, made once from its base and scaling in extended precision.
// Source: transformers, modeling_rope_utils.py.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/kernels/rope_turns.hpp"

namespace intaglio::kernels {

/// Frequency of a pair in radians a position by YaRN. It is divided by the factor for pairs with fewer than beta_slow
/// full turns in the original context. It is unchanged for pairs with more than beta_fast turns. Between these pairs it
/// is interpolated.
inline long double yarn_frequency(std::uint32_t pair, std::uint32_t head_dim, const rope_parameters& how) {
  const rope_scaling_config& scaling = how.scaling;
  const auto theta = static_cast<long double>(how.theta), width = static_cast<long double>(head_dim);
  const auto pair_that_turns = [&](float times) {
    const long double original = scaling.original_max_position_embeddings;
    return width * std::log(original / (static_cast<long double>(times) * 2 * std::numbers::pi_v<long double>)) /
           (2 * std::log(theta));
  };
  long double low = pair_that_turns(scaling.high_freq_factor), high = pair_that_turns(scaling.low_freq_factor);
  if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
  low = (std::max)(low, 0.0L), high = (std::min)(high, width - 1);
  if (low == high) high += 0.001L;  // as in transformers
  const long double share = std::clamp((static_cast<long double>(pair) - low) / (high - low), 0.0L, 1.0L),
                    frequency = rope_frequency_of(pair, head_dim, theta);
  return frequency / static_cast<long double>(scaling.factor) * share + frequency * (1 - share);
}

/// A frequency in radians a position with a model's scaling, for scalings that do not depend on the pair.
inline long double scaled_frequency(long double frequency, const rope_scaling_config& scaling) {
  if (scaling.type == rope_type::plain) return frequency;
  const long double divided = frequency / static_cast<long double>(scaling.factor);
  if (scaling.type == rope_type::linear) return divided;
  // Full turns in the original context: below low_freq_factor a frequency is low, above high_freq_factor it is high.
  const long double turns = static_cast<long double>(scaling.original_max_position_embeddings) * frequency /
                            (2 * std::numbers::pi_v<long double>);
  const auto low = static_cast<long double>(scaling.low_freq_factor),
             high = static_cast<long double>(scaling.high_freq_factor);
  if (turns < low) return divided;
  if (turns > high) return frequency;
  const long double share = (turns - low) / (high - low);
  return (1 - share) * divided + share * frequency;
}

/// The RoPE table of a layer, [head_dim / 2]: rotation for one position in units of 2^-64 of a full turn; zeros for a
/// layer without RoPE.
/// @param factors of longrope
inline std::vector<std::uint64_t> rope_table(const rope_parameters& how, std::uint32_t head_dim, std::uint32_t layer,
                                             const longrope_factors& factors = {}) {
  std::vector<std::uint64_t> out;
  if (how.no_rope_interval != 0 && (layer + 1) % how.no_rope_interval == 0) out.resize(head_dim / 2);
  if (!out.empty()) return out;
  const std::uint32_t turning = how.rotary_dim != 0 ? how.rotary_dim : head_dim,
                      pairs = how.turning_pairs != 0 ? (std::min)(how.turning_pairs, turning / 2) : turning / 2;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const long double plain = rope_frequency_of(pair, turning, static_cast<long double>(how.theta));
    const auto& longrope = how.long_context ? factors.long_factor : factors.short_factor;
    out.push_back(rope_turns(how.scaling.type == rope_type::longrope ? plain / static_cast<long double>(longrope[pair])
                             : how.scaling.type == rope_type::yarn   ? yarn_frequency(pair, turning, how)
                                                                     : scaled_frequency(plain, how.scaling)));
  }
  out.resize(head_dim / 2);
  return out;
}

}  // namespace intaglio::kernels
