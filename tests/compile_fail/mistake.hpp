// SPDX-License-Identifier: MIT
// Shared parts of the cases: fable and its parts, which a case combines wrongly. The twin of a case has everything
// except the mistake.
#pragma once

#include "intaglio/core/fits_together.hpp"

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
using namespace intaglio::graph;

/// A config or profile with the mistake, in the twin without.
template <class Sound>
constexpr Sound mistaken(Sound sound, [[maybe_unused]] auto mistake) {
#ifndef INTAGLIO_TWIN
  mistake(sound);
#endif
  return sound;
}

// The parts of a model of fable's sizes without a feed-forward step.
inline constexpr const decoder_config& sizes = models::fable_config;
inline constexpr embedding start{"token_embd.weight", 4096, 256};
inline constexpr auto attention_step = rms_norm{"attn_norm.weight", 1e-5f} | self_attention<dtype::i2_s>{sizes};
inline constexpr auto branch =
    attention_step | rms_norm{"attn_sub_norm.weight", 1e-5f} | linear<dtype::i2_s>{"attn_output.weight", 256, 256};
inline constexpr auto blocks = repeat(8, residual(branch));
inline constexpr rms_norm last_norm{"output_norm.weight", 1e-5f};
inline constexpr lm_head head{"token_embd.weight", 4096, 256};

struct sound_model {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() { return start | blocks | last_norm | head; }
};
