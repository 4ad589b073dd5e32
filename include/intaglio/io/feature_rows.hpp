// SPDX-License-Identifier: MIT
// The vectors of an FFN's features in a feature index (docs/walk.md): one row for each feature, without gaps, in a
// codec of files or as ternary words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/codec.hpp"
#include "intaglio/io/codec_encode.hpp"

namespace intaglio::io {

/// The vectors of a feature: gate decides when it is active, up scales it, and down is what it writes.
enum class feature_vector : std::uint8_t { gate, up, down };
/// All vectors of a feature, in the order of the enumeration.
inline constexpr feature_vector feature_vectors[] = {feature_vector::gate, feature_vector::up, feature_vector::down};
/// The name of a vector of a feature.
constexpr std::string_view name(feature_vector which) {
  return which == feature_vector::gate ? "gate" : which == feature_vector::up ? "up" : "down";
}

/// Columns of a ternary word. In an index dtype::i2_s stands for ternary words: columns 16w .. 16w+15 of a row are word
/// w, and the code (0, 1, 2 for -1, 0, +1) of its column c is at bit 8 (c % 4) + 2 (c / 4), as in
/// kernels/ternary_layout.hpp. All rows of a matrix share one scale, which the manifest has.
inline constexpr std::uint32_t ternary_word_columns = 16;
/// The bit at which a column's code begins in its ternary word.
constexpr std::uint32_t ternary_word_shift(std::uint32_t column) { return 8 * (column % 4) + 2 * (column / 4); }

/// The name of a type in the manifest.
constexpr std::string_view feature_type_name(dtype type) { return type == dtype::i2_s ? "ternary" : name(type); }
/// Whether vectors of a feature index may have a type.
constexpr bool is_feature_type(dtype type) {
  return type == dtype::i2_s || (is_decodable(type) && type != dtype::tq1_0 && type != dtype::tq2_0);
}
/// The type with a name in the manifest; absent for other names.
constexpr std::optional<dtype> feature_type_from_name(std::string_view text) {
  for (const auto& row : dtype_table)
    if (is_feature_type(row.type) && feature_type_name(row.type) == text) return row.type;
  return std::nullopt;
}

/// The number of which a row's columns must be a multiple.
constexpr std::uint32_t feature_row_step(dtype type) {
  return type == dtype::i2_s ? ternary_word_columns : info(type).block_elements;
}
/// Bytes of a row of `columns`, a multiple of feature_row_step.
constexpr std::uint64_t feature_row_bytes(dtype type, std::uint64_t columns) {
  return type == dtype::i2_s ? columns / 4 : row_bytes(type, columns);
}

/// Ternary words of codes -1, 0, +1. @shape codes: whole words; out: 4 bytes for each 16
inline void encode_ternary_words(std::span<const std::int8_t> codes, std::span<std::byte> out) {
  for (std::size_t word = 0; word < codes.size() / ternary_word_columns; ++word) {
    std::uint32_t bits = 0;
    for (std::uint32_t c = 0; c < ternary_word_columns; ++c)
      bits |= static_cast<std::uint32_t>(codes[word * ternary_word_columns + c] + 1) << ternary_word_shift(c);
    std::memcpy(out.data() + 4 * word, &bits, 4);
  }
}
/// Codes of ternary words. The field value 3 gives 2.
inline void decode_ternary_words(std::span<const std::byte> words, std::span<std::int8_t> codes) {
  for (std::size_t word = 0; word < words.size() / 4; ++word) {
    std::uint32_t bits;
    std::memcpy(&bits, words.data() + 4 * word, 4);
    for (std::uint32_t c = 0; c < ternary_word_columns; ++c)
      codes[word * ternary_word_columns + c] =
          static_cast<std::int8_t>(static_cast<std::int32_t>((bits >> ternary_word_shift(c)) & 3u) - 1);
  }
}

/// Values of whole rows. @param scale of ternary words
inline void decode_feature_rows(dtype type, std::span<const std::byte> rows, float scale, std::span<float> out) {
  if (type != dtype::i2_s) return decode_row(type, rows, out);
  std::int8_t codes[ternary_word_columns];
  for (std::size_t word = 0; word < rows.size() / 4; ++word) {
    decode_ternary_words(rows.subspan(4 * word, 4), codes);
    for (std::size_t c = 0; c < ternary_word_columns; ++c)
      out[word * ternary_word_columns + c] = static_cast<float>(codes[c]) * scale;
  }
}

/// The byte offset of the first value that is not finite, or of a ternary field that is no code, and its description.
struct feature_fault {
  std::uint64_t byte = 0;
  std::string_view found;
};
/// Searches for such a fault in bytes that begin at a row (for floats and ternary words, at an element).
inline std::optional<feature_fault> find_feature_fault(dtype type, std::span<const std::byte> bytes) {
  if (type == dtype::i2_s) {
    for (std::size_t word = 0; word < bytes.size() / 4; ++word) {
      std::uint32_t bits;
      std::memcpy(&bits, bytes.data() + 4 * word, 4);
      if ((bits & (bits >> 1) & 0x55555555u) != 0) return feature_fault{4 * word, "ternary code 3"};
    }
    return std::nullopt;
  }
  constexpr std::size_t most = 4096;
  const auto& layout = info(type);
  float values[most];
  const std::size_t step = most / layout.block_elements * layout.block_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const auto part = bytes.subspan(at, (std::min)(step, bytes.size() - at));
    const std::span<float> decoded(values, part.size() / layout.block_bytes * layout.block_elements);
    decode_row(type, part, decoded);
    if (codec_blocks::all_finite(decoded)) continue;
    for (std::size_t i = 0; i < decoded.size(); ++i)
      if (!std::isfinite(decoded[i]))
        return feature_fault{at + i / layout.block_elements * layout.block_bytes,
                             std::isnan(decoded[i]) ? "NaN" : "infinity"};
  }
  return std::nullopt;
}

}  // namespace intaglio::io
