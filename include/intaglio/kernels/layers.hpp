// SPDX-License-Identifier: MIT
// Kernels that compute all layers of a pass in one dispatch: their interfaces, and what plans have to know of them
// (docs/kernels.md). Part of kernels/catalogue.hpp.
#pragma once

#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// All layers of a decode pass: the five steps of each layer (q, k, v with norm, RoPE and cache; attention; its
/// projection; gate and up; down), each in `parts` parts, bit for bit what the kernels of the period do one after the
/// other. One token, ternary products behind quantising norms. One workgroup a part. arguments: addresses,
/// argument_count a layer (kernels::layers). progress: u32 [progress_steps + steps * layers], 0 before. Two forms. For
/// llvmpipe (layers_cpu), in workgroups of one subgroup, which may run at once or one after the other: none waits for
/// another for long, whoever finds a step unfinished does it. patience: turns of a loop that a workgroup spends on
/// waiting in each step, before it does the step itself. progress is 0 afterwards. For GPUs on which all workgroups run
/// at once (layers), in workgroups of 32 subgroups of 32: each waits until what it reads is no longer ~0, which all
/// bytes that the steps exchange are before. heads_together: 1, or over long contexts the 4 heads that share keys and
/// values (layers_long; plan::resident_long_fits). patience: reads of one element, after which a workgroup gives up:
/// the stream behind the last layer is then NaN, and progress[progress_gave_up] 1 until somebody clears it.
inline constexpr kernel_interface layers_interface{"layers",
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
                                                     {"rope_theta", field_type::f32},
                                                     {"cache_element"},
                                                     {"heads_together"},
                                                     {"subgroup_width"}}}};

namespace layers {
/// Addresses of a layer, in this order: the stream, keys, values, query, what attention gives, the stream behind
/// attention, gated, the stream behind the layer; then norm weight, weight and scales of q/k/v, of attention's
/// projection, of gate and up, of down; then what the workgroups of an attention tell each other (as the chain's; none
/// where no context has two spans).
inline constexpr std::uint32_t argument_count = 21, first_weight = 8, steps = 5;
/// Words of `progress`: whether workgroups waited in vain, and those before the words of the steps.
inline constexpr std::uint32_t progress_gave_up = 3, progress_steps = 4;
/// What the form for GPUs takes: its subgroups of 32, and shared memory at most.
inline constexpr std::uint32_t resident_subgroups = 32, resident_subgroup_width = 32,
                               resident_shared_memory_bytes = 49152;
/// Beside a bit for each kernel: that the module for long contexts is used.
inline constexpr std::uint64_t long_contexts_bit = std::uint64_t{1} << 63;
constexpr std::uint64_t progress_bytes(std::uint32_t count) {
  return std::uint64_t{4} * (progress_steps + steps * count);
}
constexpr std::uint64_t argument_bytes(std::uint32_t count) { return std::uint64_t{8} * argument_count * count; }
}  // namespace layers

/// The same for products of coded weights behind norms (matmul, head_norm, norm_add), for GPUs on which all workgroups
/// run at once: workgroups of layers_coded::resident_subgroups subgroups of 32, which wait as those of layers do.
/// codec: of all four products. head_norms 1: norms of the heads of q and k. inner_norms 1: norms before additions to
/// the stream. window, ring: of the layers that do not see all positions, as attention has them; full_every: of so many
/// layers the last sees all positions, 1: each. scale: as attention's.
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
                                                           {"head_norms"}}}};

namespace layers_coded {
/// As layers::argument_count, with other meanings of what products have besides a weight: turns a position (q/k/v) in
/// the place of scales; of attention's projection k's head norm and the norm behind it; of gate and up q's head norm in
/// the place of scales; of down the address of the result, where norms stand before additions, and the norm behind it.
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
/// Beside a bit for each kernel: that the module layers_dense is used.
inline constexpr std::uint64_t dense_bit = std::uint64_t{1} << 62;
}  // namespace layers_coded

/// The same for a pass over up to layers_few::most_tokens sessions of a batch whose coded products are halves: what
/// halves, matmul_chunk and attention_few of the period do, in another order of sums, which hangs on the weights' shape
/// and on `parts` alone. Workgroups wait for each other. arguments of a layer as of layers, but the first: what its
/// workgroups tell each other, all ones before the pass. The stream stays where it is. context: positions of the pool;
/// shapes as plan::few_fits has them.
inline constexpr kernel_interface layers_few_interface{"layers_few",
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
                                                         {"scale", field_type::f32},
                                                         {"slot_words"},
                                                         {"page_size"},
                                                         {"subgroup_width"}}}};

namespace layers_few {
/// shares: workgroups that share a row of the down projection.
inline constexpr std::uint32_t resident_subgroups = 16, most_tokens = 8, shares = 4, most_steps = 32;
/// Columns that a subgroup's lanes have of a step, and the bytes of x that they read for it.
inline constexpr std::uint32_t step_columns = 128, step_bytes = 2560;
/// What the workgroups tell each other in a layer: x of the four products, squares of the stream before both norms,
/// query, key and value, and sums of the down projection.
constexpr std::uint64_t exchange_bytes(std::uint64_t hidden, std::uint64_t intermediate, std::uint64_t q,
                                       std::uint64_t kv) {
  const std::uint64_t tiles = hidden / 16;
  return (2 * hidden + q + intermediate) / step_columns * step_bytes +
         tiles * 4 * (2 * most_tokens + shares * 16 * most_tokens) + (q + 2 * kv) * 4 * most_tokens;
}
}  // namespace layers_few

/// The same with the norms that Gemma-3 has besides (head_norm, norm_add), its weights coded or halves as they are.
/// arguments of a layer as of layers_coded with inner norms, but the first. window, full_every as layers_coded has
/// them. shapes as plan::normed_few_fits has them; workgroups of as many subgroups as plan::normed_few_subgroups says.
inline constexpr kernel_interface layers_few_normed_interface{"layers_few_normed",
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
                                                                {"scale", field_type::f32},
                                                                {"slot_words"},
                                                                {"page_size"},
                                                                {"window"},
                                                                {"full_every"},
                                                                {"subgroup_width"}}}};

namespace layers_few_normed {
/// most_own: tiles of 16 rows of the stream that a workgroup has.
inline constexpr std::uint32_t least_subgroups = 16, most_subgroups = 20, most_own = 4;
/// As of layers_few, and squares of what both halves of a layer add to the stream.
constexpr std::uint64_t exchange_bytes(std::uint64_t hidden, std::uint64_t intermediate, std::uint64_t q,
                                       std::uint64_t kv) {
  return layers_few::exchange_bytes(hidden, intermediate, q, kv) + hidden / 16 * 4 * 2 * layers_few::most_tokens;
}
}  // namespace layers_few_normed

/// The same over more sessions: plans of 16 or 32 slots, passes over 8, 16 or 32 of them. A session's numbers do not
/// hang on how many others there are. Behind `parts` there are one to four workgroups more, which help the others
/// (layers_many::helpers). What workgroups tell each other is all ones before the pass in the first
/// layers_many::blank_layers layers alone. shapes as plan::many_fits has them.
inline constexpr kernel_interface layers_many_interface{"layers_many",
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
                                                          {"scale", field_type::f32},
                                                          {"slots"},
                                                          {"slot_words"},
                                                          {"page_size"},
                                                          {"subgroup_width"}}}};

namespace layers_many {
/// shares: workgroups that share a row of all products but gate and up. A workgroup has at most most_tiles of 16 rows
/// of a product, and most_row_quads times four rows of the stream.
inline constexpr std::uint32_t resident_subgroups = 16, most_tokens = 32, shares = 4, most_tiles = 16,
                               most_row_quads = 8, step_columns = 128;
inline constexpr std::uint32_t most_parts = 132;  ///< whose scales of a token are 33 words
inline constexpr std::uint32_t most_columns =
    45'056;  ///< of a product: the scale of eight of them is found by a reciprocal in 32 bits
inline constexpr std::uint32_t most_helpers = 4, blank_layers = 2;
/// Of so many workgroups that run at once. @return 0: there is none left, and so not this kernel
constexpr std::uint32_t helpers(std::uint32_t parts, std::uint32_t most) {
  return most <= parts ? 0 : most - parts < most_helpers ? most - parts : most_helpers;
}
/// Query heads of a task of attention.
constexpr std::uint64_t heads_each(std::uint64_t heads, std::uint64_t kv_heads) {
  return heads / kv_heads % 4 == 0 ? 4 : heads / kv_heads % 2 == 0 ? 2 : 1;
}
/// What the workgroups tell each other in a layer: x of the four products as halves, scales of each token of each
/// workgroup or task of attention, and squares; query, key and value; sums of shared rows; a word of each helper.
constexpr std::uint64_t exchange_bytes(std::uint64_t slot_count, std::uint64_t parts, std::uint64_t hidden,
                                       std::uint64_t intermediate, std::uint64_t q, std::uint64_t kv,
                                       std::uint64_t tasks_of_row) {
  const std::uint64_t qkv = q + 2 * kv;
  return slot_count * (2 * (2 * hidden + q + intermediate) + 4 * (5 * parts + tasks_of_row) + 4 * qkv +
                       4 * shares * (qkv + 2 * hidden)) +
         4 * most_helpers;
}
}  // namespace layers_many

/// The same with the norms that Gemma-3 has besides, as layers_few_normed is of layers_few. Rows of the stream need not
/// be shared evenly, nor columns. shapes as plan::normed_many_fits has them.
inline constexpr kernel_interface layers_many_normed_interface{"layers_many_normed",
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
                                                                 {"scale", field_type::f32},
                                                                 {"slots"},
                                                                 {"slot_words"},
                                                                 {"page_size"},
                                                                 {"window"},
                                                                 {"full_every"},
                                                                 {"subgroup_width"}}}};

namespace layers_many_normed {
/// Query heads of a task of attention, and slices of 128 channels of its values, which workgroups share or take in
/// turn.
constexpr std::uint64_t heads_each(std::uint64_t heads, std::uint64_t kv_heads) {
  return heads / kv_heads % 2 == 0 ? 2 : 1;
}
constexpr std::uint64_t value_slices(std::uint64_t head_dim) { return (head_dim + 127) / 128; }
/// Slices of a token.
constexpr std::uint64_t slices_of_row(std::uint64_t head_dim, std::uint64_t heads, std::uint64_t kv_heads) {
  return heads / heads_each(heads, kv_heads) * value_slices(head_dim);
}
/// As of layers_many, and squares of what both halves of a layer add to the stream.
constexpr std::uint64_t exchange_bytes(std::uint64_t slot_count, std::uint64_t parts, std::uint64_t hidden,
                                       std::uint64_t intermediate, std::uint64_t q, std::uint64_t kv,
                                       std::uint64_t its_slices_of_row) {
  return layers_many::exchange_bytes(slot_count, parts, hidden, intermediate, q, kv, its_slices_of_row) +
         slot_count * 4 * 2 * parts;
}
}  // namespace layers_many_normed

/// The same for ternary weights, over all slots of a batch, with the bits of norm_quantize, ternary_few and
/// attention_few: what is told is f32 as the chain has it, and int8 of every norm. arguments of a layer as of layers,
/// but the first, as of layers_few. The stream stays where it is. context: positions of the pool; shapes as
/// plan::ternary_few_fits has them.
inline constexpr kernel_interface layers_ternary_few_interface{"layers_ternary_few",
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
                                                                 {"rope_theta", field_type::f32},
                                                                 {"scale", field_type::f32},
                                                                 {"slots"},
                                                                 {"slot_words"},
                                                                 {"page_size"},
                                                                 {"subgroup_width"}}}};

namespace layers_ternary_few {
/// most_tiles of 16 rows and most_pairs of 64 columns are a subgroup's, whose weights it has in registers.
inline constexpr std::uint32_t resident_subgroups = 16, most_tokens = 32, most_tiles = 4, most_pairs = 8,
                               most_columns = 8192;
/// What the workgroups tell each other in a layer: the stream before both norms, query, key and value, what attention
/// gives and gated as f32; int8 of the four products' x, and factors.
constexpr std::uint64_t exchange_bytes(std::uint64_t slot_count, std::uint64_t hidden, std::uint64_t intermediate,
                                       std::uint64_t q, std::uint64_t kv) {
  return (slot_count + 7) / 8 * 8 *
         (4 * (2 * hidden + q + 2 * kv + q + intermediate) + 2 * hidden + q + intermediate + 4 * 4);
}
}  // namespace layers_ternary_few

}  // namespace intaglio::kernels
