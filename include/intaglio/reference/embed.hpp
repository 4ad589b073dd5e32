// SPDX-License-Identifier: MIT
// Kernel embed on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

/// output[token, :] = table[state.tokens[token], :] * scale (0: none) for token < min(state.count, max_tokens); an id
/// at or past vocab_size reads row 0. Writes state.history[position + token] where that lies below `context`.
/// @shape table: [vocab_size, width] of `type` (kernels/matmul_layout.hpp); output: [max_tokens, width]; state:
/// state::words(max_tokens, context) words
inline void embed(std::span<const std::byte> table, kernels::codec type, std::uint32_t vocab_size, std::uint32_t width,
                  std::uint32_t max_tokens, std::uint32_t context, std::span<std::uint32_t> state,
                  std::span<float> output, float scale = 0) {
  namespace at = kernels::state;
  const std::uint32_t count = state[at::count] < max_tokens ? state[at::count] : max_tokens;
  for (std::uint32_t token = 0; token < count; ++token) {
    const std::uint32_t id = state[at::tokens + token];
    for (std::uint32_t c = 0; c < width; ++c) {
      const float x = weight_at(type, table, width, id < vocab_size ? id : 0, c);
      output[std::size_t{token} * width + c] = scale == 0 ? x : product(x, scale);
    }
    const std::uint64_t place = std::uint64_t{state[at::position]} + token;
    if (place < context) state[at::history(max_tokens) + place] = id;
  }
}

}  // namespace intaglio::reference
