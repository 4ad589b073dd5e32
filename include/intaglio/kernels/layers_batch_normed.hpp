// SPDX-License-Identifier: MIT
// The kernel layers_batch_normed: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/layers_batch.hpp"

namespace intaglio::kernels {

/// layers_batch with Gemma-3's additional norms, as layers_rows_normed is to layers_rows. The rows of the stream and
/// the columns may be split unevenly. Shapes: plan::batch_normed_fits.
inline constexpr kernel_interface layers_batch_normed_interface{"layers_batch_normed",
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
                                                                  {"window"},
                                                                  {"full_every"},
                                                                  {"subgroup_width"}}}};

namespace layers_batch_normed {
/// Query heads of a task of attention, and the number of slices of 128 channels of its values. Workgroups share slices
/// or take several in turn.
constexpr std::uint64_t heads_each(std::uint64_t heads, std::uint64_t kv_heads) {
  return heads / kv_heads % 2 == 0 ? 2 : 1;
}
/// Number of slices of at most 128 channels of a head's values.
constexpr std::uint64_t value_slices(std::uint64_t head_dim) { return (head_dim + 127) / 128; }
/// Number of slices of a token.
constexpr std::uint64_t slices_of_row(std::uint64_t head_dim, std::uint64_t heads, std::uint64_t kv_heads) {
  return heads / heads_each(heads, kv_heads) * value_slices(head_dim);
}
/// Bytes of the exchange: the bytes of layers_batch's exchange, and the squares of both sublayers' outputs.
constexpr std::uint64_t exchange_bytes(std::uint64_t slot_count, std::uint64_t parts, std::uint64_t hidden,
                                       std::uint64_t intermediate, std::uint64_t q, std::uint64_t kv,
                                       std::uint64_t its_slices_of_row) {
  return layers_batch::exchange(slot_count, parts, hidden, intermediate, q, kv, its_slices_of_row, true).bytes();
}
}  // namespace layers_batch_normed

/// Descriptor of the kernel layers_batch_normed, which computes all layers of a batch pass over up to 32 slots with
/// Gemma-3's norms.
struct layers_batch_normed_kernel {
  static constexpr kernel id = kernel::layers_batch_normed;
  static constexpr const kernel_interface& face = layers_batch_normed_interface;
  static constexpr bool has_helpers = true;
  static constexpr bool does_all_layers = true;
  static constexpr candidate candidates[] = {{variant::layers_batch_normed, {}}};
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
    std::uint32_t window{};
    std::uint32_t full_every{};
    std::uint32_t subgroup_width{};
  };

  static constexpr exchange_ranges exchange(const constants& c) {
    return layers_batch::exchange(c.slot_count, c.parts, c.hidden_size, c.intermediate_size,
                                  std::uint64_t{c.heads} * c.head_dim, std::uint64_t{c.kv_heads} * c.head_dim,
                                  layers_batch_normed::slices_of_row(c.head_dim, c.heads, c.kv_heads), true);
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return variant::layers_batch_normed;
  }
};

}  // namespace intaglio::kernels
