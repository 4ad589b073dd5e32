// SPDX-License-Identifier: MIT
// How the next token is chosen: the parameters that a user sets, their ranges, and their words in the state that the
// kernel reads.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/kernels/state.hpp"

namespace intaglio {

/// Parameters of the draw. They apply in this order: repetition penalty, top-k, top-p, min-p, temperature.
struct sampling_options {
  float temperature = 0;  ///< finite, 0 or more; 0 is greedy: the most probable token, the lowest id among equals
  std::optional<std::uint32_t> top_k{};  ///< 1 .. vocabulary; absent: off
  float top_p = 1;                       ///< over 0, at most 1; 1: off
  float min_p = 0;                       ///< 0 .. 1; 0: off
  float repeat_penalty = 1;              ///< finite, over 0; 1: off
  /// Number of last tokens that the penalty looks at, at most the context. Absent: 64, or all tokens if there are
  /// fewer.
  std::optional<std::uint32_t> repeat_last_n{};
  std::uint64_t seed = 0;  ///< the draw is a function of only the seed and the position

  friend bool operator==(const sampling_options&, const sampling_options&) = default;
};

namespace runtime {

/// Number of last tokens that the repetition penalty looks at by default.
inline constexpr std::uint32_t default_repeat_last_n = 64;
/// Refuses sampling parameters that are out of range.
/// @error argument_error naming the parameter, its range and its value, before anything is computed
inline void validate(const sampling_options& options, std::uint32_t vocab_size, std::uint32_t context) {
  const auto refuse = [](const char* what, const std::string& expected, const std::string& found) {
    throw argument_error(what, expected, found);
  };
  if (!std::isfinite(options.temperature) || options.temperature < 0)
    refuse("temperature", "a finite number, 0 or more", number_text(options.temperature));
  if (options.top_k && (*options.top_k == 0 || *options.top_k > vocab_size))
    refuse("top_k", "1 .. " + std::to_string(vocab_size) + " (the vocabulary)", std::to_string(*options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1))
    refuse("top_p", "a number over 0, at most 1", number_text(options.top_p));
  if (!(options.min_p >= 0 && options.min_p <= 1)) refuse("min_p", "a number of 0 .. 1", number_text(options.min_p));
  if (!std::isfinite(options.repeat_penalty) || !(options.repeat_penalty > 0))
    refuse("repeat_penalty", "a finite number over 0", number_text(options.repeat_penalty));
  if (options.repeat_last_n && *options.repeat_last_n > context)
    refuse("repeat_last_n", "at most " + std::to_string(context) + " (the context)",
           std::to_string(*options.repeat_last_n));
}

/// Whether the sampler draws a token by probability, instead of taking the most probable one.
inline bool draws(const sampling_options& options) noexcept { return options.temperature >= 1e-6f; }
/// Whether sampling reads the tokens before it.
inline bool looks_back(const sampling_options& options) { return options.repeat_penalty != 1.f; }

/// Writes the parameters at their offsets in kernels::state; `words` is the start of the state.
inline void write_sampling(const sampling_options& options, std::span<std::uint32_t> words) {
  namespace state = kernels::state;
  words[state::temperature] =
      std::bit_cast<std::uint32_t>(options.temperature + 0.0f);  // -0 becomes 0, which the kernel compares with
  words[state::top_p] = std::bit_cast<std::uint32_t>(options.top_p);
  words[state::min_p] = std::bit_cast<std::uint32_t>(options.min_p);
  words[state::repeat_penalty] = std::bit_cast<std::uint32_t>(options.repeat_penalty);
  words[state::top_k] = options.top_k.value_or(0);
  words[state::repeat_last_n] = options.repeat_last_n.value_or(default_repeat_last_n);
  words[state::seed_low] = static_cast<std::uint32_t>(options.seed);
  words[state::seed_high] = static_cast<std::uint32_t>(options.seed >> 32);
}

}  // namespace runtime
}  // namespace intaglio
