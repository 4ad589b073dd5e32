// SPDX-License-Identifier: MIT
#include "intaglio/kernels/layers.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::kernels;

TEST_CASE("workgroups that are left beside a batch's help, four at most", "[kernels][resident]") {
  CHECK(layers_batch::helpers(128, 132) == 4);
  CHECK(layers_batch::helpers(64, 132) == 4);
  CHECK(layers_batch::helpers(128, 129) == 1);
  CHECK(layers_batch::helpers(128, 128) == 0);
  CHECK(layers_batch::helpers(128, 64) == 0);
}

TEST_CASE("a task of a batch's attention has heads that share a key, and slices of 128 channels",
          "[kernels][resident]") {
  CHECK(layers_batch::heads_each(32, 8) == 4);
  CHECK(layers_batch::heads_each(32, 16) == 2);
  CHECK(layers_batch::heads_each(24, 8) == 1);
  CHECK(layers_batch_normed::heads_each(32, 8) == 2);
  CHECK(layers_batch_normed::heads_each(16, 16) == 1);
  CHECK(layers_batch_normed::value_slices(128) == 1);
  CHECK(layers_batch_normed::value_slices(256) == 2);
  CHECK(layers_batch_normed::slices_of_row(256, 8, 4) == 8);
}

TEST_CASE("the upper word of a product with a reciprocal is the quotient by which eight columns find their scale",
          "[kernels][resident]") {
  // As shaders/include/batch_x.glsl does; each quotient's last octet, after which the next one begins.
  for (const std::uint32_t parts : {1u, 64u, 128u, layers_batch::most_parts})
    for (std::uint32_t octets = 2; octets <= layers_batch::most_columns / 8; ++octets) {
      const std::uint64_t reciprocal = 0xffffffffu / octets + 1u;
      for (std::uint32_t part = 0; part < parts; ++part) {
        const std::uint32_t last =
            (part + 1) * octets / parts;  // octets below it have this part's scale or an earlier one's
        if (last == 0) continue;
        for (const std::uint32_t o : {last - 1, last})
          if (o < octets && ((o + 1) * parts - 1) * reciprocal >> 32 != ((o + 1) * parts - 1) / octets)
            FAIL(parts << " workgroups, " << octets << " octets, octet " << o);
      }
    }
}

TEST_CASE("what workgroups exchange in a layer of a batch has room", "[kernels][resident]") {
  // By hand: x with its scales, squares, sums of four workgroups, query, key and value.
  CHECK(layers_rows::exchange_bytes(128, 512, 128, 128) == 7 * 2560 + 8 * 4 * (2 * 8 + 4 * 16 * 8) + 3 * 128 * 4 * 8);
  CHECK(layers_rows_normed::exchange_bytes(128, 512, 128, 128) ==
        layers_rows::exchange_bytes(128, 512, 128, 128) + 2 * 8 * 4 * 8);
  CHECK(layers_batch::exchange_bytes(1, 4, 16, 16, 16, 16, 4) ==
        2 * 4 * 16 + 4 * (5 * 4 + 4) + 4 * 48 + 16 * (48 + 2 * 16) + 16);
  CHECK(layers_batch_normed::exchange_bytes(1, 4, 16, 16, 16, 16, 4) ==
        layers_batch::exchange_bytes(1, 4, 16, 16, 16, 16, 4) + 2 * 4 * 4);
  CHECK(layers_ternary_rows::exchange_bytes(3, 16, 16, 16, 16) ==
        8 * (4 * (2 * 16 + 16 + 32 + 16 + 16) + 2 * 16 + 16 + 16 + 16));
}
