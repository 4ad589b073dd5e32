// SPDX-License-Identifier: MIT
// The kernel attention: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Grouped-query attention of each token over positions 0 .. state.position + token:
/// output[token, head, :] = softmax(q k^T / sqrt(head_dim)) v. query, output f32 [tokens, heads, head_dim].
/// Positions are taken in spans of 256, which are merged in order. A workgroup computes heads_together heads (x), which
/// share keys and values, of a token (y).
/// splits above 1: workgroup z computes only span z, if there is one, and leaves its result in `partials`, f32 [tokens,
/// heads, splits, head_dim + 4]. The last workgroup of a head merges the results. It recognises that it is the last by
/// counters u32 [tokens, heads], which are 0 before and after. splits 1: one workgroup computes all spans; partials and
/// counters are unused.
/// scale: factor of the scores; 0: 1 / sqrt(head_dim). window: number of positions up to its own that a token sees; 0:
/// all. With a window, splits are the spans of the window and of `ahead` (attention_window_spans). ahead: number of
/// positions after its own that a token sees within the pass; 0: none. ring 1: position p is in slot p % context of the
/// cache; context is a multiple of 256.
/// value_dim: channels of a value, and of a head of the output and of partials; 0: head_dim.
/// narrow 1: the same sums with half of the shared memory. softcap: scores s become softcap * tanh(s / softcap); 0:
/// unchanged. has_sinks 1: a head's softmax has one more score, from sinks f32 [heads], whose value is 0.
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
      {"ahead"},
      {"value_dim"}}}};

/// The most channels of a head, and the most for which heads share reads; small batches handle wider heads token by
/// token.
inline constexpr std::uint32_t most_head_dim = 576, most_shared_head_dim = 256;

/// Limits of attention that shares reads among heads (heads_together above 1). It needs together_subgroups subgroups of
/// 32, splits above 1, head_dim a multiple of 32, and no slots; above most_shared_head_dim its queries and sums take
/// more than 16 KiB of shared memory. Workgroup x has
/// heads_together heads, or fewer at the end of those that share keys and values.
inline constexpr std::uint32_t most_heads_together = 4, together_subgroups = 4, together_subgroup_width = 32;

/// Bytes of `partials` and of `counters` of attention with splits above 1.
/// @param value_dim channels of a head of the output
constexpr std::uint64_t attention_partial_bytes(std::uint32_t tokens, std::uint32_t heads, std::uint32_t splits,
                                                std::uint32_t value_dim) {
  return std::uint64_t{4} * tokens * heads * splits * (value_dim + 4);
}
/// Bytes of `counters` of attention with splits above 1: u32 [tokens, heads].
constexpr std::uint64_t attention_counter_bytes(std::uint32_t tokens, std::uint32_t heads) {
  return std::uint64_t{4} * tokens * heads;
}

/// Descriptor of the kernel attention, which computes grouped-query attention for one token or a few.
struct attention_kernel {
  static constexpr kernel id = kernel::attention;
  static constexpr const kernel_interface& face = attention_interface;
  static constexpr bool any_subgroups = true;  ///< any number of subgroups can do its work
  static constexpr candidate candidates[] = {{variant::attention_cpu, demand::wide_loads}, {variant::attention, {}}};
  template <class T>
  struct push {
    T query, keys, values, output, state, partials, counters, sinks;
  };
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
    std::uint32_t value_dim{};
  };
};

}  // namespace intaglio::kernels
