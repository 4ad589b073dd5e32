// SPDX-License-Identifier: MIT
// The largest plans that named models have, engraved within the limits of both compilers: Gemma 3n, whose layers are of
// six kinds with several streams, and Gemma 4.
#include "intaglio/plan/engrave.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/gemma3n.hpp"
#include "intaglio/models/gemma4.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {
using streams = models::gemma3n_e4b<dtype::q8_0>;
using shared_caches = models::gemma4_e4b<dtype::q8_0>;
constexpr const plan::table& gemma3n = plan::engraved<streams, plan::profiles::portable, 512>::table;
constexpr const plan::table& gemma4 = plan::engraved<shared_caches, plan::profiles::portable, 512>::table;
static_assert(gemma3n.pattern.kinds() == 6 && gemma3n.logits.period.size() == 180);
static_assert(gemma4.pattern.kinds() == 4 && gemma4.prefill.period.size() > 64);
}  // namespace

TEST_CASE("the largest engraved plans equal those made at run time", "[plan][engrave]") {
  CHECK(plan::planned::of<streams>(plan::profiles::portable, 512).table().hash == gemma3n.hash);
  CHECK(plan::planned::of<shared_caches>(plan::profiles::portable, 512).table().hash == gemma4.hash);
}
