// SPDX-License-Identifier: MIT
// The reference of the kernel turn in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::turn_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const turn_shape shape{constant("heads"),
                           constant("kv_heads"),
                           constant("head_dim"),
                           constant("context"),
                           real("eps"),
                           constant("ring") != 0,
                           element("cache_element"),
                           {constant("q_stride"), constant("k_stride"), constant("v_stride")},
                           static_cast<kernels::turn_norms>(constant("norms")),
                           real("rope_factor"),
                           constant("v_norm") != 0,
                           constant("latent")};
    turn_inputs in{{memory<float>("q")}};
    if (shape.kv_heads != 0) in.qkv = {memory<float>("q"), memory<float>("k"), memory<float>("v")};
    if (shape.norms != kernels::turn_norms::none) {
      in.norms[0] = weight<float>("q_norm");
      if (shape.kv_heads != 0) in.norms[1] = weight<float>("k_norm");
    }
    if (shape.latent != 0) in.norms[1] = weight<float>("k_norm"), in.latent_query = memory<float>("latent_query");
    if (constant("biased") != 0) in.bias = weight<float>("bias");
    reference::turn(
        shape, in, memory<float>("output").first(std::size_t{tokens()} * shape.heads * (shape.latent + shape.head_dim)),
        position(), memory<std::byte>("keys"), memory<std::byte>("values"), weight<std::uint64_t>("rope"));
  }
};

}  // namespace intaglio::reference
