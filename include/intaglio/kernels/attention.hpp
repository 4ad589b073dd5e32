// SPDX-License-Identifier: MIT
// The kernel attention: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Grouped-query attention of each token over positions 0 .. state.position + token:
/// output[token, head, :] = softmax(q k^T / sqrt(head_dim)) v. query, output f32 [tokens, heads, head_dim].
/// Positions are taken in spans of 256, which are merged in order. A workgroup does heads_together heads (x), which
/// share keys and values, of a token (y). With splits above 1 it does the span of its number (z) alone, if there is
/// one; the last of a head's workgroups to come merges what they left in `partials`, f32 [tokens, heads, splits,
/// head_dim + 4], and finds that by counters u32 [tokens, heads], which are 0 before and after. With splits 1, one
/// workgroup goes through all spans; partials and counters are then unused. scale: what scores are multiplied with, 0
/// for 1 / sqrt(head_dim). window: how many positions up to its own a token sees, 0 for all; splits are then those of
/// these and of `ahead` (attention_window_spans). ahead: how many positions of the pass behind its own a token sees, 0
/// for none. ring 1: position p is in slot p % context of the cache, context being a multiple of 256. narrow 1: the
/// same sums in half of the shared memory. softcap: scores s are softcap * tanh(s / softcap), 0 for none. With
/// has_sinks 1 a head's softmax has one score more, sinks f32 [heads], whose value is 0.
inline constexpr kernel_interface attention_interface{
    "attention",
    {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}, {"partials"}, {"counters"}, {"sinks"}}},
    {{{"workgroup_size"},
      {"heads"},
      {"kv_heads"},
      {"head_dim"},
      {"context"},
      {"cache_element"},
      {"subgroup_width"},
      {"splits"},
      {"heads_together"},
      {"scale", field_type::f32},
      {"window"},
      {"ring"},
      {"slot_words"},
      {"page_size"},
      {"narrow"},
      {"softcap", field_type::f32},
      {"has_sinks"},
      {"ahead"}}}};

/// Channels that a head may have, and up to how many the forms for several tokens take it: wider ones are attended to
/// token by token.
inline constexpr std::uint32_t most_head_dim = 512, most_shared_head_dim = 256;

/// Heads of a workgroup of attention that shares reads, with heads_together above 1: this many subgroups of 32, splits
/// above 1, head_dim a multiple of 32 up to most_shared_head_dim, no slots. Workgroup x has heads_together heads, or
/// what is left of those that share keys and values.
inline constexpr std::uint32_t most_heads_together = 4, together_subgroups = 4, together_subgroup_width = 32;

/// Bytes of `partials` and of `counters` of attention with splits above 1.
constexpr std::uint64_t attention_partial_bytes(std::uint32_t tokens, std::uint32_t heads, std::uint32_t splits,
                                                std::uint32_t head_dim) {
  return std::uint64_t{4} * tokens * heads * splits * (head_dim + 4);
}
constexpr std::uint64_t attention_counter_bytes(std::uint32_t tokens, std::uint32_t heads) {
  return std::uint64_t{4} * tokens * heads;
}

struct attention_kernel {
  static constexpr kernel id = kernel::attention;
  static constexpr const kernel_interface& face = attention_interface;
  static constexpr bool any_subgroups = true;  ///< can do its work
  static constexpr candidate candidates[] = {{variant::attention_cpu, demand::wide_loads}, {variant::attention, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t head_dim{};
    std::uint32_t context{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t splits{};
    std::uint32_t heads_together{};
    float scale{};
    std::uint32_t window{};
    std::uint32_t ring{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t narrow{};
    float softcap{};
    std::uint32_t has_sinks{};
    std::uint32_t ahead{};
  };
};

}  // namespace intaglio::kernels
