// SPDX-License-Identifier: MIT
// Packed files in memory: damage with corrected checksums, so that the checks after the checksums run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "intaglio/io/packed_image.hpp"

template <class T>
T packed_field(std::span<const std::byte> file, std::size_t at) {
  T out;
  std::memcpy(&out, file.data() + at, sizeof out);
  return out;
}
template <class T>
void set_packed_field(std::span<std::byte> file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

/// Makes the checksums of header and index right where they are inside the file.
inline void reseal(std::span<std::byte> file) {
  using intaglio::io::checksum;
  if (file.size() < 64) return;
  set_packed_field(file, 56, checksum(file.first(56)));
  const auto at = packed_field<std::uint64_t>(file, 24), size = packed_field<std::uint64_t>(file, 32);
  if (at > file.size() || size > file.size() - at || file.size() - at - size < 8) return;
  set_packed_field(file, static_cast<std::size_t>(at + size),
                   checksum(file.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size))));
}
