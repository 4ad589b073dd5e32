// SPDX-License-Identifier: MIT
// Sentences that refuse are held by tests/compile_fail; here that an empty one does not.
#include "intaglio/core/fits_together.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
constexpr text<256> nothing{};
static_assert(fits_together<nothing>::model_fits && proven<nothing>::model_fits);
}  // namespace

TEST_CASE("a sentence is distinguished from none") {
  CHECK(nothing.empty());
  CHECK(reason<nothing>::model_fits);
  static constexpr text<256> sentence{"blk.*.ffn_down.weight: expected 128, found 100"};
  CHECK_FALSE(reason<sentence>::model_fits);
}
