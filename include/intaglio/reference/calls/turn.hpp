// SPDX-License-Identifier: MIT
// The reference of the kernel turn in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::turn_kernel> : kernel_call<kernels::turn_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const turn_shape shape{k.heads, k.kv_heads,    k.head_dim,      k.context,
                           k.eps,   k.ring != 0,   k.cache_element, {k.q_stride, k.k_stride, k.v_stride},
                           k.norms, k.rope_factor, k.v_norm != 0,   k.latent};
    turn_inputs in{{memory<float>(at.q)}};
    if (shape.kv_heads != 0) in.qkv = {memory<float>(at.q), memory<float>(at.k), memory<float>(at.v)};
    if (shape.norms != kernels::turn_norms::none) {
      in.norms[0] = weight<float>(at.q_norm);
      if (shape.kv_heads != 0) in.norms[1] = weight<float>(at.k_norm);
    }
    if (shape.latent != 0) in.norms[1] = weight<float>(at.k_norm), in.latent_query = memory<float>(at.latent_query);
    if (k.biased != 0) in.bias = weight<float>(at.bias);
    reference::turn(
        shape, in,
        memory<float>(at.output).first(std::size_t{tokens()} * shape.heads * (shape.latent + shape.head_dim)),
        position(), memory<std::byte>(at.keys), memory<std::byte>(at.values), weight<std::uint64_t>(at.rope));
  }
};

}  // namespace intaglio::reference
