// SPDX-License-Identifier: MIT
#include "intaglio/kernels/row_order.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using intaglio::kernels::row_order;
using intaglio::kernels::source_row;

TEST_CASE("a merged matrix holds each row of each source once", "[law]") {
  for (const row_order& order :
       {row_order::plain(7), row_order::gate_up(6), row_order::stacked(16, 8), row_order::stacked(16, 8, false),
        row_order::rope_pairs(8, 16, 8), row_order::rope_pairs(8, 16, 8, true)}) {
    INFO("order " << static_cast<int>(order.order) << ", interleaved " << order.interleaved);
    std::vector<std::vector<int>> taken;
    for (std::uint32_t tensor = 0; tensor < order.tensors(); ++tensor) taken.emplace_back(order.tensor_rows[tensor]);
    for (std::uint32_t at = 0; at < order.rows(); ++at) {
      const source_row from = order(at);
      ++taken.at(from.tensor).at(from.row);
    }
    for (const auto& each : taken) CHECK(each == std::vector<int>(each.size(), 1));
  }
}

TEST_CASE("gates are beside their up rows, and the two rows of a rotated pair beside each other") {
  constexpr row_order gated = row_order::gate_up(3);
  static_assert(gated(0) == source_row{0, 0} && gated(1) == source_row{1, 0} && gated(5) == source_row{1, 2});

  constexpr row_order halves = row_order::rope_pairs(8, 16, 8);
  for (std::uint32_t at = 0; at < 24; at += 2) {  // q and k: a pair is half a head apart in its source
    const source_row first = halves(at), second = halves(at + 1);
    CHECK(first.tensor == second.tensor);
    CHECK(second.row == first.row + 4);
    CHECK(first.row / 8 == second.row / 8);
  }

  // Where q and k hold pairs side by side they stay, while v's rows are in the same order as without.
  constexpr row_order pairs = row_order::rope_pairs(8, 16, 8, true);
  for (std::uint32_t at = 0; at < 24; ++at) CHECK(pairs(at) == source_row{at < 16 ? 0u : 1u, at < 16 ? at : at - 16});
  for (std::uint32_t at = 24; at < 32; ++at) CHECK(pairs(at) == halves(at));

  constexpr row_order after = row_order::stacked(16, 8);
  static_assert(after(15) == source_row{0, 15} && after(16) == source_row{1, 0} && after(24) == source_row{2, 0});
}
