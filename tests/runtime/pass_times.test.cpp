// SPDX-License-Identifier: MIT
#include "intaglio/runtime/pass_times.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::runtime::pace;
using intaglio::runtime::pass_clock;
namespace kernels = intaglio::kernels;

TEST_CASE("one pass in an interval is timed, the first after some") {
  pass_clock clock(16, 3);
  const pace speed;
  int timed = 0;
  for (int pass = 0; pass < 40; ++pass) {
    if (clock.is_due(speed, 1, 250)) {
      CHECK((pass == 3 || pass == 19 || pass == 35));
      clock.begin();
      clock.add(kernels::kernel::matmul, 100);
      clock.add(kernels::kernel::matmul, 50);
      clock.add(kernels::kernel::sample, 25);
      clock.end();
      ++timed;
    }
    clock.count(1);
  }
  CHECK(timed == 3);
  CHECK(clock.times().passes == 40);
  CHECK(clock.times().timed == 3);
  CHECK(clock.times().kernels[static_cast<std::size_t>(kernels::kernel::matmul)].dispatches == 6);
  CHECK(clock.times().nanoseconds() == 3 * 175);
  clock.reset();
  CHECK(clock.times().passes == 0);
  CHECK_FALSE(clock.is_due(speed, 1, 250));
  clock.count(3);
  CHECK(clock.is_due(speed, 1, 250));
}

TEST_CASE("a pass that takes more than half of the budget is not timed, nor one of a kind without an interval") {
  pass_clock clock(16, 0);
  pace speed;
  speed.observe(1, 10);
  CHECK(clock.is_due(speed, 12, 240));
  CHECK_FALSE(clock.is_due(speed, 13, 240));
  CHECK_FALSE(pass_clock().is_due({}, 1, 250));
}
