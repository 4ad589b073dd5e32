// SPDX-License-Identifier: MIT
#include "intaglio/runtime/row_copy.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace intaglio;

TEST_CASE("rows of all sizes are copied whole, and nothing behind them") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{4} << 20, (std::size_t{8} << 20) + 12}) {
    std::vector<std::byte> from(size), to(size + 1, std::byte{7});
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 31 + i / 4096);
    runtime::copy_rows(to.data(), from);
    INFO(size << " bytes");
    CHECK(std::equal(from.begin(), from.end(), to.begin()));
    CHECK(to.back() == std::byte{7});
  }
}
