// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <intaglio/gpu/progress_watch.hpp>

using namespace intaglio;
using namespace std::chrono_literals;

TEST_CASE("a GPU hangs where no submission ends in a turn") {
  gpu::progress_watch watch(false, 10s, 7, 0s);
  CHECK_FALSE(watch.hangs(8, 0s));
  CHECK_FALSE(watch.hangs(9, 0s));
  CHECK(watch.hangs(9, 5s));  // what the process computes meanwhile is not the GPU's
  CHECK(watch.quiet() == 10s);
}

TEST_CASE("a CPU driver hangs where the process computes nothing, turn after turn") {
  gpu::progress_watch watch(true, 10s, 7, 1s);
  auto computed = 1s + 0ms;
  for (int turn = 0; turn < 1000; ++turn) CHECK_FALSE(watch.hangs(7, computed += 11ms));  // at nice 19 beside others
  for (std::uint32_t turn = 1; turn < gpu::progress_watch::quiet_turns_of_cpu; ++turn)
    CHECK_FALSE(watch.hangs(7, computed += 1ms));  // as a process that was stopped, or waits for its driver
  CHECK(watch.quiet() == 50s);
  CHECK_FALSE(watch.hangs(8, computed));  // a submission ended
  CHECK(watch.quiet() == 0s);
  for (std::uint32_t turn = 1; turn < gpu::progress_watch::quiet_turns_of_cpu; ++turn)
    CHECK_FALSE(watch.hangs(8, computed));
  CHECK(watch.hangs(8, computed));
}
