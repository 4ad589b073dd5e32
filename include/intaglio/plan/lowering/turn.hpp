// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel turn.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::turn_kernel> : dispatch_builder {
  using constants = kernels::turn_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::turn_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append(n.value_dim != 0                       ? "rope+attn_kv_a_norm"
                     : n.norms != kernels::turn_norms::none ? "attn_q_norm+attn_k_norm"
                     : n.biases[0] != ir::none              ? "attn_q.bias+attn_k.bias+attn_v.bias"
                                                            : "rope");
    bind_qkv(n);
    if (n.norms != kernels::turn_norms::none) {
      bind_norm(at.q_norm, n.norm);
      if (n.kv_heads != 0) bind_norm(at.k_norm, n.weights[0]);
    }
    if (n.value_dim != 0) {
      bind_norm(at.k_norm, n.norm);
      bind_value(at.latent_query, n.up_in, false);
      k.latent = n.value_dim;
    }
    bind_biases(n);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    if (n.kv_heads != 0) bind_cache(at, k, n, true);
    else set_slots(k);
    bind_rope(at.rope, n);
    k.v_norm = n.v_norm ? 1u : 0u;
    k.heads = n.heads;
    k.kv_heads = n.kv_heads;
    k.head_dim = n.head_dim;
    k.eps = n.eps;
    k.norms = n.norms;
    k.rope_factor = n.rope.scaling.attention_factor;
    d_->groups = {n.heads + 2 * n.kv_heads, c_.tokens, 1};
  }

 private:
  /// Binds q, k and v: each is a value of its own, or is stacked after the one before it.
  constexpr void bind_qkv(const node& n) {
    const std::uint32_t q = n.heads * n.head_dim, kv = n.kv_heads * n.head_dim;
    bind_value(at.q, n.in, false);
    k.q_stride = n.kv_heads == 0 ? q : 0;
    if (n.kv_heads == 0) return;
    const std::uint32_t with_v = n.v_in == ir::none ? kv : 0;  // stacked after k
    const auto bind_after = [&](kernels::push_id to, ir::value_id first, std::uint32_t stride, std::uint64_t after) {
      bind(to, {region::arena, 0, placement_.offset(first) + 4 * after},
           std::uint64_t{4} * c_.tokens * stride - 4 * after, false);
    };
    k.q_stride = n.k_in == ir::none ? q + kv + with_v : q;
    k.k_stride = n.k_in == ir::none ? k.q_stride : kv + with_v;
    k.v_stride = n.v_in == ir::none ? k.k_stride : width(n.v_in);
    if (n.k_in != ir::none) bind_value(at.k, n.k_in, false);
    else bind_after(at.k, n.in, k.q_stride, q);
    if (n.v_in != ir::none) bind_value(at.v, n.v_in, false);
    else if (n.k_in != ir::none) bind_after(at.v, n.k_in, k.k_stride, kv);
    else bind_after(at.v, n.in, k.q_stride, std::uint64_t{q} + kv);
  }
  /// Binds the biases of q, k and v, stored one after the other.
  constexpr void bind_biases(const node& n) {
    if (n.biases[0] == ir::none) return;
    bind_vectors(at.bias, n.biases);
    k.biased = 1u;
  }
};

}  // namespace intaglio::plan
