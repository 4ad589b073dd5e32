// SPDX-License-Identifier: MIT
// The kernel accept: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Ends a pass whose tokens but the first are drafts: takes drawn[0], then drawn[i] as long as token i of the pass is
/// drawn[i - 1]. Those taken go where sample puts its token, one after the other; position and generated rise by as
/// many, count becomes 1, tokens[0] the last of them. ring[ring_size] becomes their number. One invocation.
inline constexpr kernel_interface accept_interface{
    "accept",
    {{{"drawn"}, {"state"}, {"ring"}}},
    {{{"workgroup_size"}, {"ring_size"}, {"context"}, {"max_tokens"}, {"draws"}}}};

/// Bytes of the ring: tokens, and how many of them the last accept took.
constexpr std::uint64_t ring_bytes(std::uint32_t ring_size) {
  return std::uint64_t{4} * (std::uint64_t{ring_size} + 1);
}

struct accept_kernel {
  static constexpr kernel id = kernel::accept;
  static constexpr const kernel_interface& face = accept_interface;
  static constexpr candidate candidates[] = {{variant::accept, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t ring_size{};
    std::uint32_t context{};
    std::uint32_t max_tokens{};
    std::uint32_t draws{};
  };
};

}  // namespace intaglio::kernels
