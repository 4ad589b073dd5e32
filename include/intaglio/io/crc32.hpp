// SPDX-License-Identifier: MIT
// CRC-32 as ZIP uses it (ISO 3309: polynomial 0xEDB88320, reflected), eight bytes a step.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace intaglio::io {

/// Tables for eight bytes at a time.
using crc32_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// The tables of the checksum. The first call computes them, because 8 KiB in each program cost more.
[[gnu::cold]] inline crc32_tables make_crc32_tables() {
  crc32_tables out{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
    out[0][byte] = value;
  }
  for (std::size_t table = 1; table < out.size(); ++table)
    for (std::size_t byte = 0; byte < 256; ++byte)
      out[table][byte] = (out[table - 1][byte] >> 8) ^ out[0][out[table - 1][byte] & 0xFF];
  return out;
}

/// Checksum of bytes. @param before checksum of the bytes in front of them, where these continue others
inline std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  static_assert(std::endian::native == std::endian::little);
  static const crc32_tables table = make_crc32_tables();
  std::uint32_t value = ~before;
  std::size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    std::uint32_t low, high;
    std::memcpy(&low, bytes.data() + at, 4);
    std::memcpy(&high, bytes.data() + at + 4, 4);
    low ^= value;
    value = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24] ^
            table[3][high & 0xFF] ^ table[2][(high >> 8) & 0xFF] ^ table[1][(high >> 16) & 0xFF] ^ table[0][high >> 24];
  }
  for (; at < bytes.size(); ++at)
    value = (value >> 8) ^ table[0][(value ^ static_cast<std::uint32_t>(bytes[at])) & 0xFF];
  return ~value;
}

}  // namespace intaglio::io
