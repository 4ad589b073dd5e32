// SPDX-License-Identifier: MIT
// Proof of the kernel streams against its reference.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "intaglio/reference/streams.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// Compares the kernel streams with the reference. @return the largest difference
[[gnu::cold]] inline double streams(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::streams_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::streams_kernel>;
  const auto step = static_cast<ir::stream_step>(c.step);
  const reference::streams_sizes sizes(step, c.width, c.streams);
  const auto input = trial.floats(trial.tokens * sizes.input), branch = trial.floats(trial.tokens * sizes.branch),
             target = trial.floats(trial.tokens * sizes.target);
  std::vector<float> expected(trial.tokens * sizes.output);
  const gpu::buffer in = trial.filled(input, trial.width * sizes.input),
                    by = trial.filled(branch, trial.width * sizes.branch),
                    to = trial.filled(target, trial.width * sizes.target),
                    out = trial.filled(expected, trial.width * sizes.output), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.branch, &by}, {at.target, &to}, {at.output, &out}, {at.state, &memory}});
  const auto weights = [&](kernels::push_id id, std::size_t count) {
    return count == 0 ? std::vector<float>{} : trial.weight<float>(call[id], 0, count);
  };
  const auto norm = weights(at.norm_weight, sizes.norm), router = weights(at.router, sizes.router),
             mixing = weights(at.mixing, sizes.mixing);
  const auto of_token = [](std::span<const float> all, std::size_t token, std::size_t row) {
    return all.subspan(token * row, row);
  };
  for (std::size_t token = 0; token < trial.tokens; ++token)
    reference::streams(
        {c.width, c.streams, step, c.stream, c.scale, c.eps}, of_token(input, token, sizes.input),
        {of_token(branch, token, sizes.branch), of_token(target, token, sizes.target), norm, router, mixing},
        std::span(expected).subspan(token * sizes.output, sizes.output));
  return apart(read<float>(out, 0, expected.size()), expected);
}

}  // namespace intaglio::runtime::proofs
