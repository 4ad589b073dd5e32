// SPDX-License-Identifier: MIT
// The kernel dense_matmul: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The language model head: logits[token, row] = sum over columns of weight[row, column] * rms_norm(x)[token, column] *
/// norm_weight[column]. input f32 [tokens, columns]; weight [rows, columns] row-major of weight_element; output f32
/// [tokens, rows]. Grid x strides over rows, grid y is the token.
/// keeps_firsts 1: each workgroup writes the first of its tokens in the sampler's order to `firsts`, [tokens, groups x]
/// of {u32 key, u32 ~id} (shaders/include/first_token.glsl).
inline constexpr kernel_interface dense_matmul_interface{
    "dense_matmul",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"output"}, {"state"}, {"firsts"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"weight_element"},
      {"eps", field_type::f32},
      {"keeps_firsts"},
      {"subgroup_width"}}}};

namespace dense_matmul {
/// Most columns of the head. A token's normalised activations are in shared memory, of which the baseline has 32 KiB.
/// Wider heads are computed by the kernel matmul.
inline constexpr std::uint32_t most_columns = 7936;
}  // namespace dense_matmul

/// Descriptor of the kernel dense_matmul, which multiplies normalised tokens by a dense matrix, such as the language
/// model head.
struct dense_matmul_kernel {
  static constexpr kernel id = kernel::dense_matmul;
  static constexpr const kernel_interface& face = dense_matmul_interface;
  static constexpr candidate candidates[] = {{variant::dense_matmul_cpu, demand::wide_loads},
                                             {variant::dense_matmul, {}}};
  template <class T>
  struct push {
    T input, norm_weight, weight, output, state, firsts;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec weight_element{};
    float eps{};
    std::uint32_t keeps_firsts{};
    std::uint32_t subgroup_width{};
  };
  static constexpr bool shares_rows(const constants&) { return true; }
};

}  // namespace intaglio::kernels
