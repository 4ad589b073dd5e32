// SPDX-License-Identifier: MIT
// Plans of a batch whose passes may run the resident dispatch, and the errors after a change of such a plan.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/fit.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/plan/variants_used.hpp"

namespace intaglio::testing {

/// The plan of a batch, over up to 1,024 positions.
template <class Model>
plan::planned batch_of(const plan::batch_shape& shape, const plan::profile& target = plan::profiles::portable) {
  return plan::planned::of<Model>(target, std::min(1024u, Model::config.max_position_embeddings), shape);
}
inline bool resident(const plan::planned& of) { return !of.table().resident_batch.resident.empty(); }

/// Counts and bytes of passes over a number of rows, and that the plan holds.
/// @param steps of a layer of the chain
inline void check_one_dispatch(const plan::table& t, std::uint32_t rows, std::size_t steps) {
  const plan::sequence& one = t.resident_batch;
  REQUIRE(one.resident.size() == 1);
  // A rise of these is a slower token.
  CHECK(one.dispatch_count() == 5);
  CHECK(one.barrier_count() == 4);
  CHECK(t.batch.dispatch_count() == t.config->num_hidden_layers * steps + 4);
  CHECK(one.weight_bytes() == t.batch.weight_bytes());
  CHECK(plan::bytes_moved(t, one, 100, rows) == plan::bytes_moved(t, t.batch, 100, rows));
  CHECK(one.blanks_itself());  // beside the embedding
  CHECK(plan::variants_used(std::array{&t}).has(plan::fitted(one.resident[0], plan::classes::h100).variant));
  CHECK(plan::verify(t).view().empty());
}

/// @param change of the sequence, its arguments and the dispatch  @return empty where the plan still holds
std::string refused_resident(const plan::planned& of, auto&& change) {
  plan::table table = of.table();
  plan::sequence& one = table.resident_batch;
  std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
  std::vector<plan::dispatch> all(one.resident.begin(), one.resident.end());
  one.arguments = arguments, one.resident = all;
  change(one, arguments, all[0]);
  return std::string(plan::verify(table).view());
}

}  // namespace intaglio::testing
