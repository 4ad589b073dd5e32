// SPDX-License-Identifier: MIT
// The kernel attention_chunk: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The kernel attention with splits 1 for up to max_tokens tokens. Workgroup (x, y) computes head x for attention_tile
/// tokens; its tile's first token is attention_tile times y counted from the last tile.
inline constexpr kernel_interface attention_chunk_interface{
    "attention_chunk",
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
/// Tokens of a tile.
inline constexpr std::uint32_t attention_tile = 8;

/// Descriptor of the kernel attention_chunk, which computes attention for tiles of a prompt's tokens.
struct attention_chunk_kernel {
  static constexpr kernel id = kernel::attention_chunk;
  static constexpr const kernel_interface& face = attention_chunk_interface;
  static constexpr std::uint32_t proof_tokens = 10;
  static constexpr candidate candidates[] = {{variant::attention_chunk, {}}};
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
};

}  // namespace intaglio::kernels
