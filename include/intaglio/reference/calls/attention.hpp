// SPDX-License-Identifier: MIT
// The reference of the attention kernels in a plan.
#pragma once

#include "intaglio/reference/attention.hpp"
#include "intaglio/reference/dispatch_call.hpp"

namespace intaglio::reference {

/// Attention in a plan. The kernels' forms differ only in how they divide the work.
struct attention_call : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    attention_shape shape{
        constant("heads"),
        constant("kv_heads"),
        constant("head_dim"),
        constant("context"),
        element("cache_element"),
        real("scale"),
        constant("window"),
        constant("ahead"),
        constant("ring") != 0,
        real("softcap"),
        constant("has_sinks") != 0 ? weight<float>("sinks").first(constant("heads")) : std::span<const float>{}};
    if (d.kernel != kernels::kernel::attention_batch) shape.value_dim = constant("value_dim");
    const std::size_t heads = std::size_t{tokens()} * shape.heads;
    reference::attention(shape, memory<float>("query").first(heads * shape.head_dim), memory<std::byte>("keys"),
                         memory<std::byte>("values"), position(), tokens(),
                         memory<float>("output").first(heads * shape.value_width()));
  }
};

template <>
struct call_of<kernels::attention_kernel> : attention_call {
  using attention_call::attention_call;
};
template <>
struct call_of<kernels::attention_batch_kernel> : attention_call {
  using attention_call::attention_call;
};
template <>
struct call_of<kernels::attention_chunk_kernel> : attention_call {
  using attention_call::attention_call;
};
template <>
struct call_of<kernels::attention_f16_kernel> : attention_call {
  using attention_call::attention_call;
};

}  // namespace intaglio::reference
