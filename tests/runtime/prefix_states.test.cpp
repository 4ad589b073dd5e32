// SPDX-License-Identifier: MIT
#include "intaglio/runtime/prefix_states.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

using intaglio::runtime::prefix_states;

TEST_CASE("a sequence goes on from the copy after the most of its pages; unused ones give way", "[runtime]") {
  prefix_states states(2);
  const std::array<std::uint64_t, 3> pages{11, 12, 13};
  CHECK_FALSE(states.newest(pages));
  const std::uint32_t first = states.put(11), second = states.put(13);
  CHECK(first != second);
  const auto found = states.newest(pages);
  REQUIRE(found);
  CHECK((found->pages == 3 && found->index == second));
  const auto of_first = states.newest(std::array<std::uint64_t, 2>{11, 12});
  REQUIRE(of_first);
  CHECK((of_first->pages == 1 && of_first->index == first));
  // The first was used last: a third one replaces the second.
  CHECK(states.put(20) == second);
  CHECK((states.has(11) && states.has(20) && !states.has(13)));
  CHECK(states.newest(pages)->index == first);
  // Made anew it stays where it is; forgotten it leaves its slot to the next.
  CHECK(states.put(20) == second);
  states.forget(11);
  CHECK_FALSE(states.newest(pages));
  CHECK(states.put(21) == first);
  states.forget(0);  // a page without a name has no copy
  CHECK((states.has(20) && states.has(21)));
  CHECK_FALSE(states.newest(std::array<std::uint64_t, 1>{0}));
  states.forget_all();
  CHECK_FALSE(states.has(20));
}
