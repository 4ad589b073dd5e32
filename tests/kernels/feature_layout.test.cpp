// SPDX-License-Identifier: MIT
#include "intaglio/kernels/feature_layout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace intaglio;
using namespace intaglio::kernels;

static_assert(feature_bytes(3, 64) == 48);

TEST_CASE("feature layout: every code of rows and of columns is where it is looked for") {
  constexpr std::uint64_t features = 37, width = 64;
  std::vector<std::int8_t> by_feature(features * width), by_column(by_feature.size());
  for (std::uint64_t f = 0; f < features; ++f)
    for (std::uint64_t c = 0; c < width; ++c)
      by_feature[f * width + c] = by_column[c * features + f] =
          static_cast<std::int8_t>(static_cast<int>((f * 7 + c * 5 + f * c) % 3) - 1);
  const auto expect_from = [&](std::uint64_t first, std::span<const std::uint32_t> words) {
    for (std::uint64_t f = 0; f < words.size() / feature_row_words(width); ++f)
      for (std::uint64_t c = 0; c < width; ++c)
        REQUIRE(static_cast<int>(feature_code(words, f, c, width)) - 1 == by_feature[(first + f) * width + c]);
  };
  std::vector<std::uint32_t> words(features * feature_row_words(width));
  pack_feature_rows(by_feature, words);
  expect_from(0, words);
  for (const auto& [first, count] : {std::pair<std::uint64_t, std::uint64_t>{0, features}, {5, 20}, {36, 1}}) {
    std::vector<std::uint32_t> part(count * feature_row_words(width));
    for (std::uint64_t word = 0; word < width / 16; ++word)
      pack_feature_columns(std::span<const std::int8_t>(by_column).subspan(word * 16 * features, 16 * features),
                           features, first, word, width, part);
    expect_from(first, part);
  }
  CHECK_THROWS_AS(
      pack_feature_columns(std::span<const std::int8_t>(by_column).first(16 * features), features, 1, 0, width, words),
      argument_error);
  CHECK_THROWS_AS(
      pack_feature_columns(std::span<const std::int8_t>(by_column).first(15 * features), features, 0, 0, width, words),
      argument_error);
}
