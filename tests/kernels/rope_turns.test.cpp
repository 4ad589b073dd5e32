// SPDX-License-Identifier: MIT
#include "intaglio/kernels/rope_turns.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

TEST_CASE("a table of turns holds sine and cosine to position 131,072 within 1e-6 of f64", "[law]") {
  double worst = 0;
  for (const long double theta : {10'000.0L, 500'000.0L, 1'000'000.0L})
    for (std::uint32_t pair = 0; pair < 64; ++pair) {
      const long double frequency = kernels::rope_frequency_of(pair, 128, theta);
      const std::uint64_t turns = kernels::rope_turns(frequency);
      for (std::uint32_t position : {0u, 1u, 777u, 4096u, 65'535u, 100'003u, 131'071u, 131'072u}) {
        const auto [sine, cosine] = kernels::rope_from_turns(position, turns);
        const long double angle = position * frequency;
        worst = std::fmax(worst, std::fmax(std::fabs(static_cast<double>(sine - std::sin(angle))),
                                           std::fabs(static_cast<double>(cosine - std::cos(angle)))));
      }
    }
  CHECK(worst < 1e-6);
}
