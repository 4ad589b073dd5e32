// SPDX-License-Identifier: MIT
#include "intaglio/core/by_pointer.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>
#include <vector>

using namespace intaglio;

TEST_CASE("a loop by pointer visits all elements of a vector, and may change them", "[core]") {
  std::vector<int> numbers{1, 2, 3};
  for (int& each : by_pointer(numbers)) each *= 2;
  CHECK(numbers == std::vector{2, 4, 6});
  const std::vector<int>& seen = numbers;
  int sum = 0;
  for (const int& each : by_pointer(seen)) sum += each;
  CHECK(sum == 12);
  for (const int& each : by_pointer(std::as_const(numbers = {}))) sum += each;
  CHECK(sum == 12);
}
