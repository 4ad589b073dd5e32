// SPDX-License-Identifier: MIT
// The table that a layer's rotary embedding reads, made once from its base and scaling in extended precision.
// Source: transformers, modeling_rope_utils.py.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/kernels/rope_turns.hpp"

namespace intaglio::kernels {

/// What a frequency in radians a position becomes by a model's scaling.
inline long double scaled_frequency(long double frequency, const rope_scaling_config& scaling) {
  if (scaling.type == rope_type::plain) return frequency;
  const long double divided = frequency / static_cast<long double>(scaling.factor);
  if (scaling.type == rope_type::linear) return divided;
  // Turns in the original context: fewer than low_freq_factor are slow, more than high_freq_factor fast.
  const long double turns = static_cast<long double>(scaling.original_max_position_embeddings) * frequency /
                            (2 * std::numbers::pi_v<long double>);
  const auto low = static_cast<long double>(scaling.low_freq_factor),
             high = static_cast<long double>(scaling.high_freq_factor);
  if (turns < low) return divided;
  if (turns > high) return frequency;
  const long double share = (turns - low) / (high - low);
  return (1 - share) * divided + share * frequency;
}

/// [head_dim / 2] turns a position in units of 2^-64; zeros for a layer that does not turn.
inline std::vector<std::uint64_t> rope_table(const rope_parameters& how, std::uint32_t head_dim, std::uint32_t layer) {
  std::vector<std::uint64_t> out;
  if (how.no_rope_interval != 0 && (layer + 1) % how.no_rope_interval == 0) out.resize(head_dim / 2);
  if (!out.empty()) return out;
  for (std::uint32_t pair = 0; pair < head_dim / 2; ++pair)
    out.push_back(rope_turns(
        scaled_frequency(rope_frequency_of(pair, head_dim, static_cast<long double>(how.theta)), how.scaling)));
  return out;
}

}  // namespace intaglio::kernels
