// SPDX-License-Identifier: MIT
#include "intaglio/runtime/gate_search.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "kernels/kernel_device.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace intaglio;
using namespace intaglio::testing;
using intaglio::runtime::gate_search;
using kernels::codec;

namespace {

/// Small integers: sums are exact in f32 and in f64, and many are equal.
std::vector<float> integers(random_numbers& random, std::size_t count) {
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(random.below(7)) - 3;
  return out;
}
std::vector<reference::scored_feature> by_hand(std::span<const float> gate, std::span<const float> x,
                                               std::size_t count) {
  std::vector<double> scores(gate.size() / x.size());
  std::vector<std::uint32_t> order(scores.size());
  for (std::uint32_t f = 0; f < scores.size(); ++f) {
    order[f] = f;
    for (std::size_t i = 0; i < x.size(); ++i)
      scores[f] += static_cast<double>(gate[f * x.size() + i]) * static_cast<double>(x[i]);
  }
  std::ranges::stable_sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return std::fabs(scores[a]) > std::fabs(scores[b]); });
  std::vector<reference::scored_feature> out;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i)
    out.push_back({order[i], static_cast<float>(scores[order[i]])});
  return out;
}

struct shape {
  codec type;
  kernels::element element;
  std::uint32_t width, features, count, batch, vectors;
};
void expect_as_by_hand(gate_search& search, const shape& of, random_numbers& random) {
  INFO(kernels::info(of.type).name);
  for (int layer = 0; layer < 2; ++layer) {
    const auto gate = integers(random, std::size_t{of.width} * of.features),
               x = integers(random, std::size_t{of.width} * of.vectors);
    search.load(elements_of(gate, of.element));
    const auto found = search.nearest(x);
    REQUIRE(found.size() == of.vectors);
    for (std::size_t v = 0; v < found.size(); ++v)
      CHECK(found[v] == by_hand(gate, std::span(x).subspan(v * of.width, of.width), of.count));
  }
}

}  // namespace

TEST_CASE(
    "gate search: many vectors at once, as by brute force in f64, of equal scores the lowest feature; what cannot be "
    "is refused") {
  const gpu::device on;
  random_numbers random(41);
  constexpr shape of{codec::f32, kernels::element::f32, 36, 203, 10, 5, 12};
  gate_search search(on, of.type, of.width, of.features, of.count, of.batch);
  std::vector<float> x = integers(random, of.width), gate = integers(random, std::size_t{of.width} * of.features);
  CHECK_THROWS_MATCHES(search.nearest(x), argument_error,
                       MessageMatches(ContainsSubstring("a layer's, loaded, found none")));
  expect_as_by_hand(search, of, random);
  CHECK(search.nearest({}).empty());

  CHECK_THROWS_MATCHES(search.load(std::as_bytes(std::span(x))), argument_error,
                       MessageMatches(ContainsSubstring("expected 29232 bytes, found 144")));
  CHECK_THROWS_MATCHES(search.nearest(std::span(x).first(3)), argument_error,
                       MessageMatches(ContainsSubstring("of 36, found 3 values")));
  gate[36 * 7 + 5] = std::numeric_limits<float>::quiet_NaN();
  search.load(std::as_bytes(std::span(gate)));
  CHECK_THROWS_MATCHES(search.nearest(x), argument_error,
                       MessageMatches(ContainsSubstring("NaN as the score of feature 7")));
  x[3] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_MATCHES(search.nearest(x), argument_error, MessageMatches(ContainsSubstring("infinity at 3")));
  CHECK_THROWS_MATCHES(gate_search(on, codec::q8_0, 32, 8, 1), argument_error,
                       MessageMatches(ContainsSubstring("expected f32, f16 or bf16, found q8_0")));
  CHECK_THROWS_MATCHES(gate_search(on, codec::f32, 30, 8, 1), argument_error,
                       MessageMatches(ContainsSubstring("a multiple of 4, found 30")));
  CHECK_THROWS_AS(gate_search(on, codec::f32, 32, 0, 1), argument_error);
  CHECK(on.validation_messages().empty());
}

TEST_CASE("gate search: gates of 16 bits, all features, a vector at a time", "[once]") {
  const gpu::device on;
  random_numbers random(42);
  for (const shape& of : {shape{codec::f16, kernels::element::f16, 128, 90, 90, 16, 9},
                          shape{codec::bf16, kernels::element::bf16, 64, 150, 33, 1, 2}}) {
    gate_search search(on, of.type, of.width, of.features, of.count, of.batch);
    CHECK(search.count() == of.count);
    expect_as_by_hand(search, of, random);
  }
}
