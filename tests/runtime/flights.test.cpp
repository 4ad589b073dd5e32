// SPDX-License-Identifier: MIT
#include "intaglio/runtime/flights.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::runtime::flights;
using namespace std::chrono_literals;

TEST_CASE("submissions end in their order, each with the time from the end before it") {
  flights line;
  const flights::clock::time_point start{1h};
  line.add({.number = 1, .at = start});
  line.add({.number = 2, .at = start + 1ms});
  CHECK(line.full());
  auto done = line.end_oldest(true, start + 10ms);
  CHECK(done.of.number == 1);
  CHECK(done.took_ms == 10.0);
  done = line.end_oldest(true, start + 25ms);
  CHECK(done.of.number == 2);
  CHECK(done.took_ms == 15.0);
  CHECK(line.empty());
  line.add({.number = 3, .at = start + 100ms});  // after a pause
  CHECK(line.oldest().number == 3);
  CHECK(line.end_oldest(true, start + 101ms).took_ms == 1.0);
}

TEST_CASE("one that was found done has no time, nor has the one behind it that was in flight by then") {
  flights line;
  const flights::clock::time_point start{1h};
  line.add({.number = 1, .at = start});
  line.add({.number = 2, .at = start + 1ms});
  CHECK_FALSE(line.end_oldest(false, start + 10ms).took_ms.has_value());
  CHECK_FALSE(line.end_oldest(true, start + 20ms).took_ms.has_value());
  line.add({.number = 3, .at = start + 20ms});
  CHECK(line.end_oldest(true, start + 21ms).took_ms == 1.0);
}

TEST_CASE("no submission took longer than from before it was submitted until its end was seen") {
  flights line;
  const flights::clock::time_point start{1h};
  line.add({.number = 1, .at = start + 2ms, .from = start});
  line.add({.number = 2, .at = start + 4ms, .from = start + 3ms});
  CHECK(line.end_oldest(false, start + 10ms).at_most_ms == 10.0);
  CHECK(line.end_oldest(false, start + 30ms).at_most_ms == 27.0);
  line.add({.number = 3, .at = start + 41ms, .from = start + 40ms});
  const auto waited = line.end_oldest(true, start + 45ms);
  CHECK(waited.took_ms == 4.0);
  CHECK(waited.at_most_ms == 5.0);
}
