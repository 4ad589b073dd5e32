// SPDX-License-Identifier: MIT
#include "intaglio/kernels/layers.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::kernels;

TEST_CASE("workgroups that are left beside a batch's help, four at most", "[kernels][in_one]") {
  CHECK(layers_many::helpers(128, 132) == 4);
  CHECK(layers_many::helpers(64, 132) == 4);
  CHECK(layers_many::helpers(128, 129) == 1);
  CHECK(layers_many::helpers(128, 128) == 0);
  CHECK(layers_many::helpers(128, 64) == 0);
}

TEST_CASE("a task of a batch's attention has heads that share a key, and slices of 128 channels", "[kernels][in_one]") {
  CHECK(layers_many::heads_each(32, 8) == 4);
  CHECK(layers_many::heads_each(32, 16) == 2);
  CHECK(layers_many::heads_each(24, 8) == 1);
  CHECK(layers_many_normed::heads_each(32, 8) == 2);
  CHECK(layers_many_normed::heads_each(16, 16) == 1);
  CHECK(layers_many_normed::value_slices(128) == 1);
  CHECK(layers_many_normed::value_slices(256) == 2);
  CHECK(layers_many_normed::slices_of_row(256, 8, 4) == 8);
}

TEST_CASE("what workgroups tell each other in a layer of a batch has room", "[kernels][in_one]") {
  // By hand: x with its scales, squares, sums of four workgroups, query, key and value.
  CHECK(layers_few::exchange_bytes(128, 512, 128, 128) == 7 * 2560 + 8 * 4 * (2 * 8 + 4 * 16 * 8) + 3 * 128 * 4 * 8);
  CHECK(layers_few_normed::exchange_bytes(128, 512, 128, 128) == layers_few::exchange_bytes(128, 512, 128, 128) + 2 * 8 * 4 * 8);
  CHECK(layers_many::exchange_bytes(1, 4, 16, 16, 16, 16, 4) == 2 * 4 * 16 + 4 * (5 * 4 + 4) + 4 * 48 + 16 * (48 + 2 * 16) + 16);
  CHECK(layers_many_normed::exchange_bytes(1, 4, 16, 16, 16, 16, 4) == layers_many::exchange_bytes(1, 4, 16, 16, 16, 16, 4) + 2 * 4 * 4);
  CHECK(layers_ternary_few::exchange_bytes(3, 16, 16, 16, 16) == 8 * (4 * (2 * 16 + 16 + 32 + 16 + 16) + 2 * 16 + 16 + 16 + 16));
}
