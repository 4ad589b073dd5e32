// SPDX-License-Identifier: MIT
// The kernel accept: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Ends a pass over drafts: every token of the pass but the first is a draft. Accepts drawn[0], then drawn[i] while
/// token i of the pass equals drawn[i - 1]. Accepted tokens are stored as sample stores its token, one after the other.
/// position and generated rise by their number, count becomes 1, tokens[0] becomes the last of them, and
/// ring[ring_size] their number. One invocation.
inline constexpr kernel_interface accept_interface{
    "accept",
    {{{"drawn"}, {"state"}, {"ring"}}},
    {{{"workgroup_size"}, {"ring_size"}, {"context"}, {"max_tokens"}, {"draws"}}}};

/// Bytes of the ring: tokens, and the number of tokens that the last accept took.
constexpr std::uint64_t ring_bytes(std::uint32_t ring_size) {
  return std::uint64_t{4} * (std::uint64_t{ring_size} + 1);
}

/// Descriptor of the kernel accept, which ends a pass over drafts.
struct accept_kernel {
  static constexpr kernel id = kernel::accept;
  static constexpr const kernel_interface& face = accept_interface;
  static constexpr candidate candidates[] = {{variant::accept, {}}};
  template <class T>
  struct push {
    T drawn, state, ring;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t ring_size{};
    std::uint32_t context{};
    std::uint32_t max_tokens{};
    std::uint32_t draws{};
  };
};

}  // namespace intaglio::kernels
