// SPDX-License-Identifier: MIT
// Kernel embed on the CPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

/// Kernel embed: output[token, :] = table[state.tokens[token], :] * scale (0: none) for token < min(state.count,
/// max_tokens). An id at or past vocab_size reads row 0. Adds the row of `kinds` for the token's text (first or
/// second), and the row of its position or the last one; an empty table adds nothing. Writes state.history[position +
/// token] where that position is below `context`.
/// @shape table: [vocab_size, width] of `type` (kernels/matmul_layout.hpp); output: [max_tokens, width]; state:
/// state::words(max_tokens, context) words
inline void embed(std::span<const std::byte> table, kernels::codec type, std::uint32_t vocab_size, std::uint32_t width,
                  std::uint32_t max_tokens, std::uint32_t context, std::span<std::uint32_t> state,
                  std::span<float> output, float scale = 0, std::span<const float> positions = {},
                  std::span<const float> kinds = {}) {
  namespace at = kernels::state;
  const std::uint32_t count = state[at::count] < max_tokens ? state[at::count] : max_tokens;
  for (std::uint32_t token = 0; token < count; ++token) {
    const std::uint32_t id = state[at::tokens + token], position = state[at::position] + token,
                        second = state[at::second_text];
    const auto row = [&](std::span<const float> rows, std::size_t index) {
      return rows.subspan((std::min)(index, rows.size() / width - 1) * width, width);
    };
    for (std::uint32_t c = 0; c < width; ++c) {
      float x = weight_at(type, table, width, id < vocab_size ? id : 0, c);
      if (scale != 0) x = product(x, scale);
      if (!kinds.empty()) x += row(kinds, second != 0 && position >= second ? 1 : 0)[c];
      if (!positions.empty()) x += row(positions, position)[c];
      output[std::size_t{token} * width + c] = x;
    }
    const std::uint64_t token_position = std::uint64_t{state[at::position]} + token;
    if (token_position < context) state[at::history(max_tokens) + token_position] = id;
  }
}

}  // namespace intaglio::reference
