// SPDX-License-Identifier: MIT
// Files that tests make and remove.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"
#include "temporary_folder.hpp"

using bytes = std::vector<std::byte>;

inline bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}
/// An error's line and all causes after it, a line each.
inline std::string whole_text(const intaglio::error& problem) {
  std::string out = problem.what();
  for (const std::string& line : problem.details()) out += "\n" + line;
  return out;
}
inline std::filesystem::path write_bytes(const std::filesystem::path& path, std::span<const std::byte> data) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return path;
}
inline std::filesystem::path write_text(const std::filesystem::path& path, std::string_view text) {
  return write_bytes(path, std::as_bytes(std::span(text)));
}
