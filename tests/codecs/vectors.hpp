// SPDX-License-Identifier: MIT
// Blocks of each codec and their values, as ggml's C decodes them. They are in tests/codecs/vectors, or where that has
// none in ../shared/conformance2/codecs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "shared.hpp"

namespace intaglio::testing {

/// The data of an .npy file of version 1.
inline std::string npy_data(const std::filesystem::path& from) {
  std::ifstream file(from, std::ios::binary);
  INFO(from.string());
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

/// A codec's blocks, and comparing of what they were decoded to.
struct codec_vectors {
  explicit codec_vectors(std::string_view codec)
      : codec_(upper(codec)), from_(folder_of(codec_)), blocks(npy_data(from_ / (codec_ + ".blocks.npy"))) {}

  /// Checks all values of all blocks, bit for bit.
  void compare(const std::vector<float>& found) const {
    INFO(codec_);
    const std::size_t each = found.size() / vector_blocks;
    if (std::filesystem::exists(from_ / (codec_ + ".sums.npy"))) {
      const std::string sums = npy_data(from_ / (codec_ + ".sums.npy"));
      REQUIRE(sums.size() == 8 * vector_blocks);
      for (std::size_t b = 0; b < vector_blocks; ++b) {
        std::uint64_t sum = 0xcbf29ce484222325u, wanted = 0;
        for (std::size_t i = 0; i < each; ++i) {
          const auto bits = std::bit_cast<std::uint32_t>(found[b * each + i]);
          for (unsigned byte = 0; byte < 4; ++byte) sum = (sum ^ (bits >> (8 * byte) & 255u)) * 0x100000001b3u;
        }
        std::memcpy(&wanted, sums.data() + 8 * b, 8);
        INFO("block " << b);
        CHECK(sum == wanted);
      }
      return;
    }
    const std::string values = npy_data(from_ / (codec_ + ".values.npy"));
    REQUIRE(values.size() == 4 * found.size());
    std::size_t differing = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::uint32_t wanted = 0;
      std::memcpy(&wanted, values.data() + 4 * i, 4);
      if (std::bit_cast<std::uint32_t>(found[i]) != wanted && ++differing == 1)
        FAIL_CHECK("value " << i << ": expected " << std::bit_cast<float>(wanted) << ", found " << found[i]);
    }
    CHECK(differing == 0);
  }

 private:
  static std::filesystem::path folder_of(const std::string& codec) {
    const std::filesystem::path own = in_source("tests/codecs/vectors");
    return std::filesystem::exists(own / (codec + ".blocks.npy")) ? own : shared("conformance2/codecs");
  }

  std::string codec_;
  std::filesystem::path from_;

 public:
  std::string blocks;
};

}  // namespace intaglio::testing
