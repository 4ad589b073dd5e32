// SPDX-License-Identifier: MIT
// The kernel matmul: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The product of coded weights: y[token, row] = sum over columns of weight[row, column] * x[token, column]. x is the
/// input f32 [tokens, columns] or, with prologue::norm, rms_norm(input) * norm_weight. weight: groups of 4 rows of a
/// codec (kernels/matmul_layout.hpp), with rows in the epilogue's order as for ternary_matmul. columns: a multiple of
/// the codec's column_step; rows: a multiple of 4, or any number with epilogue::store and add.
/// Dense codecs are multiplied in f32. Codes of blocks are multiplied exactly with x as 24-bit integers of scale 2^e,
/// with e such that the block's largest |x| is below 2^23. Each block's sum is then scaled and added in f32.
/// rope: u64 [head_dim / 2], the rotation for one position as a fraction of a full turn in units of 2^-64
/// (kernels/rope_turns.hpp). ring: as in attention. Grid x strides over groups of rows, grid y over tiles of
/// tile_tokens tokens, at most 8.
/// staged 1: a workgroup prepares its tokens' x in shared memory of matmul_staged_bytes(); 0: each lane prepares the x
/// that it reads. Results are the same. In plans staged_where_room becomes 1 on a device that has the shared memory,
/// else 0.
/// Experts: with experts_used k above 0, weight holds one matrix of `rows` rows (a multiple of 4) for each expert, one
/// after the other. Row y of the grid is the product by expert y % k of token y / k, which `choice` names (route). Its
/// output is row y. Its input is row y with own_input 1, else the token's row. With tile_tokens above 1, `choice` has
/// the lists of expert_tiles with tile_tokens tokens, and row y of the grid is one list: the same rows, with one read
/// of the expert's weights for the whole list. The epilogue is store or gated.
/// gates: none, or with epilogue gated the memory for the gates themselves, f32 [tokens, rows / 2]. keeps_firsts 1, for
/// one token without experts: firsts as in dense_matmul.
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

/// A value of `staged` in plans: x is staged on devices that have the shared memory.
inline constexpr std::uint32_t staged_where_room = 2;

/// Bytes of shared memory for the x of a tile of tokens.
constexpr std::uint64_t matmul_staged_bytes(codec type, std::uint32_t columns, std::uint32_t tile_tokens) {
  const bool dense = type == codec::f16 || type == codec::f32 || type == codec::bf16;
  return std::uint64_t{tile_tokens} * (dense ? std::uint64_t{columns + 7} / 8 * 32 : std::uint64_t{columns} / 32 * 104);
}

/// Descriptor of the kernel matmul, which multiplies by coded weights, for one token or a few.
struct matmul_kernel {
  static constexpr kernel id = kernel::matmul;
  static constexpr const kernel_interface& face = matmul_interface;
  static constexpr bool any_subgroups = true;  ///< any number of subgroups can do its work
  static constexpr candidate candidates[] = {{variant::matmul_cpu, demand::wide_loads},
                                             {variant::matmul, demand::integer_dot},
                                             {variant::matmul_portable, {}}};
  template <class T>
  struct push {
    T input, norm_weight, weight, output, state, keys, values, rope, choice, gates, firsts;
  };
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

  /// Whether it takes tokens from lists of expert_tiles.
  static constexpr bool lists_tokens(const constants& c) { return c.experts_used != 0 && c.tile_tokens > 1; }
  /// Whether tiles of 8 tokens would spill registers to memory: on GPUs without a module with matrices for small
  /// batches.
  static constexpr bool narrows(const device_class& device) {
    return !device.is_cpu && !device.offers().has(demand::narrow_f16);
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    constexpr std::uint64_t rest = 2048;  // a norm's sums
    if (c.staged == staged_where_room || (c.staged != 0 && device.shared_memory_bytes < usual_shared_memory_bytes))
      c.staged = matmul_staged_bytes(c.codec, c.columns, c.tile_tokens) + rest <= device.shared_memory_bytes ? 1 : 0;
    if (c.tile_tokens == 8 && c.experts_used == 0 && c.codec <= codec::bf16 && narrows(device)) {
      c.tile_tokens = 4;  // sums of 8 tokens take 256 registers, without those of x
      of.groups[1] *= 2;
    }
    const std::uint32_t most = pass.rows * c.experts_used;
    if (!lists_tokens(c)) of.groups[1] = pass.share(of.groups[1]);
    else if (pass.rows != 0 && most < of.groups[1]) of.groups[1] = most;
    return first_candidate<matmul_kernel>(device.offers());
  }
};

}  // namespace intaglio::kernels
