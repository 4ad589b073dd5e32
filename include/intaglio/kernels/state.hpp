// SPDX-License-Identifier: MIT
// The session's state in device memory, as 32-bit words: what would otherwise be push constants of every token lives here, so that
// recorded commands never change. Shaders read the same numbers from shaders/include/state.glsl; a test compares the two.
#pragma once

#include <cstdint>

namespace intaglio::kernels::state {

// Word offsets. position: tokens in the KV cache before this pass. count: tokens of this pass. generated: tokens written to the ring.
inline constexpr std::uint32_t position = 0, count = 1, generated = 2;
inline constexpr std::uint32_t temperature = 4, top_p = 5, min_p = 6, repeat_penalty = 7;  // f32
inline constexpr std::uint32_t top_k = 8, repeat_last_n = 9, seed_low = 10, seed_high = 11;  // u32; top_k 0: off
/// First of max_tokens words: token ids of this pass. After them come `context` words: every token fed or drawn so far, by position;
/// then, in a plan's memory, the counters of attention, a word a head.
inline constexpr std::uint32_t tokens = 16;

constexpr std::uint32_t history(std::uint32_t max_tokens) { return tokens + max_tokens; }
constexpr std::uint32_t words(std::uint32_t max_tokens, std::uint32_t context) { return history(max_tokens) + context; }

}  // namespace intaglio::kernels::state
