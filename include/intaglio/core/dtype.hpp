// SPDX-License-Identifier: MIT
// Element types and codecs: name, block length and block bytes of each. Ids and layouts as in ggml (ggml.h,
// ggml-common.h) and, for I2_S, microsoft/BitNet's fork.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace intaglio {

/// Type of a tensor's elements: a number type or a codec of blocks.
enum class dtype : std::uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q4_k,
  q6_k,
  tq1_0,
  tq2_0,
  i2_s,
  bcml1,
  i8,
  u8,
  i16,
  i32,
  u32,
  i64,
  f64,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q5_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4,
  q1_0,
  q2_0,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq1_s,
  iq1_m
};

/// Facts of a dtype. A block of `elements` neighbours of one row takes `bytes`. I2_S keeps one scale of 32 bytes after
/// the whole tensor; BCML1 has its rows in panels of 64 (io/codec_bcml1.hpp).
struct dtype_info {
  dtype type;                    ///< the type of this row
  std::string_view name;         ///< as the tools print and accept it
  std::uint32_t block_elements;  ///< neighbours of one row in a block
  std::uint32_t block_bytes;     ///< bytes of a block
  std::int32_t ggml_type;        ///< id in GGUF tensor infos, -1 where GGUF has none
};

/// The id of BCML1 in GGUF files of this library: the text "BCM1", far from any id of ggml. GGUF itself has no BCML1,
/// so other readers refuse the file.
inline constexpr std::int32_t bcml1_ggml_type = 0x314D4342;

/// Facts of all types, indexed by dtype.
inline constexpr dtype_info dtype_table[] = {
    {dtype::f32, "f32", 1, 4, 0},
    {dtype::f16, "f16", 1, 2, 1},
    {dtype::bf16, "bf16", 1, 2, 30},
    {dtype::q8_0, "q8_0", 32, 34, 8},
    {dtype::q4_0, "q4_0", 32, 18, 2},
    {dtype::q4_1, "q4_1", 32, 20, 3},
    {dtype::q4_k, "q4_k", 256, 144, 12},
    {dtype::q6_k, "q6_k", 256, 210, 14},
    {dtype::tq1_0, "tq1_0", 256, 54, 34},
    {dtype::tq2_0, "tq2_0", 256, 66, 35},
    {dtype::i2_s, "i2_s", 128, 32, 36},
    {dtype::bcml1, "bcml1", 32, 20, bcml1_ggml_type},
    {dtype::i8, "i8", 1, 1, 24},
    {dtype::u8, "u8", 1, 1, -1},
    {dtype::i16, "i16", 1, 2, 25},
    {dtype::i32, "i32", 1, 4, 26},
    {dtype::u32, "u32", 1, 4, -1},
    {dtype::i64, "i64", 1, 8, 27},
    {dtype::f64, "f64", 1, 8, 28},
    {dtype::q5_0, "q5_0", 32, 22, 6},
    {dtype::q5_1, "q5_1", 32, 24, 7},
    {dtype::q2_k, "q2_k", 256, 84, 10},
    {dtype::q3_k, "q3_k", 256, 110, 11},
    {dtype::q5_k, "q5_k", 256, 176, 13},
    {dtype::iq4_nl, "iq4_nl", 32, 18, 20},
    {dtype::iq4_xs, "iq4_xs", 256, 136, 23},
    {dtype::mxfp4, "mxfp4", 32, 17, 39},
    {dtype::nvfp4, "nvfp4", 64, 36, 40},
    {dtype::q1_0, "q1_0", 128, 18, 41},
    {dtype::q2_0, "q2_0", 64, 18, 42},
    {dtype::iq2_xxs, "iq2_xxs", 256, 66, 16},
    {dtype::iq2_xs, "iq2_xs", 256, 74, 17},
    {dtype::iq2_s, "iq2_s", 256, 82, 22},
    {dtype::iq3_xxs, "iq3_xxs", 256, 98, 18},
    {dtype::iq3_s, "iq3_s", 256, 110, 21},
    {dtype::iq1_s, "iq1_s", 256, 50, 19},
    {dtype::iq1_m, "iq1_m", 256, 56, 29},
};

static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(dtype_table); ++i) {
        if (static_cast<std::size_t>(dtype_table[i].type) != i) return false;
        for (std::size_t k = 0; k < i; ++k)
          if (dtype_table[i].ggml_type >= 0 && dtype_table[i].ggml_type == dtype_table[k].ggml_type) return false;
      }
      return true;
    }(),
    "a row of dtype_table: expected the order of dtype, and an id that no other row has");

/// The facts of a type.
constexpr const dtype_info& info(dtype type) { return dtype_table[static_cast<std::size_t>(type)]; }
/// True for blocks of codes -1, 0 and 1.
constexpr bool is_ternary(dtype type) { return type == dtype::tq1_0 || type == dtype::tq2_0 || type == dtype::i2_s; }
/// The name of a type, as the tools print and accept it.
constexpr std::string_view name(dtype type) { return info(type).name; }

/// The type with this name; absent where no type has it.
constexpr std::optional<dtype> dtype_from_name(std::string_view name) {
  for (const auto& row : dtype_table)
    if (row.name == name) return row.type;
  return std::nullopt;
}

/// The type with this GGUF id; absent where no type has it.
constexpr std::optional<dtype> dtype_from_ggml(std::uint32_t id) {
  for (const auto& row : dtype_table)
    if (row.ggml_type >= 0 && static_cast<std::uint32_t>(row.ggml_type) == id) return row.type;
  return std::nullopt;
}

}  // namespace intaglio
