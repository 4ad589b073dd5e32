// SPDX-License-Identifier: MIT
// The kernel layers_batch: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/exchange.hpp"

namespace intaglio::kernels {

/// All layers of a batch pass in one dispatch, for larger batches than layers_rows: plans of 16 or 32 slots, and passes
/// over 8, 16 or 32 of them. A session's results do not depend on the number of other sessions. Beside the `parts`
/// workgroups there are one to four that help them (layers_batch::helpers). Only the exchange of the first
/// layers_batch::blank_layers layers holds the unwritten pattern (all ones) before the pass. Shapes: plan::batch_fits.
inline constexpr kernel_interface layers_batch_interface{"layers_batch",
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
                                                           {"codec"},
                                                           {"scale", field_type::f32},
                                                           {"slots"},
                                                           {"slot_words"},
                                                           {"page_size"},
                                                           {"subgroup_width"}}}};

namespace layers_batch {
/// Numbers of layers_batch. shares: workgroups that share a row of every product except gate and up. A workgroup has at
/// most most_tiles tiles of 16 rows of a product, and at most most_row_quads times four rows of the stream.
inline constexpr std::uint32_t resident_subgroups = 16, most_tokens = 32, shares = 4, most_tiles = 16,
                               most_row_quads = 8, step_columns = 128;
inline constexpr std::uint32_t most_parts = 132;  ///< for which a token's scales are 33 words
/// The most columns of a product: the scale of eight columns is found with a reciprocal in 32 bits.
inline constexpr std::uint32_t most_columns = 45'056;
/// The most helping workgroups, and the layers whose exchange is unwritten before the pass.
inline constexpr std::uint32_t most_helpers = 4, blank_layers = 2;
/// Number of helping workgroups, if `most` run at once. @return 0: none is left, and the kernel cannot run
constexpr std::uint32_t helpers(std::uint32_t parts, std::uint32_t most) {
  return most <= parts ? 0 : most - parts < most_helpers ? most - parts : most_helpers;
}
/// Query heads of a task of attention.
constexpr std::uint64_t heads_each(std::uint64_t heads, std::uint64_t kv_heads) {
  return heads / kv_heads % 4 == 0 ? 4 : heads / kv_heads % 2 == 0 ? 2 : 1;
}
/// The values that workgroups exchange in a layer: x of the four products as f16; scales of each token from each
/// workgroup or task of attention; squares; query, key and value; sums of shared rows; a word of each helper.
/// @param adds_normalised whether the squares of both sublayers' outputs, which are added to the stream, are exchanged
constexpr exchange_ranges exchange(std::uint64_t slot_count, std::uint64_t parts, std::uint64_t hidden,
                                   std::uint64_t intermediate, std::uint64_t q, std::uint64_t kv,
                                   std::uint64_t tasks_of_row, bool adds_normalised = false) {
  using enum layer_step;
  const std::uint64_t each = slot_count * parts * 4, its_qkv = q + 2 * kv, sums = slot_count * shares * 4;
  exchange_ranges out{{"x", slot_count * hidden * 2, before, qkv},
                      {"middle", slot_count * hidden * 2, projection, gate_up},
                      {"attended", slot_count * q * 2, attention, projection},
                      {"gated", slot_count * intermediate * 2, gate_up, down},
                      {"x_scales", each, before, qkv},
                      {"middle_scales", each, projection, gate_up},
                      {"attended_scales", slot_count * tasks_of_row * 4, attention, projection},
                      {"gated_scales", each, gate_up, down},
                      {"squares", each, before, qkv},
                      {"middle_squares", each, projection, gate_up},
                      {"query", slot_count * its_qkv * 4, qkv, attention},
                      {"qkv_sums", sums * its_qkv, qkv, qkv},
                      {"projection_sums", sums * hidden, projection, projection},
                      {"down_sums", sums * hidden, down, down}};
  if (adds_normalised) {
    out.add({"projected_squares", each, projection, projection});
    out.add({"lowered_squares", each, down, down});
  }
  out.add({"blanked", 4 * most_helpers, qkv, down});
  return out;
}
/// Bytes of the exchange of one layer.
constexpr std::uint64_t exchange_bytes(std::uint64_t slot_count, std::uint64_t parts, std::uint64_t hidden,
                                       std::uint64_t intermediate, std::uint64_t q, std::uint64_t kv,
                                       std::uint64_t tasks_of_row) {
  return exchange(slot_count, parts, hidden, intermediate, q, kv, tasks_of_row).bytes();
}
}  // namespace layers_batch

/// Descriptor of the kernel layers_batch, which computes all layers of a batch pass over up to 32 slots.
struct layers_batch_kernel {
  static constexpr kernel id = kernel::layers_batch;
  static constexpr const kernel_interface& face = layers_batch_interface;
  static constexpr bool has_helpers = true;
  static constexpr bool does_all_layers = true;
  static constexpr candidate candidates[] = {{variant::layers_batch, {}}};
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
    kernels::codec codec{};
    float scale{};
    std::uint32_t slot_count{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t subgroup_width{};
  };

  static constexpr exchange_ranges exchange(const constants& c) {
    return layers_batch::exchange(c.slot_count, c.parts, c.hidden_size, c.intermediate_size,
                                  std::uint64_t{c.heads} * c.head_dim, std::uint64_t{c.kv_heads} * c.head_dim,
                                  c.heads / layers_batch::heads_each(c.heads, c.kv_heads));
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return variant::layers_batch;
  }
};

}  // namespace intaglio::kernels
