// SPDX-License-Identifier: MIT
// Positions of a coded block's dispatches in the period of a chain of dispatches.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

#include "intaglio/core/array_view.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The index of a dispatch that a block does not have.
inline constexpr std::size_t no_step = ~std::size_t{0};
/// Indices of the dispatches of one kind of block in the period. `v` is set where v, or k and v, are a product apart
/// from q.
struct block_steps {
  std::size_t first = 0, end = 0, qkv = no_step, v = no_step, turn = no_step, attends = no_step, projection = no_step,
              after_projection = no_step, gated = no_step, down = no_step, after_down = no_step;
  /// An FFN before attention (`early`), and a second one after attention (`late`).
  struct ffn {
    std::size_t gated = no_step, down = no_step;
    constexpr bool is_there() const { return gated != no_step; }
  } early, late;
  /// Dispatches of a mixture of experts beside `gated` and `down`: the router's product, the choice, the sum.
  std::size_t router = no_step, route = no_step, sum = no_step;
  /// The product of ups and the activation, of experts with biases. Their `gated` is the product of gates alone.
  std::size_t up = no_step, activation = no_step;
  constexpr bool is_mixture() const { return route != no_step; }
  constexpr bool is_biased_mixture() const { return activation != no_step; }
  /// The dispatch that has the FFN's activation.
  constexpr std::size_t activates() const { return is_biased_mixture() ? activation : gated; }
  constexpr kernels::layers::ffns ffns() const { return {early.is_there() ? 1u : 0u, late.is_there() ? 2u : 1u}; }
  constexpr bool apart() const { return v != no_step; }
  /// Rows of the product of v, or of k and v, that is apart; 0: there is none.
  constexpr std::uint32_t apart_rows(array_view<const dispatch> period) const {
    return apart() ? kernels::constants_of<kernels::matmul_kernel>(period[v].specialization).rows : 0;
  }
  /// Calls take(matrix, its step) for each matrix of a layer. @return whether all calls return true
  constexpr bool each_matrix(auto take) const {
    using kernels::layers_coded::matrix;
    return take(matrix::heads, qkv) && (!apart() || take(matrix::values, v)) && take(matrix::gate, gated) &&
           (up == no_step || take(matrix::gate, up)) && take(matrix::projection, projection) &&
           take(matrix::down, down);
  }
};

/// Finds the dispatches of one kind of block by their order; constants of the kernels are not checked.
/// @return true if every dispatch of the block has been identified and no required one is missing
constexpr bool find_steps(array_view<const dispatch> period, std::uint8_t kind, block_steps& out) {
  using kernels::kernel;
  while (out.first < period.size() && period[out.first].block != kind) ++out.first;
  out.end = out.first;
  while (out.end < period.size() && period[out.end].block == kind) ++out.end;
  std::size_t at = out.first;
  const auto take = [&](std::size_t& step, kernel wanted) {
    if (at < out.end && period[at].kernel == wanted) step = at++;
  };
  const auto gates = [&] {
    return at < out.end && period[at].kernel == kernel::matmul &&
           kernels::constants_of<kernels::matmul_kernel>(period[at].specialization).epilogue ==
               kernels::epilogue::gated;
  };
  if (gates()) take(out.early.gated, kernel::matmul), take(out.early.down, kernel::matmul);
  take(out.qkv, kernel::matmul);
  take(out.v, kernel::matmul);
  take(out.turn, kernel::turn);
  take(out.attends, kernel::attention);
  take(out.projection, kernel::matmul);
  take(out.after_projection, kernel::norm_add);
  if (at + 1 < out.end && period[at + 1].kernel == kernel::route)
    take(out.router, kernel::matmul), take(out.route, kernel::route);
  take(out.gated, kernel::matmul);
  if (out.is_mixture() && at + 1 < out.end && period[at + 1].kernel == kernel::gated)
    take(out.up, kernel::matmul), take(out.activation, kernel::gated);
  take(out.down, kernel::matmul);
  if (out.is_mixture()) take(out.sum, kernel::expert_sum);
  take(out.after_down, kernel::norm_add);
  if (gates()) take(out.late.gated, kernel::matmul), take(out.late.down, kernel::matmul);
  return at == out.end && (out.router != no_step) == out.is_mixture() && (out.sum != no_step) == out.is_mixture() &&
         out.down != no_step && out.attends != no_step && out.projection != no_step && out.qkv != no_step &&
         out.early.is_there() == (out.early.down != no_step) && out.late.is_there() == (out.late.down != no_step);
}

}  // namespace intaglio::plan
