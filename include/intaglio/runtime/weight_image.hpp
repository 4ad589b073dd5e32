// SPDX-License-Identifier: MIT
// The bytes of a plan's weights, made from a checkpoint piece by piece: any byte range of any weight, on any thread, in
// a few megabytes of memory. Layouts: kernels/catalogue.hpp, kernels/ternary_layout.hpp, kernels/matmul_layout.hpp. A
// tensor of the engraved codec is taken as it is, any other is decoded and encoded: who engraves a codec asks for it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/float16.hpp"
#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/feature_changes.hpp"
#include "intaglio/kernels/feature_layout.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/rope_table.hpp"
#include "intaglio/kernels/row_codes.hpp"
#include "intaglio/kernels/ternary_layout.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/parallel.hpp"

namespace intaglio::runtime {

/// Reads a checkpoint as a plan wants its weights. The checkpoint must outlive it. Its const functions may be called
/// from several threads.
class weight_image {
 public:
  /// @param patch changes to the features of the FFNs (docs/walk.md), which must outlive it too; fill() gives the
  /// weights as changed when it is called
  /// @error file_error: the checkpoint lacks a tensor of the plan, or has it in another shape; mismatch_error: a patch
  /// of another model
  weight_image(const io::checkpoint& from, const plan::table& of, const io::feature_changes* patch = nullptr)
      : from_(&from), table_(&of), patch_(patch) {
    if (patch != nullptr) patch->expect_model(from.config());
    for (const plan::weight& each : of.weights)
      for (std::uint32_t layer = 0; layer < (in_layers(each) ? of.config->num_hidden_layers : 1); ++layer)
        for (std::uint8_t s = 0; s < each.source_count && of.has(each, layer); ++s) find(each, s, layer);
  }

  /// Bytes of float masters that measure() reads to find their scales.
  std::uint64_t measured_bytes() const {
    std::uint64_t out = 0;
    for (const auto& [name, each] : sources_)
      if (each.ternary && is_float(each.tensor->stored.type)) out += each.tensor->stored.bytes;
    return out;
  }
  /// Opens every ternary matrix, which finds its scale; must precede fill(). `done(bytes)` is called from worker
  /// threads.
  /// @error file_error for a bad scale
  template <class Done>
  void measure(unsigned threads, Done&& done) {
    std::vector<source*> wanted;
    for (auto& [name, each] : sources_)
      if (each.ternary) wanted.push_back(&each);
    parallel(threads, wanted.size(), [&](std::size_t i) {
      wanted[i]->codes.emplace(from_->ternary(*wanted[i]->tensor));
      done(is_float(wanted[i]->tensor->stored.type) ? wanted[i]->tensor->stored.bytes : std::uint64_t{0});
    });
  }

  /// Bytes [begin, begin + out.size()) of a weight of the plan, as they lie in device memory.
  /// @param out memory that is read as fast as it is written: what is in it is checked there
  /// @error file_error: a value that is not finite or does not fit its type, a ternary code 3, a file that was cut
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

  /// Whether a weight has vectors of features, which a patch may change.
  static bool has_features(const plan::weight& w) {
    for (std::uint8_t s = 0; s < w.source_count; ++s)
      if (kind_of(w.sources[s].view()) && w.layout != plan::weight_layout::ternary_scales) return true;
    return false;
  }

  /// A plan's codec as files name it.
  static dtype dtype_of(kernels::codec type) { return kernels::info(type).type; }

  /// A step at which ranges of a weight are cheap to begin: whole rows, whole groups of rows.
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

 private:
  struct source {
    const io::checkpoint_tensor* tensor = nullptr;
    bool ternary = false;
    std::optional<io::ternary_tensor> codes;
  };

  static bool is_float(dtype type) { return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16; }
  static bool is_ternary(const plan::weight& w) {
    return w.layout == plan::weight_layout::ternary_tiles || w.layout == plan::weight_layout::ternary_scales ||
           w.layout == plan::weight_layout::feature_rows || w.layout == plan::weight_layout::feature_columns;
  }
  /// Whether a weight is made of tensors of layers.
  static bool in_layers(const plan::weight& w) { return w.per_layer || w.layout == plan::weight_layout::column_norms; }
  std::string name_of(const plan::weight& w, std::uint8_t index, std::uint32_t layer) const {
    return (in_layers(w) ? "blk." + std::to_string(table_->first_layer + layer) + "." : std::string{}) +
           std::string(w.sources[index].view());
  }

  [[gnu::cold]] void find(const plan::weight& w, std::uint8_t index, std::uint32_t layer) {
    const std::string name = name_of(w, index, layer);
    const io::checkpoint_tensor* const tensor = from_->find(name);
    const bool vectors = w.layout == plan::weight_layout::vector_f32 && w.source_count > 1;
    const std::uint32_t rows = vectors ? 1 : w.source_rows[index], columns = vectors ? w.source_rows[index] : w.columns;
    const std::string shape = "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
    if (tensor == nullptr) throw file_error(from_->path(), std::nullopt, "tensor '" + name + "'", shape, "none");
    const io::stored_tensor& stored = tensor->stored;
    if (stored.rows != rows || stored.columns != columns)
      throw file_error(from_->path(), stored.offset, "tensor '" + name + "'", shape,
                       "[" + std::to_string(stored.rows) + ", " + std::to_string(stored.columns) + "]");
    source& entry = sources_[name];
    entry.tensor = tensor;
    entry.ternary = entry.ternary || is_ternary(w);
  }
  const source& at(const plan::weight& w, std::uint8_t index, std::uint32_t layer) const {
    return sources_.find(name_of(w, index, layer))->second;
  }

  /// One vector, or several behind each other.
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
    const bool same = element_bytes == 2 && tensor.addend == 0.f && tensor.in_place() &&
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

  static bool finite(std::uint16_t bits, kernels::codec element) {
    const unsigned exponent = element == kernels::codec::f16 ? 0x7C00u : 0x7F80u;
    return (bits & exponent) != exponent;
  }
  static void expect_finite(const io::checkpoint_tensor& tensor, kernels::codec element, std::uint64_t begin,
                            std::span<const std::byte> bytes) {
    constexpr std::size_t block = 8192;  // looked through without a branch
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

  void fill_scales(const plan::weight& w, std::uint32_t layer, std::uint64_t begin, std::span<std::byte> out) const {
    std::array<float, 3> scales{};
    for (std::uint8_t s = 0; s < w.source_count; ++s) scales[s] = at(w, s, layer).codes->scale();
    copy_overlap(0, std::as_bytes(std::span(scales).first(w.source_count)), begin, out);
  }

  /// Codes or scales of rows, as the matrix of the same tensor has them.
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

  /// Rows are taken in windows, in each of which the same rows of every source lie: some groups, or one head.
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

  /// Vectors by features: rows as they come, or columns of 16 rows at a time.
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

  /// Columns of a matrix, one behind the other. Its rows are read once for each range.
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

  /// Norms of the columns of every layer's matrix, those of a patch as changed; sums in double.
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
  void change_norms(std::uint32_t layer, std::span<float> norms) const {
    std::vector<float> vector(table_->config->hidden_size);
    for (const io::changed_feature& each : patch_->changed()) {
      if (each.layer != layer || each.feature >= norms.size())
        continue;  // one that is too many is refused by the other weights
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

  /// The patch's vectors over what the checkpoint gave. @error argument_error: a feature more than the plan has;
  /// blocks, which several features share
  void change_features(const plan::weight& w, std::uint32_t layer, std::uint64_t begin,
                       std::span<std::byte> out) const {
    if (!has_features(w)) return;
    const std::uint32_t features = table_->config->intermediate_size;
    std::vector<float> vector(table_->config->hidden_size);
    for (const io::changed_feature& each : patch_->changed()) {
      if (each.layer != layer) continue;
      if (each.feature >= features) {
        if (each.edit == io::feature_edit::remove) continue;  // it was inserted and is gone
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
  /// Where the row of a source lies in the merged matrix.
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
    // A column: two bits of a word in every row.
    const std::uint32_t shift = kernels::tile_shift(static_cast<std::uint32_t>(feature % kernels::tile_columns));
    for (std::uint64_t h = 0; which == io::feature_vector::down && h < codes.size(); ++h) {
      const std::uint64_t at = 4 * kernels::tile_word(h, feature, w.columns), byte = at + shift / 8;
      if (byte < begin || byte >= begin + out.size()) continue;
      std::byte& place = out[static_cast<std::size_t>(byte - begin)];
      place = (place & ~(std::byte{3} << (shift % 8))) | static_cast<std::byte>((codes[h] + 1) << (shift % 8));
    }
  }

  /// Groups whose rows lie in neighbouring rows of each source: a head, or as many as there are.
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
      std::array<std::uint64_t, 3> first{}, behind{};
      for (std::uint64_t position = 4 * group; position < (std::min<std::uint64_t>)(4 * stop, w.rows); ++position) {
        const kernels::source_row from = order(static_cast<std::uint32_t>(position));
        if (behind[from.tensor] == 0) first[from.tensor] = from.row;
        first[from.tensor] = (std::min<std::uint64_t>)(first[from.tensor], from.row);
        behind[from.tensor] = (std::max<std::uint64_t>)(behind[from.tensor], from.row + std::uint64_t{1});
      }
      std::array<std::span<const std::byte>, 3> rows{};
      for (std::uint8_t s = 0; s < w.source_count; ++s) {
        if (behind[s] == 0) continue;
        bytes[s].resize(static_cast<std::size_t>((behind[s] - first[s]) * row_bytes));
        read_coded(*at(w, s, layer).tensor, w, first[s], behind[s] - first[s], bytes[s]);
        rows[s] = bytes[s];
      }
      packed.resize(static_cast<std::size_t>((stop - group) * group_bytes));
      kernels::repack_matmul(w.codec, order, std::span(rows).first(w.source_count), w.columns, group, packed, first);
      copy_overlap(group * group_bytes, packed, begin, out);
      group = stop;
    }
  }

  /// Rows as a file of the weight's codec would hold them.
  void read_coded(const io::checkpoint_tensor& tensor, const plan::weight& w, std::uint64_t row, std::uint64_t count,
                  std::span<std::byte> out) const {
    const io::stored_tensor& stored = tensor.stored;
    const dtype wanted = dtype_of(w.codec);
    if (stored.type == wanted && tensor.addend == 0.f) {
      from_->read_rows(tensor, row, count, out);
      expect_finite_rows(tensor, w.codec, row * (out.size() / count), out);
      return;
    }
    if (stored.type == dtype::bcml1 && wanted == dtype::q4_1) {
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

  /// Every number of floats, every scale of blocks.
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

  static kernels::row_order order_of(const plan::weight& w) {
    if (w.order == plan::row_order::stacked)
      return kernels::row_order::stacked(w.source_rows[0], w.source_rows[1], w.source_count == 3);
    if (w.order == plan::row_order::rope_pairs)
      return kernels::row_order::rope_pairs(w.head_dim, w.source_rows[0], w.source_rows[1]);
    if (w.order == plan::row_order::gate_up) return kernels::row_order::gate_up(w.source_rows[0]);
    return kernels::row_order::plain(w.source_rows[0]);
  }

  /// Copies what [from_at, from_at + from.size()) and [to_at, to_at + to.size()) have in common.
  static void copy_overlap(std::uint64_t from_at, std::span<const std::byte> from, std::uint64_t to_at,
                           std::span<std::byte> to) {
    const std::uint64_t begin = (std::max)(from_at, to_at), end = (std::min)(from_at + from.size(), to_at + to.size());
    if (begin < end)
      std::memcpy(to.data() + (begin - to_at), from.data() + (begin - from_at), static_cast<std::size_t>(end - begin));
  }

  const io::checkpoint* from_;
  const plan::table* table_;
  const io::feature_changes* patch_ = nullptr;
  std::map<std::string, source, std::less<>> sources_;
};

}  // namespace intaglio::runtime
