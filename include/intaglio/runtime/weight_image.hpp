// SPDX-License-Identifier: MIT
// The bytes of a plan's weights, made from a checkpoint piece by piece: any byte range of any weight, on any thread, in
// a few megabytes of memory. Layouts: kernels/catalogue.hpp, kernels/ternary_layout.hpp, kernels/matmul_layout.hpp. A
// tensor in the engraved codec is copied; any other tensor is decoded and encoded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/rope_table.hpp"
#include "intaglio/runtime/patched_fill.hpp"

namespace intaglio::runtime {

/// Reads a checkpoint in the layouts of a plan's weights. The checkpoint must outlive it. Its const functions may be
/// called from several threads.
class weight_image : public patched_fill {
 public:
  /// @param patch changes to the features of the FFNs (docs/walk.md), which must outlive it too; fill() applies the
  ///   changes that the patch has when it is called
  /// @error file_error: the checkpoint lacks a tensor of the plan, or has it in another shape; mismatch_error: a patch
  ///   of another model
  weight_image(const io::checkpoint& from, const plan::table& of, const io::feature_changes* patch = nullptr)
      : patched_fill(from, of, patch) {}

  /// Writes bytes [begin, begin + out.size()) of a weight of the plan in the layout of device memory.
  /// @param out memory that is fast to read: its content is checked there
  /// @error file_error: a value that is not finite or does not fit its type, a ternary code 3, a truncated file
  void fill(std::uint32_t slot, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    const plan::weight& w = table_->weights[slot];
    switch (w.layout) {
      case plan::weight_layout::vector_f32:
        fill_vectors(w, layer, begin, out);
        break;
      case plan::weight_layout::matrix:
        fill_rows(w, layer, begin, out, w.codec == kernels::codec::f32 ? 4 : 2);
        break;
      case plan::weight_layout::row_groups:
        fill_groups(w, layer, begin, out);
        break;
      case plan::weight_layout::rope_turns: {
        const std::vector<std::uint64_t> turns =
            kernels::rope_table(w.rope, w.head_dim, table_->first_layer + layer, table_->config->rope_factors);
        copy_overlap(0, std::as_bytes(std::span(turns)), begin, out);
        break;
      }
      case plan::weight_layout::ternary_tiles:
        fill_tiles(w, layer, begin, out);
        break;
      case plan::weight_layout::feature_rows:
      case plan::weight_layout::feature_columns:
        fill_features(w, layer, begin, out);
        break;
      case plan::weight_layout::turned:
        fill_turned(w, layer, begin, out);
        break;
      case plan::weight_layout::ternary_scales:
        fill_scales(w, layer, begin, out);
        break;
      case plan::weight_layout::row_codes:
      case plan::weight_layout::row_scales:
        fill_row_codes(w, layer, begin, out);
        break;
      case plan::weight_layout::column_norms:
        fill_norms(w, begin, out);
        break;
    }
    if (patch_ != nullptr && w.per_layer) change_features(w, layer, begin, out);
  }

  /// A step in bytes at which ranges of a weight may begin cheaply: whole rows, whole groups of rows.
  static std::uint64_t unit_bytes(const plan::weight& w) {
    if (w.layout == plan::weight_layout::ternary_tiles)
      return std::uint64_t{w.order == plan::row_order::rope_pairs ? w.head_dim : 4u} * w.columns / 4;
    if (w.layout == plan::weight_layout::matrix)
      return std::uint64_t{w.columns} * (w.codec == kernels::codec::f32 ? 4 : 2);
    if (w.layout == plan::weight_layout::row_groups)
      return window_groups(w) * kernels::matmul_group_bytes(w.codec, w.columns);
    if (w.layout == plan::weight_layout::row_codes) return w.columns;
    if (w.layout == plan::weight_layout::row_scales) return 4096;
    if (w.layout == plan::weight_layout::column_norms) return std::uint64_t{4} * w.columns;
    return (std::max<std::uint64_t>)(w.bytes, 1);
  }
};

}  // namespace intaglio::runtime
