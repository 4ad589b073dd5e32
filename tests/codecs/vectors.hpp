// SPDX-License-Identifier: MIT
// Blocks of each codec and their values, as ggml's C decodes them: ../shared/conformance2/codecs.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include "shared.hpp"

namespace intaglio::testing {

/// The data of an .npy file of version 1.
inline std::string npy_data(const std::string& name) {
  std::ifstream file(shared("conformance2/codecs/" + name), std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(all.size() > 10);
  const std::size_t header = static_cast<unsigned char>(all[8]) + 256u * static_cast<unsigned char>(all[9]);
  return all.substr(10 + header);
}
inline std::string upper(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

/// Blocks of each codec's file.
inline constexpr std::size_t vector_blocks = 64;

}  // namespace intaglio::testing
