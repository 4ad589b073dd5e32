// SPDX-License-Identifier: MIT
// Llama 3.1's RoPE scaling as GGUF stores it: rope_freqs.weight, the divisor of each inverse frequency (llama.cpp's
// conversion of Llama models; transformers' _compute_llama3_parameters).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>

#include "intaglio/core/decoder_config.hpp"

namespace intaglio::io {

/// YaRN's factor of sines and cosines where nothing else is stated (Peng et al. 2023, section 3.4).
inline float yarn_attention_factor(float factor, float share = 1.f) {
  return factor <= 1.f
             ? 1.f
             : static_cast<float>(1 + 0.1 * static_cast<double>(share) * std::log(static_cast<double>(factor)));
}

/// The factor of scores that belongs to YaRN with a share for all channels (config.json's mscale_all_dim): the square
/// of YaRN's factor by 1 / sqrt(head_dim).
inline float yarn_score_factor(std::uint32_t head_dim, float factor, float share) {
  if (factor <= 1.f) return static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  const double one = 1 + 0.1 * static_cast<double>(share) * std::log(static_cast<double>(factor));
  return static_cast<float>(one * one / std::sqrt(static_cast<double>(head_dim)));
}
/// The share that gives a factor of scores, in whole hundred-thousandths, as config.json has few digits of it.
inline float yarn_score_share(std::uint32_t head_dim, float factor, float scores) {
  if (factor <= 1.f || scores == 0.f) return 0.f;
  const double one = std::sqrt(static_cast<double>(scores) * std::sqrt(static_cast<double>(head_dim)));
  return static_cast<float>(std::round((one - 1) / (0.1 * std::log(static_cast<double>(factor))) * 1e5) / 1e5);
}

/// The divisor of the inverse frequency of pair i of `pairs` (head_dim / 2).
inline double llama3_factor(const rope_scaling_config& scaling, double rope_theta, std::size_t i, std::size_t pairs) {
  const double wavelength =
      2 * std::numbers::pi * std::pow(rope_theta, static_cast<double>(i) / static_cast<double>(pairs));
  const double turns = scaling.original_max_position_embeddings / wavelength, low = scaling.low_freq_factor,
               high = scaling.high_freq_factor;
  if (turns > high) return 1;
  if (turns < low) return scaling.factor;
  const double smooth = (turns - low) / (high - low);
  return 1 / ((1 - smooth) / scaling.factor + smooth);
}

/// The factor of longrope for channels where a config states none (transformers' _compute_longrope_parameters).
inline float longrope_attention_factor(std::uint32_t context, std::uint32_t original) {
  if (original < 2 || context <= original) return 1.f;
  const double scale = static_cast<double>(context) / original;
  return static_cast<float>(std::sqrt(1 + std::log(scale) / std::log(static_cast<double>(original))));
}

/// The scaling that has these factors [head_dim / 2], with Llama 3's low_freq_factor 1 and high_freq_factor 4. The
/// factors do not determine these two and the original length separately, so the length is assumed to be a power of
/// two. Plain where all factors are 1, absent where no scaling has these factors.
[[gnu::cold]] inline std::optional<rope_scaling_config> llama3_scaling_of(std::span<const float> factors,
                                                                          float rope_theta) {
  const auto all = [&](auto&& is) { return std::all_of(factors.begin(), factors.end(), is); };
  if (factors.empty() || !all([](float factor) { return std::isfinite(factor) && factor >= 1.f; })) return std::nullopt;
  if (all([](float factor) { return factor == 1.f; })) return rope_scaling_config{};
  rope_scaling_config out{.type = rope_type::llama3, .factor = *std::max_element(factors.begin(), factors.end())};
  for (std::uint32_t original = 16; original <= (1u << 24); original *= 2) {
    out.original_max_position_embeddings = original;
    bool same = true;
    for (std::size_t i = 0; i < factors.size() && same; ++i) {
      const double expected = llama3_factor(out, rope_theta, i, factors.size());
      same = std::abs(factors[i] - expected) <= 1e-4 * expected;  // the writer computed in f32
    }
    if (same) return out;
  }
  return std::nullopt;
}

}  // namespace intaglio::io
