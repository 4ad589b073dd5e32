// SPDX-License-Identifier: MIT
// The kernel head_norm: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// What stands between a projection of stacked q, k and v and attention where q and k are normalised: heads of q and k
/// become rms_norm(head) * q_norm or k_norm and are rotated; q goes to output f32 [tokens, q_heads, head_dim], k and v
/// to the cache. input f32 [tokens, (heads + 2 * kv_heads) * head_dim]: heads of q, then k, then v. rope and ring as in
/// matmul. One workgroup a head (x) and token (y).
inline constexpr kernel_interface head_norm_interface{
    "head_norm",
    {{{"input"}, {"q_norm"}, {"k_norm"}, {"output"}, {"state"}, {"keys"}, {"values"}, {"rope"}}},
    {{{"workgroup_size"},
      {"heads"},
      {"kv_heads"},
      {"head_dim"},
      {"eps", field_type::f32},
      {"context"},
      {"ring"},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"}}}};

struct head_norm_kernel {
  static constexpr kernel id = kernel::head_norm;
  static constexpr candidate candidates[] = {{variant::head_norm, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t head_dim{};
    float eps{};
    std::uint32_t context{};
    std::uint32_t ring{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
  };
};

}  // namespace intaglio::kernels
