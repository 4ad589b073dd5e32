// SPDX-License-Identifier: MIT
// Rows of a tensor in another codec: reads, reorders and encodes them, on any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "intaglio/io/bcml1_encode.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/conversion_loss.hpp"
#include "intaglio/io/gguf_order.hpp"

namespace intaglio::io {

/// A tensor that convert writes, and its new form.
struct planned_tensor {
  const checkpoint_tensor* source;
  dtype type;
  std::size_t kind;                 ///< index into convert_report::kinds
  std::uint32_t rows_in_pairs = 0;  ///< as in checkpoint_tensor, for the output
  std::uint32_t rotary_dim = 0;     ///< rotated channels of a head; 0: all
  bool neighbours = false;          ///< as in checkpoint_tensor
  bool ternary = false;             ///< written as codes and one scale
  float addend = 0.f;               ///< subtracted again on writing
  std::once_flag opened{};
  std::optional<ternary_tensor> codes{};  ///< set once it is opened
};
/// Some rows of a tensor.
struct tensor_chunk {
  planned_tensor* tensor;
  std::uint64_t row, rows;
};
/// Buffers of one thread.
struct chunk_buffer {
  std::vector<std::byte> bytes, turned;
  std::vector<float> values, again;
  std::vector<std::int8_t> codes;
  conversion_loss loss;
};

/// Reads and encodes chunks of a model's tensors.
class chunk_encoder {
 public:
  /// @param model outlives the encoder
  explicit chunk_encoder(const checkpoint& model) : model_(&model) {}

  /// Reads and encodes a chunk; on any thread.
  void make(const tensor_chunk& part, chunk_buffer& in) {
    in.loss = {};
    if (part.tensor->ternary) return make_ternary(part, in);
    const planned_tensor& tensor = *part.tensor;
    const checkpoint_tensor& source = *tensor.source;
    const std::uint64_t columns = source.stored.columns;
    const bool panels = tensor.type == dtype::bcml1;
    const std::uint64_t size =
        panels ? bcml1_layout{part.rows, columns}.bytes() : part.rows * row_bytes(tensor.type, columns);
    in.bytes.resize(static_cast<std::size_t>(size));
    in.values.resize(static_cast<std::size_t>(part.rows * columns));
    in.again.resize(in.values.size());
    model_->read_f32(source, part.row, part.rows, in.values);
    const bool vector = source.dimensions == 1;  // a vector's values have the order of the heads' rows
    const bool same =
        source.stored.type == tensor.type && source.addend == tensor.addend && !source.negative_exp &&
        source.factors.empty() &&
        (!vector || (source.rows_in_pairs == tensor.rows_in_pairs && source.neighbours == tensor.neighbours));
    if (same && panels && source.rows_in_pairs == tensor.rows_in_pairs) {
      source.stored.file->read(
          source.stored.offset + part.row / bcml1_layout::panel_rows * (bcml1_layout{1, columns}.bytes()), in.bytes);
      return in.loss.add(in.values, in.values);
    }
    if (same && !panels) {
      model_->read_rows(source, part.row, part.rows, in.bytes);
      if (!vector) turn<std::byte>(tensor, in.bytes, in.turned, row_bytes(tensor.type, columns));
      return in.loss.add(in.values, in.values);
    }
    for (float& value : in.values) value -= tensor.addend;
    std::vector<float>& turned = in.again;
    turn<float>(tensor, in.values, turned, vector ? 1 : columns);
    if (panels) {
      const bcml1_layout layout{part.rows, columns};
      try {
        encode_bcml1(dtype::f32, std::as_bytes(std::span(in.values)), layout, in.bytes);
      } catch (const argument_error&) { refuse_range(tensor); }
      decode_bcml1(in.bytes, layout, 0, part.rows, in.again);
    } else {
      encode_row(tensor.type, in.values, in.bytes);
      decode_row(tensor.type, in.bytes, in.again);
      if (!codec_blocks::all_finite(in.again)) refuse_range(tensor);
    }
    in.loss.add(in.values, in.again);
  }
  /// The scale, rounded to the output's type.
  static float kept_scale(const planned_tensor& tensor) {
    const float scale = tensor.codes->scale();
    if (tensor.type != dtype::tq1_0 && tensor.type != dtype::tq2_0 && tensor.type != dtype::f16 &&
        tensor.type != dtype::bf16)
      return scale;
    const float kept =
        tensor.type == dtype::bf16 ? f32_from_bf16(bf16_from_f32(scale)) : f32_from_f16(f16_from_f32(scale));
    if (!(kept > 0.f) || !std::isfinite(kept))
      throw file_error(tensor.source->stored.file->path(), tensor.source->stored.offset,
                       "tensor '" + printable(tensor.source->stored_name, 70) + "': scale",
                       "one that " + std::string(name(tensor.type)) + " can hold", number_text(scale));
    return kept;
  }

 private:
  [[noreturn]] static void refuse_range(const planned_tensor& tensor) {
    const stored_tensor& stored = tensor.source->stored;
    throw file_error(stored.file->path(), stored.offset, "tensor '" + printable(tensor.source->stored_name, 70) + "'",
                     "values that " + std::string(name(tensor.type)) + " can hold", "a larger one");
  }

  /// Reorders rows from NeoX order to pairs, head by head. @param row length of a row in T
  template <class T>
  static void turn(const planned_tensor& tensor, std::vector<T>& rows, std::vector<T>& spare, std::uint64_t row) {
    const std::uint32_t head = tensor.rows_in_pairs, rotary = tensor.rotary_dim;
    if (head == 0) return;
    spare.resize(rows.size());
    const auto length = static_cast<std::size_t>(row);
    for (std::size_t i = 0; i < rows.size() / length; ++i)
      std::copy_n(
          rows.begin() + static_cast<std::ptrdiff_t>(i * length), length,
          spare.begin() + static_cast<std::ptrdiff_t>(
                              static_cast<std::size_t>(row_in_pairs(head, i, rotary, tensor.neighbours)) * length));
    rows.swap(spare);
  }

  void make_ternary(const tensor_chunk& part, chunk_buffer& in) {
    planned_tensor& tensor = *part.tensor;
    const stored_tensor& stored = tensor.source->stored;
    std::call_once(tensor.opened, [&] { tensor.codes.emplace(model_->ternary(*tensor.source)); });
    const ternary_tensor& source = *tensor.codes;
    const float kept = kept_scale(tensor);
    in.codes.resize(static_cast<std::size_t>(part.rows * stored.columns));
    in.bytes.resize(static_cast<std::size_t>(part.rows * row_bytes(tensor.type, stored.columns)));
    source.rows(part.row, part.rows, in.codes);
    std::vector<std::int8_t> spare;
    turn<std::int8_t>(tensor, in.codes, spare, stored.columns);
    encode_ternary_rows(tensor.type, in.codes, source.scale(), in.bytes);
    const auto zeros = static_cast<std::uint64_t>(std::count(in.codes.begin(), in.codes.end(), std::int8_t{0}));
    const double apart = std::fabs(static_cast<double>(kept) - source.scale()),
                 some = static_cast<double>(in.codes.size() - zeros);
    in.loss.add(conversion_loss{in.codes.size(), zeros == in.codes.size() ? 0. : apart, some * apart * apart,
                                some * source.scale() * source.scale()});
  }

  const checkpoint* model_;
};

}  // namespace intaglio::io
