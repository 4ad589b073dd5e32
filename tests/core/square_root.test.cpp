// SPDX-License-Identifier: MIT
#include "intaglio/core/square_root.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

using intaglio::square_root;

namespace {
static_assert(square_root(256.f) == 16.f && square_root(0.25f) == 0.5f && square_root(1.f) == 1.f &&
              square_root(0.f) == 0.f && square_root(-4.f) == 0.f);
}  // namespace

TEST_CASE("the root is the nearest float", "[core]") {
  for (float x = 1e-30f; x < 1e30f; x *= 1.37f)
    CHECK(square_root(x) == static_cast<float>(std::sqrt(static_cast<double>(x))));
}
