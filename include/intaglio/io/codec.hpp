// SPDX-License-Identifier: MIT
// Decoding rows of stored weights to f32, bit for bit by the rules of ggml's dequantize_row functions (ggml-quants.c).
// d, m and dmin are f16 widened to f32. Every product below is exact in f32 (at most 24 bits), so fused multiply-add
// changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "intaglio/codecs/decode.hpp"
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/float16.hpp"
#include "intaglio/io/f16_rows.hpp"

namespace intaglio::io {

/// Whether decode_row reads the type.
constexpr bool is_decodable(dtype type) {
  return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16 || type == dtype::tq1_0 ||
         type == dtype::tq2_0 || codecs::is_listed(type);
}

/// Bytes of a row of `columns` elements, which must be whole blocks.
constexpr std::uint64_t row_bytes(dtype type, std::uint64_t columns) {
  return columns / info(type).block_elements * info(type).block_bytes;
}

/// The five ternary digits of a TQ1_0 byte, first digit first, each 0, 1 or 2.
constexpr std::array<std::uint8_t, 5> tq1_0_digits(std::uint8_t byte) {
  std::array<std::uint8_t, 5> out{};
  unsigned power = 1;
  for (auto& digit : out) {
    digit = static_cast<std::uint8_t>((((byte * power) & 0xFFu) * 3u) >> 8);
    power *= 3;
  }
  return out;
}

namespace codec_lanes {
/// Bits 0 and bits 7 of the eight bytes of a word: compilers do not vectorise the plain loops at -O2.
inline constexpr std::uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;

/// Eight bytes as a word.
inline std::uint64_t load(const std::uint8_t* from) {
  std::uint64_t out;
  std::memcpy(&out, from, 8);
  return out;
}
/// Stores the digits 0..3 of each byte as -1..2.
inline void store_codes(std::int8_t* to, std::uint64_t digits) {
  const std::uint64_t codes = ((digits | highs) - ones) ^ highs;  // bytes do not borrow from their neighbours
  std::memcpy(to, &codes, 8);
}
/// The 2-bit field at `shift` of each byte as a digit.
inline std::uint64_t field(std::uint64_t word, unsigned shift) { return (word >> shift) & (3 * ones); }
}  // namespace codec_lanes

/// Codes -1, 0, +1 of one TQ1_0 block (54 bytes, 256 elements); its last two bytes are the f16 scale.
inline void tq1_0_codes(const std::uint8_t* block, std::int8_t* out) {
  // Writes `digits` trits of 8 bytes; trit n goes to out + n * stride. After multiplication by 3 the digit is the
  // overflow of the byte.
  const auto eight = [](const std::uint8_t* from, std::int8_t* to, std::size_t stride, std::size_t digits) {
    constexpr std::uint64_t low = 0x00FF00FF00FF00FFu;
    const std::uint64_t word = codec_lanes::load(from);
    std::uint64_t even = word & low, odd = (word >> 8) & low;
    for (std::size_t n = 0; n < digits; ++n) {
      even *= 3;
      odd *= 3;
      codec_lanes::store_codes(to + n * stride, ((even >> 8) & low) | (odd & ~low));
      even &= low;
      odd &= low;
    }
  };
  for (std::size_t m = 0; m < 32; m += 8) eight(block + m, out + m, 32, 5);
  for (std::size_t m = 0; m < 16; m += 8) eight(block + 32 + m, out + 160 + m, 16, 5);
  for (std::size_t m = 0; m < 4; ++m) {
    const auto digits = tq1_0_digits(block[48 + m]);
    for (std::size_t n = 0; n < 4; ++n) out[240 + 4 * n + m] = static_cast<std::int8_t>(digits[n] - 1);
  }
}

/// Codes -1, 0, +1 (and +2 for the unused field value 3) of one TQ2_0 block (66 bytes, 256 elements).
inline void tq2_0_codes(const std::uint8_t* block, std::int8_t* out) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 4; ++l)
      for (std::size_t m = 0; m < 32; m += 8)
        codec_lanes::store_codes(
            out + 128 * half + 32 * l + m,
            codec_lanes::field(codec_lanes::load(block + 32 * half + m), static_cast<unsigned>(2 * l)));
}

namespace codec_blocks {

/// Two bytes as a little-endian number.
inline std::uint16_t u16_at(const std::uint8_t* bytes) {
  std::uint16_t out;
  std::memcpy(&out, bytes, 2);
  return out;
}
/// Two bytes as an f16.
inline float f16_at(const std::uint8_t* bytes) { return f16_rows::widen(u16_at(bytes)); }

/// The values of 256 codes with a scale. @shape codes, out: [256]
inline void scaled_codes(const std::int8_t* codes, float d, float* out) {
  for (std::size_t j = 0; j < 256; ++j) out[j] = static_cast<float>(codes[j]) * d;
}
/// Decodes a block of TQ1_0. @param block 54 bytes  @shape out: [256]
inline void tq1_0(const std::uint8_t* block, float* out) {
  std::array<std::int8_t, 256> codes;
  tq1_0_codes(block, codes.data());
  scaled_codes(codes.data(), f16_at(block + 52), out);
}
/// Decodes a block of TQ2_0. @param block 66 bytes  @shape out: [256]
inline void tq2_0(const std::uint8_t* block, float* out) {
  std::array<std::int8_t, 256> codes;
  tq2_0_codes(block, codes.data());
  scaled_codes(codes.data(), f16_at(block + 64), out);
}
/// Decodes blocks that follow each other. @shape out: [blocks, block_elements]
template <void (*decode)(const std::uint8_t*, float*)>
void each(const std::uint8_t* bytes, std::size_t blocks, std::size_t block_bytes, std::size_t block_elements,
          float* out) {
  for (std::size_t b = 0; b < blocks; ++b) decode(bytes + b * block_bytes, out + b * block_elements);
}

}  // namespace codec_blocks

/// Decodes out.size() elements, whole blocks, from `bytes` (row_bytes(type, out.size()) of them; any alignment).
/// @throws argument_error for sizes that do not fit together and for types without f32 values (I2_S is read by
/// ternary_tensor)
inline void decode_row(dtype type, std::span<const std::byte> bytes, std::span<float> out) {
  const auto& layout = info(type);
  if (!is_decodable(type)) throw argument_error("type", "a type with a decoding rule", std::string(layout.name));
  if (out.size() % layout.block_elements != 0 || bytes.size() != row_bytes(type, out.size()))
    throw argument_error(
        "bytes", std::to_string(row_bytes(type, out.size())) + " for whole blocks of " + std::string(layout.name),
        std::to_string(bytes.size()) + " for " + std::to_string(out.size()) + " elements");
  if (out.empty()) return;
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::size_t blocks = out.size() / layout.block_elements, size = layout.block_bytes,
                    length = layout.block_elements;
  switch (type) {
    case dtype::f32:
      std::memcpy(out.data(), from, bytes.size());
      break;
    case dtype::f16:
      f32_from_f16_row(from, out.data(), out.size());
      break;
    case dtype::bf16:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = f32_from_bf16(codec_blocks::u16_at(from + 2 * i));
      break;
    case dtype::tq1_0:
      codec_blocks::each<codec_blocks::tq1_0>(from, blocks, size, length, out.data());
      break;
    case dtype::tq2_0:
      codec_blocks::each<codec_blocks::tq2_0>(from, blocks, size, length, out.data());
      break;
    default:
      codecs::decode_blocks(type, from, blocks, out.data());
  }
}

}  // namespace intaglio::io
