// SPDX-License-Identifier: MIT
// Applies changes to the features of a model's FFNs (docs/walk.md) to the weights of its checkpoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/feature_changes.hpp"
#include "intaglio/kernels/feature_layout.hpp"
#include "intaglio/kernels/ternary_layout.hpp"
#include "intaglio/runtime/ternary_fill.hpp"

namespace intaglio::runtime {

/// Replaces vectors of the checkpoint by those of a patch.
class patched_fill : public ternary_fill {
 public:
  /// @param patch must outlive it; null: none  @error mismatch_error: a patch of another model
  patched_fill(const io::checkpoint& from, const plan::table& of, const io::feature_changes* patch)
      : ternary_fill(from, of), patch_(patch) {
    if (patch != nullptr) patch->expect_model(from.config());
  }

  /// Whether a weight has vectors of features, which a patch may change.
  static bool has_features(const plan::weight& w) {
    for (std::uint8_t s = 0; s < w.source_count; ++s)
      if (kind_of(w.sources[s].view()) && w.layout != plan::weight_layout::ternary_scales) return true;
    return false;
  }

 protected:
  /// Norms of the columns of every layer's matrix, with the patch applied; sums in double.
  void fill_norms(const plan::weight& w, std::uint64_t begin, std::span<std::byte> out) const {
    const std::uint64_t vector = std::uint64_t{4} * w.columns, first = begin / vector,
                        end = (begin + out.size() + vector - 1) / vector;
    const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / w.columns);
    std::vector<double> squares(w.columns);
    std::vector<float> norms(w.columns), values;
    std::vector<std::int8_t> codes;
    for (std::uint64_t layer = first; layer < end; ++layer) {
      const source& from = at(w, 0, static_cast<std::uint32_t>(layer));
      const double scale = from.codes ? static_cast<double>(from.codes->scale()) : 1;
      std::ranges::fill(squares, 0.);
      for (std::uint64_t row = 0; row < w.source_rows[0]; row += step) {
        const std::uint64_t count = (std::min)(step, w.source_rows[0] - row);
        values.resize(static_cast<std::size_t>(count * w.columns));
        if (from.codes) {
          codes.resize(values.size());
          from.codes->rows(row, count, codes);
          std::ranges::copy(codes, values.begin());
        } else {
          from_->read_f32(*from.tensor, row, count, values);
        }
        for (std::size_t i = 0; i < values.size(); ++i)
          squares[i % w.columns] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
      for (std::size_t c = 0; c < norms.size(); ++c) norms[c] = static_cast<float>(scale * std::sqrt(squares[c]));
      if (patch_ != nullptr && kind_of(w.sources[0].view()) == io::feature_vector::down)
        change_norms(static_cast<std::uint32_t>(layer), norms);
      copy_overlap(layer * vector, std::as_bytes(std::span(norms)), begin, out);
    }
  }

  /// Writes the patch's vectors over the checkpoint's. @error argument_error: a feature that the plan has no room for;
  /// blocks, which several features share
  void change_features(const plan::weight& w, std::uint32_t layer, std::uint64_t begin,
                       std::span<std::byte> out) const {
    if (!has_features(w)) return;
    const std::uint32_t features = table_->config->intermediate_size;
    std::vector<float> vector(table_->config->hidden_size);
    for (const io::changed_feature& each : patch_->changed()) {
      if (each.layer != layer) continue;
      if (each.feature >= features) {
        if (each.edit == io::feature_edit::remove) continue;  // it was inserted and removed again
        throw argument_error(
            "patch", "features of a plan of " + std::to_string(features) + "; intaglio fold makes a model of more",
            "feature " + std::to_string(each.feature) + " of layer " + std::to_string(layer));
      }
      for (std::uint8_t s = 0; s < w.source_count; ++s) {
        const auto which = kind_of(w.sources[s].view());
        if (!which) continue;
        patch_->read_f32(layer, *which, each.feature, 1, vector);
        if (is_ternary(w)) put_codes(w, s, *which, each.feature, vector, begin, out);
        else put_values(w, s, *which, each.feature, vector, begin, out);
      }
    }
  }

  const io::feature_changes* patch_;

 private:
  void change_norms(std::uint32_t layer, std::span<float> norms) const {
    std::vector<float> vector(table_->config->hidden_size);
    for (const io::changed_feature& each : patch_->changed()) {
      if (each.layer != layer || each.feature >= norms.size())
        continue;  // other weights report a feature that has no room
      patch_->read_f32(layer, io::feature_vector::down, each.feature, 1, vector);
      double square = 0;
      for (const float value : vector) square += static_cast<double>(value) * static_cast<double>(value);
      norms[each.feature] = static_cast<float>(std::sqrt(square));
    }
  }

  static std::optional<io::feature_vector> kind_of(std::string_view source) {
    for (const io::feature_vector which : io::feature_vectors)
      if (source.starts_with("ffn_") && source.substr(4) == std::string(io::name(which)) + ".weight") return which;
    return std::nullopt;
  }

  /// The index of a source's row in the merged matrix.
  static std::uint64_t position_of(const plan::weight& w, std::uint8_t index, std::uint64_t row) {
    return w.order == plan::row_order::gate_up ? 2 * row + index : row;
  }

  void put_values(const plan::weight& w, std::uint8_t index, io::feature_vector which, std::uint64_t feature,
                  std::span<const float> vector, std::uint64_t begin, std::span<std::byte> out) const {
    if (!kernels::is_dense(w.codec))
      throw argument_error(
          "patch",
          "weights of f32, f16, bf16 or ternary codes, one feature's by themselves; intaglio fold changes others",
          std::string(kernels::info(w.codec).name));
    const std::uint64_t element = kernels::info(w.codec).block_bytes;
    std::vector<std::byte> bytes(static_cast<std::size_t>(vector.size() * element));
    convert(*at(w, index, 0).tensor, w, feature, vector, bytes);
    const std::uint64_t row = w.layout == plan::weight_layout::row_groups
                                  ? kernels::matmul_group_bytes(w.codec, w.columns) / 4
                                  : w.columns * element;
    if (w.layout == plan::weight_layout::turned) return copy_overlap(feature * bytes.size(), bytes, begin, out);
    if (which != io::feature_vector::down) return copy_overlap(position_of(w, index, feature) * row, bytes, begin, out);
    for (std::size_t h = 0; h < vector.size(); ++h)
      copy_overlap(h * row + feature * element, std::span<const std::byte>(bytes).subspan(h * element, element), begin,
                   out);
  }

  void put_codes(const plan::weight& w, std::uint8_t index, io::feature_vector which, std::uint64_t feature,
                 std::span<const float> vector, std::uint64_t begin, std::span<std::byte> out) const {
    std::vector<std::int8_t> codes;
    for (const float value : vector) codes.push_back(static_cast<std::int8_t>((value > 0) - (value < 0)));
    std::vector<std::uint32_t> words(codes.size() / kernels::tile_columns);
    kernels::pack_feature_rows(codes, words);
    const auto bytes = std::as_bytes(std::span(words));
    if (w.layout != plan::weight_layout::ternary_tiles) return copy_overlap(feature * bytes.size(), bytes, begin, out);
    for (std::uint64_t i = 0; which != io::feature_vector::down && i < words.size(); ++i)
      copy_overlap(4 * kernels::tile_word(position_of(w, index, feature), i * kernels::tile_columns, w.columns),
                   bytes.subspan(4 * i, 4), begin, out);
    // A column has two bits of a word in every row.
    const std::uint32_t shift = kernels::tile_shift(static_cast<std::uint32_t>(feature % kernels::tile_columns));
    for (std::uint64_t h = 0; which == io::feature_vector::down && h < codes.size(); ++h) {
      const std::uint64_t at = 4 * kernels::tile_word(h, feature, w.columns), byte = at + shift / 8;
      if (byte < begin || byte >= begin + out.size()) continue;
      std::byte& target = out[static_cast<std::size_t>(byte - begin)];
      target = (target & ~(std::byte{3} << (shift % 8))) | static_cast<std::byte>((codes[h] + 1) << (shift % 8));
    }
  }
};

}  // namespace intaglio::runtime
