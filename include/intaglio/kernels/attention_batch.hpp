// SPDX-License-Identifier: MIT
// The kernel attention_batch: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The kernel attention with splits 1 for passes of a small batch of tokens. Workgroup (x, y) computes heads_together
/// heads, 1 or 2 that share keys and values, of a token. head_dim: at most 256; workgroup_size: a multiple of
/// heads_together.
inline constexpr kernel_interface attention_batch_interface{
    "attention_batch",
    {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}, {"sinks"}}},
    {{{"workgroup_size"},
      {"heads"},
      {"kv_heads"},
      {"head_dim"},
      {"context"},
      {"cache_element"},
      {"heads_together"},
      {"scale", field_type::f32},
      {"window"},
      {"ring"},
      {"slot_words"},
      {"page_size"},
      {"softcap", field_type::f32},
      {"has_sinks"},
      {"ahead"}}}};
/// The most heads of a workgroup.
inline constexpr std::uint32_t attention_batch_heads = 2;

/// Descriptor of the kernel attention_batch, which computes attention for a small batch of tokens.
struct attention_batch_kernel {
  static constexpr kernel id = kernel::attention_batch;
  static constexpr const kernel_interface& face = attention_batch_interface;
  static constexpr candidate candidates[] = {{variant::attention_batch, {}}};
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
    std::uint32_t heads_together{};
    float scale{};
    std::uint32_t window{};
    std::uint32_t ring{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    float softcap{};
    std::uint32_t has_sinks{};
    std::uint32_t ahead{};
  };
};

}  // namespace intaglio::kernels
