// SPDX-License-Identifier: MIT
#include "intaglio/io/merge_symbols.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace intaglio::io;

namespace {

/// The definition itself: look at all pairs, merge the best, begin again.
void merge_by_definition(std::vector<symbol>& symbols, const merge_index& merges) {
  for (;;) {
    std::size_t best = symbols.size();
    token_merge best_merge{0, -1};
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto merge = merges.find(symbols[i].id, symbols[i + 1].id);
      if (merge.result >= 0 && (best == symbols.size() || merge.rank < best_merge.rank)) best = i, best_merge = merge;
    }
    if (best == symbols.size()) return;
    symbols[best].bytes += symbols[best + 1].bytes, symbols[best].id = best_merge.result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<std::int32_t> ids(const std::vector<symbol>& symbols) {
  std::vector<std::int32_t> out;
  for (const auto& s : symbols) out.push_back(s.id);
  return out;
}

}  // namespace

TEST_CASE("merging equals its definition for pieces of every length, with and without equal ranks") {
  std::mt19937 random(11);
  for (const bool ties : {false, true}) {
    merge_scratch scratch;
    for (const std::size_t length : {2u, 3u, 17u, 47u, 48u, 49u, 200u, 1500u, 8192u, 8193u, 9000u}) {
      // Tokens 0..3 are single; each further one joins two that exist.
      merge_index merges{400};
      for (std::int32_t id = 4; id < 200; ++id) {
        const auto limit = static_cast<std::uint32_t>(id);
        merges.insert(static_cast<std::int32_t>(random() % limit), static_cast<std::int32_t>(random() % limit),
                      {static_cast<std::uint32_t>(random() % (ties ? 5u : 100'000u)), id});
      }
      std::vector<symbol> symbols;
      for (std::size_t i = 0; i < length; ++i)
        symbols.push_back({static_cast<std::uint32_t>(i), 1, static_cast<std::int32_t>(random() % 4)});
      scratch.symbols = symbols;
      merge_symbols(scratch, [&](const symbol& a, const symbol& b) { return merges.find(a.id, b.id); });
      merge_by_definition(symbols, merges);
      INFO(length << (ties ? " with ties" : ""));
      REQUIRE(ids(scratch.symbols) == ids(symbols));
    }
  }
}

TEST_CASE("a candidate whose right side was swallowed is passed over, at the end of a long piece too") {
  // x y z: y z becomes w first, then x w becomes v; what x y would have become comes too late.
  constexpr std::int32_t x = 1, y = 2, z = 3, w = 4, v = 5, u = 6;
  merge_index merges{3};
  merges.insert(y, z, {0, w});
  merges.insert(x, w, {1, v});
  merges.insert(x, y, {2, u});
  for (const std::uint32_t before : {0u, 60u, 9000u}) {
    merge_scratch scratch;
    std::vector<std::int32_t> expected(before, 0);
    expected.push_back(v);
    for (std::uint32_t i = 0; i < before + 3; ++i)
      scratch.symbols.push_back({i, 1, i < before ? 0 : static_cast<std::int32_t>(i - before) + x});
    merge_symbols(scratch, [&](const symbol& a, const symbol& b) { return merges.find(a.id, b.id); });
    CHECK(ids(scratch.symbols) == expected);
  }
}
