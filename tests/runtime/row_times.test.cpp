// SPDX-License-Identifier: MIT
// What a pass with drafts is expected to cost follows from the passes that were measured.
#include "intaglio/runtime/row_times.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using intaglio::runtime::row_times;

namespace {
void measure(row_times& of, std::uint32_t rows, double ms) {
  of.observe(rows, 50 * ms);  // the first pass compiles kernels
  of.observe(rows, ms);
}
}  // namespace

TEST_CASE("the first pass over a number of rows is not measured, later ones are averaged") {
  row_times times(16);
  CHECK_FALSE(times.has(1));
  times.observe(1, 90);
  CHECK_FALSE(times.has(1));
  CHECK(times.in_passes(4, 1) == 0);
  times.observe(1, 2);
  CHECK(times.has(1));
  CHECK(times.in_passes(4, 1) == 2);
  times.observe(1, 3);
  CHECK(times.in_passes(4.4, 1) == Catch::Approx(2));
  CHECK_FALSE(times.has(17));
}

TEST_CASE("the cost of a pass with drafts is measured, or in line with the nearest numbers of rows") {
  row_times times(32);
  CHECK(times.cost(1, 6) == 4);  // a guess: nothing is known
  measure(times, 1, 2);
  CHECK(times.cost(1, 6) == 4);
  measure(times, 4, 5);
  CHECK(times.cost(1, 3) == 2.5);
  CHECK(times.cost(1, 1) == 1.5);  // between 1 and 2.5
  // More than 4 rows take as long where the pass is over one tile of 8 rows, else longer by as much for each row.
  CHECK(times.cost(1, 5) == 2.5);
  CHECK(times.cost(1, 7) == 2.5);
  CHECK(times.cost(1, 9) == Catch::Approx(1 + 1.5 * 9 / 3));
  measure(times, 8, 6);
  CHECK(times.cost(1, 7) == 3);
  CHECK(times.cost(1, 5) == 2.75);
  measure(times, 16, 12);
  CHECK(times.cost(1, 11) == 4.5);
  // Two sessions that decode together are another base.
  CHECK(times.cost(2, 6) == 4);
  measure(times, 2, 4);
  CHECK(times.cost(2, 6) == 1.5);
}

TEST_CASE("no pass with drafts is expected to be cheaper than one without") {
  row_times times(8);
  measure(times, 1, 4);
  measure(times, 3, 3);
  CHECK(times.cost(1, 2) == 1);
  CHECK(times.cost(1, 5) == 1);
}
