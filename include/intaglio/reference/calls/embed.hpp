// SPDX-License-Identifier: MIT
// The reference of the kernel embed in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/embed.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::embed_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  /// A table whose rows are added to tokens' rows; the constant `rows` has the number of its rows.
  std::span<const float> table(std::string_view name, std::string_view rows) {
    if (constant(rows) == 0) return {};
    return weight<float>(name).first(std::size_t{constant(rows)} * constant("width"));
  }
  void run() {
    const std::uint32_t width = constant("width");
    reference::embed(
        weight<std::byte>("table"), static_cast<kernels::codec>(constant("table_element")), constant("vocab_size"),
        width, constant("max_tokens"), constant("context"), m.state,
        memory<float>("output").first(
            std::size_t{constant("max_tokens") < d.groups[1] ? constant("max_tokens") : d.groups[1]} * width),
        real("scale"), table("position_table", "positions"), table("kind_table", "kinds"));
  }
};

}  // namespace intaglio::reference
