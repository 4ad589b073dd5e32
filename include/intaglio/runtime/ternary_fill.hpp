// SPDX-License-Identifier: MIT
// Fills ranges of a plan's ternary weights in the layout of device memory: tiles, scales, vectors of features.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/feature_layout.hpp"
#include "intaglio/kernels/ternary_layout.hpp"
#include "intaglio/runtime/weight_fill.hpp"

namespace intaglio::runtime {

/// Fills in ternary weights.
class ternary_fill : public weight_fill {
 public:
  using weight_fill::weight_fill;

 protected:
  void fill_scales(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    std::array<float, 3> scales{};
    for (std::uint8_t s = 0; s < w.source_count; ++s) scales[s] = at(w, s, layer).codes->scale();
    copy_overlap(0, std::as_bytes(std::span(scales).first(w.source_count)), begin, out);
  }

  /// Takes rows in windows of some groups or of one head; each window has the same rows of every source.
  void fill_tiles(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    const kernels::row_order order = order_of(w);
    const std::uint64_t group_bytes = w.columns;  // 4 rows of 2-bit codes
    const bool heads = w.order == plan::row_order::rope_pairs;
    const std::uint64_t window =
        heads ? w.head_dim / 4 : (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / group_bytes);
    const std::uint64_t first = begin / group_bytes, end = (begin + out.size() + group_bytes - 1) / group_bytes;
    std::array<std::vector<std::int8_t>, 3> codes;
    std::vector<std::uint32_t> words;
    for (std::uint64_t group = first; group < end;) {
      const std::uint64_t stop = (std::min)(end, (group / window + 1) * window);
      std::array<std::uint64_t, 3> first_row{};
      std::array<std::span<const std::int8_t>, 3> spans{};
      const auto read = [&](std::uint8_t index, std::uint64_t row, std::uint64_t count) {
        codes[index].resize(static_cast<std::size_t>(count * w.columns));
        at(w, index, layer).codes->rows(row, count, codes[index]);
        first_row[index] = row;
        spans[index] = codes[index];
      };
      if (heads) {
        const kernels::source_row from = order(static_cast<std::uint32_t>(group / window * window * 4));
        read(static_cast<std::uint8_t>(from.tensor), from.row, w.head_dim);
      } else {
        const std::uint64_t each = w.order == plan::row_order::gate_up ? 2 : 4;
        for (std::uint8_t s = 0; s < w.source_count; ++s) read(s, group * each, (stop - group) * each);
      }
      words.resize(static_cast<std::size_t>((stop - group) * group_bytes / 4));
      kernels::repack_ternary(order, std::span(spans).first(w.source_count), w.columns, group, words, first_row);
      copy_overlap(group * group_bytes, std::as_bytes(std::span(words)), begin, out);
      group = stop;
    }
  }

  /// Vectors by features: rows in order, or columns, 16 rows at a time.
  void fill_features(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    const bool turned = w.layout == plan::weight_layout::feature_columns;
    const std::uint64_t width = turned ? w.rows : w.columns, vector = kernels::feature_bytes(1, width),
                        first = begin / vector, end = (begin + out.size() + vector - 1) / vector;
    std::vector<std::uint32_t> words;
    std::vector<std::int8_t> codes;
    const io::ternary_tensor& matrix = *at(w, 0, layer).codes;
    if (turned) {
      words.resize(static_cast<std::size_t>((end - first) * vector / 4));
      codes.resize(static_cast<std::size_t>(kernels::tile_columns) * w.columns);
      for (std::uint64_t word = 0; word < width / kernels::tile_columns; ++word) {
        matrix.rows(word * kernels::tile_columns, kernels::tile_columns, codes);
        kernels::pack_feature_columns(codes, w.columns, first, word, width, words);
      }
      return copy_overlap(first * vector, std::as_bytes(std::span(words)), begin, out);
    }
    const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / width);
    for (std::uint64_t f = first; f < end; f += step) {
      const std::uint64_t count = (std::min)(step, end - f);
      codes.resize(static_cast<std::size_t>(count * width));
      words.resize(static_cast<std::size_t>(count * vector / 4));
      matrix.rows(f, count, codes);
      kernels::pack_feature_rows(codes, words);
      copy_overlap(f * vector, std::as_bytes(std::span(words)), begin, out);
    }
  }
};

}  // namespace intaglio::runtime
