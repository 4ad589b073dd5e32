// SPDX-License-Identifier: MIT
// Encoding rows of f32 into file codecs, with the rounding of ggml's reference quantisers (quantize_row_*_ref in
// ggml-quants.c) and, for I2_S, of quantize_i2_s in microsoft/BitNet. Codecs of blocks are in codecs/, floats and
// ternary codes here.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/float16.hpp"
#include "intaglio/io/codec.hpp"

namespace intaglio::io {

/// Whether encode_row writes the type.
constexpr bool is_encodable(dtype type) {
  return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16 || type == dtype::tq1_0 ||
         type == dtype::tq2_0 || codecs::is_encoded(type);
}

namespace codec_blocks {
/// Stores 16 bits in the byte order of the machine.
inline void put_u16(std::uint8_t* to, std::uint16_t value) { std::memcpy(to, &value, 2); }
using codecs::inverse;
using codecs::put_f16;

/// The digits 0, 1, 2 of a block by its largest magnitude, which is returned.
inline float ternary_digits(const float* x, std::uint8_t* digits) {
  float largest = 0.f;
  for (std::size_t j = 0; j < 256; ++j) largest = (std::max)(largest, std::fabs(x[j]));
  const float id = inverse(largest);
  for (std::size_t j = 0; j < 256; ++j)
    digits[j] = static_cast<std::uint8_t>(static_cast<int>(std::lround(x[j] * id)) + 1);
  return largest;
}
/// Packs five digits, the first the most significant, into the upper byte of a fraction of 3^5.
inline std::uint8_t pack_243(unsigned q) { return static_cast<std::uint8_t>((q * 256u + 242u) / 243u); }
/// Packs 256 digits and their scale as a block of TQ1_0.
inline void pack_tq1_0(const std::uint8_t* digits, float d, std::uint8_t* block) {
  const auto pack = [&](std::size_t first, std::size_t stride, std::size_t count) {
    unsigned q = 0;
    for (std::size_t n = 0; n < 5; ++n) q = q * 3u + (n < count ? digits[first + n * stride] : 0u);
    return pack_243(q);
  };
  for (std::size_t m = 0; m < 32; ++m) block[m] = pack(m, 32, 5);
  for (std::size_t m = 0; m < 16; ++m) block[32 + m] = pack(160 + m, 16, 5);
  for (std::size_t m = 0; m < 4; ++m) block[48 + m] = pack(240 + m, 4, 4);
  put_f16(block + 52, d);
}
inline void pack_tq2_0(const std::uint8_t* digits, float d, std::uint8_t* block) {  ///< packs 256 digits as TQ2_0
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t m = 0; m < 32; ++m) {
      const std::uint8_t* of = digits + 128 * half + m;
      block[32 * half + m] = static_cast<std::uint8_t>(of[0] | (of[32] << 2) | (of[64] << 4) | (of[96] << 6));
    }
  put_f16(block + 64, d);
}
inline void encode_tq1_0(const float* x, std::uint8_t* block) {  ///< encodes 256 values as a block of TQ1_0
  std::array<std::uint8_t, 256> digits;
  const float d = ternary_digits(x, digits.data());
  pack_tq1_0(digits.data(), d, block);
}
inline void encode_tq2_0(const float* x, std::uint8_t* block) {  ///< encodes 256 values as a block of TQ2_0
  std::array<std::uint8_t, 256> digits;
  const float d = ternary_digits(x, digits.data());
  pack_tq2_0(digits.data(), d, block);
}
/// Without a branch: an exponent of ones carries into the top bit.
inline bool all_finite(std::span<const float> x) {
  std::uint32_t seen = 0;
  for (const float value : x) seen |= (std::bit_cast<std::uint32_t>(value) & 0x7F800000u) + 0x00800000u;
  return seen >> 31 == 0;
}
template <void (*encode)(const float*, std::uint8_t*)>
void each_encoded(const float* x, std::size_t blocks, std::size_t block_bytes, std::size_t block_elements,
                  std::uint8_t* out) {  ///< encodes `blocks` blocks of `x`
  for (std::size_t b = 0; b < blocks; ++b) encode(x + b * block_elements, out + b * block_bytes);
}

}  // namespace codec_blocks

/// The types that encode_row writes, for messages.
inline std::string encodable_types() {
  std::string out;
  for (const auto& row : dtype_table)
    if (is_encodable(row.type)) out.append(out.empty() ? "" : " ").append(row.name);
  return out;
}

/// Encodes values, whole blocks, into `out` (row_bytes(type, x.size()) bytes). Values beyond the type's range become
/// infinities, in blocks by way of their f16 scale: a caller that cannot rule that out decodes the bytes again.
/// @throws argument_error for sizes that do not fit together, types without an encoder (ternary codes:
/// encode_ternary_rows) and, where
///         neighbours share a block, for NaN and infinities
inline void encode_row(dtype type, std::span<const float> x, std::span<std::byte> out) {
  const auto& layout = info(type);
  if (!is_encodable(type)) throw argument_error("type", encodable_types(), std::string(layout.name));
  if (x.size() % layout.block_elements != 0 || out.size() != row_bytes(type, x.size()))
    throw argument_error(
        "out", std::to_string(row_bytes(type, x.size())) + " bytes for whole blocks of " + std::string(layout.name),
        std::to_string(out.size()) + " for " + std::to_string(x.size()) + " elements");
  if (x.empty()) return;
  if (layout.block_elements > 1 && !codec_blocks::all_finite(x)) {
    const auto bad = std::find_if(x.begin(), x.end(), [](float value) { return !std::isfinite(value); });
    throw argument_error("x", "finite numbers for blocks of " + std::string(layout.name),
                         std::string(std::isnan(*bad) ? "NaN" : "infinity") + " at " + std::to_string(bad - x.begin()));
  }
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  const std::size_t blocks = x.size() / layout.block_elements, size = layout.block_bytes,
                    length = layout.block_elements;
  switch (type) {
    case dtype::f32:
      std::memcpy(to, x.data(), out.size());
      break;
    case dtype::f16:
      f16_from_f32_row(x.data(), to, x.size());
      break;
    case dtype::bf16:
      for (std::size_t i = 0; i < x.size(); ++i) codec_blocks::put_u16(to + 2 * i, bf16_from_f32(x[i]));
      break;
    case dtype::tq1_0:
      codec_blocks::each_encoded<codec_blocks::encode_tq1_0>(x.data(), blocks, size, length, to);
      break;
    case dtype::tq2_0:
      codec_blocks::each_encoded<codec_blocks::encode_tq2_0>(x.data(), blocks, size, length, to);
      break;
    default:
      codecs::encode_blocks(type, x.data(), blocks, to);
  }
}

/// Encodes rows of codes -1, 0, +1 (whole blocks each) for a tensor whose one scale is `scale`: I2_S in layout 128/32
/// (its scale follows the last row of the tensor, see i2_s_tail), TQ1_0, TQ2_0, or f32, f16, bf16 as code * scale.
inline void encode_ternary_rows(dtype type, std::span<const std::int8_t> codes, float scale, std::span<std::byte> out) {
  const auto& layout = info(type);
  if (codes.size() % layout.block_elements != 0 || out.size() != row_bytes(type, codes.size()))
    throw argument_error(
        "out", std::to_string(row_bytes(type, codes.size())) + " bytes for whole blocks of " + std::string(layout.name),
        std::to_string(out.size()) + " for " + std::to_string(codes.size()) + " codes");
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  if (type == dtype::i2_s) {
    for (std::size_t b = 0; b < codes.size() / 128; ++b)
      for (std::size_t j = 0; j < 32; ++j) {
        const std::int8_t* of = codes.data() + 128 * b + j;
        to[32 * b + j] =
            static_cast<std::uint8_t>(((of[0] + 1) << 6) | ((of[32] + 1) << 4) | ((of[64] + 1) << 2) | (of[96] + 1));
      }
  } else if (type == dtype::tq1_0 || type == dtype::tq2_0) {
    std::array<std::uint8_t, 256> digits;
    for (std::size_t b = 0; b < codes.size() / 256; ++b) {
      for (std::size_t j = 0; j < 256; ++j) digits[j] = static_cast<std::uint8_t>(codes[256 * b + j] + 1);
      // Blocks of zeros get the tensor's scale too, because some readers require that all scales are equal.
      (type == dtype::tq1_0 ? codec_blocks::pack_tq1_0 : codec_blocks::pack_tq2_0)(digits.data(), scale,
                                                                                   to + b * layout.block_bytes);
    }
  } else if (type == dtype::f32 || type == dtype::f16 || type == dtype::bf16) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const float value = codes[i] == 0 ? 0.f : codes[i] < 0 ? -scale : scale;
      encode_row(type, {&value, 1}, out.subspan(i * layout.block_bytes, layout.block_bytes));
    }
  } else {
    throw argument_error("type", "i2_s tq1_0 tq2_0 f32 f16 bf16", std::string(layout.name));
  }
}

/// The 32 bytes after the codes of an I2_S tensor: the scale and zeros.
inline std::array<std::byte, 32> i2_s_tail(float scale) {
  std::array<std::byte, 32> out{};
  std::memcpy(out.data(), &scale, 4);
  return out;
}

}  // namespace intaglio::io
