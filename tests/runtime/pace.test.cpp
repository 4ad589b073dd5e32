// SPDX-License-Identifier: MIT
#include "intaglio/runtime/pace.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::runtime::pace;

TEST_CASE("an unmeasured sequence starts with one segment and doubles") {
  pace speed;
  CHECK(speed.allowed(1000) == 1);
  speed.observe(1, 1.0);
  CHECK(speed.allowed(1000) == 2);
  speed.observe(2, 2.0);
  CHECK(speed.allowed(1000) == 4);
  speed.observe(4, 4.0);
  CHECK(speed.allowed(5) == 5);
}

TEST_CASE("the budget bounds a submission, but never below one segment") {
  pace speed;
  for (std::uint32_t size = 1; size < 200; size *= 2) speed.observe(size, 10.0 * size);
  CHECK(speed.segment_ms() == 10.0);
  CHECK(speed.allowed(250) == 25);
  CHECK(speed.allowed(9) == 1);
  CHECK(speed.allowed(1e-9) == 1);
}

TEST_CASE("slower counts at once, faster by and by") {
  pace speed;
  speed.observe(10, 100);
  speed.observe(10, 400);
  CHECK(speed.segment_ms() == 40.0);
  speed.observe(10, 100);
  CHECK(speed.segment_ms() < 40.0);
  CHECK(speed.segment_ms() > 10.0);
  for (int i = 0; i < 50; ++i) speed.observe(10, 100);
  CHECK(speed.segment_ms() < 10.1);
}

TEST_CASE("more segments than ever together count at once") {
  pace speed;
  speed.observe(1, 40);
  speed.observe(2, 8);
  CHECK(speed.segment_ms() == 4.0);
  speed.observe(4, 2);
  CHECK(speed.segment_ms() == 0.5);
  speed.observe(4, 1);
  CHECK(speed.segment_ms() > 0.25);
}

TEST_CASE("measurements that say nothing are ignored") {
  pace speed;
  speed.observe(0, 5);
  speed.observe(3, -1);
  CHECK(speed.segment_ms() == 0);
  CHECK(speed.allowed(100) == 1);
}

TEST_CASE("bounds count as times until a time is measured, and then only where they are shorter") {
  pace speed;
  speed.observe_at_most(1, 16);
  CHECK(speed.segment_ms() == 16.0);
  CHECK(speed.latest_ms() == 0);
  CHECK(speed.allowed(100) == 2);
  speed.observe_at_most(2, 16);
  CHECK(speed.segment_ms() == 8.0);
  CHECK(speed.allowed(100) == 4);
  speed.observe_at_most(2, 20);  // the work may have grown
  CHECK(speed.segment_ms() == 10.0);
  speed.observe_at_most(4, 16);
  CHECK(speed.segment_ms() == 4.0);
  speed.observe(1, 0.5);
  CHECK(speed.segment_ms() == 0.5);
  CHECK(speed.latest_ms() == 0.5);
  speed.observe_at_most(1, 16);
  CHECK(speed.segment_ms() == 0.5);
  speed.observe_at_most(8, 2);
  CHECK(speed.segment_ms() == 0.25);
  CHECK(speed.latest_ms() == 0.5);
  speed.observe_at_most(0, 1);
  speed.observe_at_most(1, -1);
  CHECK(speed.segment_ms() == 0.25);
}
