// SPDX-License-Identifier: MIT
// The kernel layers_coded: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/codecs/device_row.hpp"
#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/layers.hpp"

namespace intaglio::kernels {

/// All layers of a decode pass in one dispatch, for coded weights after norms (matmul, turn, norm_add), on GPUs on
/// which all workgroups run at once. Workgroups have layers_coded::resident_subgroups subgroups of 32, and wait like
/// those of the kernel layers.
/// codec: that of all products. In models with several codecs it is that of q, k and v; gate and up have codec_gate,
/// attention's projection codec_projection, and down codec_down, or codec_more_down in layers with a bit in more_down.
/// In layers with a bit in values_apart v has a matrix of its own, of codec_values, or of codec_more_values with a bit
/// in more_values. codec_values, codec_gate, codec_projection, codec_down and codec_more_* are values of
/// layers_coded::codec_word.
/// head_norms: turn_norms. biased 1: there are biases of q, k and v. turned 1: rows of q, k and v as in `turn`, with
/// its rope_factor; 0: as in matmul with rope_cache. inner_norms: layers_coded::norms_around. window, ring: as in
/// attention, for layers that do not see all positions. full_every: the last of this number of layers sees all
/// positions; 1: every layer does. scale, softcap: as in attention.
/// ffns: a layers_coded::ffns_word with the FFNs of a layer before attention, 0 or 1, and after it, 1 or 2, or with the
/// mixture of experts that all layers have in place of an FFN (matmul, route, expert_sum).
inline constexpr kernel_interface layers_coded_interface{"layers_coded",
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
                                                           {"inner_norms"},
                                                           {"scale", field_type::f32},
                                                           {"window"},
                                                           {"ring"},
                                                           {"full_every"},
                                                           {"subgroup_width"},
                                                           {"head_norms"},
                                                           {"biased"},
                                                           {"turned"},
                                                           {"rope_factor", field_type::f32},
                                                           {"codec_values"},
                                                           {"codec_gate"},
                                                           {"codec_projection"},
                                                           {"codec_down"},
                                                           {"codec_more_down"},
                                                           {"values_apart_low"},
                                                           {"values_apart_high"},
                                                           {"more_down_low"},
                                                           {"more_down_high"},
                                                           {"softcap", field_type::f32},
                                                           {"codec_more_values"},
                                                           {"more_values_low"},
                                                           {"more_values_high"},
                                                           {"ffns"}}}};

namespace layers_coded {
/// Where a block has norms: before its sublayers; there and before additions to the stream; or only before additions.
enum class norms_around : std::uint32_t { before = 0, before_and_behind = 1, behind = 2 };
/// Number of addresses of a layer. They are those of layers, except for some operands beside the products' weights. For
/// q/k/v the RoPE table replaces the scales. For attention's projection they are the norm of k's heads, and the norm
/// after the projection. For gate and up the norm of q's heads replaces the scales. For down they are the address of
/// the result if there are norms before additions, and the norm after down. The biases of q, k and v follow, and v's
/// matrix if it is separate. Then follow the operands of an FFN before attention and of a second one after it, as in
/// layers.
inline constexpr std::uint32_t argument_count = layers::argument_count + 2;
/// Further arguments of layers with experts: the router's weight, and its logits, for which workgroups wait.
inline constexpr std::uint32_t argument_router = argument_count, argument_logits = argument_router + 1;
/// The experts of a layer; a token uses `used` of them. over_all: as in route.
struct mixture {
  std::uint32_t experts = 0, used = 0;
  bool over_all = false;
  constexpr bool is_there() const { return experts != 0; }
  friend constexpr bool operator==(const mixture&, const mixture&) = default;
};
/// Limits of a mixture. Each expert's logit belongs to one invocation; ffns_word has bits for this number.
inline constexpr std::uint32_t most_experts = 512, most_experts_used = 16;
/// Columns of an expert's down projection for which a workgroup's shared memory has room.
inline constexpr std::uint32_t most_expert_columns = 14336;
/// The FFNs of a layer as one word, from the lowest bit on: FFNs before attention in 4 bits, FFNs after it in 4,
/// experts in 10, experts that a token uses in 5, and one bit for a softmax over all experts.
constexpr std::uint32_t ffns_word(const layers::ffns& of, const mixture& experts = {}) {
  return of.before | of.behind << 4 | experts.experts << 8 | experts.used << 18 | (experts.over_all ? 1u << 23 : 0u);
}
constexpr layers::ffns ffns_in(std::uint32_t word) { return {word & 15, word >> 4 & 15}; }
constexpr mixture mixture_in(std::uint32_t word) { return {word >> 8 & 1023, word >> 18 & 31, (word >> 23 & 1) != 0}; }
inline constexpr std::uint32_t most_mixed_layers = 64;  ///< with several codecs: bits of values_apart and more_down
inline constexpr std::uint32_t first_exchanged = 3, last_exchanged = 7;  ///< arguments for which workgroups wait
inline constexpr std::uint32_t most_spins = 1u << 20;                    ///< most reads of one value: 0.2 s
inline constexpr std::uint32_t resident_subgroups = 16;
/// Number of workgroups for a head and span of attention, with inner norms and if there are enough workgroups. Their
/// scores follow query, key and value, [span][head][position].
inline constexpr std::uint32_t attention_shares = 4;
/// Whether the module is layers_dense: the same source for 16-bit weights only, with more loads in flight.
constexpr bool is_dense(std::uint32_t codec_) {
  return codec_ == static_cast<std::uint32_t>(codec::f16) || codec_ == static_cast<std::uint32_t>(codec::bf16);
}
/// A codec with its row of codecs/rows.h as one word, for codec_values and the like. From the lowest bit on it has the
/// codec in 8 bits, the bits of a code in 4, the form of factors in 3, whether factors are for 16 columns, whether
/// there is a least value, the zero in 6 bits, and the table.
constexpr std::uint32_t codec_word(codec type) {
  const auto id = static_cast<std::uint32_t>(type);
  for (const intaglio::codecs::device_row& row : intaglio::codecs::device_rows)
    if (row.id == id)
      return id | (row.bits | static_cast<std::uint32_t>(row.form) << 4 | (row.per == 16 ? 128u : 0u) |
                   (row.least ? 256u : 0u) | static_cast<std::uint32_t>(row.zero) << 9 | row.table << 15)
                      << 8;
  return id;  // dense
}
constexpr codec codec_in(std::uint32_t word) { return static_cast<codec>(word & 255); }
/// Codecs by matrix. f16 in `values`: no layer has a separate v. f16 in more_down or more_values: no layer has a second
/// codec of down or of a separate v.
struct codecs {
  codec heads{}, values{}, gate{}, projection{}, down{}, more_down{}, more_values = codec::f16;
  constexpr bool mixed() const {
    return gate != heads || projection != heads || down != heads || values != codec::f16 || more_down != codec::f16 ||
           more_values != codec::f16;
  }
};
/// The module for the codecs. @param with_experts whether layers have a mixture
constexpr variant module_of(const codecs& of, bool with_experts) {
  if (with_experts) return variant::layers_experts;
  if (of.mixed()) return variant::layers_mixed;
  return is_dense(static_cast<std::uint32_t>(of.heads)) ? variant::layers_dense : variant::layers_coded;
}
/// Whether the driver is asked to unroll loops over rounds and layers (kernels::hint_loops). It unrolls them in any
/// case, but orders loads differently if asked. The faster order was measured (docs/performance.md).
constexpr bool asks_for_loops(std::uint32_t codec_, bool inner_norms) {
  return codec_ != static_cast<std::uint32_t>(codec::q4_0) || inner_norms;
}
}  // namespace layers_coded

struct layers_coded_kernel {
  static constexpr kernel id = kernel::layers_coded;
  static constexpr const kernel_interface& face = layers_coded_interface;
  static constexpr bool does_all_layers = true;
  static constexpr bool is_held_against_chain = true;  ///< at load: prompts may round differently
  static constexpr candidate candidates[] = {{variant::layers_dense, {}},
                                             {variant::layers_coded, {}},
                                             {variant::layers_mixed, {}},
                                             {variant::layers_experts, {}}};
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
    std::uint32_t inner_norms{};
    float scale{};
    std::uint32_t window{};
    std::uint32_t ring{};
    std::uint32_t full_every{};
    std::uint32_t subgroup_width{};
    std::uint32_t head_norms{};
    std::uint32_t biased{};
    std::uint32_t turned{};
    float rope_factor{};
    std::uint32_t codec_values{};
    std::uint32_t codec_gate{};
    std::uint32_t codec_projection{};
    std::uint32_t codec_down{};
    std::uint32_t codec_more_down{};
    std::uint32_t values_apart_low{};
    std::uint32_t values_apart_high{};
    std::uint32_t more_down_low{};
    std::uint32_t more_down_high{};
    float softcap{};
    std::uint32_t codec_more_values{};
    std::uint32_t more_values_low{};
    std::uint32_t more_values_high{};
    std::uint32_t ffns{};
  };
  static constexpr std::uint32_t argument_count(const constants& c) {
    if (layers_coded::mixture_in(c.ffns).is_there()) return layers_coded::argument_logits + 1;
    return layers_coded::ffns_in(c.ffns).arguments(layers_coded::argument_count, layers::arguments_of_ffn);
  }
  static constexpr layers::exchanged_arguments exchanged(const constants& c) {
    if (layers_coded::mixture_in(c.ffns).is_there()) {
      layers::exchanged_arguments out;
      out.add({3, 4, 5, layers_coded::argument_logits, 6, 7});
      return out;
    }
    return layers_coded::ffns_in(c.ffns).exchanged(layers_coded::argument_count, layers::arguments_of_ffn);
  }

  static constexpr variant module_of(const constants& c) {
    using layers_coded::codec_in;
    return layers_coded::module_of(
        {c.codec, codec_in(c.codec_values), codec_in(c.codec_gate), codec_in(c.codec_projection),
         codec_in(c.codec_down), codec_in(c.codec_more_down), codec_in(c.codec_more_values)},
        layers_coded::mixture_in(c.ffns).is_there());
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return module_of(c);
  }
};

}  // namespace intaglio::kernels
