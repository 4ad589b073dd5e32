// SPDX-License-Identifier: MIT
// The reference of the attention kernels in a plan.
#pragma once

#include "intaglio/reference/attention.hpp"
#include "intaglio/reference/dispatch_call.hpp"

namespace intaglio::reference {

/// Attention in a plan. The kernels' forms differ only in how they divide the work.
template <class Kernel>
struct attention_call : kernel_call<Kernel> {
  using kernel_call<Kernel>::kernel_call, kernel_call<Kernel>::at, kernel_call<Kernel>::k, kernel_call<Kernel>::tokens;

  void run() {
    attention_shape shape{
        k.heads,
        k.kv_heads,
        k.head_dim,
        k.context,
        k.cache_element,
        k.scale,
        k.window,
        k.ahead,
        k.ring != 0,
        k.softcap,
        k.has_sinks != 0 ? this->template weight<float>(at.sinks).first(k.heads) : std::span<const float>{}};
    if constexpr (requires { k.value_dim; }) shape.value_dim = k.value_dim;
    const std::size_t heads = std::size_t{tokens()} * shape.heads;
    reference::attention(shape, this->template memory<float>(at.query).first(heads * shape.head_dim),
                         this->template memory<std::byte>(at.keys), this->template memory<std::byte>(at.values),
                         this->position(), tokens(),
                         this->template memory<float>(at.output).first(heads * shape.value_width()));
  }
};

template <>
struct call_of<kernels::attention_kernel> : attention_call<kernels::attention_kernel> {
  using attention_call::attention_call;
};
template <>
struct call_of<kernels::attention_batch_kernel> : attention_call<kernels::attention_batch_kernel> {
  using attention_call::attention_call;
};
template <>
struct call_of<kernels::attention_chunk_kernel> : attention_call<kernels::attention_chunk_kernel> {
  using attention_call::attention_call;
};
template <>
struct call_of<kernels::attention_f16_kernel> : attention_call<kernels::attention_f16_kernel> {
  using attention_call::attention_call;
};

}  // namespace intaglio::reference
