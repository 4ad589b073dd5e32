// SPDX-License-Identifier: MIT
// The kernel layers_rows: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/exchange.hpp"

namespace intaglio::kernels {

/// All layers of a batch pass in one dispatch, for up to layers_rows::most_tokens sessions and f16 products. It
/// computes what quantize_f16, matmul_chunk and attention_batch of the period do, with another order of sums, which
/// depends only on the weights' shape and on `parts`. Workgroups wait for each other. arguments of a layer: as in
/// layers, except the first, which is the exchange; it holds the unwritten pattern (all ones) before the pass. The
/// stream is updated in place. context: positions of the pool. Shapes: plan::rows_fit.
inline constexpr kernel_interface layers_rows_interface{"layers_rows",
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
                                                          {"subgroup_width"}}}};

namespace layers_rows {
/// Numbers of layers_rows. shares: workgroups that share a row of the down projection.
inline constexpr std::uint32_t resident_subgroups = 16, most_tokens = 8, shares = 4, most_steps = 32;
/// Columns of a step of a subgroup's lanes, and the bytes of x that they read for it.
inline constexpr std::uint32_t step_columns = 128, step_bytes = 2560;
/// The values that workgroups exchange in a layer: x of the four products; squares of the stream before both norms;
/// query, key and value; sums of the down projection.
constexpr exchange_ranges exchange(std::uint64_t hidden, std::uint64_t intermediate, std::uint64_t q,
                                   std::uint64_t kv) {
  using enum layer_step;
  const std::uint64_t tiles = hidden / 16, x = hidden / step_columns * step_bytes, squares = tiles * 4 * most_tokens;
  return {{"x", x, before, qkv},
          {"squares", squares, before, qkv},
          {"middle", x, projection, gate_up},
          {"middle_squares", squares, projection, gate_up},
          {"attended", q / step_columns * step_bytes, attention, projection},
          {"gated", intermediate / step_columns * step_bytes, gate_up, down},
          {"query", (q + 2 * kv) * 4 * most_tokens, qkv, attention},
          {"sums", tiles * shares * 16 * most_tokens * 4, down, down}};
}
/// Bytes of the exchange of one layer.
constexpr std::uint64_t exchange_bytes(std::uint64_t hidden, std::uint64_t intermediate, std::uint64_t q,
                                       std::uint64_t kv) {
  return exchange(hidden, intermediate, q, kv).bytes();
}
}  // namespace layers_rows

/// Descriptor of the kernel layers_rows, which computes all layers of a batch pass with f16 products.
struct layers_rows_kernel {
  static constexpr kernel id = kernel::layers_rows;
  static constexpr const kernel_interface& face = layers_rows_interface;
  static constexpr bool does_all_layers = true;
  static constexpr candidate candidates[] = {{variant::layers_rows, {}}};
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
    std::uint32_t subgroup_width{};
  };

  static constexpr exchange_ranges exchange(const constants& c) {
    return layers_rows::exchange(c.hidden_size, c.intermediate_size, std::uint64_t{c.heads} * c.head_dim,
                                 std::uint64_t{c.kv_heads} * c.head_dim);
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return variant::layers_rows;
  }
};

}  // namespace intaglio::kernels
