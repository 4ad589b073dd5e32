// SPDX-License-Identifier: MIT
// The kernel walk_sum: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The down product of chosen features, for one token: y[row] = sum over i of input[i] * weight[f, row]. f is the i-th
/// feature of walk_select's choice or, with listed 0, i itself. epilogue: store or add. weight: down vectors [columns,
/// rows], row-major of weight_element; input f32 [count]; output f32 [rows]. rows: a multiple of 4, with f16 and bf16
/// of 8.
/// Slot s of walk_sum_slots takes i = s, s + walk_sum_slots, ...; then the slots are added pairwise, lower half + upper
/// half. A workgroup has `stripe` rows (x), a multiple of 8, and the slots s with s % splits = y. With splits above 1
/// each writes the sum of its slots, output f32 [splits, rows], and norm_add adds these.
inline constexpr kernel_interface walk_sum_interface{"walk_sum",
                                                     {{{"input"}, {"choice"}, {"weight"}, {"output"}, {"state"}}},
                                                     {{{"workgroup_size"},
                                                       {"columns"},
                                                       {"rows"},
                                                       {"count"},
                                                       {"weight_element"},
                                                       {"listed"},
                                                       {"epilogue"},
                                                       {"stripe"},
                                                       {"splits"}}}};
/// Number of slots, each of which adds every walk_sum_slots-th feature.
inline constexpr std::uint32_t walk_sum_slots = 128;

/// Descriptor of the kernel walk_sum, which computes the down product of chosen features.
struct walk_sum_kernel {
  static constexpr kernel id = kernel::walk_sum;
  static constexpr const kernel_interface& face = walk_sum_interface;
  static constexpr candidate candidates[] = {{variant::walk_sum, {}}};
  template <class T>
  struct push {
    T input, choice, weight, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    std::uint32_t count{};
    kernels::codec weight_element{};
    std::uint32_t listed{};
    kernels::epilogue epilogue{};
    std::uint32_t stripe{};
    std::uint32_t splits{};
  };
};

}  // namespace intaglio::kernels
