// SPDX-License-Identifier: MIT
// The kernel layers_coded: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/layers.hpp"

namespace intaglio::kernels {

/// The same for products of coded weights behind norms (matmul, turn, norm_add), for GPUs on which all workgroups
/// run at once: workgroups of layers_coded::resident_subgroups subgroups of 32, which wait as those of layers do.
/// codec: of all four products. head_norms 1: norms of the heads of q and k. biased 1: biases of q, k and v.
/// inner_norms 1: norms before additions to the stream. window, ring: of the layers that do not see all positions, as
/// attention has them; full_every: the last of this number of layers sees all positions, 1: each. scale: as
/// attention's.
inline constexpr kernel_interface layers_coded_interface{"layers_coded",
                                                         {{{"arguments"}, {"progress"}, {"state"}}},
                                                         {{{"workgroup_size"},
                                                           {"hidden_size"},
                                                           {"intermediate_size"},
                                                           {"layers"},
                                                           {"parts"},
                                                           {"eps", field_type::f32},
                                                           {"patience"},
                                                           {"head_dim"},
                                                           {"heads"},
                                                           {"kv_heads"},
                                                           {"context"},
                                                           {"codec"},
                                                           {"inner_norms"},
                                                           {"scale", field_type::f32},
                                                           {"window"},
                                                           {"ring"},
                                                           {"full_every"},
                                                           {"subgroup_width"},
                                                           {"head_norms"},
                                                           {"biased"}}}};

namespace layers_coded {
/// As layers::argument_count, with other meanings of what products have besides a weight: turns a position (q/k/v) in
/// the place of scales; of attention's projection k's head norm and the norm behind it; of gate and up q's head norm in
/// the place of scales; of down the address of the result, where norms stand before additions, and the norm behind it.
/// Behind these the biases of q, k and v.
inline constexpr std::uint32_t argument_count = layers::argument_count + 1;
constexpr std::uint64_t argument_bytes(std::uint32_t count) { return std::uint64_t{8} * argument_count * count; }
inline constexpr std::uint32_t resident_subgroups = 16;
/// Workgroups a head and span of attention, with inner norms and where there are so many: their scores stand behind
/// query, key and value, [span][head][position].
inline constexpr std::uint32_t attention_shares = 4;
/// Whether the module is layers_dense, the same source for weights of 16 bits alone: more of them are on their way.
constexpr bool is_dense(std::uint32_t codec_) {
  return codec_ == static_cast<std::uint32_t>(codec::f16) || codec_ == static_cast<std::uint32_t>(codec::bf16);
}
/// Whether the driver is asked to write loops over rounds and layers out (kernels::hint_loops). It does in any case,
/// but orders loads otherwise: what was measured to be the faster one (docs/performance.md).
constexpr bool asks_for_loops(std::uint32_t codec_, bool inner_norms) {
  return codec_ != static_cast<std::uint32_t>(codec::q4_0) || inner_norms;
}
}  // namespace layers_coded

struct layers_coded_kernel {
  static constexpr kernel id = kernel::layers_coded;
  static constexpr candidate candidates[] = {{variant::layers_dense, {}}, {variant::layers_coded, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t hidden_size{};
    std::uint32_t intermediate_size{};
    std::uint32_t layers{};
    std::uint32_t parts{};
    float eps{};
    std::uint32_t patience{};
    std::uint32_t head_dim{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t context{};
    kernels::codec codec{};
    std::uint32_t inner_norms{};
    float scale{};
    std::uint32_t window{};
    std::uint32_t ring{};
    std::uint32_t full_every{};
    std::uint32_t subgroup_width{};
    std::uint32_t head_norms{};
    std::uint32_t biased{};
  };

  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return layers_coded::is_dense(static_cast<std::uint32_t>(c.codec)) ? variant::layers_dense : variant::layers_coded;
  }
};

}  // namespace intaglio::kernels
