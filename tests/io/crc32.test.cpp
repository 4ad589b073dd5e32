// SPDX-License-Identifier: MIT
#include "intaglio/io/crc32.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string_view>

using intaglio::io::crc32;

namespace {
std::uint32_t of(std::string_view text, std::uint32_t before = 0) {
  return crc32(std::as_bytes(std::span(text)), before);
}
}  // namespace

TEST_CASE("crc32: the checksum that ZIP files use, at once or in parts") {
  CHECK(of("") == 0);
  CHECK(of("123456789") == 0xCBF43926);  // the check value of the standard
  constexpr std::string_view text = "The quick brown fox jumps over the lazy dog";
  CHECK(of(text) == 0x414FA339);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(of(text.substr(cut), of(text.substr(0, cut))) == 0x414FA339);
}
