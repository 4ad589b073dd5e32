// SPDX-License-Identifier: MIT
// What is said of a batch's one dispatch after a change.
#pragma once

#include <string>
#include <vector>

#include "intaglio/plan/planned.hpp"

namespace intaglio::testing {

/// @param change of the sequence, its arguments and the dispatch  @return empty where the plan still holds
std::string refused_in_one(const plan::planned& of, auto&& change) {
  plan::table table = of.table();
  plan::sequence& one = table.batch_in_one;
  std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
  std::vector<plan::dispatch> all(one.in_one.begin(), one.in_one.end());
  one.arguments = arguments, one.in_one = all;
  change(one, arguments, all[0]);
  return std::string(plan::verify(table).view());
}

}  // namespace intaglio::testing
