// SPDX-License-Identifier: MIT
#include "intaglio/io/checksum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace intaglio::io;

TEST_CASE("checksum: XXH3 of 64 bits") {
  // xxhsum -H3 of xxHash 0.8.1
  CHECK(checksum({}) == 0x2D06800538D394C2ull);
}

TEST_CASE("checksum: pieces give the checksum of the whole, and each call begins anew") {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(10'000);
  for (auto& each : bytes) each = static_cast<std::byte>(random());
  running_checksum sum;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t some = std::min<std::size_t>(random() % 700, bytes.size() - at);
      sum.add(std::span(bytes).subspan(at, some));
      at += some;
    }
    CHECK(sum.take() == checksum(bytes));
  }
}
