// SPDX-License-Identifier: MIT
// Proofs of layers with a recurrent state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/reference/recurrent.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// The states before a pass of a layer with a state: one state, or in a batch one in each token's slot.
struct kept_states {
  std::size_t of_one, stride, count;  ///< floats of a state; floats from one slot to the next; states
  std::vector<float> floats;

  /// @param slot_floats the constant of the kernel
  [[gnu::cold]] kept_states(kernel_trial& trial, std::size_t slot_floats, std::size_t size)
      : of_one(size), stride(trial.batched ? slot_floats : size), count(trial.batched ? trial.tokens : 1),
        floats(trial.floats((count - 1) * stride + size)) {}
  std::span<float> of(std::size_t which) { return std::span(floats).subspan(which * stride, of_one); }
  /// Calls `step(first token, tokens, state)` for each run of tokens that share a state.
  template <class Step>
  void each(std::uint32_t tokens, Step&& step) {
    for (std::size_t i = 0; i < count; ++i) step(i, count == 1 ? tokens : 1u, of(i));
  }
};

/// The output of a pass, and the state that it keeps.
[[gnu::cold]] inline double short_conv(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::short_conv_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::short_conv_kernel>;
  const reference::short_conv_shape shape{c.width, c.taps, c.multiplied != 0};
  const std::size_t wide = shape.multiplied ? 3 * shape.width : shape.width;
  const auto input = trial.floats(trial.tokens * wide);
  kept_states kept(trial, c.slot_floats, (shape.taps - 1) * shape.width);
  const gpu::buffer in = trial.filled(input, trial.width * wide), states = trial.filled(kept.floats, 0),
                    out = trial.room(4 * trial.width * shape.width), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.recurrent, &states}, {at.state, &memory}});
  std::vector<float> expected(trial.tokens * shape.width);
  const auto weight = trial.weight<float>(call[at.weight], 0, shape.width * shape.taps);
  std::vector<float> bias;
  if (c.biased != 0) bias = trial.weight<float>(call[at.bias], 0, shape.width);
  kept.each(trial.tokens, [&](std::size_t first, std::size_t count, std::span<float> state) {
    reference::short_conv(shape, std::span(input).subspan(first * wide, count * wide), weight, kernel_trial::position,
                          state, std::span(expected).subspan(first * shape.width, count * shape.width), bias);
  });
  return (std::max)(apart(read<float>(out, 0, expected.size()), expected),
                    apart(read<float>(states, 0, kept.floats.size()), kept.floats));
}

/// Proves Mamba-2's recurrence.
[[gnu::cold]] inline double state_space(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::delta_net_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::delta_net_kernel>;
  const delta_net_config sizes{c.key_heads, c.value_heads, c.key_dim, c.value_dim, false};
  const std::size_t wide = sizes.qkv_size(), values = sizes.value_size(), heads = c.value_heads;
  const auto xbc = trial.floats(trial.tokens * wide), gate = trial.floats(trial.tokens * values),
             steps = trial.floats(trial.tokens * heads);
  kept_states kept(trial, c.slot_floats, values * c.key_dim);
  const gpu::buffer in = trial.filled(xbc, trial.width * wide), gates = trial.filled(gate, trial.width * values),
                    alphas = trial.filled(steps, trial.width * heads), states = trial.filled(kept.floats, 0),
                    out = trial.room(std::uint64_t{4} * trial.width * values), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.qkv, &in},
                   {at.gate, &gates},
                   {at.alpha, &alphas},
                   {at.output, &out},
                   {at.recurrent, &states},
                   {at.state, &memory}});
  std::vector<float> expected(trial.tokens * values);
  const auto of_heads = [&](kernels::push_id id) { return trial.weight<float>(call[id], 0, heads); };
  const auto decay = of_heads(at.decay), shift = of_heads(at.shift), skip = of_heads(at.skip);
  kept.each(trial.tokens, [&](std::size_t first, std::size_t count, std::span<float> state) {
    const auto part = [&](const std::vector<float>& of, std::size_t row) {
      return std::span<const float>(of).subspan(first * row, count * row);
    };
    reference::state_space(sizes, {part(xbc, wide), part(steps, heads), decay, shift, skip, part(gate, values)},
                           kernel_trial::position, state, std::span(expected).subspan(first * values, count * values));
  });
  return (std::max)(apart(read<float>(out, 0, expected.size()), expected),
                    apart(read<float>(states, 0, kept.floats.size()), kept.floats));
}

/// Proves a recurrence, by Mamba-2's rule or the gated delta rule.
[[gnu::cold]] inline double delta_net(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::delta_net_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::delta_net_kernel>;
  if (c.state_space != 0) return state_space(trial, call);
  const delta_net_config sizes{c.key_heads, c.value_heads, c.key_dim, c.value_dim, c.in_turn != 0};
  const std::size_t wide = sizes.qkv_size(), values = sizes.value_size(), gates = c.gate_stride;
  const auto qkv = trial.floats(trial.tokens * wide), beta = trial.floats(trial.tokens * gates),
             alpha = trial.floats(trial.tokens * gates);
  kept_states kept(trial, c.slot_floats, values * c.key_dim);
  const gpu::buffer in = trial.filled(qkv, trial.width * wide), betas = trial.filled(beta, trial.width * gates),
                    alphas = trial.filled(alpha, trial.width * gates), states = trial.filled(kept.floats, 0),
                    out = trial.room(std::uint64_t{4} * trial.width * values), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.qkv, &in},
                   {at.beta, &betas},
                   {at.alpha, &alphas},
                   {at.output, &out},
                   {at.recurrent, &states},
                   {at.state, &memory}});
  std::vector<float> expected(trial.tokens * values);
  const auto decay = trial.weight<float>(call[at.decay], 0, c.value_heads),
             shift = trial.weight<float>(call[at.shift], 0, c.value_heads);
  kept.each(trial.tokens, [&](std::size_t first, std::size_t count, std::span<float> state) {
    const auto part = [&](const std::vector<float>& of, std::size_t row) {
      return std::span(of).subspan(first * row, count * row);
    };
    reference::delta_net(sizes, {c.gate_stride, c.gate_group}, part(qkv, wide), part(beta, gates), part(alpha, gates),
                         decay, shift, kernel_trial::position, state,
                         std::span(expected).subspan(first * values, count * values));
  });
  return (std::max)(apart(read<float>(out, 0, expected.size()), expected),
                    apart(read<float>(states, 0, kept.floats.size()), kept.floats));
}

/// Compares the kernel head_gate with the reference. @return the largest difference
[[gnu::cold]] inline double head_gate(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::head_gate_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::head_gate_kernel>;
  const std::size_t rows = std::size_t{trial.tokens} * c.heads, all_rows = std::size_t{trial.width} * c.heads,
                    gates = c.per_head != 0 ? 1 : c.head_dim;
  const auto values = trial.floats(rows * c.head_dim), gate = trial.floats(rows * gates);
  std::vector<float> norm, expected = trial.floats(rows * c.head_dim);
  const gpu::buffer in = trial.filled(values, all_rows * c.head_dim), by = trial.filled(gate, all_rows * gates),
                    out = trial.filled(expected, all_rows * c.head_dim), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.gate, &by}, {at.output, &out}, {at.state, &memory}});
  if (c.normed != 0) norm = trial.weight<float>(call[at.norm_weight], 0, c.head_dim);
  reference::head_gate({c.head_dim, c.eps, c.logistic != 0, c.per_head != 0, c.adds != 0}, values, gate, norm,
                       expected);
  return apart(read<float>(out, 0, expected.size()), expected);
}

}  // namespace intaglio::runtime::proofs
