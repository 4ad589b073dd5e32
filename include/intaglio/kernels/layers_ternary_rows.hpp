// SPDX-License-Identifier: MIT
// The kernel layers_ternary_rows: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/exchange.hpp"

namespace intaglio::kernels {

/// All layers of a batch pass in one dispatch, for ternary weights and all slots, with the bits of norm_quantize,
/// ternary_batch and attention_batch. The exchanged values are f32, as in the chain of dispatches, and the int8 result
/// of every norm. arguments of a layer: as in layers, except the first, which is the exchange, as in layers_rows. The
/// stream is updated in place. context: positions of the pool. Shapes: plan::ternary_rows_fit.
inline constexpr kernel_interface layers_ternary_rows_interface{"layers_ternary_rows",
                                                                {{{"arguments"}, {"progress"}, {"state"}}},
                                                                {{{"workgroup_size"},
                                                                  {"hidden_size"},
                                                                  {"intermediate_size"},
                                                                  {"layers"},
                                                                  {"parts"},
                                                                  {"eps", field_type::f32},
                                                                  {"spin_limit"},
                                                                  {"head_dim"},
                                                                  {"heads"},
                                                                  {"kv_heads"},
                                                                  {"context"},
                                                                  {"rope_theta", field_type::f32},
                                                                  {"scale", field_type::f32},
                                                                  {"slots"},
                                                                  {"slot_words"},
                                                                  {"page_size"},
                                                                  {"subgroup_width"}}}};

namespace layers_ternary_rows {
/// A subgroup holds the weights of most_tiles tiles of 16 rows and most_pairs times 64 columns in registers.
inline constexpr std::uint32_t resident_subgroups = 16, most_tokens = 32, most_tiles = 4, most_pairs = 8,
                               most_columns = 8192;
/// The values that workgroups exchange in a layer: the stream before both norms, query, key and value, the output of
/// attention, and gated, as f32; x of the four products as int8, and its factors.
constexpr exchange_ranges exchange(std::uint64_t slot_count, std::uint64_t hidden, std::uint64_t intermediate,
                                   std::uint64_t q, std::uint64_t kv) {
  using enum layer_step;
  const std::uint64_t rows = (slot_count + 7) / 8 * 8;
  return {{"stream", rows * hidden * 4, before, qkv},
          {"query", rows * (q + 2 * kv) * 4, qkv, attention},
          {"attended", rows * q * 4, attention, projection},
          {"middle", rows * hidden * 4, projection, gate_up},
          {"gated", rows * intermediate * 4, gate_up, down},
          {"codes", rows * hidden, qkv, qkv},
          {"codes", rows * q, projection, projection},
          {"codes", rows * hidden, gate_up, gate_up},
          {"codes", rows * intermediate, down, down},
          {"factors", rows * 4, qkv, qkv},
          {"factors", rows * 4, projection, projection},
          {"factors", rows * 4, gate_up, gate_up},
          {"factors", rows * 4, down, down}};
}
/// Bytes of the exchange of one layer.
constexpr std::uint64_t exchange_bytes(std::uint64_t slot_count, std::uint64_t hidden, std::uint64_t intermediate,
                                       std::uint64_t q, std::uint64_t kv) {
  return exchange(slot_count, hidden, intermediate, q, kv).bytes();
}
}  // namespace layers_ternary_rows

/// Descriptor of the kernel layers_ternary_rows, which computes all layers of a batch pass with ternary weights.
struct layers_ternary_rows_kernel {
  static constexpr kernel id = kernel::layers_ternary_rows;
  static constexpr const kernel_interface& face = layers_ternary_rows_interface;
  static constexpr bool does_all_layers = true;
  static constexpr bool takes_drafts = true;  ///< rows may follow rows of the same session (kernels::state::before)
  static constexpr bool leaves_chain_bits = true;  ///< in batches, where the other resident kernels multiply in f16
  static constexpr candidate candidates[] = {{variant::layers_ternary_rows, {}}};
  template <class T>
  struct push {
    T arguments, progress, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t hidden_size{};
    std::uint32_t intermediate_size{};
    std::uint32_t layers{};
    std::uint32_t parts{};
    float eps{};
    std::uint32_t spin_limit{};
    std::uint32_t head_dim{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t context{};
    float rope_theta{};
    float scale{};
    std::uint32_t slot_count{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t subgroup_width{};
  };

  static constexpr exchange_ranges exchange(const constants& c) {
    return layers_ternary_rows::exchange(c.slot_count, c.hidden_size, c.intermediate_size,
                                         std::uint64_t{c.heads} * c.head_dim, std::uint64_t{c.kv_heads} * c.head_dim);
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return variant::layers_ternary_rows;
  }
};

}  // namespace intaglio::kernels
