// SPDX-License-Identifier: MIT
// The kernel layers_rows_normed: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/layers_rows.hpp"

namespace intaglio::kernels {

/// layers_rows with Gemma-3's additional norms (turn, norm_add); weights are coded or f16. arguments of a layer: as in
/// layers_coded with inner norms, except the first, which is the exchange. window, full_every: as in layers_coded.
/// Shapes: plan::rows_normed_fit; subgroups of a workgroup: plan::rows_normed_subgroups.
inline constexpr kernel_interface layers_rows_normed_interface{"layers_rows_normed",
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
                                                                 {"slot_words"},
                                                                 {"page_size"},
                                                                 {"window"},
                                                                 {"full_every"},
                                                                 {"subgroup_width"}}}};

namespace layers_rows_normed {
/// most_own: the most tiles of 16 rows of the stream that a workgroup has.
inline constexpr std::uint32_t least_subgroups = 16, most_subgroups = 20, most_own = 4;
/// The values of the exchange: the values of layers_rows' exchange, and the squares of both sublayers' outputs.
constexpr exchange_ranges exchange(std::uint64_t hidden, std::uint64_t intermediate, std::uint64_t q,
                                   std::uint64_t kv) {
  exchange_ranges out = layers_rows::exchange(hidden, intermediate, q, kv);
  const std::uint64_t squares = hidden / 16 * 4 * layers_rows::most_tokens;
  out.add({"projected_squares", squares, layer_step::projection, layer_step::projection});
  out.add({"lowered_squares", squares, layer_step::down, layer_step::down});
  return out;
}
/// Bytes of the exchange of one layer.
constexpr std::uint64_t exchange_bytes(std::uint64_t hidden, std::uint64_t intermediate, std::uint64_t q,
                                       std::uint64_t kv) {
  return exchange(hidden, intermediate, q, kv).bytes();
}
}  // namespace layers_rows_normed

/// Descriptor of the kernel layers_rows_normed, which computes all layers of a batch pass with Gemma-3's norms.
struct layers_rows_normed_kernel {
  static constexpr kernel id = kernel::layers_rows_normed;
  static constexpr const kernel_interface& face = layers_rows_normed_interface;
  static constexpr bool does_all_layers = true;
  static constexpr candidate candidates[] = {{variant::layers_rows_normed, {}}};
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
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t window{};
    std::uint32_t full_every{};
    std::uint32_t subgroup_width{};
  };

  static constexpr exchange_ranges exchange(const constants& c) {
    return layers_rows_normed::exchange(c.hidden_size, c.intermediate_size, std::uint64_t{c.heads} * c.head_dim,
                                        std::uint64_t{c.kv_heads} * c.head_dim);
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return variant::layers_rows_normed;
  }
};

}  // namespace intaglio::kernels
