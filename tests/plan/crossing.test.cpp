// SPDX-License-Identifier: MIT
#include "intaglio/plan/crossing.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::array ways{&plan::direct_crossing, &plan::staged_crossing};

std::string fault_of(const plan::crossing_way& way) { return std::string(plan::verify_crossing(way).view()); }

}  // namespace

TEST_CASE("both ways to cross are proven, and a pass over few tokens takes the direct one") {
  for (const plan::crossing_way* each : ways) CHECK(fault_of(*each).empty());
  CHECK(&plan::crossing_way_of(1) == &plan::direct_crossing);
  CHECK(&plan::crossing_way_of(plan::staged_from_rows - 1) == &plan::direct_crossing);
  CHECK(&plan::crossing_way_of(plan::staged_from_rows) == &plan::staged_crossing);
}

TEST_CASE("a crossing without one of its waits is refused by the step that does not wait") {
  for (const plan::crossing_way* each : ways)
    for (std::size_t at = 0; at < each->steps.size(); ++at)
      for (std::size_t drop = 0; drop < each->steps[at].wait_count; ++drop) {
        std::vector<plan::crossing_step> steps(each->steps.begin(), each->steps.end());
        steps[at].waits[drop] = steps[at].waits[steps[at].wait_count - 1u];
        --steps[at].wait_count;
        const plan::crossing_way less{each->name, steps, each->slot_counts};
        INFO(each->name << ", step " << steps[at].name << ", wait " << drop);
        CHECK_THAT(fault_of(less), ContainsSubstring("to wait for"));
      }
}

TEST_CASE("a crossing with a slot less is refused: a step would overwrite rows that another one reads") {
  for (const plan::crossing_way* each : ways)
    for (std::size_t of = 0; of < plan::crossing_memories; ++of) {
      if (each->slot_counts[of] == 0) continue;
      plan::crossing_way less = *each;
      --less.slot_counts[of];
      INFO(each->name << ", memory " << of);
      CHECK_THAT(fault_of(less), ContainsSubstring(less.slot_counts[of] == 0 ? "found 0" : "passes before"));
    }
}

TEST_CASE("a wait for the pass before is not enough, and on one queue the order of submission is") {
  std::vector<plan::crossing_step> steps(plan::staged_crossing.steps.begin(), plan::staged_crossing.steps.end());
  const auto fault = [&] { return fault_of({"changed", steps, plan::staged_crossing.slot_counts}); };
  REQUIRE(steps[2].name == "copy to the host");
  steps[2].waits[0].passes_before = 1;
  CHECK(fault() ==
        "crossing changed: expected \"copy to the host\" to wait for \"copy in the sender\", found no such "
        "wait");
  steps[2].waits[0] = steps[2].waits[1];
  steps[2].lane = plan::crossing_lane::sender_work;
  CHECK(fault().empty());
}
