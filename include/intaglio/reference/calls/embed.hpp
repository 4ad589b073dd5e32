// SPDX-License-Identifier: MIT
// The reference of the kernel embed in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/embed.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::embed_kernel> : kernel_call<kernels::embed_kernel> {
  using kernel_call::kernel_call;

  /// A table whose rows are added to tokens' rows. @param rows 0: there is no such table
  std::span<const float> table(kernels::push_id id, std::uint32_t rows) {
    if (rows == 0) return {};
    return weight<float>(id).first(std::size_t{rows} * k.width);
  }
  void run() {
    const std::uint32_t width = k.width;
    reference::embed(
        weight<std::byte>(at.table), k.table_element, k.vocab_size, width, k.max_tokens, k.context, m.state,
        memory<float>(at.output).first(std::size_t{k.max_tokens < d.groups[1] ? k.max_tokens : d.groups[1]} * width),
        k.scale, table(at.position_table, k.positions), table(at.kind_table, k.kinds));
  }
};

}  // namespace intaglio::reference
