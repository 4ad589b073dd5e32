// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_source.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <vector>

#include "files.hpp"

using Catch::Matchers::Equals;
using Catch::Matchers::MessageMatches;
using intaglio::dtype;
using intaglio::file_error;
using namespace intaglio::io;

TEST_CASE("feature source: samples have the ends, are inside, and follow from the seed", "[feature_index]") {
  for (const std::uint64_t count : {1u, 2u, 3u, 8u, 1'000u}) {
    INFO(count);
    const auto some = sampled(count, 8, 5);
    CHECK(some.size() == std::max<std::uint64_t>(2, std::min<std::uint64_t>(8, count)));
    CHECK((some[0] == 0 && some[1] == count - 1));
    for (const std::uint64_t each : some) CHECK(each < count);
    CHECK(sampled(count, 8, 5) == some);
  }
  CHECK(sampled(1'000'000, 8, 5) != sampled(1'000'000, 8, 6));
  CHECK(sampled(1'000'000, 0, 5) == std::vector<std::uint64_t>{0, 999'999});
  // Drawn at random over the whole range: each tenth has some.
  std::vector<int> tenths(10);
  for (const std::uint64_t each : sampled(1'000'000, 1'000, 1)) ++tenths[static_cast<std::size_t>(each / 100'000)];
  for (const int each : tenths) CHECK(each > 50);
}

TEST_CASE("feature source: rows as an index holds them, or the type that cannot", "[feature_index]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto encoded = [](dtype type, std::vector<float> values) {
    bytes out(static_cast<std::size_t>(feature_row_bytes(type, values.size())));
    encode_feature_rows(type, values, out, "model", "tensor 'x'");
    return out;
  };
  const auto as_bytes = [](auto... values) { return bytes{static_cast<std::byte>(values)...}; };
  CHECK(encoded(dtype::f32, {1.f, -2.f}) == as_bytes(0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0));
  CHECK(encoded(dtype::f16, {1.f, -2.f}) == as_bytes(0, 0x3C, 0, 0xC0));
  CHECK(encoded(dtype::bf16, {1.f, -2.f}) == as_bytes(0x80, 0x3F, 0, 0xC0));
  // The largest of f16, and what rounds to it; what rounds up from there is refused.
  CHECK(encoded(dtype::f16, {65'504.f, 65'519.f}) == as_bytes(0xFF, 0x7B, 0xFF, 0x7B));
  CHECK_THROWS_MATCHES(
      encoded(dtype::f16, {1.f, 65'520.f}), file_error,
      MessageMatches(Equals("model: tensor 'x': expected values that f16 can hold, found a larger one")));
  CHECK_THROWS_MATCHES(
      encoded(dtype::bf16, {-std::numeric_limits<float>::max()}), file_error,
      MessageMatches(Equals("model: tensor 'x': expected values that bf16 can hold, found a larger one")));
  CHECK(encoded(dtype::f32, {std::numeric_limits<float>::max()}) == as_bytes(0xFF, 0xFF, 0x7F, 0x7F));
  CHECK_THROWS_AS(encoded(dtype::f16, {infinity}), file_error);
}
