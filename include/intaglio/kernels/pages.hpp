// SPDX-License-Identifier: MIT
// The kernel pages: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Copies octets of positions state.move_first .. move_end of slot state.move_slot between a layer's keys and values
/// and the pool. A single session has them in `positions` positions, or in a ring of them; the pool has `context`
/// positions. state.move is move_to_pool for copies to the pool, else they are from it. If a ring cannot hold all
/// positions at once, only the last are copied. value_dim: channels of a value; 0: head_dim. Grid x strides over
/// octets, y is the head of keys and values.
inline constexpr kernel_interface pages_interface{"pages",
                                                  {{{"keys"}, {"values"}, {"pool_keys"}, {"pool_values"}, {"state"}}},
                                                  {{{"workgroup_size"},
                                                    {"head_dim"},
                                                    {"positions"},
                                                    {"context"},
                                                    {"cache_element"},
                                                    {"slot_words"},
                                                    {"page_size"},
                                                    {"slots"},
                                                    {"value_dim"}}}};

/// Descriptor of the kernel pages, which copies positions between a session's cache and the pool of a batch.
struct pages_kernel {
  static constexpr kernel id = kernel::pages;
  static constexpr const kernel_interface& face = pages_interface;
  static constexpr candidate candidates[] = {{variant::pages, {}}};
  template <class T>
  struct push {
    T keys, values, pool_keys, pool_values, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t head_dim{};
    std::uint32_t positions{};
    std::uint32_t context{};
    element cache_element{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t slot_count{};
    std::uint32_t value_dim{};
  };
};

}  // namespace intaglio::kernels
