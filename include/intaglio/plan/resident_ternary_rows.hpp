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

class resident_ternary_rows_layers : public resident_batch_layers {
 public:
  using resident_batch_layers::resident_batch_layers;

  /// The chain's sequence with the resident dispatch; without one where the kernel does not fit.
  constexpr drafted_sequence made(text<256>& failure) const {
    if (!waits() || !fits()) return {};
    std::vector<operand> arguments(kernels::layers::argument_count);
    arguments[1] = push(step(1), "keys");
    arguments[2] = push(step(1), "values");
    arguments[3] = push(step(0), "input");
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t norm = std::array<std::size_t, 4>{0, 3, 5, 7}[i];
      arguments[8 + 3 * i] = push(step(norm), "norm_weight");
      arguments[9 + 3 * i] = push(step(norm + 1), "weight");
      arguments[10 + 3 * i] = push(step(norm + 1), "scales");
    }
    const std::uint32_t parts = most_parts();
    dispatch all = dispatch_of_all(kernel::layers_ternary_rows, kernels::layers_ternary_rows::resident_subgroups, parts,
                                   step(2), {&step(1)});
    const auto set = [&](std::string_view name, std::uint32_t value) {
      all.specialization[kernels::layers_ternary_rows_interface.specialization_index(name)] = value;
    };
    set("eps", constant(step(0), "eps"));
    set("rope_theta", constant(step(1), "rope_theta"));
    set("slots", shape_.slot_count);
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
  constexpr bool normalises(std::size_t index, std::uint32_t width) const {
    return step(index).kernel == kernel::norm_quantize && constant(step(index), "width") == width &&
           constant(step(index), "prologue") != static_cast<std::uint32_t>(kernels::prologue::quantize) &&
           constant(step(index), "eps") == constant(step(0), "eps");
  }
  constexpr bool multiplies(std::size_t index, kernels::epilogue how, std::uint32_t columns, std::uint32_t rows) const {
    return step(index).kernel == kernel::ternary_batch &&
           constant(step(index), "epilogue") == static_cast<std::uint32_t>(how) &&
           constant(step(index), "columns") == columns && constant(step(index), "rows") == rows;
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
    for (const std::size_t i : {4u, 5u, 8u})
      if (push(step(i), i == 5 ? "input" : "output").offset != push(step(0), "input").offset) return false;
    return ternary_rows_fit(config_, shape_.slot_count, most_parts());
  }
  /// The most workgroups of which each has a tile of every product.
  constexpr std::uint32_t most_parts() const {
    return (std::min)({target_.layers_parts, config_.hidden_size / 16, (config_.q_size() + 2 * config_.kv_size()) / 16,
                       config_.intermediate_size / 8});
  }
};

}  // namespace intaglio::plan
