// SPDX-License-Identifier: MIT
#include "intaglio/plan/bytes_moved.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;

namespace {
constexpr const plan::table& two_b = plan::engraved<models::bitnet_2b_4t, plan::profiles::portable>::table;
constexpr auto in_layer = [](std::size_t index, std::uint32_t position) {
  return plan::bytes_moved(two_b, two_b.decode, two_b.decode.period[index], position, 1);
};

// Attention reads keys and values of all positions, in f16, the query, and writes as much as the query.
constexpr std::uint64_t position_bytes = 2 * 5 * 128 * 2;
static_assert(in_layer(1, 0) == position_bytes + 2 * 2560 * 4);
static_assert(in_layer(1, 4095) == 4096 * position_bytes + 2 * 2560 * 4);

// The gate's product reads its weights and the stream, and writes half of its rows.
static_assert(in_layer(3, 0) == two_b.decode.period[3].weight_bytes + 2560 * 4 + 6912 * 4);
static_assert(in_layer(3, 0) == in_layer(3, 4000));

// A token of 2B after 128: the weights, the cache, and not a percent besides. What rises here costs every token.
constexpr std::uint64_t token = plan::bytes_moved(two_b, two_b.decode, 128, 1);
constexpr std::uint64_t needed = two_b.decode.weight_bytes() + 30 * 130 * position_bytes;
static_assert(token > needed && token < needed + needed / 100);

// A chunk reads matrices once, and one row of the embedding for each of its tokens.
constexpr auto embedding = [](std::uint32_t tokens) {
  return plan::bytes_moved(two_b, two_b.prefill, two_b.prefill.prologue[0], 0, tokens);
};
static_assert(embedding(64) == 64 * embedding(1) && embedding(1) == 2560 * 2 + 2560 * 4);
static_assert(plan::bytes_moved(two_b, two_b.prefill, 0, 64) < 2 * plan::bytes_moved(two_b, two_b.prefill, 0, 1));
}  // namespace

TEST_CASE("bytes moved grow with position and tokens") {
  for (const plan::sequence* each : {&two_b.decode, &two_b.prefill}) {
    const std::uint64_t near = plan::bytes_moved(two_b, *each, 0, 1), far = plan::bytes_moved(two_b, *each, 1000, 1);
    CHECK(far - near == 30 * 1000 * position_bytes);
  }
  CHECK(plan::bytes_moved(two_b, two_b.prefill, 0, 2) > plan::bytes_moved(two_b, two_b.prefill, 0, 1));
}
