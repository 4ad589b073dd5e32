// SPDX-License-Identifier: MIT
// Every kernel of the library: its interface and, in its comment, what it computes. Rows are tokens of the pass; a
// kernel leaves tokens at or past state.count untouched. Floating-point orders are fixed (docs/kernels.md), so that
// decode and prefill give the same bits. subgroup_width is the subgroup size where the pipeline asks for one or the
// device has but one (drivers then drop what other sizes need), 0 where it is open. Weight addresses, arena offsets and
// sizes come from the plan.
#pragma once

#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"
#include "intaglio/kernels/layers.hpp"

namespace intaglio::kernels {

/// Passes over a batch (slot_words above 0, of kernels that have it): row t is the next token of the session in slot t,
/// whose state begins at word first_slot + t * slot_words (kernels/state.hpp). Its position is position of that, and
/// the cache is a pool of `context` positions in pages of page_size (a multiple of 8 that divides attention_span, or a
/// multiple of that): position p stands in page page_table[p / page_size]. Rows whose slot has count 0 are left out by
/// what reads or writes caches, history or ring; max_tokens is then the words between a slot's token and its history,
/// the token counted.

/// x[token, :] = table[state.tokens[token], :] * scale, widened to f32; scale 0 is none. Token ids at or past
/// vocab_size read row 0. table: a weight of matmul of the codec table_element. Writes state.history[position + token]
/// as well. One workgroup a token (y). With blank_quads not 0 further workgroups (x) fill with ones what a pass's
/// workgroups wait for: `blank`, blank_quads quads of words, and of blank_spans, `stretches` times [spans, span_quads]
/// quads that lie stretch_quads apart, the spans of attention that a pass at the state's position has.
inline constexpr kernel_interface embed_interface{"embed",
                                                  {{{"table"}, {"output"}, {"state"}, {"blank"}, {"blank_spans"}}},
                                                  {{{"workgroup_size"},
                                                    {"width"},
                                                    {"vocab_size"},
                                                    {"table_element"},
                                                    {"max_tokens"},
                                                    {"context"},
                                                    {"scale", field_type::f32},
                                                    {"slot_words"},
                                                    {"blank_quads"},
                                                    {"stretches"},
                                                    {"span_quads"},
                                                    {"spans"},
                                                    {"stretch_quads"}}}};

/// BitNet's activations: y = rms_norm(x) * w, s = 127 / max(max|y|, 1e-5), q = round_half_even(y * s).
/// input f32 [tokens, width]; norm_weight f32 [width]; output int8 [tokens, width];
/// factors [tokens] of {f32 1 / s, i32 sum of q}. One workgroup a token (y).
inline constexpr kernel_interface norm_quantize_interface{
    "norm_quantize",
    {{{"input"}, {"norm_weight"}, {"output"}, {"factors"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}}}};

/// y[token, row] = scale(row) / s(token) * sum over columns of code[row, column] * q[token, column].
/// weight: 2-bit codes 0, 1, 2 for -1, 0, +1 in tiles of 4 rows x 16 columns, one uvec4 a tile at [row_group * tiles +
/// tile], tiles = columns / 16; word r of the uvec4 is row r of the group; bits 2f+1..2f of byte b (f, b in 0..3) hold
/// column 4f + b of the tile. Row order is the plan's (weight_layout): for rope_cache a group holds rows p, p +
/// head_dim/2, p+1, p+1 + head_dim/2 of one head, heads of q first, then of k, then of v; for gated a group holds gate
/// 2g, up 2g, gate 2g+1, up 2g+1. scales f32: one (store, add), {q, k, v} (rope_cache), {gate, up} (gated). x: grid x
/// strides over row groups, grid y over tiles of tile_tokens tokens. keys, values: this layer's cache of cache_element
/// (kernels/cache_layout.hpp), written at state.position + token. rope: NeoX pairs (i, i + head_dim/2).
inline constexpr kernel_interface ternary_matmul_interface{
    "ternary_matmul",
    {{{"input"}, {"norm_weight"}, {"factors"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"prologue"},
      {"epilogue"},
      {"eps", field_type::f32},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"}}}};

/// ternary_matmul with prologue::quantized for tiles of up to 8 tokens: a workgroup has a group of 4 rows at a time
/// (tile_rows), grid x strides over them. With matrices: one workgroup for each few_tile, columns as they are.
inline constexpr kernel_interface ternary_few_interface{
    "ternary_few",
    {{{"input"}, {"factors"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"epilogue"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"},
      {"tile_rows"}}}};

/// ternary_matmul with prologue::quantized of one token for CPU drivers: workgroup x has groups_together groups of 4
/// rows, 1 or 2, from x * groups_together on. columns a multiple of 64; ternary_rows_columns bounds its code, which has
/// no loops.
inline constexpr kernel_interface ternary_rows_interface{"ternary_rows",
                                                         {{{"input"},
                                                           {"factors"},
                                                           {"weight"},
                                                           {"scales"},
                                                           {"output"},
                                                           {"state"},
                                                           {"keys"},
                                                           {"values"},
                                                           {"binary", field_type::binary}}},
                                                         {{{"workgroup_size"},
                                                           {"columns"},
                                                           {"rows"},
                                                           {"epilogue"},
                                                           {"head_dim"},
                                                           {"q_size"},
                                                           {"kv_size"},
                                                           {"context"},
                                                           {"rope_theta", field_type::f32},
                                                           {"cache_element"},
                                                           {"groups_together"},
                                                           {"subgroup_width"}}}};
inline constexpr std::uint32_t ternary_rows_columns = 8192;
constexpr bool has_ternary_rows(std::uint32_t columns, std::uint32_t rows) {
  return columns % 64 == 0 && columns <= ternary_rows_columns && rows / 4 <= 65535;
}
constexpr std::uint32_t ternary_rows_together(std::uint32_t columns) { return columns <= 4096 ? 2 : 1; }
/// Tokens of a tile of ternary_matmul, at most.
inline constexpr std::uint32_t most_ternary_tile_tokens = 16;

/// ternary_matmul with prologue::quantized for up to max_tokens tokens: workgroup (x, y) has tile_rows rows and
/// tile_tokens tokens. The module for cooperative matrices wants subgroups of 32, columns that are a multiple of
/// chunk_columns, tile_tokens of 32, and of tile_rows 16, 32, 48 or 64 for each of the workgroup's subgroups /
/// (tile_tokens / 32).
inline constexpr kernel_interface ternary_chunk_interface{
    "ternary_chunk",
    {{{"input"}, {"factors"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"epilogue"},
      {"tile_rows"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"max_tokens"}}}};
inline constexpr std::uint32_t chunk_columns = 64;

/// ternary_matmul of activations that are not quantised: y[token, row] = scale(row) * sum over columns of code[row,
/// column] * x[token, column], x being input f32 [tokens, columns] or, with prologue::norm, rms_norm(input) *
/// norm_weight. All else as in ternary_matmul.
inline constexpr kernel_interface ternary_float_interface{
    "ternary_float",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"prologue"},
      {"epilogue"},
      {"eps", field_type::f32},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"}}}};

/// Causal grouped-query attention of each token over positions 0 .. state.position + token:
/// output[token, head, :] = softmax(q k^T / sqrt(head_dim)) v. query, output f32 [tokens, heads, head_dim].
/// Positions are taken in spans of 256, which are merged in order. A workgroup does heads_together heads (x), which
/// share keys and values, of a token (y). With splits above 1 it does the span of its number (z) alone, if there is
/// one; the last of a head's workgroups to come merges what they left in `partials`, f32 [tokens, heads, splits,
/// head_dim + 4], and finds that by counters u32 [tokens, heads], which are 0 before and after. With splits 1, one
/// workgroup goes through all spans; partials and counters are then unused. scale: what scores are multiplied with, 0
/// for 1 / sqrt(head_dim). window: how many positions a token sees, itself the last, 0 for all; splits are then those
/// of a window (attention_window_spans). ring 1: position p stands in slot p % context of the cache, context being a
/// multiple of 256.
inline constexpr kernel_interface attention_interface{
    "attention",
    {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}, {"partials"}, {"counters"}}},
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
      {"page_size"}}}};

/// Bytes of `partials` and of `counters` of attention with splits above 1.
constexpr std::uint64_t attention_partial_bytes(std::uint32_t tokens, std::uint32_t heads, std::uint32_t splits,
                                                std::uint32_t head_dim) {
  return std::uint64_t{4} * tokens * heads * splits * (head_dim + 4);
}
constexpr std::uint64_t attention_counter_bytes(std::uint32_t tokens, std::uint32_t heads) {
  return std::uint64_t{4} * tokens * heads;
}

/// attention with splits 1 for passes of a few tokens: workgroup (x, y) does heads_together heads, 1 or 2 that share
/// keys and values, of a token. head_dim at most 256; workgroup_size a multiple of heads_together.
inline constexpr kernel_interface attention_few_interface{"attention_few",
                                                          {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}}},
                                                          {{{"workgroup_size"},
                                                            {"heads"},
                                                            {"kv_heads"},
                                                            {"head_dim"},
                                                            {"context"},
                                                            {"cache_element"},
                                                            {"heads_together"},
                                                            {"scale", field_type::f32},
                                                            {"window"},
                                                            {"ring"},
                                                            {"slot_words"},
                                                            {"page_size"}}}};
inline constexpr std::uint32_t attention_few_heads = 2;

/// attention with splits 1 for up to max_tokens tokens: workgroup (x, y) does head x of the attention_tile tokens from
/// (its number from the end) * attention_tile on. head_dim at most 256.
inline constexpr kernel_interface attention_chunk_interface{"attention_chunk",
                                                            {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}}},
                                                            {{{"workgroup_size"},
                                                              {"heads"},
                                                              {"kv_heads"},
                                                              {"head_dim"},
                                                              {"context"},
                                                              {"cache_element"},
                                                              {"max_tokens"},
                                                              {"scale", field_type::f32},
                                                              {"window"},
                                                              {"ring"}}}};
inline constexpr std::uint32_t attention_tile = 8;

/// attention_chunk in another arithmetic, in tiles of attention_halves_tile tokens: queries, keys, values and
/// probabilities as f16, sums in f32. The module for cooperative matrices wants workgroups of 4 subgroups of 32, and
/// head_dim a multiple of 16, beyond 128 of 32.
inline constexpr kernel_interface attention_halves_interface{"attention_halves",
                                                             {{{"query"}, {"keys"}, {"values"}, {"output"}, {"state"}}},
                                                             {{{"workgroup_size"},
                                                               {"heads"},
                                                               {"kv_heads"},
                                                               {"head_dim"},
                                                               {"context"},
                                                               {"cache_element"},
                                                               {"max_tokens"},
                                                               {"scale", field_type::f32},
                                                               {"window"},
                                                               {"ring"}}}};
constexpr std::uint32_t attention_halves_tile(std::uint32_t head_dim) { return head_dim > 128 ? 32 : 64; }

/// logits[token, row] = sum over columns of weight[row, column] * rms_norm(x)[token, column] * norm_weight[column]; the
/// language model head. input f32 [tokens, columns]; weight [rows, columns] row-major of weight_element; output f32
/// [tokens, rows]. Grid x strides over rows, grid y is the token. With keeps_firsts 1 each workgroup leaves the first
/// of its tokens in the sampler's order in `firsts`, [tokens, groups x] of {u32 key, u32 ~id}
/// (shaders/include/first_token.glsl).
inline constexpr kernel_interface dense_matmul_interface{
    "dense_matmul",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"output"}, {"state"}, {"firsts"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"weight_element"},
      {"eps", field_type::f32},
      {"keeps_firsts"},
      {"subgroup_width"}}}};

/// The head of one token in two steps, where the sampler asks for the largest logits alone (docs/kernels.md, "Screened
/// head"). head_screen: upper bounds of all logits from rows of int8 (kernels/row_codes.hpp), f32 [rows]; of each
/// workgroup the largest lower bound, lowest f32 [groups]; and the normalised activations, y f32 [columns]. columns a
/// multiple of 16. Where the sampler asks for more it leaves y alone.
inline constexpr kernel_interface head_screen_interface{
    "head_screen",
    {{{"input"}, {"norm_weight"}, {"codes"}, {"scales"}, {"bounds"}, {"y"}, {"lowest"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"eps", field_type::f32}, {"subgroup_width"}}}};

/// head_rescore: exact logits, as dense_matmul has them, in the place of the bounds of all rows that may be asked for;
/// bounds of the rest stay. lowest: [lowest_count]; firsts: as dense_matmul's, of the exact logits.
inline constexpr kernel_interface head_rescore_interface{
    "head_rescore",
    {{{"y"}, {"weight"}, {"bounds"}, {"lowest"}, {"firsts"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"lowest_count"}, {"subgroup_width"}}}};

/// y[token, row] = sum over columns of weight[row, column] * x[token, column], x being input f32 [tokens, columns] or,
/// with prologue::norm, rms_norm(input) * norm_weight. weight: groups of 4 rows of a codec (kernels/matmul_layout.hpp),
/// rows in the epilogue's order as for ternary_matmul. Dense codecs are multiplied in f32. Codes of blocks are
/// multiplied with x in 24 bits, of the scale 2^e with which the block's largest |x| is below 2^23, exactly; each
/// block's sum is then scaled and added in f32. columns: a multiple of the codec's column_step; rows: a multiple of 4,
/// or any with epilogue::store and add. rope: u64 [head_dim / 2], turns a position as a fraction of 2^64
/// (kernels/rope_turns.hpp). ring as in attention. Grid x strides over groups of rows, grid y over tiles of tile_tokens
/// tokens, 8 at most. staged 1: a workgroup prepares its tokens' x in shared memory, matmul_staged_bytes(); 0: each
/// lane prepares what it reads. Results are the same. In plans staged_where_room stands for 1 on a device that has the
/// shared memory, 0 elsewhere. Experts: with experts_used k above 0, weight holds one matrix of `rows` rows (a multiple
/// of 4) an expert, one behind the other, and row y of the grid is the product by expert y % k of token y / k, which
/// `choice` names (route). Its output is row y; its input is row y too with own_input 1, else the token's. With
/// tile_tokens above 1 `choice` is what expert_tiles left in lists of tile_tokens, and row y of the grid a tile of it:
/// the same rows, with one read of the expert's weights for all of the tile. The epilogue is store or gated. gates:
/// none, or with epilogue gated where the gates themselves go, f32 [tokens, rows / 2]. keeps_firsts 1, of one token and
/// without experts: firsts as dense_matmul's.
inline constexpr kernel_interface matmul_interface{"matmul",
                                                   {{{"input"},
                                                     {"norm_weight"},
                                                     {"weight"},
                                                     {"output"},
                                                     {"state"},
                                                     {"keys"},
                                                     {"values"},
                                                     {"rope"},
                                                     {"choice"},
                                                     {"gates"},
                                                     {"firsts"}}},
                                                   {{{"workgroup_size"},
                                                     {"columns"},
                                                     {"rows"},
                                                     {"codec"},
                                                     {"prologue"},
                                                     {"epilogue"},
                                                     {"eps", field_type::f32},
                                                     {"tile_tokens"},
                                                     {"staged"},
                                                     {"head_dim"},
                                                     {"q_size"},
                                                     {"kv_size"},
                                                     {"context"},
                                                     {"ring"},
                                                     {"cache_element"},
                                                     {"subgroup_width"},
                                                     {"experts_used"},
                                                     {"own_input"},
                                                     {"slot_words"},
                                                     {"page_size"},
                                                     {"keeps_firsts"}}}};

/// What matmul_few multiplies: x as for matmul with a codec of blocks, u32 [tokens, 7, width / 32, 4]: of each block
/// bits 16 .. 23 of its 32 columns, four a word, then bits 8 .. 15, then 0 .. 7, two quads each, then the block's
/// scale, f32, the sum of the upper bits, that of the 16 below, and a word of nothing. width: a multiple of 32. With
/// prologue::norm one workgroup a token (y), else any number of them (x). `tiled`: of each eight tokens u32 [width /
/// 32, 3, 8, 8], planes as above, of which the lower two are 127 less bytes without a sign; then f32 [width / 32, 2,
/// 8], scales, and the sum of the integers. In a plan `tiled` says that the product may want it so, and the device
/// decides (runtime::kernel_set). rows_per_token: of the input and the output, which then count as tokens, what experts
/// gave.
inline constexpr kernel_interface fixed_interface{"fixed",
                                                  {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
                                                  {{{"workgroup_size"},
                                                    {"width"},
                                                    {"prologue"},
                                                    {"eps", field_type::f32},
                                                    {"subgroup_width"},
                                                    {"rows_per_token"},
                                                    {"tiled"}}}};
/// Words of `fixed` for a token.
constexpr std::uint32_t fixed_words(std::uint32_t width) { return width / 32 * 28; }

/// matmul, with its bits, of what `fixed` left, for codecs of blocks. rows: a multiple of 4. A workgroup has tile_rows
/// rows, 4 a subgroup, and grid x strides over the rows; y: tiles of up to 8 tokens. With matrices (few_matrix_tile,
/// tiled_few_tile): one workgroup for each tile of 16 to 64 rows and 8, 16 or 32 tokens. Experts: with experts_used
/// above 0 as matmul's with tile_tokens above 1, tiles being what expert_tiles left in lists of list_tokens rows, of
/// which every workgroup takes tile_tokens: list_tokens / tile_tokens workgroups (y) a list.
inline constexpr kernel_interface matmul_few_interface{
    "matmul_few",
    {{{"input"}, {"weight"}, {"output"}, {"state"}, {"keys"}, {"values"}, {"rope"}, {"tiles"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"codec"},
      {"epilogue"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"},
      {"tile_rows"},
      {"experts_used"},
      {"own_input"},
      {"list_tokens"},
      {"ring"}}}};

/// What a workgroup of matmul_few or ternary_few with matrices has: rows, tokens and subgroups of 32, eight of which
/// share 16 to 64 rows.
struct few_tile {
  std::uint32_t rows = 0, tokens = 0, subgroups = 0;
};
/// Whether a product of so many tokens is faster where x is tiled: up to 16, of codecs whose blocks have one factor.
constexpr bool wants_tiles(codec type, std::uint32_t tokens) { return type != codec::q6_k && tokens <= 16; }
/// Of a product of x that is tiled. Each subgroup has all rows and 32 / subgroups virtual lanes.
constexpr few_tile tiled_few_tile(std::uint32_t tokens) { return {32, tokens <= 8 ? 8u : 16u, 8}; }
/// Tokens of a tile of a pass over a few: what chunks have more of.
inline constexpr std::uint32_t most_few_tokens = 32;
/// Beside bits of kernels (plan::kernels_used): matmul_chunk of a few tokens too.
inline constexpr std::uint64_t few_chunk_bit = std::uint64_t{1} << 61;
/// Of matmul_chunk over a few tokens, whole tiles of eight, by matrices. A subgroup has 32 rows; those that have the
/// same share the columns, as many whatever the tokens are, so that sums have one order.
constexpr few_tile few_chunk_tile(std::uint32_t rows, std::uint32_t tokens) {
  return {rows < 8192 ? 32u : 64u, tokens % 32 == 0 ? 32u : tokens % 16 == 0 ? 16u : 8u, rows <= 4096 ? 16u : 8u};
}
/// In which order `halves` leaves x: a token's columns as they are; of a few tokens in tiles of eight; as fragments of
/// 16 columns want them where an invocation has an octet of every 32 columns, or a block of every 128
/// (fragment_place).
enum class halves_order : std::uint32_t { rows, tiles, octets, blocks };
constexpr halves_order fragment_order(codec type) {
  return type == codec::f16 || type == codec::f32 || type == codec::bf16 ? halves_order::octets : halves_order::blocks;
}
/// Place of what stands at `place` of a token's row, 32-bit pairs of columns of each four in the order 0, 2 and 1, 3,
/// in these orders: [fragments, 2 pairs of an invocation's four columns, 4 invocations, 2 columns].
constexpr std::size_t fragment_place(halves_order order, std::size_t place) {
  const std::size_t quad = place / 4;
  const std::size_t fragment = order == halves_order::octets ? quad / 8 * 2 + quad % 2 : quad / 32 * 8 + quad % 8,
                    invocation = order == halves_order::octets ? quad / 2 % 4 : quad / 8 % 4;
  return fragment * 16 + place % 4 / 2 * 8 + invocation * 2 + place % 2;
}
/// Rows of a matrix that the product by fragments is for, at least: those of a tile.
inline constexpr std::uint32_t least_fragment_rows = 128;
constexpr bool takes_fragments(codec type, std::uint32_t rows, std::uint32_t columns) {
  return rows >= least_fragment_rows && columns % (fragment_order(type) == halves_order::octets ? 64 : 128) == 0;
}
/// Of matmul_chunk by fragments, over so many tokens: what was fastest on an H100 of 132 processors
/// (docs/lab/prompt_products.md). Every element is one sum whose order hangs on the matrix alone.
constexpr few_tile fragment_tile(codec type, std::uint32_t rows, std::uint32_t tokens) {
  const auto tiles = [&](std::uint64_t of_rows, std::uint64_t of_tokens) {
    return (rows + of_rows - 1) / of_rows * ((tokens + of_tokens - 1) / of_tokens);
  };
  constexpr std::uint64_t processors = 132;
  const bool octets = fragment_order(type) == halves_order::octets;
  if (octets && rows >= 256 && 3 * tiles(256, 128) >= 2 * processors) return {256, 128, 8};
  if (!octets && tiles(128, 128) >= 2 * processors) return {128, 128, 4};
  if (rows >= 256 && tiles(256, 64) <= processors) return {256, 64, 8};
  return {128, 64, 4};
}
/// Of any other product over so many tokens; none where dot products are as fast.
constexpr few_tile few_matrix_tile(kernel which, std::uint32_t rows, std::uint32_t tokens) {
  if (tokens <= 8) return {};
  if (which == kernel::ternary_few) return {rows < 8192 ? 16u : 32u, 32, 8};
  if (tokens <= 16) return {32, 16, 8};
  return {32, 32, 16};
}

inline constexpr std::uint32_t staged_where_room = 2;

/// Shared memory for the x of a tile of tokens.
constexpr std::uint64_t matmul_staged_bytes(codec type, std::uint32_t columns, std::uint32_t tile_tokens) {
  const bool dense = type == codec::f16 || type == codec::f32 || type == codec::bf16;
  return std::uint64_t{tile_tokens} * (dense ? std::uint64_t{columns + 7} / 8 * 32 : std::uint64_t{columns} / 32 * 104);
}

/// Shared memory that a device must have for the modules that rely on more than every device has.
inline constexpr std::uint32_t matrix_shared_memory_bytes = 49152;

/// What matmul_chunk multiplies: x as for matmul, f16 [tokens, width] of which four neighbouring columns stand in the
/// order 0, 2, 1, 3, times a power of two that brings the token's largest |x| to 2^14 .. 2^15; factors f32 [tokens]
/// undo that, NaN where an x is not finite. One workgroup a token (y). `tiled`: halves_order; tiles: of each eight
/// tokens [width / 8, 8, 8], eight columns of a token behind those of the one before. In a plan it says that the
/// product may want it so, and the device decides (runtime::kernel_set). width: of tiles a multiple of 8, of fragments
/// of 64.
inline constexpr kernel_interface halves_interface{
    "halves",
    {{{"input"}, {"norm_weight"}, {"output"}, {"factors"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"prologue"}, {"eps", field_type::f32}, {"subgroup_width"}, {"tiled"}}}};

/// matmul of what halves left, for up to max_tokens tokens, in another arithmetic: weights are rounded to f16, products
/// summed in f32 (docs/kernels.md). Workgroup (x, y) has tile_tokens tokens and tile_rows rows. columns: a multiple of
/// chunk_columns; rows: of 4. The module for cooperative matrices wants subgroups of 32, an even number of them,
/// tile_tokens of 32, 64, 96 or 128, and of tile_rows 16, 32, 48 or 64 for every two subgroups. That for passes over a
/// few tokens (few_chunk_tile) reads tiled halves; the order of its sums does not hang on how many tokens there are.
/// That by fragments (fragment_tile) wants subgroups of 32, least_fragment_rows and halves in fragment_order of the
/// codec; tile_rows of 32 for each subgroup or for each two, and as many tokens of 16 for each.
inline constexpr kernel_interface matmul_chunk_interface{
    "matmul_chunk",
    {{{"input"}, {"factors"}, {"weight"}, {"output"}, {"state"}, {"keys"}, {"values"}, {"rope"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"codec"},
      {"epilogue"},
      {"tile_rows"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"ring"},
      {"cache_element"},
      {"max_tokens"},
      {"slot_words"},
      {"page_size"}}}};

/// What stands between a projection of stacked q, k and v and attention where q and k are normalised: heads of q and k
/// become rms_norm(head) * q_norm or k_norm and are rotated; q goes to output f32 [tokens, q_heads, head_dim], k and v
/// to the cache. input f32 [tokens, (heads + 2 * kv_heads) * head_dim]: heads of q, then k, then v. rope and ring as in
/// matmul. One workgroup a head (x) and token (y).
inline constexpr kernel_interface head_norm_interface{
    "head_norm",
    {{{"input"}, {"q_norm"}, {"k_norm"}, {"output"}, {"state"}, {"keys"}, {"values"}, {"rope"}}},
    {{{"workgroup_size"},
      {"heads"},
      {"kv_heads"},
      {"head_dim"},
      {"eps", field_type::f32},
      {"context"},
      {"ring"},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"}}}};

/// output[token, :] += rms_norm(input[token, :]) * norm_weight, f32 [tokens, width]. One workgroup a token (y). With
/// parts 2, 4 or 8, of one token: the input is the sum of so many vectors (walk_sum's splits), one behind the other,
/// added by halves, lower + higher.
inline constexpr kernel_interface norm_add_interface{
    "norm_add",
    {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}, {"parts"}}}};
/// output[token, :] = rms_norm(input[token, :]) * norm_weight, f32 [tokens, width]. One workgroup a token (y).
inline constexpr kernel_interface rms_norm_interface{
    "rms_norm",
    {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}}}};

/// The gated half of an FFN for one token, feature by feature: x is quantised as by ternary_matmul's prologue
/// norm_quantize; gate = gate_f . x, and where that is above 0, output[f] = gate^2 * (up_f . x), else 0 without a read
/// of up_f. The bits of ternary_matmul with epilogue gated, but 0 is +0. input f32 [columns]; weight: gate's tiles in
/// plain order, as for ternary_matmul; up: feature rows (kernels/feature_layout.hpp) [rows, columns]; scales f32 of
/// gate and up; output f32 [rows]. rows: a multiple of 4, columns of 16. Grid x strides over groups of 4 features.
/// gates: none, or where the gates of all features go, f32 [rows].
/// A workgroup has `features` features, a multiple of 4.
/// totals: what walk_down wants to know, words: the sum of squares of every four values, f32 [rows / 4]; the greatest
/// |value * value_norm| of each workgroup, f32 [workgroups]; and `sum_words` zeros, where walk_down's workgroups add
/// up.
inline constexpr kernel_interface walk_gate_up_interface{"walk_gate_up",
                                                         {{{"input"},
                                                           {"norm_weight"},
                                                           {"weight"},
                                                           {"up"},
                                                           {"scales"},
                                                           {"output"},
                                                           {"state"},
                                                           {"gates"},
                                                           {"value_norm"},
                                                           {"totals"}}},
                                                         {{{"workgroup_size"},
                                                           {"columns"},
                                                           {"rows"},
                                                           {"eps", field_type::f32},
                                                           {"features"},
                                                           {"sum_words"},
                                                           {"subgroup_width"}}}};
/// Words of totals.
constexpr std::uint64_t walk_total_words(std::uint32_t features, std::uint32_t shares, std::uint32_t sum_words) {
  return std::uint64_t{features / 4} + shares + sum_words;
}

/// The product behind it for one token: h is quantised as by ternary_matmul's prologue norm_quantize, and output[row]
/// += the product's row, of the features alone whose int8 value is not 0. The bits of ternary_matmul with epilogue add.
/// input f32 [columns], a value a feature; weight: feature rows [columns, rows], what a feature adds to the rows;
/// scales f32 [1]; output f32 [rows]. columns and rows: multiples of 16. A workgroup does `words` words of every
/// feature row, 16 rows each (x), of one of `splits` parts of the features (y); the last to come of a stripe adds to
/// the output. On CPU drivers words is even. values: none, or where the int8 values times their step go, f32 [columns].
/// totals: as walk_gate_up's `shares` workgroups left it.
inline constexpr kernel_interface walk_down_interface{
    "walk_down",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"values"}, {"totals"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"eps", field_type::f32},
      {"words"},
      {"splits"},
      {"shares"},
      {"subgroup_width"}}}};
/// Words of totals that workgroups of so many stripes add up in: of each row, and two of each stripe.
constexpr std::uint32_t walk_sum_words(std::uint32_t stripes, std::uint32_t words) {
  return stripes * (16 * words + 2);
}

/// Which features a sparse walk takes: the `count` of `columns` gate scores, f32, with the largest size, of equal ones
/// the lowest. choice u32 [count, 2]: feature and its score's bits, features rising. A score that is NaN is largest.
/// One workgroup, one token.
inline constexpr kernel_interface walk_select_interface{
    "walk_select", {{{"input"}, {"choice"}, {"state"}}}, {{{"workgroup_size"}, {"columns"}, {"count"}}}};

/// output[i] = activation(score, up_f . x) of the i-th feature of walk_select's choice, x being rms_norm(input) *
/// norm_weight: one token. input f32 [columns]; weight: up vectors [rows, columns], row-major of weight_element; output
/// f32 [count]. columns: a multiple of 8. Grid x strides over features.
inline constexpr kernel_interface walk_up_interface{
    "walk_up",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"choice"}, {"output"}, {"state"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"count"},
      {"weight_element"},
      {"eps", field_type::f32},
      {"subgroup_width"}}}};

/// What features write, one token: y[row] = sum over i of input[i] * weight[f, row], f the i-th feature of
/// walk_select's choice or, with listed 0, i itself. epilogue: store or add. weight: down vectors [columns, rows],
/// row-major of weight_element; input f32 [count]; output f32 [rows]. rows: a multiple of 4. Slot s of walk_sum_slots
/// takes i = s, s + walk_sum_slots, ..., then the slots are added by halves, lower + higher. A workgroup does `stripe`
/// rows (x), a multiple of 8, and the slots s with s % splits = y; with splits over 1 each leaves the sum of its own,
/// output f32 [splits, rows], and norm_add adds those. f16 and bf16: rows a multiple of 8.
inline constexpr kernel_interface walk_sum_interface{"walk_sum",
                                                     {{{"input"}, {"choice"}, {"weight"}, {"output"}, {"state"}}},
                                                     {{{"workgroup_size"},
                                                       {"columns"},
                                                       {"rows"},
                                                       {"count"},
                                                       {"weight_element"},
                                                       {"listed"},
                                                       {"epilogue"},
                                                       {"stripe"},
                                                       {"splits"}}}};
inline constexpr std::uint32_t walk_sum_slots = 128;

/// What the FFNs' features added for one token, of all `layers` at once: the contribution of a layer's i-th value is
/// values[i] * norms[feature], and its feature i or, with listed 1, that of the layer's choice (walk_select). In trace,
/// u32 [slots, layers, trace_words(count)], slot position % slots gets the position, the token, the root of the sum of
/// all squared contributions, then {feature, gate score's bits, contribution's bits} of the `count` contributions of
/// the largest size, features rising, of equal ones the lowest. values f32 [columns] and gates f32 [columns] of layer l
/// begin at element l * value_stride, choice u32 [columns, 2] at l * choice_stride; norms f32 [layers, features]: of
/// the down vectors. count is at most columns. A workgroup has a layer (x).
inline constexpr kernel_interface walk_trace_interface{
    "walk_trace",
    {{{"values"}, {"gates"}, {"choice"}, {"norms"}, {"trace"}, {"state"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"features"},
      {"layers"},
      {"count"},
      {"slots"},
      {"value_stride"},
      {"choice_stride"},
      {"listed"}}}};
/// Words of a layer of a traced token.
constexpr std::uint32_t trace_words(std::uint32_t count) { return 3 + 3 * count; }
/// Features of a layer that a trace has at most.
inline constexpr std::uint32_t most_traced = 64;

/// Shares of walk_down's list, each with sums of its own in shared memory.
inline constexpr std::uint32_t walk_down_lists = 4;

/// Moves octets of positions state.move_first .. move_end of slot state.move_slot from a layer's keys and values, as
/// one session has them in `positions` positions or a ring of so many, to the pool's `context` positions (state.move
/// move_to_pool), or back. Of what a ring cannot hold at once the last. Grid x strides over octets, y is the head of
/// keys and values.
inline constexpr kernel_interface pages_interface{"pages",
                                                  {{{"keys"}, {"values"}, {"pool_keys"}, {"pool_values"}, {"state"}}},
                                                  {{{"workgroup_size"},
                                                    {"head_dim"},
                                                    {"positions"},
                                                    {"context"},
                                                    {"cache_element"},
                                                    {"slot_words"},
                                                    {"page_size"},
                                                    {"slots"}}}};

/// The experts_used = k largest of each token's logits [tokens, experts], of equal ones the lowest first: choice u32
/// [tokens, 2 k] has their numbers, then the bits of exp(logit - largest) / sum of these, in that order. One workgroup
/// a token (y).
inline constexpr kernel_interface route_interface{
    "route", {{{"logits"}, {"choice"}, {"state"}}}, {{{"workgroup_size"}, {"experts"}, {"experts_used"}}}};

/// The pairs of token and choice that each expert has of a pass, in lists of list_tokens: output u32 [tiles, 2 +
/// list_tokens] has of a list its expert, how many pairs it holds, and which, rising, as token * experts_used + j.
/// Lists of an expert are neighbours, experts rise, and lists that nothing is left for hold none. tiles:
/// expert_tile_count(max_tokens, ...). The same whatever the order in which workgroups come. One workgroup an expert
/// (x).
inline constexpr kernel_interface expert_tiles_interface{
    "expert_tiles",
    {{{"choice"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"experts"}, {"experts_used"}, {"list_tokens"}, {"tiles"}, {"max_tokens"}}}};
/// Lists of expert_tiles that so many tokens can take at most: the last list of every expert may hold a single pair.
constexpr std::uint32_t expert_tile_count(std::uint32_t tokens, std::uint32_t experts, std::uint32_t experts_used,
                                          std::uint32_t list_tokens) {
  const std::uint64_t pairs = std::uint64_t{tokens} * experts_used, with_any = pairs < experts ? pairs : experts;
  return static_cast<std::uint32_t>((pairs + with_any * (list_tokens - 1)) / list_tokens);
}

/// output[token, :] += sum over j of weight j of choice[token] times input[token * k + j, :], f32 [tokens, width];
/// width a multiple of 4. One workgroup a token (y).
inline constexpr kernel_interface expert_sum_interface{"expert_sum",
                                                       {{{"input"}, {"choice"}, {"output"}, {"state"}}},
                                                       {{{"workgroup_size"}, {"width"}, {"experts_used"}}}};

/// dense_matmul of what rms_norm left, with one read of the weights for every tile of up to 8 tokens. The grid strides
/// over groups of dense_few_rows rows, so many times y as there are tiles; all tokens of tiles can be read.
inline constexpr kernel_interface dense_few_interface{
    "dense_few",
    {{{"input"}, {"weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"tile_tokens"}, {"subgroup_width"}}}};
inline constexpr std::uint32_t dense_few_rows = 4;

/// dense_few of one token for CPU drivers: workgroup (x, y) has the rows_together rows from (x + y * groups x) *
/// rows_together on; columns a multiple of 32; at most 2^20 workgroups. dense_rows_most bounds its code, which has no
/// loops.
inline constexpr kernel_interface dense_rows_interface{
    "dense_rows",
    {{{"input"}, {"weight"}, {"output"}, {"state"}, {"binary", field_type::binary}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"rows_together"}, {"subgroup_width"}}}};
inline constexpr std::uint32_t dense_rows_most = 8, dense_rows_words = 2048;
constexpr bool has_dense_rows(codec type, std::uint32_t columns) {
  return columns % 32 == 0 && columns / (type == codec::f32 ? 1 : 2) <= dense_rows_words;
}
/// Rows of a workgroup: enough to be worth starting one, few enough to compile.
constexpr std::uint32_t dense_rows_together(std::uint32_t columns) {
  return columns >= dense_rows_words                     ? 1
         : columns <= dense_rows_words / dense_rows_most ? dense_rows_most
                                                         : dense_rows_words / columns;
}

/// Picks the next token from logits [vocab_size] by state's sampling parameters (kernels/state.hpp), in this order:
/// repetition penalty over the last repeat_last_n of state.history, top-k, top-p, min-p, temperature, draw; temperature
/// 0 is greedy, ties go to the lowest id. The draw is a function of seed and position alone. With next = position +
/// count, writes the token to state.tokens[0], state.history[next] (inside the context) and ring[generated %
/// ring_size], then sets position to next and count to 1, and adds 1 to generated. Workgroups (x) sort every `slice`
/// (sample_slice) of the vocabulary into scratch; the last to come, found by counters u32[draws], which are 0 before
/// and after, picks; one workgroup alone needs none. firsts: [first_count] of the head's workgroups, where first_count
/// is not 0: a greedy choice without a penalty is made of them alone. form: sample_form; the others than `any` are
/// compiled in a fraction of the time. With draws above 1, workgroups y pick what follows token y of the pass, from
/// logits row y, as if the tokens behind it were not there, and only write it to drawn u32[draws]; rows of scratch are
/// as far apart as sample_scratch_bytes says. In a batch workgroups y draw for slot y, whose ring is the y-th of
/// ring_size words; where the next position reaches the slot's limit count becomes 0. Of a row that draws nothing
/// sample_greedy_workers workgroups do all, the others leave.
inline constexpr kernel_interface sample_interface{
    "sample",
    {{{"logits"}, {"state"}, {"ring"}, {"scratch"}, {"drawn"}, {"firsts"}, {"counters"}}},
    {{{"workgroup_size"},
      {"vocab_size"},
      {"ring_size"},
      {"context"},
      {"max_tokens"},
      {"subgroup_width"},
      {"draws"},
      {"first_count"},
      {"slot_words"},
      {"slice"},
      {"form"}}}};
/// The token is the same by each that may pick it.
enum class sample_form : std::uint32_t {
  any,      ///< whatever state asks for
  greedy,   ///< where no temperature asks for a draw
  interim,  ///< whatever state asks for by one workgroup, several times slower
};

/// Ends a pass whose tokens but the first are drafts: takes drawn[0], then drawn[i] as long as token i of the pass is
/// drawn[i - 1]. Those taken go where sample puts its token, one after the other; position and generated rise by as
/// many, count becomes 1, tokens[0] the last of them. ring[ring_size] becomes their number. One invocation.
inline constexpr kernel_interface accept_interface{
    "accept",
    {{{"drawn"}, {"state"}, {"ring"}}},
    {{{"workgroup_size"}, {"ring_size"}, {"context"}, {"max_tokens"}, {"draws"}}}};

/// Bytes of the ring: tokens, and how many of them the last accept took.
constexpr std::uint64_t ring_bytes(std::uint32_t ring_size) {
  return std::uint64_t{4} * (std::uint64_t{ring_size} + 1);
}

/// Reads input once, 8 x `rounds` blocks of 16 bytes for each invocation of the grid: the device's streaming rate, the
/// yardstick of benchmarks. In no plan.
inline constexpr kernel_interface stream_read_interface{
    "stream_read", {{{"input"}, {"output"}, {"rounds", field_type::u32}}}, {{{"workgroup_size"}}}};

/// 64 x `rounds` multiplications and additions in each invocation, memory left alone: what benchmarks warm a device by
/// and see its clock. In no plan.
inline constexpr kernel_interface calibrate_interface{
    "calibrate", {{{"output"}, {"rounds", field_type::u32}}}, {{{"workgroup_size"}}}};

/// Logits that sample goes through at most: so many integer weights of 44 bits are a sum of 63.
inline constexpr std::uint32_t largest_vocabulary = 1u << 19;

/// Tokens that a workgroup of sample sorts: a power of two up to 4,096, from 256 on until there are at most so many
/// lists.
/// @param most_lists at most 136: what is known of each list has room in shared memory
constexpr std::uint32_t sample_slice(std::uint32_t vocab_size, std::uint32_t most_lists = 136) {
  std::uint32_t out = 256;
  while ((vocab_size + out - 1) / out > most_lists && out < 4096) out *= 2;
  return out;
}
/// In batches of at least so many slots there are rows enough to keep a device busy, and fewer, longer lists are less
/// work in all (docs/performance.md).
inline constexpr std::uint32_t sample_greedy_workers = 16, sample_many_rows = 8, sample_lists_of_many_rows = 40;
constexpr std::uint32_t sample_lists(std::uint32_t vocab_size, std::uint32_t slice) {
  return (vocab_size + slice - 1) / slice;
}
constexpr std::uint32_t sample_lists(std::uint32_t vocab_size) {
  return sample_lists(vocab_size, sample_slice(vocab_size));
}
/// Bytes that `scratch` of sample takes for a draw: sorted keys, two sums of 64 bits for each eight of them, and 52
/// words for each list.
constexpr std::uint64_t sample_scratch_bytes(std::uint32_t vocab_size, std::uint32_t slice) {
  return std::uint64_t{sample_lists(vocab_size, slice)} * (6 * slice + 208);
}
constexpr std::uint64_t sample_scratch_bytes(std::uint32_t vocab_size) {
  return sample_scratch_bytes(vocab_size, sample_slice(vocab_size));
}
constexpr std::uint64_t sample_counter_bytes(std::uint32_t draws) { return std::uint64_t{4} * draws; }

/// Subgroups that sample needs at least for a vocabulary: in llvmpipe up to Mesa 24 all loops of an invocation end
/// after 65,535 turns (docs/kernels.md). No more than 16, which fit into a workgroup at any width and do for the
/// largest vocabularies there are.
constexpr std::uint32_t least_sample_subgroups(std::uint32_t vocab_size) {
  const std::uint32_t wanted = (vocab_size + 8191) / 8192;
  return wanted > 16 ? 16 : wanted;
}

inline constexpr const kernel_interface* catalogue[kernel_count] = {&embed_interface,
                                                                    &norm_quantize_interface,
                                                                    &ternary_matmul_interface,
                                                                    &ternary_few_interface,
                                                                    &ternary_chunk_interface,
                                                                    &ternary_float_interface,
                                                                    &attention_interface,
                                                                    &attention_chunk_interface,
                                                                    &dense_matmul_interface,
                                                                    &dense_few_interface,
                                                                    &head_screen_interface,
                                                                    &head_rescore_interface,
                                                                    &sample_interface,
                                                                    &accept_interface,
                                                                    &layers_interface,
                                                                    &matmul_interface,
                                                                    &head_norm_interface,
                                                                    &norm_add_interface,
                                                                    &route_interface,
                                                                    &expert_sum_interface,
                                                                    &halves_interface,
                                                                    &matmul_chunk_interface,
                                                                    &attention_halves_interface,
                                                                    &walk_gate_up_interface,
                                                                    &walk_down_interface,
                                                                    &pages_interface,
                                                                    &walk_select_interface,
                                                                    &walk_up_interface,
                                                                    &walk_sum_interface,
                                                                    &fixed_interface,
                                                                    &matmul_few_interface,
                                                                    &layers_coded_interface,
                                                                    &walk_trace_interface,
                                                                    &rms_norm_interface,
                                                                    &attention_few_interface,
                                                                    &expert_tiles_interface,
                                                                    &dense_rows_interface,
                                                                    &ternary_rows_interface,
                                                                    &layers_few_interface,
                                                                    &layers_ternary_few_interface,
                                                                    &layers_many_interface,
                                                                    &layers_few_normed_interface,
                                                                    &layers_many_normed_interface};

constexpr const kernel_interface& interface_of(kernel which) { return *catalogue[static_cast<std::size_t>(which)]; }

}  // namespace intaglio::kernels
