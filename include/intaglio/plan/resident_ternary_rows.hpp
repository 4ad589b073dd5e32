// SPDX-License-Identifier: MIT
// Batch passes of a BitNet with the resident dispatch (kernels::layers_ternary_rows_interface), beside the chain of
// dispatches, which gives the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "intaglio/plan/resident_rows.hpp"

namespace intaglio::plan {

/// Recognises BitNet's blocks and makes the resident dispatch of a batch.
class resident_ternary_rows_layers : public resident_batch_layers {
 public:
  using resident_batch_layers::resident_batch_layers;

  /// The chain's sequence with the resident dispatch; without one where the kernel does not fit.
  constexpr drafted_sequence made(text<256>& failure) const {
    if (!waits() || !fits()) return {};
    std::vector<operand> arguments(kernels::layers::argument_count);
    arguments[1] = step(1)[at_batch.keys];
    arguments[2] = step(1)[at_batch.values];
    arguments[3] = stream();
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t norm = std::array<std::size_t, 4>{0, 3, 5, 7}[i];
      arguments[8 + 3 * i] = step(norm)[at_norm.norm_weight];
      arguments[9 + 3 * i] = step(norm + 1)[at_batch.weight];
      arguments[10 + 3 * i] = step(norm + 1)[at_batch.scales];
    }
    const std::uint32_t parts = most_parts();
    using kernel_of_all = kernels::layers_ternary_rows_kernel;
    dispatch all = dispatch_of_all<kernel_of_all>(kernels::layers_ternary_rows::resident_subgroups, parts, stream(),
                                                  step(2), {&step(1)});
    change_constants<kernel_of_all>(all,
                                    [&](auto& c) { c.eps = of_norm(0).eps, c.rope_theta = of_batch(1).rope_theta; });
    all.activation = step(6).activation;
    all.least_groups =
        least_resident(parts, [&](std::uint32_t n) { return ternary_rows_fit(config_, shape_.slot_count, n); });
    return with(
        all, arguments,
        kernels::layers_ternary_rows::exchange_bytes(shape_.slot_count, config_.hidden_size, config_.intermediate_size,
                                                     config_.q_size(), config_.kv_size()),
        failure);
  }

 private:
  static constexpr std::size_t steps = 9;
  static constexpr auto at_norm = kernels::push_ids<kernels::norm_quantize_kernel>;
  static constexpr auto at_batch = kernels::push_ids<kernels::ternary_batch_kernel>;

  constexpr kernels::norm_quantize_kernel::constants of_norm(std::size_t index) const {
    return constants_of<kernels::norm_quantize_kernel>(step(index));
  }
  constexpr kernels::ternary_batch_kernel::constants of_batch(std::size_t index) const {
    return constants_of<kernels::ternary_batch_kernel>(step(index));
  }
  constexpr const operand& stream() const { return step(0)[at_norm.input]; }

  constexpr bool normalises(std::size_t index, std::uint32_t width) const {
    if (step(index).kernel != kernel::norm_quantize) return false;
    const auto c = of_norm(index);
    return c.width == width && c.prologue != kernels::prologue::quantize && c.eps == of_norm(0).eps;
  }
  constexpr bool multiplies(std::size_t index, kernels::epilogue how, std::uint32_t columns, std::uint32_t rows) const {
    if (step(index).kernel != kernel::ternary_batch) return false;
    const auto c = of_batch(index);
    return c.epilogue == how && c.columns == columns && c.rows == rows;
  }
  constexpr bool fits() const {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size, q = config_.q_size();
    if (pattern_.period != 1 || chain_.period.size != steps) return false;
    if (!normalises(0, hidden) || !multiplies(1, epilogue::rope_cache, hidden, q + 2 * config_.kv_size()) ||
        !attends(step(2)) || !normalises(3, q) || !multiplies(4, epilogue::add, q, hidden) || !normalises(5, hidden) ||
        !multiplies(6, epilogue::gated, hidden, 2 * ffn) || !normalises(7, ffn) ||
        !multiplies(8, epilogue::add, ffn, hidden))
      return false;
    for (const operand& each : {step(4)[at_batch.output], step(5)[at_norm.input], step(8)[at_batch.output]})
      if (each.offset != stream().offset) return false;
    return ternary_rows_fit(config_, shape_.slot_count, most_parts());
  }
  /// The most workgroups of which each has a tile of every product.
  constexpr std::uint32_t most_parts() const {
    return (std::min)({target_.work.layers_parts, config_.hidden_size / 16,
                       (config_.q_size() + 2 * config_.kv_size()) / 16, config_.intermediate_size / 8});
  }
};

}  // namespace intaglio::plan
