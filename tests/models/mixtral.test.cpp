// SPDX-License-Identifier: MIT
#include "intaglio/models/mixtral.hpp"

#include <catch2/catch_test_macros.hpp>

#include "traced_parameters.hpp"

using namespace intaglio;

namespace {
// As the model's page states it.
static_assert(traced_parameters<models::mixtral<models::mixtral_8x7b_config>>() == 46'702'792'704);
}  // namespace

TEST_CASE("a block of Mixtral routes its tokens to gated units", "[models]") {
  ir::trace t;
  models::mixtral<models::mixtral_8x7b_config>::graph().forward(t);
  REQUIRE(t.graph().failure.view() == "");
  std::vector<ir::op_kind> kinds;
  for (const auto& o : t.graph().ops) {
    if (o.where == ir::section::period) kinds.push_back(o.kind);
    if (o.kind == ir::op_kind::route) CHECK((o.experts == 8 && o.top_k == 2));
    if (o.kind == ir::op_kind::gated) CHECK(o.act == activation::silu);
  }
  using enum ir::op_kind;
  CHECK(std::vector(kinds.end() - 9, kinds.end()) ==
        std::vector{rms_norm, matmul, route, matmul, matmul, gated, matmul, weigh, add});
}
