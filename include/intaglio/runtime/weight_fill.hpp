// SPDX-License-Identifier: MIT
// Fills ranges of a plan's weights in the layout of device memory: vectors, rows and groups of rows, of any codec.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/float16.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/row_codes.hpp"
#include "intaglio/runtime/weight_sources.hpp"

namespace intaglio::runtime {

/// Fills weights that are not ternary.
class weight_fill : public weight_sources {
 public:
  using weight_sources::weight_sources;

 protected:
  /// Fills one vector, or several consecutive vectors.
  void fill_vectors(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    std::uint64_t before = 0;
    std::vector<float> values;
    for (std::uint8_t s = 0; s < w.source_count; ++s) {
      const io::checkpoint_tensor& tensor = *at(w, s, layer).tensor;
      values.resize(static_cast<std::size_t>(tensor.stored.columns));
      from_->read_f32(tensor, 0, 1, values);
      for (float& value : values) value *= w.scale;
      copy_overlap(before, std::as_bytes(std::span(values)), begin, out);
      before += 4 * tensor.stored.columns;
    }
  }

  void fill_rows(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out,
                 std::uint64_t element_bytes) const {
    const io::checkpoint_tensor& tensor = *at(w, 0, layer).tensor;
    const io::stored_tensor& stored = tensor.stored;
    const bool same = element_bytes == 2 && tensor.is_as_stored() && tensor.in_place() &&
                      ((w.codec == kernels::codec::f16 && stored.type == dtype::f16) ||
                       (w.codec == kernels::codec::bf16 && stored.type == dtype::bf16));
    if (same) {
      stored.file->read(stored.offset + begin, out);
      expect_finite(tensor, w.codec, begin, out);
      return;
    }
    const std::uint64_t row = stored.columns * element_bytes, first = begin / row,
                        end = (begin + out.size() + row - 1) / row;
    const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / stored.columns);
    std::vector<float> values;
    std::vector<std::byte> converted;
    for (std::uint64_t r = first; r < end; r += step) {
      const std::uint64_t count = (std::min)(step, end - r);
      values.resize(static_cast<std::size_t>(count * stored.columns));
      from_->read_f32(tensor, r, count, values);
      converted.resize(static_cast<std::size_t>(count * row));
      convert(tensor, w, r, values, converted);
      copy_overlap(r * row, converted, begin, out);
    }
  }

  /// Codes or scales of rows, equal to those of the matrix of the same tensor.
  void fill_row_codes(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    const bool scales = w.layout == plan::weight_layout::row_scales;
    const io::checkpoint_tensor& tensor = *at(w, 0, layer).tensor;
    const std::uint64_t row = scales ? 4 : w.columns, first = begin / row, end = (begin + out.size() + row - 1) / row;
    const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / w.columns);
    std::vector<float> values;
    std::vector<std::byte> made;
    std::vector<std::int8_t> codes(w.columns);
    for (std::uint64_t r = first; r < end; r += step) {
      const std::uint64_t count = (std::min)(step, end - r);
      values.resize(static_cast<std::size_t>(count * w.columns));
      from_->read_f32(tensor, r, count, values);
      if (w.codec != kernels::codec::f32)
        for (float& value : values)
          value =
              w.codec == kernels::codec::f16 ? f32_from_f16(f16_from_f32(value)) : f32_from_bf16(bf16_from_f32(value));
      made.resize(static_cast<std::size_t>(count * row));
      for (std::uint64_t i = 0; i < count; ++i) {
        const float scale = kernels::row_codes(
            std::span<const float>(values).subspan(static_cast<std::size_t>(i * w.columns), w.columns), codes);
        if (scales) std::memcpy(made.data() + 4 * i, &scale, 4);
        else std::memcpy(made.data() + i * row, codes.data(), w.columns);
      }
      copy_overlap(r * row, made, begin, out);
    }
  }

  /// Columns of a matrix, one after the other. Each range reads the rows once.
  void fill_turned(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    const io::checkpoint_tensor& tensor = *at(w, 0, layer).tensor;
    const std::uint64_t element = kernels::info(w.codec).block_bytes, vector = w.rows * element, first = begin / vector,
                        end = (begin + out.size() + vector - 1) / vector;
    const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / w.columns);
    std::vector<std::byte> turned(static_cast<std::size_t>((end - first) * vector)), rows;
    for (std::uint64_t r = 0; r < w.rows; r += step) {
      const std::uint64_t count = (std::min)(step, w.rows - r);
      rows.resize(static_cast<std::size_t>(count * w.columns * element));
      read_coded(tensor, w, r, count, rows);
      for (std::uint64_t c = first; c < end; ++c)
        for (std::uint64_t i = 0; i < count; ++i)
          std::memcpy(turned.data() + (c - first) * vector + (r + i) * element,
                      rows.data() + (i * w.columns + c) * element, static_cast<std::size_t>(element));
    }
    copy_overlap(first * vector, turned, begin, out);
  }

  /// Number of groups whose rows are in neighbouring rows of each source: a head, or all groups.
  static std::uint64_t window_groups(const plan::weight& w) {
    return w.order == plan::row_order::rope_pairs ? w.head_dim / 4
                                                  : (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 16) / w.columns);
  }

  void fill_groups(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    const kernels::row_order order = order_of(w);
    const std::uint64_t group_bytes = kernels::matmul_group_bytes(w.codec, w.columns),
                        row_bytes = kernels::file_row_bytes(w.codec, w.columns), window = window_groups(w);
    const std::uint64_t end = (begin + out.size() + group_bytes - 1) / group_bytes;
    std::array<std::vector<std::byte>, 3> bytes;
    std::vector<std::byte> packed;
    for (std::uint64_t group = begin / group_bytes; group < end;) {
      const std::uint64_t stop = (std::min)(end, (group / window + 1) * window);
      std::array<std::uint64_t, 3> first{}, after{};
      for (std::uint64_t position = 4 * group; position < (std::min<std::uint64_t>)(4 * stop, w.rows); ++position) {
        const kernels::source_row from = order(static_cast<std::uint32_t>(position));
        if (after[from.tensor] == 0) first[from.tensor] = from.row;
        first[from.tensor] = (std::min<std::uint64_t>)(first[from.tensor], from.row);
        after[from.tensor] = (std::max<std::uint64_t>)(after[from.tensor], from.row + std::uint64_t{1});
      }
      std::array<std::span<const std::byte>, 3> rows{};
      for (std::uint8_t s = 0; s < w.source_count; ++s) {
        if (after[s] == 0) continue;
        bytes[s].resize(static_cast<std::size_t>((after[s] - first[s]) * row_bytes));
        read_coded(*at(w, s, layer).tensor, w, first[s], after[s] - first[s], bytes[s]);
        rows[s] = bytes[s];
      }
      packed.resize(static_cast<std::size_t>((stop - group) * group_bytes));
      kernels::repack_matmul(w.codec, order, std::span(rows).first(w.source_count), w.columns, group, packed, first);
      copy_overlap(group * group_bytes, packed, begin, out);
      group = stop;
    }
  }

  void convert(const io::checkpoint_tensor& tensor, const plan::weight& w, std::uint64_t first_row,
               std::span<const float> values, std::span<std::byte> out) const {
    if (out.size() == values.size_bytes()) {
      std::memcpy(out.data(), values.data(), out.size());
      return;
    }
    const bool f16 = w.codec == kernels::codec::f16;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t bits = f16 ? f16_from_f32(values[i]) : bf16_from_f32(values[i]);
      if (!finite(bits, w.codec))
        throw file_error(
            tensor.stored.file->path(), tensor.stored.offset,
            "tensor '" + printable(tensor.stored_name, 70) + "': row " + std::to_string(first_row + i / w.columns),
            f16 ? "values up to 65504, to be held as f16" : "values that bf16 holds", number_text(values[i]));
      std::memcpy(out.data() + 2 * i, &bits, 2);
    }
  }

  static kernels::row_order order_of(const plan::weight& w) {
    if (w.order == plan::row_order::stacked)
      return kernels::row_order::stacked(w.source_rows[0], w.source_rows[1], w.source_count == 3);
    if (w.order == plan::row_order::rope_pairs)
      return kernels::row_order::rope_pairs(w.head_dim, w.source_rows[0], w.source_rows[1]);
    if (w.order == plan::row_order::gate_up) return kernels::row_order::gate_up(w.source_rows[0]);
    return kernels::row_order::plain(w.source_rows[0]);
  }

 private:
  /// Encodes rows as a file of the weight's codec would hold them.
  void read_coded(const io::checkpoint_tensor& tensor, const plan::weight& w, std::uint64_t row, std::uint64_t count,
                  std::span<std::byte> out) const {
    const io::stored_tensor& stored = tensor.stored;
    const dtype wanted = dtype_of(w.codec);
    if (stored.type == wanted && tensor.is_as_stored()) {
      from_->read_rows(tensor, row, count, out);
      expect_finite_rows(tensor, w.codec, row * (out.size() / count), out);
      return;
    }
    if (stored.type == dtype::bcml1 && wanted == dtype::q4_1 && tensor.added.empty()) {
      from_->read_bcml1_as_q4_1(tensor, row, count, out);
      expect_finite_rows(tensor, w.codec, 0, out);
      return;
    }
    std::vector<float> values(static_cast<std::size_t>(count * stored.columns));
    from_->read_f32(tensor, row, count, values);
    if (kernels::is_dense(w.codec)) return convert(tensor, w, row, values, out);
    io::encode_row(wanted, values, out);
    expect_finite_rows(tensor, w.codec, 0, out);
  }

  static bool finite(std::uint16_t bits, kernels::codec element) {
    const unsigned exponent = element == kernels::codec::f16 ? 0x7C00u : 0x7F80u;
    return (bits & exponent) != exponent;
  }

  static void expect_finite(const io::checkpoint_tensor& tensor, kernels::codec element, std::uint64_t begin,
                            std::span<const std::byte> bytes) {
    constexpr std::size_t block = 8192;  // checked without a branch
    std::size_t i = begin % 2;
    const auto bits_at = [&](std::size_t where) {
      std::uint16_t bits;
      std::memcpy(&bits, bytes.data() + where, 2);
      return bits;
    };
    for (bool found = false; i + block <= bytes.size() && !found; i += found ? 0 : block)
      for (std::size_t k = 0; k < block; k += 2) found |= !finite(bits_at(i + k), element);
    for (; i + 1 < bytes.size(); i += 2) {
      if (!finite(bits_at(i), element))
        throw file_error(tensor.stored.file->path(), tensor.stored.offset + begin + i,
                         "tensor '" + printable(tensor.stored_name, 70) + "': value", "a finite number",
                         "NaN or infinity");
    }
  }

  /// Checks every value of floats, or every scale of blocks.
  static void expect_finite_rows(const io::checkpoint_tensor& tensor, kernels::codec type, std::uint64_t at,
                                 std::span<const std::byte> rows) {
    if (type == kernels::codec::f16 || type == kernels::codec::bf16) return expect_finite(tensor, type, at, rows);
    const std::size_t block = kernels::info(type).block_bytes;
    for (std::size_t i = 0; i < rows.size(); i += block) {
      bool sound = true;
      if (type == kernels::codec::f32) {
        float value;
        std::memcpy(&value, rows.data() + i, 4);
        sound = std::isfinite(value);
      } else {
        sound = codecs::is_finite_block(dtype_of(type), reinterpret_cast<const std::uint8_t*>(rows.data() + i));
      }
      if (!sound)
        throw file_error(tensor.stored.file->path(), tensor.stored.offset + at + i,
                         "tensor '" + printable(tensor.stored_name, 70) + "': value", "a finite number",
                         "NaN or infinity");
    }
  }
};

}  // namespace intaglio::runtime
