// SPDX-License-Identifier: MIT
// Lowering: each fused node becomes one dispatch with its push constants, specialization constants, groups and
// accesses; each tensor becomes a weight with its layout and offset.
#pragma once

#include <cstddef>
#include <type_traits>

#include "intaglio/plan/dispatch_builder.hpp"
#include "intaglio/plan/lowering/attention.hpp"
#include "intaglio/plan/lowering/delta_net.hpp"
#include "intaglio/plan/lowering/dense_matmul.hpp"
#include "intaglio/plan/lowering/embed.hpp"
#include "intaglio/plan/lowering/expert_sum.hpp"
#include "intaglio/plan/lowering/expert_tiles.hpp"
#include "intaglio/plan/lowering/fixed.hpp"
#include "intaglio/plan/lowering/gated.hpp"
#include "intaglio/plan/lowering/head_gate.hpp"
#include "intaglio/plan/lowering/matmul.hpp"
#include "intaglio/plan/lowering/norm_add.hpp"
#include "intaglio/plan/lowering/norm_quantize.hpp"
#include "intaglio/plan/lowering/pages.hpp"
#include "intaglio/plan/lowering/quantize_f16.hpp"
#include "intaglio/plan/lowering/rms_norm.hpp"
#include "intaglio/plan/lowering/route.hpp"
#include "intaglio/plan/lowering/sample.hpp"
#include "intaglio/plan/lowering/short_conv.hpp"
#include "intaglio/plan/lowering/streams.hpp"
#include "intaglio/plan/lowering/ternary_matmul.hpp"
#include "intaglio/plan/lowering/ternary_walk.hpp"
#include "intaglio/plan/lowering/turn.hpp"
#include "intaglio/plan/lowering/walk_select.hpp"
#include "intaglio/plan/lowering/walk_sum.hpp"
#include "intaglio/plan/lowering/walk_trace.hpp"
#include "intaglio/plan/lowering/walk_up.hpp"
#include "intaglio/plan/walk_shape.hpp"

namespace intaglio::plan {

/// Makes a dispatch of each node of a sequence, and the dispatches that end a pass.
class lowering : public sampling_lowering {
 public:
  using sampling_lowering::sampling_lowering;

  /// @param index of the node in the sequence
  constexpr dispatch lower(const node& n, std::size_t index) {
    dispatch d{.kernel = kernel_of(n), .block = n.block, .rule = n.rule, .op_count = n.op_count, .ops = n.ops};
    kernels::visit(d.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
      if constexpr (of_nodes<Kernel>) {
        lowering_of<Kernel> made{graph_, placement_, c_, weights_, index};
        made.begin(d);
        made.lower(n);
        kernels::store(made.k, d.specialization);
      }
    });
    return d;
  }

 private:
  /// The kernel of a node. Chunks and small batches have kernels of their own if the profile and the shape allow it.
  constexpr kernels::kernel kernel_of(const node& n) const {
    if (is_walked(n, c_.tokens))
      return n.epilogue == kernels::epilogue::gated ? kernels::kernel::walk_gate_up : kernels::kernel::walk_down;
    if (c_.tokens == 1 || !c_.target.work.chunk_tiles) return n.kernel;
    if (is_small_batch(c_.target, c_.tokens, c_.batched())) return batch_kernel_of(n);
    if (n.kernel == kernels::kernel::ternary_matmul && width(n.in) % kernels::chunk_columns == 0)
      return kernels::kernel::ternary_chunk;
    if (n.kernel == kernels::kernel::attention) return kernels::kernel::attention_chunk;
    return n.kernel;
  }
  /// The form of a product for a small batch of tokens, which share one read of the weights.
  static constexpr kernels::kernel batch_kernel_of(const node& n) {
    if (n.kernel == kernels::kernel::attention && n.head_dim <= kernels::most_shared_head_dim && n.value_dim == 0)
      return kernels::kernel::attention_batch;
    return n.kernel == kernels::kernel::ternary_matmul ? kernels::kernel::ternary_batch : n.kernel;
  }
};

}  // namespace intaglio::plan
