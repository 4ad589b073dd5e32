// SPDX-License-Identifier: MIT
// The largest plan that is engraved within the limits of both compilers: Gemma 4 E4B, whose layers are of four kinds.
#include "intaglio/plan/engrave.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/gemma4.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {
using shared_caches = models::gemma4_e4b<dtype::q8_0>;
constexpr const plan::table& gemma4 = plan::engraved<shared_caches, plan::profiles::portable, 512>::table;
static_assert(gemma4.pattern.kinds() == 4 && gemma4.prefill.period.size() == 72 && gemma4.verify.values.size() == 68);
}  // namespace

TEST_CASE("the largest engraved plan equals the one made at run time", "[plan][engrave]") {
  CHECK(plan::planned::of<shared_caches>(plan::profiles::portable, 512).table().hash == gemma4.hash);
}
