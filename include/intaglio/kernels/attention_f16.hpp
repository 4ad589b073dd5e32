// SPDX-License-Identifier: MIT
// The kernel attention_f16: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// attention_chunk in f16, in tiles of attention_f16_tile tokens: queries, keys, values and probabilities are f16, sums
/// f32. The modules with cooperative matrices need workgroups of 4 subgroups of 32, and head_dim and value_dim
/// multiples of attention_f16_step; the module with fragments needs a head_dim of 64 to 128, which value_dim is too.
inline constexpr kernel_interface attention_f16_interface{
    "attention_f16",
    {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}, {"sinks"}}},
    {{{"workgroup_size"},
      {"heads"},
      {"kv_heads"},
      {"head_dim"},
      {"context"},
      {"cache_element"},
      {"max_tokens"},
      {"scale", field_type::f32},
      {"window"},
      {"ring"},
      {"softcap", field_type::f32},
      {"has_sinks"},
      {"ahead"},
      {"value_dim"}}}};
/// Tokens of a tile, by the channels of a head.
constexpr std::uint32_t attention_f16_tile(std::uint32_t head_dim) {
  return head_dim > 256 ? 16 : head_dim > 128 ? 32 : 64;
}
/// Channels whose multiples a head has: one matrix for each subgroup that shares the tokens.
constexpr std::uint32_t attention_f16_step(std::uint32_t head_dim) { return 16 * 64 / attention_f16_tile(head_dim); }

/// Descriptor of the kernel attention_f16, which computes attention for a prompt's tokens in f16.
struct attention_f16_kernel {
  static constexpr kernel id = kernel::attention_f16;
  static constexpr const kernel_interface& face = attention_f16_interface;
  static constexpr std::uint32_t proof_tokens = 70;
  static constexpr candidate candidates[] = {{variant::attention_fragments, demand::f16_fragments},
                                             {variant::attention_f16, demand::f16_matrices},
                                             {variant::attention_f16_portable, {}}};
  template <class T>
  struct push {
    T query, keys, values, output, state, sinks;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t head_dim{};
    std::uint32_t context{};
    element cache_element{};
    std::uint32_t max_tokens{};
    float scale{};
    std::uint32_t window{};
    std::uint32_t ring{};
    float softcap{};
    std::uint32_t has_sinks{};
    std::uint32_t ahead{};
    std::uint32_t value_dim{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::f16; }

  static constexpr variant fit(constants& c, launch&, const device_class& device, const pass_rows&) {
    demands offers = device.offers();
    if (c.head_dim < 64 || c.head_dim > 128 || (c.value_dim != 0 && c.value_dim != c.head_dim))
      offers.bits &= ~static_cast<std::uint32_t>(demand::f16_fragments);
    return first_candidate<attention_f16_kernel>(offers);
  }
};

}  // namespace intaglio::kernels
