// SPDX-License-Identifier: MIT
// Proofs of what layers with a recurrent state do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "intaglio/reference/recurrent.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// What comes out, and what is kept.
[[gnu::cold]] inline double short_conv(kernel_trial& trial, const plan::dispatch& call) {
  const reference::short_conv_shape shape{trial.constant(call, "width"), trial.constant(call, "taps"),
                                          trial.constant(call, "multiplied") != 0};
  const std::size_t wide = shape.multiplied ? 3 * shape.width : shape.width;
  const auto input = trial.floats(trial.tokens * wide);
  auto kept = trial.floats((shape.taps - 1) * shape.width);
  const gpu::buffer in = trial.filled(input, trial.width * wide), states = trial.filled(kept, 0),
                    out = trial.room(4 * trial.width * shape.width), memory = trial.memory_of(trial.state());
  trial.run(call, {{"input", &in}, {"output", &out}, {"recurrent", &states}, {"state", &memory}});
  std::vector<float> expected(trial.tokens * shape.width);
  reference::short_conv(shape, input, trial.weight<float>(trial.operand(call, "weight"), 0, shape.width * shape.taps),
                        kernel_trial::position, kept, expected);
  return (std::max)(apart(read<float>(out, 0, expected.size()), expected),
                    apart(read<float>(states, 0, kept.size()), kept));
}

}  // namespace intaglio::runtime::proofs
