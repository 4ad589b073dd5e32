// SPDX-License-Identifier: MIT
// From the command line's sampling flags to the library's options.
#pragma once

#include "commands.hpp"
#include "console.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/number_text.hpp>
#include <intaglio/runtime/generation.hpp>
#include <intaglio/runtime/sampling.hpp>

#include <cstdint>
#include <limits>
#include <random>

namespace intaglio::tool {

/// Called before a model is loaded, which may take minutes. top_k is compared with the vocabulary later.
/// @param temperature where none was given
/// @param say_seed prints which seed was drawn
/// @throws argument_error: a number outside of its range
inline generate_options generation_of(const sampling_flags& flags, float temperature, bool say_seed) {
  generate_options out;
  out.temperature = flags.temperature.value_or(temperature);
  out.top_k = flags.top_k;
  out.top_p = flags.top_p.value_or(1.0f);
  out.min_p = flags.min_p.value_or(0.0f);
  out.repeat_penalty = flags.repeat_penalty.value_or(1.0f);
  out.gpu_idle = flags.gpu_idle;
  out.prompt_lookup_num_tokens = flags.prompt_lookup;
  constexpr std::uint32_t any_size = std::numeric_limits<std::int32_t>::max();
  runtime::validate(out.sampling(), any_size, any_size);
  if (!(out.gpu_idle >= 0 && out.gpu_idle <= 0.95f))
    throw argument_error("gpu_idle", "a share of 0 .. 0.95", number_text(out.gpu_idle));
  if (flags.seed) {
    out.seed = *flags.seed;
  } else if (out.temperature > 0) {
    out.seed = std::random_device{}() % 100'000u;  // short enough to type again
    if (say_seed) note("seed " + std::to_string(out.seed));
  }
  return out;
}

}  // namespace intaglio::tool
