// SPDX-License-Identifier: MIT
// A weight of a plan: the checkpoint's tensors from which it is made, and its layout in device memory.
#pragma once

#include <array>
#include <cstdint>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::plan {

/// The layout of a weight in device memory.
enum class weight_layout : std::uint8_t {
  vector_f32,       ///< f32 [columns]
  matrix,           ///< row-major [rows, columns] of a codec without blocks
  row_groups,       ///< kernels/matmul_layout.hpp, rows of all sources in `order`
  ternary_tiles,    ///< kernels/ternary_layout.hpp, rows of all sources in `order`
  ternary_scales,   ///< f32, one per source
  feature_rows,     ///< kernels/feature_layout.hpp, of a ternary matrix [rows, columns] whose rows are features
  feature_columns,  ///< kernels/feature_layout.hpp, of a ternary matrix whose columns are features
  turned,           ///< row-major [columns, rows] of a codec without blocks: a matrix [rows, columns], transposed
  row_codes,        ///< int8 [rows, columns], made from a matrix of `codec` (kernels/row_codes.hpp)
  row_scales,       ///< f32 [rows], the scales of row_codes
  rope_turns,       ///< u64 [head_dim / 2], made from `rope` only (kernels/rope_turns.hpp); no tensor of the checkpoint
  column_norms,  ///< f32 [layers, columns], one weight for all layers: Euclidean norms of the columns of each layer's
                 ///< matrix
};

/// Row order of stacked matrices (kernels/row_order.hpp).
enum class row_order : std::uint8_t { plain, rope_pairs, gate_up, stacked };

/// One weight of the plan: its sources, its layout, and its offset.
struct weight {
  std::array<text<48>, 3> sources{};                 ///< tensor names; with per_layer each is prefixed by "blk.N."
  std::uint8_t source_count = 0;                     ///< number of sources; their rows follow one another
  bool per_layer = false;                            ///< each layer of `kinds` has a copy
  weight_layout layout = weight_layout::vector_f32;  ///< layout in device memory
  row_order order = row_order::plain;                ///< order of the rows in device memory
  kernels::codec codec = kernels::codec::f32;        ///< codec of the matrix in device memory
  std::uint32_t head_dim = 0;                        ///< for rope_pairs and rope_turns
  rope_parameters rope{};                            ///< for rope_turns
  float scale = 1.f;                                 ///< vector_f32: the tensor's values are multiplied by it
  std::array<std::uint32_t, 3> source_rows{};  ///< of vectors that are stored one after the other (biases): elements
  std::uint32_t rows = 0, columns = 0;         ///< shape, in elements, over all sources
  std::uint64_t offset = 0;                 ///< in the block of global weights, or in the block of one layer's weights
  std::uint64_t bytes = 0;                  ///< of one copy
  std::uint64_t kinds = ~std::uint64_t{0};  ///< with per_layer: a bit for each kind of layer that has it
};

}  // namespace intaglio::plan
