// SPDX-License-Identifier: MIT
// The kernel walk_trace: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// What the FFNs' features added for one token, of all `layers` at once: the contribution of a layer's i-th value is
/// values[i] * norms[feature], and its feature i or, with listed 1, that of the layer's choice (walk_select). In trace,
/// u32 [slots, layers, trace_words(count)], slot position % slots gets the position, the token, the root of the sum of
/// all squared contributions, then {feature, gate score's bits, contribution's bits} of the `count` contributions of
/// the largest size, features rising, of equal ones the lowest. values f32 [columns] and gates f32 [columns] of layer l
/// begin at element l * value_stride, choice u32 [columns, 2] at l * choice_stride; norms f32 [layers, features]: of
/// the down vectors. count is at most columns. A workgroup has a layer (x).
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
/// Words of a layer of a traced token.
constexpr std::uint32_t trace_words(std::uint32_t count) { return 3 + 3 * count; }
/// Features of a layer that a trace has at most.
inline constexpr std::uint32_t most_traced = 64;

/// Shares of walk_down's list, each with sums of its own in shared memory.
inline constexpr std::uint32_t walk_down_lists = 4;

struct walk_trace_kernel {
  static constexpr kernel id = kernel::walk_trace;
  static constexpr const kernel_interface& face = walk_trace_interface;
  static constexpr candidate candidates[] = {{variant::walk_trace, {}}};
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
