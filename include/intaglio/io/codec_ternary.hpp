// SPDX-License-Identifier: MIT
// Reads every stored form of a ternary matrix as codes -1, 0, +1 and one f32 scale: w = scale * code. Forms: I2_S in
// three layouts, TQ1_0, TQ2_0, Hugging Face's packed bytes, and float masters, which are ternarised by mean magnitude.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/checkpoint_options.hpp"
#include "intaglio/io/codec.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// A matrix [rows, columns] (a vector has one row) and the location of its bytes. `rows` counts the matrix's rows, not
/// the packed ones.
struct stored_tensor {
  std::string name;
  dtype type = dtype::f32;
  std::uint64_t rows = 1, columns = 0;
  const mapped_file* file = nullptr;
  std::uint64_t offset = 0, bytes = 0;
};

/// Whether ternary_tensor reads the type; u8 stands for Hugging Face's packed form.
constexpr bool is_ternary_source(dtype type) {
  return type == dtype::i2_s || type == dtype::tq1_0 || type == dtype::tq2_0 || type == dtype::u8 ||
         type == dtype::f32 || type == dtype::f16 || type == dtype::bf16;
}

/// The row of the file for row `row` of NeoX order, in a file that has the rows of a head in pairs. In NeoX order rows
/// i and i + head_dim / 2 of a head are rotated together.
/// @param rotary_dim not 0: in the file rows i and i + rotary_dim / 2 are rotated, i < rotary_dim / 2, and the rest is
/// not
/// @param neighbours among the rotated rows 2i and 2i + 1 are rotated together
constexpr std::uint64_t row_in_pairs(std::uint64_t head_dim, std::uint64_t row, std::uint64_t rotary_dim = 0,
                                     bool neighbours = false) {
  const std::uint64_t in_head = row % head_dim, half = head_dim / 2, pair = in_head % half, which = in_head / half;
  if (rotary_dim != 0) {
    const std::uint64_t turning = rotary_dim / 2;
    if (pair < turning && neighbours) return row - in_head + 2 * pair + which;
    return row - in_head + (pair < turning ? which * turning + pair : turning + which * (half - turning) + pair);
  }
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

/// Facts about a ternary tensor that its bytes do not state.
struct ternary_options {
  i2s_layout layout = i2s_layout::block128;
  float packed_scale = 0.f;         ///< u8 only: the scale (already inverted where the file stores a divisor)
  float factor = 1.f;               ///< a further factor of the matrix (GGUF's blk.N.*.scale)
  std::uint32_t rows_in_pairs = 0;  ///< head_dim where rows 2i and 2i + 1 of a head are rotated together; reading
                                    ///< reorders them
};

/// Reads one ternary matrix. The constructor finds and checks the scale; codes are checked as they are read.
class ternary_tensor {
 public:
  /// The constructor reads float masters once. Their scale is the mean magnitude, at least 1e-5, rounded to the
  /// tensor's type (transformers' WeightQuant), or the only magnitude that occurs where the matrix is already ternary.
  /// @throws file_error for a scale that is NaN, infinite or not positive
  explicit ternary_tensor(stored_tensor tensor, ternary_options options = {})
      : tensor_(std::move(tensor)), options_(options) {
    if (!is_ternary_source(tensor_.type))
      fail(0, "cannot be read as ternary codes", "i2_s tq1_0 tq2_0 u8 f32 f16 bf16", std::string(name(tensor_.type)));
    check_shape();
    switch (tensor_.type) {
      case dtype::i2_s: {
        const std::uint64_t at = tensor_.rows * tensor_.columns / 4;
        tensor_.file->read(tensor_.offset + at, std::as_writable_bytes(std::span(&scale_, 1)));
        check_scale(scale_, at);
        break;
      }
      case dtype::tq1_0:
      case dtype::tq2_0:
        find_block_scale();
        break;
      case dtype::u8:
        check_scale(scale_ = options_.packed_scale, 0);
        break;
      default:
        measure_floats();
    }
    code_scale_ = scale_;
    scale_ *= options_.factor;
    check_scale(scale_, 0);
  }

  const stored_tensor& tensor() const { return tensor_; }
  float scale() const { return scale_; }

  /// Codes -1, 0, +1 of rows [row0, row0 + count) as int8 [count, columns], with heads in NeoX order.
  /// @throws file_error for code 3, a block scale that differs from the others, or a value that is not finite
  void rows(std::uint64_t row0, std::uint64_t count, std::span<std::int8_t> codes) const {
    const std::uint64_t head = options_.rows_in_pairs;
    if (head == 0) return stored_rows(row0, count, codes);
    if (!range_inside(row0, count, tensor_.rows) || codes.size() != count * tensor_.columns)
      return stored_rows(row0, count, codes);  // it throws the error
    for (std::uint64_t row = row0; row < row0 + count; ++row)
      stored_rows(row_in_pairs(head, row), 1,
                  codes.subspan(static_cast<std::size_t>((row - row0) * tensor_.columns),
                                static_cast<std::size_t>(tensor_.columns)));
  }

 private:
  void stored_rows(std::uint64_t row0, std::uint64_t count, std::span<std::int8_t> codes) const {
    if (!range_inside(row0, count, tensor_.rows) || codes.size() != count * tensor_.columns)
      throw argument_error(
          "rows", "rows inside 0.." + std::to_string(tensor_.rows) + " and room for their codes",
          std::to_string(row0) + " + " + std::to_string(count) + ", room for " + std::to_string(codes.size()));
    buffers memory;
    const std::uint64_t step = rows_at_once();
    while (count != 0) {
      std::uint64_t some = (std::min)(step, count);
      if (tensor_.type == dtype::u8) some = (std::min)(some, tensor_.rows / 4 - row0 % (tensor_.rows / 4));
      if (tensor_.type == dtype::i2_s && options_.layout == i2s_layout::rows4) some = 1;
      read_some(row0, some, codes.data(), memory);
      codes = codes.subspan(static_cast<std::size_t>(some * tensor_.columns));
      row0 += some;
      count -= some;
    }
  }

  static constexpr std::uint64_t chunk_bytes = 1 << 18;  // stays in the cache between reading and decoding

  struct buffers {
    std::vector<std::byte> bytes;
    std::vector<float> values;
  };

  [[noreturn]] void fail(std::uint64_t at, std::string what, std::string expected = {}, std::string found = {}) const {
    throw file_error(tensor_.file->path(), tensor_.offset + at,
                     "tensor '" + printable(tensor_.name, 70) + "': " + std::move(what), std::move(expected),
                     std::move(found));
  }
  void check_scale(float scale, std::uint64_t at) const {
    if (!(scale > 0.f) || !std::isfinite(scale)) fail(at, "scale", "a finite number above 0", std::to_string(scale));
  }
  void check_shape() const {
    const std::uint64_t block = tensor_.type == dtype::i2_s && options_.layout != i2s_layout::block128
                                    ? (options_.layout == i2s_layout::block64 ? 64 : 1)
                                    : info(tensor_.type).block_elements;
    const std::string shape = "[" + std::to_string(tensor_.rows) + ", " + std::to_string(tensor_.columns) + "]";
    const checked_size elements = checked_size{tensor_.rows} * tensor_.columns;
    if (!elements || elements.value() == 0 || tensor_.columns % block != 0)
      fail(0, "rows of whole blocks of " + std::to_string(block), "columns divisible by it", shape);
    const bool four_rows =
        tensor_.type == dtype::u8 || (tensor_.type == dtype::i2_s && options_.layout == i2s_layout::rows4);
    if (four_rows && tensor_.rows % 4 != 0) fail(0, "packed by four rows", "rows divisible by 4", shape);
    const checked_size bytes = tensor_.type == dtype::u8 ? elements / 4
                               : tensor_.type == dtype::i2_s
                                   ? elements / 4 + 32
                                   : checked_size{row_bytes(tensor_.type, tensor_.columns)} * tensor_.rows;
    if (!bytes.fits(tensor_.bytes) || bytes.value() != tensor_.bytes)
      fail(0, "size", std::to_string(bytes.value()) + " bytes for " + shape, std::to_string(tensor_.bytes));
  }

  std::uint64_t stored_row_bytes() const {
    return tensor_.type == dtype::i2_s ? tensor_.columns / 4
           : tensor_.type == dtype::u8 ? tensor_.columns
                                       : row_bytes(tensor_.type, tensor_.columns);
  }
  std::uint64_t rows_at_once() const {
    return (std::max<std::uint64_t>)(1, chunk_bytes / (std::max<std::uint64_t>)(1, stored_row_bytes()));
  }

  const std::uint8_t* fetch(std::uint64_t at, std::uint64_t count, std::vector<std::byte>& bytes) const {
    bytes.resize(static_cast<std::size_t>(count));
    tensor_.file->read(tensor_.offset + at, bytes);
    return reinterpret_cast<const std::uint8_t*>(bytes.data());
  }

  void read_some(std::uint64_t row0, std::uint64_t count, std::int8_t* codes, buffers& memory) const {
    std::vector<std::byte>& bytes = memory.bytes;
    const std::uint64_t row = stored_row_bytes();
    switch (tensor_.type) {
      case dtype::i2_s:
        if (options_.layout == i2s_layout::rows4) {
          const std::uint64_t at = row0 / 4 * tensor_.columns;
          unpack_field(fetch(at, tensor_.columns, bytes), tensor_.columns, static_cast<unsigned>(6 - 2 * (row0 % 4)),
                       codes, at);
        } else {
          unpack_i2_s(fetch(row0 * row, count * row, bytes), count * row, codes, row0 * row);
        }
        break;
      case dtype::u8: {
        const std::uint64_t quarter = tensor_.rows / 4, at = row0 % quarter * row;
        unpack_field(fetch(at, count * row, bytes), count * row, static_cast<unsigned>(2 * (row0 / quarter)), codes,
                     at);
        break;
      }
      case dtype::tq1_0:
      case dtype::tq2_0:
        unpack_tq(fetch(row0 * row, count * row, bytes), count * row, codes, row0 * row);
        break;
      default:
        ternarise(fetch(row0 * row, count * row, bytes), count, memory.values, codes, row0 * row);
    }
  }

  /// One 2-bit field of each byte.
  void unpack_field(const std::uint8_t* from, std::uint64_t count, unsigned shift, std::int8_t* codes,
                    std::uint64_t at) const {
    std::uint64_t threes = 0, i = 0;
    for (; i + 8 <= count; i += 8) {
      const std::uint64_t digits = codec_lanes::field(codec_lanes::load(from + i), shift);
      threes |= digits & (digits >> 1);
      codec_lanes::store_codes(codes + i, digits);
    }
    for (; i < count; ++i) {
      const unsigned code = (static_cast<unsigned>(from[i]) >> shift) & 3u;
      threes |= code & (code >> 1);
      codes[i] = static_cast<std::int8_t>(static_cast<int>(code) - 1);
    }
    if ((threes & codec_lanes::ones) != 0)
      for (i = 0; i < count; ++i)
        if (((from[i] >> shift) & 3) == 3) fail(at + i, "ternary code", "0, 1 or 2", "3");
  }

  void unpack_i2_s(const std::uint8_t* from, std::uint64_t count, std::int8_t* codes, std::uint64_t at) const {
    const std::size_t group = options_.layout == i2s_layout::block64 ? 16 : 32;
    std::uint64_t threes = 0;
    for (std::uint64_t b = 0; b < count; b += group, codes += 4 * group)
      if (group == 32) threes |= unpack_block<32>(from + b, codes);
      else threes |= unpack_block<16>(from + b, codes);
    if ((threes & (0x55 * codec_lanes::ones)) != 0) find_three(from, count, at);
  }
  /// Elements j, j + group, j + 2 group, j + 3 group share byte j, the first in the highest bits.
  template <std::size_t group>
  static std::uint64_t unpack_block(const std::uint8_t* from, std::int8_t* codes) {
    std::uint64_t threes = 0;
    for (std::size_t j = 0; j < group; j += 8) {
      const std::uint64_t word = codec_lanes::load(from + j);
      threes |= word & (word >> 1);  // bits that come from the neighbouring byte are at odd positions
      for (std::size_t part = 0; part < 4; ++part)
        codec_lanes::store_codes(codes + j + part * group,
                                 codec_lanes::field(word, static_cast<unsigned>(6 - 2 * part)));
    }
    return threes;
  }
  void find_three(const std::uint8_t* from, std::uint64_t count, std::uint64_t at) const {
    for (std::uint64_t i = 0; i < count; ++i)
      if ((from[i] & (from[i] >> 1) & 0x55) != 0)
        fail(at + i, "ternary code", "0, 1 or 2", "3 in byte " + hexadecimal(from[i]));
  }

  void unpack_tq(const std::uint8_t* from, std::uint64_t count, std::int8_t* codes, std::uint64_t at) const {
    const std::uint64_t size = info(tensor_.type).block_bytes;
    for (std::uint64_t b = 0; b < count; b += size, codes += 256) {
      const float d = codec_blocks::f16_at(from + b + size - 2);
      if (d != code_scale_ && d != 0.f)
        fail(at + b, "block " + std::to_string((at + b) / size) + ": scale unlike the other blocks'",
             std::to_string(code_scale_), std::to_string(d));
      if (tensor_.type == dtype::tq1_0) {
        tq1_0_codes(from + b, codes);
      } else {
        std::uint64_t threes = 0;
        for (std::uint64_t j = 0; j < 64; j += 8) {
          const std::uint64_t word = codec_lanes::load(from + b + j);
          threes |= word & (word >> 1);
        }
        if ((threes & (0x55 * codec_lanes::ones)) != 0) find_three(from + b, 64, at + b);
        tq2_0_codes(from + b, codes);
      }
      if (d == 0.f) std::memset(codes, 0, 256);
    }
  }

  /// Finds the first block scale that is not 0: blocks of zeros have none.
  void find_block_scale() {
    const std::uint64_t size = info(tensor_.type).block_bytes, blocks = tensor_.bytes / size, step = chunk_bytes / size;
    std::vector<std::byte> bytes;
    for (std::uint64_t b = 0; b < blocks; b += step) {
      const std::uint64_t some = (std::min)(step, blocks - b);
      const std::uint8_t* from = fetch(b * size, some * size, bytes);
      for (std::uint64_t i = 0; i < some; ++i)
        if (const float d = codec_blocks::f16_at(from + (i + 1) * size - 2); d != 0.f) {
          check_scale(d, (b + i) * size);
          scale_ = d;
          return;
        }
    }
    fail(0, "scale of all blocks", "a finite number above 0", "0");
  }

  void measure_floats() {
    const std::uint64_t row = stored_row_bytes(), step = rows_at_once();
    std::vector<std::byte> bytes;
    std::vector<float> values;
    std::array<double, 4> sums{};  // four sums, because each addition waits for the one before
    float magnitude = 0.f;
    bool ternary = true;
    for (std::uint64_t r = 0; r < tensor_.rows; r += step) {
      const std::uint64_t some = (std::min)(step, tensor_.rows - r);
      decode_finite(fetch(r * row, some * row, bytes), some, values, r * row);
      for (std::size_t i = 0; i < values.size(); ++i) sums[i % 4] += static_cast<double>(std::fabs(values[i]));
      for (std::size_t i = 0; ternary && i < values.size(); ++i)
        if (const float size = std::fabs(values[i]); size != 0.f) {
          ternary = magnitude == 0.f || magnitude == size;
          magnitude = size;
        }
    }
    const double sum = sums[0] + sums[1] + sums[2] + sums[3];
    if (ternary) {
      scale_ = magnitude != 0.f ? magnitude : 1e-5f;
      ternary_ = true;
      return;
    }
    scale_ = (std::max)(
        static_cast<float>(sum / (static_cast<double>(tensor_.rows) * static_cast<double>(tensor_.columns))), 1e-5f);
    check_scale(scale_, 0);
    inverse_ = 1.f / scale_;
    if (tensor_.type == dtype::bf16) scale_ = f32_from_bf16(bf16_from_f32(scale_));
    if (tensor_.type == dtype::f16) scale_ = f32_from_f16(f16_from_f32(scale_));
  }

  void decode_finite(const std::uint8_t* from, std::uint64_t count, std::vector<float>& values,
                     std::uint64_t at) const {
    values.resize(static_cast<std::size_t>(count * tensor_.columns));
    decode_row(tensor_.type,
               {reinterpret_cast<const std::byte*>(from), static_cast<std::size_t>(count * stored_row_bytes())},
               values);
    bool finite = true;
    for (const float value : values) finite &= std::fabs(value) <= (std::numeric_limits<float>::max)();
    for (std::size_t i = 0; !finite && i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        fail(at + i * info(tensor_.type).block_bytes, "value", "a finite number", std::to_string(values[i]));
  }

  void ternarise(const std::uint8_t* from, std::uint64_t count, std::vector<float>& values, std::int8_t* codes,
                 std::uint64_t at) const {
    decode_finite(from, count, values, at);
    if (ternary_) {  // the inverse of a tiny scale may be infinite
      for (std::size_t i = 0; i < values.size(); ++i)
        codes[i] = static_cast<std::int8_t>((values[i] > 0.f) - (values[i] < 0.f));
      return;
    }
    // |w| / scale rounds to 0 up to 0.5 (ties to even), and to at least 1 above.
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float ratio = values[i] * inverse_;
      codes[i] = static_cast<std::int8_t>((ratio > 0.5f) - (ratio < -0.5f));
    }
  }

  stored_tensor tensor_;
  ternary_options options_;
  float scale_ = 0.f, code_scale_ = 0.f, inverse_ = 0.f;
  bool ternary_ = false;
};

}  // namespace intaglio::io
