// SPDX-License-Identifier: MIT
// Arrays for NumPy: format 1.0, float32, C order; the file appears whole or not at all.
#pragma once

#include <intaglio/io/atomic_file.hpp>

#include <bit>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

namespace intaglio::tool {

/// @throws file_error
inline void write_npy(const std::filesystem::path& path, std::span<const float> values,
                      std::initializer_list<std::uint64_t> shape) {
  static_assert(std::endian::native == std::endian::little, "the header says <f4");
  std::string dimensions;
  for (const auto each : shape)
    dimensions += std::to_string(each) + (dimensions.empty() || shape.size() > 1 ? ", " : "");
  if (shape.size() > 1) dimensions.resize(dimensions.size() - 2);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + dimensions + "), }";
  constexpr std::size_t prefix = 10;  // magic, version, length
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xFF);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  io::atomic_file file(path);
  file.write(std::as_bytes(std::span(start)));
  file.write(std::as_bytes(values));
  file.commit();
}

}  // namespace intaglio::tool
