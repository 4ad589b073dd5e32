// SPDX-License-Identifier: MIT
// A mixture of experts inside a resident dispatch: which mixtures the kernel supports, and the offsets of their values.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

#include "intaglio/core/array_view.hpp"
#include "intaglio/plan/block_steps.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The operands of a product, an addition or a sum of experts in the arena. A step without a choice of experts has
/// `input` there.
struct step_operands {
  kernels::push_id input, output, choice;
  static constexpr step_operands of(const dispatch& d) {
    step_operands out{};
    const auto set = [&](const auto&, const auto& at) {
      out = {at.input, at.output, at.input};
      if constexpr (requires { at.choice; }) out.choice = at.choice;
    };
    with_constants(
        d, kernels::kernel_list<kernels::matmul_kernel, kernels::norm_add_kernel, kernels::expert_sum_kernel>{}, set);
    return out;
  }
};
/// Gives a dispatch's operands new offsets in the arena, and moves its accesses with them.
/// @param added the value to which its result is added, if that is another value, or null
/// @param choice the choice of experts, if it reads one, or null
constexpr void rebind(dispatch& d, const operand& in, const operand& out, const operand* added,
                      const operand* choice = nullptr) {
  const step_operands at = step_operands::of(d);
  const std::uint64_t old_out = d[at.output].offset, old_in = d[at.input].offset,
                      old_choice = choice != nullptr ? d[at.choice].offset : 0;
  for (std::size_t i = 0; i < d.access_count; ++i) {
    access& a = d.accesses[i];
    if (a.where != region::arena) continue;
    const operand& to = a.write                                                        ? out
                        : choice != nullptr && a.offset == old_choice                  ? *choice
                        : added != nullptr && a.offset == old_out && old_out != old_in ? *added
                                                                                       : in;
    a.offset = to.offset, a.layer_stride = to.layer_stride;
  }
  d[at.input] = in, d[at.output] = out;
  if (choice != nullptr) d[at.choice] = *choice;
}

/// The mixture of a model in which all layers have the same one, or none.
struct resident_experts {
  kernels::layers_coded::mixture its;
  operand logits;         ///< results of the router, for which workgroups wait
  operand choice, given;  ///< values that only the chain writes: a token's experts, and each expert's output
  operand gates, ups;     ///< values that only the chain writes: results of both products of biased experts

  constexpr bool are_there() const { return its.is_there(); }
  /// The mixture of a kind of block.
  static constexpr kernels::layers_coded::mixture of(array_view<const dispatch> period, const block_steps& steps) {
    if (!steps.is_mixture()) return {};
    const auto c = constants_of<kernels::route_kernel>(period[steps.route]);
    return {c.experts, c.experts_used, c.over_all != 0, steps.is_biased_mixture()};
  }
  /// Whether a kind of block has this mixture, with a plain softmax, a router of f32, and experts whose sum is added to
  /// the stream; router and experts have biases, or none has. The caller checks the products.
  /// @param hidden elements of the stream
  constexpr bool are_in(array_view<const dispatch> period, const block_steps& steps, std::uint32_t hidden) const {
    if (of(period, steps) != its) return false;
    if (!are_there()) return true;
    const auto route = constants_of<kernels::route_kernel>(period[steps.route]);
    const auto product = [&](std::size_t step) { return constants_of<kernels::matmul_kernel>(period[step]); };
    const auto sum = constants_of<kernels::expert_sum_kernel>(period[steps.sum]);
    const std::uint32_t biased = its.biased ? 1 : 0;
    return route.biased == biased && route.scaled == 0 && route.stated == 0 && route.score == 0 &&
           route.factor == 1.f && route.groups == 1 && product(steps.router).codec == kernels::codec::f32 &&
           product(steps.gated).own_input == 0 && product(steps.down).own_input == 1 && sum.width == hidden &&
           sum.experts_used == its.used && sum.biased == biased && sum.stores == 0;
  }
  /// Binds the dispatches of a kind of block.
  /// @param stream the input of the router and the experts  @param gated outputs of gate and up of a token's experts
  /// @param out receives `stream` plus the sum of the experts
  constexpr void bind(array_view<dispatch> period, const block_steps& steps, const operand& stream,
                      const operand& gated, const operand& out) const {
    rebind(period[steps.router], stream, logits, nullptr);
    dispatch& route = period[steps.route];
    for (std::size_t i = 0; i < route.access_count; ++i) {
      access& a = route.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = a.write ? choice : logits;
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    constexpr auto at = kernels::push_ids<kernels::route_kernel>;
    route[at.logits] = logits, route[at.choice] = choice;
    if (steps.is_biased_mixture()) {
      rebind(period[steps.gated], stream, gates, nullptr, &choice);
      rebind(period[steps.up], stream, ups, nullptr, &choice);
      bind_activation(period[steps.activation], gated);
    } else {
      rebind(period[steps.gated], stream, gated, nullptr, &choice);
    }
    rebind(period[steps.down], gated, given, nullptr, &choice);
    rebind(period[steps.sum], given, out, &stream, &choice);
  }

 private:
  constexpr void bind_activation(dispatch& d, const operand& out) const {
    constexpr auto at = kernels::push_ids<kernels::gated_kernel>;
    const std::uint64_t old_up = d[at.up].offset, old_choice = d[at.choice].offset;
    for (std::size_t i = 0; i < d.access_count; ++i) {
      access& a = d.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = a.write ? out : a.offset == old_choice ? choice : a.offset == old_up ? ups : gates;
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    d[at.gate] = gates, d[at.up] = ups, d[at.output] = out, d[at.choice] = choice;
  }
};

}  // namespace intaglio::plan
