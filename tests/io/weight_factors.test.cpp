// SPDX-License-Identifier: MIT
#include "intaglio/io/weight_factors.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::io;

TEST_CASE("rows are multiplied by the factors of their runs, whatever rows are read") {
  const std::vector<row_factor> runs{{2, 2.f}, {1, 3.f}, {0, 5.f}};
  std::vector<float> all(10, 1.f), some(4, 1.f);
  multiply_rows(runs, 0, 2, all);
  CHECK(all == std::vector<float>{2, 2, 2, 2, 3, 3, 5, 5, 5, 5});
  multiply_rows(runs, 1, 2, some);
  CHECK(some == std::vector<float>{2, 2, 3, 3});
  multiply_rows({}, 0, 2, some);
  CHECK(some == std::vector<float>{2, 2, 3, 3});
  const std::vector<weight_factor> factors{{"attn_k.weight", runs}, {"attn_v.weight", {{0, 1.f}}}};
  CHECK(factors_of(factors, "blk.3.attn_k.weight") == runs);
  CHECK((factors_of(factors, "blk.3.attn_v.weight").empty() && factors_of(factors, "attn_q.weight").empty()));
}
