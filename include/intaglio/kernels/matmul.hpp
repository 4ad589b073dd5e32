// SPDX-License-Identifier: MIT
// The kernel matmul: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

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

inline constexpr std::uint32_t staged_where_room = 2;

/// Shared memory for the x of a tile of tokens.
constexpr std::uint64_t matmul_staged_bytes(codec type, std::uint32_t columns, std::uint32_t tile_tokens) {
  const bool dense = type == codec::f16 || type == codec::f32 || type == codec::bf16;
  return std::uint64_t{tile_tokens} * (dense ? std::uint64_t{columns + 7} / 8 * 32 : std::uint64_t{columns} / 32 * 104);
}

struct matmul_kernel {
  static constexpr kernel id = kernel::matmul;
  static constexpr const kernel_interface& face = matmul_interface;
  static constexpr bool any_subgroups = true;  ///< can do its work
  static constexpr candidate candidates[] = {{variant::matmul_cpu, demand::wide_loads},
                                             {variant::matmul, demand::integer_dot},
                                             {variant::matmul_portable, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec codec{};
    kernels::prologue prologue{};
    kernels::epilogue epilogue{};
    float eps{};
    std::uint32_t tile_tokens{};
    std::uint32_t staged{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    std::uint32_t ring{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t experts_used{};
    std::uint32_t own_input{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t keeps_firsts{};
  };
  static constexpr rounding rounds(const constants& c) {
    return c.epilogue == kernels::epilogue::rope_cache ? rounding::cache : rounding::none;
  }
  static constexpr bool shares_rows(const constants& c) { return c.tile_tokens == 1 && c.experts_used == 0; }

  /// Whether it takes tokens by lists of expert_tiles.
  static constexpr bool lists_tokens(const constants& c) { return c.experts_used != 0 && c.tile_tokens > 1; }
  /// Whether tiles of 8 tokens would keep numbers in memory: on GPUs that have no module with matrices for a few
  /// tokens.
  static constexpr bool narrows(const device_class& device) {
    return !device.is_cpu && !device.offers().has(demand::narrow_f16);
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    constexpr std::uint64_t rest = 2048;  // a norm's sums
    if (c.staged == staged_where_room || (c.staged != 0 && device.shared_memory_bytes < usual_shared_memory_bytes))
      c.staged = matmul_staged_bytes(c.codec, c.columns, c.tile_tokens) + rest <= device.shared_memory_bytes ? 1 : 0;
    if (c.tile_tokens == 8 && c.experts_used == 0 && c.codec <= codec::bf16 && narrows(device)) {
      c.tile_tokens = 4;  // sums of 8 tokens take 256 registers, those of x not counted
      of.groups[1] *= 2;
    }
    const std::uint32_t most = pass.rows * c.experts_used;
    if (!lists_tokens(c)) of.groups[1] = pass.share(of.groups[1]);
    else if (pass.rows != 0 && most < of.groups[1]) of.groups[1] = most;
    return first_candidate<matmul_kernel>(device.offers());
  }
};

}  // namespace intaglio::kernels
