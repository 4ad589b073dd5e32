// SPDX-License-Identifier: MIT
// Plans of a batch whose passes may run all layers in one dispatch, and what is said of that after a change.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "intaglio/plan/planned.hpp"

namespace intaglio::testing {

/// The plan of a batch, over up to 1,024 positions.
template <class Model>
plan::planned batch_of(const plan::batch_shape& shape, const plan::profile& target = plan::profiles::portable) {
  return plan::planned::of<Model>(target, std::min(1024u, Model::config.max_position_embeddings), shape);
}
inline bool in_one(const plan::planned& of) { return !of.table().batch_in_one.in_one.empty(); }

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
