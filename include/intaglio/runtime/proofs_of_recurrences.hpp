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

/// The same.
[[gnu::cold]] inline double delta_net(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = kernels::constants_of<kernels::delta_net_kernel>(call.specialization);
  const delta_net_config sizes{c.key_heads, c.value_heads, c.key_dim, c.value_dim, c.in_turn != 0};
  const auto qkv = trial.floats(std::size_t{trial.tokens} * sizes.qkv_size()),
             beta = trial.floats(std::size_t{trial.tokens} * c.gate_stride),
             alpha = trial.floats(std::size_t{trial.tokens} * c.gate_stride);
  auto kept = trial.floats(std::size_t{sizes.value_size()} * c.key_dim);
  const gpu::buffer in = trial.filled(qkv, std::size_t{trial.width} * sizes.qkv_size()),
                    betas = trial.filled(beta, std::size_t{trial.width} * c.gate_stride),
                    alphas = trial.filled(alpha, std::size_t{trial.width} * c.gate_stride),
                    states = trial.filled(kept, 0),
                    out = trial.room(std::uint64_t{4} * trial.width * sizes.value_size()),
                    memory = trial.memory_of(trial.state());
  trial.run(call, {{"qkv", &in},
                   {"beta", &betas},
                   {"alpha", &alphas},
                   {"output", &out},
                   {"recurrent", &states},
                   {"state", &memory}});
  std::vector<float> expected(std::size_t{trial.tokens} * sizes.value_size());
  reference::delta_net(sizes, {c.gate_stride, c.gate_group}, qkv, beta, alpha,
                       trial.weight<float>(trial.operand(call, "decay"), 0, c.value_heads),
                       trial.weight<float>(trial.operand(call, "shift"), 0, c.value_heads), kernel_trial::position,
                       kept, expected);
  return (std::max)(apart(read<float>(out, 0, expected.size()), expected),
                    apart(read<float>(states, 0, kept.size()), kept));
}

[[gnu::cold]] inline double head_gate(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = kernels::constants_of<kernels::head_gate_kernel>(call.specialization);
  const std::size_t rows = std::size_t{trial.tokens} * c.heads, all_rows = std::size_t{trial.width} * c.heads,
                    gates = c.per_head != 0 ? 1 : c.head_dim;
  const auto values = trial.floats(rows * c.head_dim), gate = trial.floats(rows * gates);
  std::vector<float> norm, expected = trial.floats(rows * c.head_dim);
  const gpu::buffer in = trial.filled(values, all_rows * c.head_dim), by = trial.filled(gate, all_rows * gates),
                    out = trial.filled(expected, all_rows * c.head_dim), memory = trial.memory_of(trial.state());
  trial.run(call, {{"input", &in}, {"gate", &by}, {"output", &out}, {"state", &memory}});
  if (c.normed != 0) norm = trial.weight<float>(trial.operand(call, "norm_weight"), 0, c.head_dim);
  reference::head_gate({c.head_dim, c.eps, c.logistic != 0, c.per_head != 0, c.adds != 0}, values, gate, norm,
                       expected);
  return apart(read<float>(out, 0, expected.size()), expected);
}

}  // namespace intaglio::runtime::proofs
