// SPDX-License-Identifier: MIT
#include "intaglio/plan/order.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;
using plan::access;
using plan::region;

namespace {
constexpr plan::dispatch touching(std::initializer_list<access> list) {
  plan::dispatch d;
  for (const auto& a : list) d.accesses[d.access_count++] = a;
  return d;
}
constexpr access reads(std::uint64_t offset, std::uint64_t bytes, region where = region::arena) {
  return {where, false, 0, offset, bytes};
}
constexpr access writes(std::uint64_t offset, std::uint64_t bytes, region where = region::arena) {
  return {where, true, 0, offset, bytes};
}

static_assert(!plan::conflict(reads(0, 16), reads(0, 16)), "two reads commute");
static_assert(plan::conflict(writes(0, 16), reads(15, 1)) && plan::conflict(reads(0, 16), writes(8, 4)) &&
              plan::conflict(writes(0, 4), writes(0, 4)));
static_assert(!plan::conflict(writes(0, 16), reads(16, 16)), "neighbours do not touch");
static_assert(!plan::conflict(writes(0, 16), reads(0, 16, region::state)), "other memory");

constexpr auto barriers(std::vector<plan::dispatch> prologue, std::vector<plan::dispatch> period, std::uint32_t layers,
                        const layer_pattern& pattern = {}) {
  std::vector<plan::dispatch> epilogue;
  plan::order(prologue, period, epilogue, pattern, layers);
  unsigned bits = 0;
  for (std::size_t i = 0; i < period.size(); ++i) bits |= period[i].barrier ? 1u << i : 0u;
  return bits;
}
// Independent work needs none; a chain needs one each.
static_assert(barriers({}, {touching({writes(0, 16)}), touching({writes(16, 16)}), touching({reads(32, 4)})}, 1) ==
              0b000);
static_assert(barriers({}, {touching({writes(0, 16)}), touching({reads(0, 16), writes(16, 16)})}, 1) == 0b10);
// The second layer overwrites what the first one still reads.
static_assert(barriers({}, {touching({writes(0, 16)}), touching({reads(0, 16), writes(16, 16)})}, 2) == 0b11);
// Every layer has a cache of its own: no barrier between layers for it alone.
static_assert(barriers({}, {touching({writes(0, 16, region::keys)})}, 2) == 0b0);
static_assert(barriers({}, {touching({writes(0, 16, region::keys)}), touching({reads(0, 16, region::keys)})}, 2) ==
              0b10);
// The prologue's write is waited for in the first layer.
static_assert(barriers({touching({writes(0, 16)})}, {touching({reads(0, 16)})}, 1) == 0b1);

// Two kinds of block, one dispatch each: the first kind meets itself, the second and what the first wrote.
constexpr plan::dispatch of_block(std::uint8_t block, std::initializer_list<access> list) {
  plan::dispatch d = touching(list);
  d.block = block;
  return d;
}
constexpr layer_pattern third{3, {0, 0, 1}};
static_assert(barriers({}, {of_block(0, {writes(0, 16)}), of_block(1, {writes(16, 16)})}, 2, third) == 0b01,
              "the second kind never runs");
static_assert(barriers({}, {of_block(0, {writes(0, 16)}), of_block(1, {writes(16, 16)})}, 3, third) == 0b01,
              "the second kind runs once, on bytes of its own");
static_assert(barriers({}, {of_block(0, {writes(0, 16), reads(16, 16)}), of_block(1, {writes(16, 16)})}, 3, third) ==
              0b11);
static_assert(barriers({}, {of_block(0, {reads(16, 16)}), of_block(1, {writes(16, 16)})}, 4, third) == 0b11,
              "in the fourth layer the first kind follows the second");
// As many layers as show every pair of neighbours, ending as the last layer does.
static_assert(plan::layers_to_walk({}, 0) == 0 && plan::layers_to_walk({}, 1) == 1 &&
              plan::layers_to_walk({}, 30) == 2);
static_assert(
    plan::layers_to_walk(third, 5) == 4 && plan::layers_to_walk(third, 6) == 6 && plan::layers_to_walk(third, 8) == 4,
    "the pairs 00, 01 and 10 occur in the first four layers; the sixth layer is of kind 1, the others of kind 0");
static_assert(plan::layers_to_walk({6, {0, 0, 0, 0, 0, 1}}, 34) == 7);
// A list that does not repeat: one layer of another kind in front of all others, or between them.
static_assert(plan::layers_to_walk({47, {1}}, 47) == 3 && plan::layers_to_walk({40, {0, 0, 0, 0, 1}}, 40) == 6);
}  // namespace

TEST_CASE("one barrier serves several hazards", "[plan][order]") {
  std::vector<plan::dispatch> prologue{touching({writes(0, 16)}), touching({writes(16, 16)})},
      period{touching({reads(0, 32)}), touching({reads(0, 32)})}, epilogue;
  plan::order(prologue, period, epilogue, {}, 3);
  CHECK_FALSE(prologue[1].barrier);
  CHECK(period[0].barrier);
  CHECK_FALSE(period[1].barrier);
}
