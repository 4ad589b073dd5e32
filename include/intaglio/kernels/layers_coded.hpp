// SPDX-License-Identifier: MIT
// The kernel layers_coded: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>

#include "intaglio/codecs/device_row.hpp"
#include "intaglio/kernels/descriptor.hpp"
#include "intaglio/kernels/layers.hpp"

namespace intaglio::kernels {

/// All layers of a decode pass in one dispatch, for coded weights after norms (matmul, turn, norm_add), on GPUs on
/// which all workgroups run at once. Workgroups have layers_coded::resident_subgroups subgroups of 32, and wait like
/// the workgroups of the kernel layers.
/// codec: the first of the codecs that matrices have. codec_second, codec_third and codec_fourth are the others, each a
/// layers_coded::codec_word, or 0. codecs_used: a word of layers_coded::codecs, which says in which of them each matrix
/// of a layer is found. Layers of the same codecs are one kind: kind_codecs has a layers_coded::layer_codecs of 16 bits
/// for each kind, and kinds the kind of each layer, 96 bits for each of its four bits.
/// head_norms: turn_norms. biased: values of layers_coded::addition, or-ed. turned 1: rows of q, k and v as in `turn`,
/// with its rope_factor; 0: as in matmul with rope_cache. inner_norms: layers_coded::norms_around. window, ring: as in
/// attention, for layers that do not see all positions. full_every: the last of this number of layers sees all
/// positions; 1: every layer does. scale, softcap: as in attention.
/// ffns: a layers_coded::ffns_word with the FFNs of a layer before attention, 0 or 1, and after it, 1 or 2, or with the
/// mixture of experts that all layers have instead of an FFN (matmul, route, expert_sum).
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
                                                           {"codec_second"},
                                                           {"codec_third"},
                                                           {"codec_fourth"},
                                                           {"codecs_used"},
                                                           {"softcap", field_type::f32},
                                                           {"ffns"},
                                                           {"kind_codecs_0"},
                                                           {"kind_codecs_1"},
                                                           {"kind_codecs_2"},
                                                           {"kind_codecs_3"},
                                                           {"kind_codecs_4"},
                                                           {"kind_codecs_5"},
                                                           {"kind_codecs_6"},
                                                           {"kind_codecs_7"},
                                                           {"kinds_0"},
                                                           {"kinds_1"},
                                                           {"kinds_2"},
                                                           {"kinds_3"},
                                                           {"kinds_4"},
                                                           {"kinds_5"},
                                                           {"kinds_6"},
                                                           {"kinds_7"},
                                                           {"kinds_8"},
                                                           {"kinds_9"},
                                                           {"kinds_10"},
                                                           {"kinds_11"}}}};

namespace layers_coded {
/// Where a block has norms: before its sublayers; there and before additions to the stream; or only before additions.
enum class norms_around : std::uint32_t { before = 0, before_and_after = 1, after = 2 };
/// Number of addresses of a layer. It equals that number of the kernel layers, except for some operands beside the
/// products' weights. For q/k/v the RoPE table replaces the scales. For attention's projection they are the norm of k's
/// heads, and the norm after the projection. For gate and up the norm of q's heads replaces the scales. For down they
/// are the address of the result if there are norms before additions, and the norm after down. The biases of q, k and v
/// follow, and v's matrix if it is separate. Then follow the operands of an FFN before attention and of a second one
/// after it, as in layers.
inline constexpr std::uint32_t argument_count = layers::argument_count + 2;
/// What attention adds, as bits of `biased`: biases of q, k and v; a bias of its projection; a score of each head
/// (attention's has_sinks). The last two exist beside experts only.
enum class addition : std::uint32_t { heads = 1, projection = 2, sinks = 4 };
/// Further arguments of layers with experts: the router's weight, and its logits, for which workgroups wait.
inline constexpr std::uint32_t argument_router = argument_count, argument_logits = argument_router + 1;
/// Further arguments where experts have biases, or attention has sinks or a biased projection: the sinks, the
/// projection's bias, the router's bias, the experts' matrix of ups, and the experts' biases of gate, up and down.
inline constexpr std::uint32_t argument_sinks = argument_logits + 1, arguments_of_additions = 7;
/// The experts of a layer; a token uses `used` of them. over_all: as in route. biased: the router and the experts have
/// biases, and the experts' gate and up are matrices apart.
struct mixture {
  std::uint32_t experts = 0, used = 0;
  bool over_all = false, biased = false;
  constexpr bool is_there() const { return experts != 0; }
  friend constexpr bool operator==(const mixture&, const mixture&) = default;
};
/// Limits of a mixture. Each expert's logit belongs to one invocation; ffns_word has bits for this number.
inline constexpr std::uint32_t most_experts = 512, most_experts_used = 16;
/// Columns of an expert's down projection for which a workgroup's shared memory has room.
inline constexpr std::uint32_t most_expert_columns = 14336;
/// The FFNs of a layer as one word, from the lowest bit on: FFNs before attention in 4 bits, FFNs after it in 4,
/// experts in 10, experts that a token uses in 5, one bit for a softmax over all experts, and one for biased experts.
constexpr std::uint32_t ffns_word(const layers::ffns& of, const mixture& experts = {}) {
  return of.before | of.after << 4 | experts.experts << 8 | experts.used << 18 | (experts.over_all ? 1u << 23 : 0u) |
         (experts.biased ? 1u << 24 : 0u);
}
/// The number of FFNs before and after attention that a word of ffns_word has.
constexpr layers::ffns ffns_in(std::uint32_t word) { return {word & 15, word >> 4 & 15}; }
/// The mixture of experts that a word of ffns_word has.
constexpr mixture mixture_in(std::uint32_t word) {
  return {word >> 8 & 1023, word >> 18 & 31, (word >> 23 & 1) != 0, (word >> 24 & 1) != 0};
}
inline constexpr std::uint32_t first_exchanged = 3, last_exchanged = 7;  ///< arguments for which workgroups wait
inline constexpr std::uint32_t most_spins = 1u << 20;                    ///< most reads of one value: 0.2 s
/// Subgroups of a workgroup, of 32 lanes each.
inline constexpr std::uint32_t resident_subgroups = 16;
/// Number of workgroups for a head and span of attention, with inner norms and if there are enough workgroups. Their
/// scores follow query, key and value, [span][head][position].
inline constexpr std::uint32_t attention_shares = 4;
/// Whether the module is layers_dense: the same source for 16-bit weights only, with more loads in flight.
constexpr bool is_dense(std::uint32_t codec_) {
  return codec_ == static_cast<std::uint32_t>(codec::f16) || codec_ == static_cast<std::uint32_t>(codec::bf16);
}
/// A codec with its row of codecs/rows.h as one word, for codec_second and the like. From the lowest bit on it has the
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
/// The matrices of a layer that may differ in their codecs: q, k and v, unless v, or k and v, have a matrix of their
/// own; that matrix; gate and up; attention's projection; down. The shader has the same numbers.
enum class matrix : std::uint32_t { heads, values, gate, projection, down };
/// The number of values of `matrix`, and the most codecs of a model's matrices.
inline constexpr std::uint32_t matrices = 5, most_codecs = 4;
/// With several codecs: kinds of layers by their codecs, and layers.
inline constexpr std::uint32_t most_kinds = 16, most_mixed_layers = 96;
/// The codecs of all layers' matrices, without repetition.
struct codecs {
  std::array<codec, most_codecs> items{};
  std::uint32_t count = 0;
  /// Four bits for each matrix, from the lowest on: bit i says that it has codec i in some layer. Bit 20 says that
  /// matrix::values has k's rows too in some layer.
  std::uint32_t used = 0;
  constexpr void note_keys() { used |= 1u << 4 * matrices; }
  /// Notes that a matrix has a codec in some layer. @return whether there is room for it
  constexpr bool add(matrix of, codec its) {
    const std::uint32_t at = index_of(its);
    if (at == most_codecs) return false;
    if (at == count) items[count++] = its;
    used |= 1u << (4 * static_cast<std::uint32_t>(of) + at);
    return true;
  }
  /// The index of a codec; for a new codec the first free index, or most_codecs.
  constexpr std::uint32_t index_of(codec its) const {
    std::uint32_t at = 0;
    while (at < count && items[at] != its) ++at;
    return at;
  }
  constexpr bool has(matrix of, std::uint32_t at) const {
    return (used >> (4 * static_cast<std::uint32_t>(of) + at) & 1) != 0;
  }
  /// Whether the module must choose among codecs, or v has a matrix of its own in some layer.
  constexpr bool mixed() const {
    return count > 1 || (used >> 4 * static_cast<std::uint32_t>(matrix::values) & 15) != 0;
  }
  friend constexpr bool operator==(const codecs&, const codecs&) = default;
};
/// The codecs of a layer's matrices as indices into `codecs`: two bits for each matrix, from the lowest on, bit 10 if
/// there is matrix::values, and bit 11 if it has k's rows too.
struct layer_codecs {
  std::uint32_t word = 0;
  constexpr void set(matrix of, std::uint32_t at) {
    word |= at << 2 * static_cast<std::uint32_t>(of);
    if (of == matrix::values) word |= 1u << 2 * matrices;
  }
  constexpr void note_keys() { word |= 1u << (2 * matrices + 1); }
};
/// The module for the codecs. @param with_experts whether layers have a mixture
constexpr variant module_of(const codecs& of, bool with_experts) {
  if (with_experts) return variant::layers_experts;
  if (of.mixed()) return variant::layers_mixed;
  return is_dense(static_cast<std::uint32_t>(of.items[0])) ? variant::layers_dense : variant::layers_coded;
}
/// Whether the driver is asked to unroll loops over rounds and layers (kernels::hint_loops). It unrolls them in any
/// case, but orders loads differently if asked. The faster order was measured (docs/performance.md).
constexpr bool asks_for_loops(std::uint32_t codec_, bool inner_norms) {
  return codec_ != static_cast<std::uint32_t>(codec::q4_0) || inner_norms;
}
}  // namespace layers_coded

/// Descriptor of the kernel layers_coded, which computes all layers of a decode pass with coded weights.
struct layers_coded_kernel {
  static constexpr kernel id = kernel::layers_coded;
  static constexpr const kernel_interface& face = layers_coded_interface;
  static constexpr bool does_all_layers = true;
  static constexpr bool is_held_against_chain = true;  ///< at load: prompts may round differently
  static constexpr candidate candidates[] = {{variant::layers_dense, {}},
                                             {variant::layers_coded, {}},
                                             {variant::layers_mixed, {}},
                                             {variant::layers_experts, {}}};
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
    std::uint32_t codec_second{};
    std::uint32_t codec_third{};
    std::uint32_t codec_fourth{};
    std::uint32_t codecs_used{};
    float softcap{};
    std::uint32_t ffns{};
    std::array<std::uint32_t, layers_coded::most_kinds / 2> kind_codecs{};
    std::array<std::uint32_t, 4 * layers_coded::most_mixed_layers / 32> kinds{};
  };
  static constexpr std::uint32_t argument_count(const constants& c) {
    if (const auto experts = layers_coded::mixture_in(c.ffns); experts.is_there())
      return layers_coded::argument_sinks + (experts.biased || c.biased > 1 ? layers_coded::arguments_of_additions : 0);
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
    layers_coded::codecs its{.items = {c.codec}, .count = c.codec_second == 0 ? 1u : 2u, .used = c.codecs_used};
    return layers_coded::module_of(its, layers_coded::mixture_in(c.ffns).is_there());
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    fit_resident(c, of, device, pass);
    return module_of(c);
  }
};

}  // namespace intaglio::kernels
