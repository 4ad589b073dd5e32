// SPDX-License-Identifier: MIT
// The kernel walk_trace: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Reports the largest contributions of FFN features for one token, for all `layers` at once. The contribution of a
/// layer's i-th value is values[i] * norms[feature]. Its feature is i or, with listed 1, the i-th of the layer's choice
/// (walk_select). In trace, u32 [slots, layers, trace_words(count)], slot position % slots gets the position, the
/// token, and the square root of the sum of all squared contributions. Then follow {feature, gate score's bits,
/// contribution's bits} of the `count` contributions with the largest absolute value, in the order of features; of
/// equal ones the lowest feature is taken.
/// values f32 [columns] and gates f32 [columns] of layer l begin at element l * value_stride, choice u32 [columns, 2]
/// at l * choice_stride. norms f32 [layers, features]: norms of the down vectors. count: at most columns. A workgroup
/// has one layer (x).
inline constexpr kernel_interface walk_trace_interface{
    "walk_trace",
    {{{"values"}, {"gates"}, {"choice"}, {"norms"}, {"trace"}, {"state"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"features"},
      {"layers"},
      {"count"},
      {"slots"},
      {"value_stride"},
      {"choice_stride"},
      {"listed"}}}};
/// Number of words of a layer of a traced token.
constexpr std::uint32_t trace_words(std::uint32_t count) { return 3 + 3 * count; }
/// The most features of a layer in a trace.
inline constexpr std::uint32_t most_traced = 64;

/// Number of shares of walk_down's list, each with sums of its own in shared memory.
inline constexpr std::uint32_t walk_down_lists = 4;

/// Descriptor of the kernel walk_trace, which reports the features with the largest contributions.
struct walk_trace_kernel {
  static constexpr kernel id = kernel::walk_trace;
  static constexpr const kernel_interface& face = walk_trace_interface;
  static constexpr candidate candidates[] = {{variant::walk_trace, {}}};
  template <class T>
  struct push {
    T values, gates, choice, norms, trace, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t features{};
    std::uint32_t layers{};
    std::uint32_t count{};
    std::uint32_t slot_count{};
    std::uint32_t value_stride{};
    std::uint32_t choice_stride{};
    std::uint32_t listed{};
  };
};

}  // namespace intaglio::kernels
