// SPDX-License-Identifier: MIT
#include "intaglio/io/conversion_loss.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using intaglio::io::conversion_loss;

TEST_CASE("conversion_loss: largest, root mean square, and as a part of the values", "[convert]") {
  conversion_loss none;
  CHECK((none.rms() == 0 && none.relative() == 0));
  conversion_loss loss;
  loss.add(std::vector<float>{3, 4, 0, 0, 0}, std::vector<float>{3, 4, 2, 0, -1});
  CHECK(loss.values == 5);
  CHECK(loss.largest == 2);
  CHECK(std::fabs(loss.rms() - 1) < 1e-12);
  CHECK(std::fabs(loss.relative() - std::sqrt(5. / 25)) < 1e-12);
  conversion_loss other;
  other.add(std::vector<float>{0, 0, 0}, std::vector<float>{0, -7, 0});
  CHECK(other.relative() == 0);  // of nothing
  loss.add(other);
  CHECK((loss.values == 8 && loss.largest == 7 && loss.squares == 54 && loss.value_squares == 25));
}
