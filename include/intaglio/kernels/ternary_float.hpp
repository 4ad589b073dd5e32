// SPDX-License-Identifier: MIT
// The kernel ternary_float: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// ternary_matmul for activations that are not quantised: y[token, row] = scale(row) * sum over columns of code[row,
/// column] * x[token, column]. x is the input f32 [tokens, columns] or, with prologue::norm, rms_norm(input) *
/// norm_weight. Everything else is as in ternary_matmul.
inline constexpr kernel_interface ternary_float_interface{
    "ternary_float",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"prologue"},
      {"epilogue"},
      {"eps", field_type::f32},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"}}}};

/// Descriptor of the kernel ternary_float, which multiplies tokens that are not quantised by ternary weights.
struct ternary_float_kernel {
  static constexpr kernel id = kernel::ternary_float;
  static constexpr const kernel_interface& face = ternary_float_interface;
  static constexpr candidate candidates[] = {{variant::ternary_float_cpu, demand::wide_loads},
                                             {variant::ternary_float, {}}};
  template <class T>
  struct push {
    T input, norm_weight, weight, scales, output, state, keys, values;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::prologue prologue{};
    kernels::epilogue epilogue{};
    float eps{};
    std::uint32_t tile_tokens{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    float rope_theta{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
  };
  static constexpr bool shares_rows(const constants& c) { return c.tile_tokens == 1; }
};

}  // namespace intaglio::kernels
