// SPDX-License-Identifier: MIT
#include "intaglio/io/rope_factors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <vector>

using namespace intaglio;
using namespace intaglio::io;

namespace {

std::vector<float> factors_of(const rope_scaling_config& scaling, float theta, std::size_t pairs) {
  std::vector<float> out;
  for (std::size_t i = 0; i < pairs; ++i) out.push_back(static_cast<float>(llama3_factor(scaling, theta, i, pairs)));
  return out;
}

}  // namespace

TEST_CASE("rope_factors: fast angles stay, slow ones are divided, with a slope between") {
  const rope_scaling_config scaling{rope_type::llama3, 8.f, 1.f, 4.f, 8192};
  const auto factors = factors_of(scaling, 500'000.f, 64);
  CHECK(factors.front() == 1.f);
  CHECK(factors.back() == 8.f);
  CHECK(std::is_sorted(factors.begin(), factors.end()));
  CHECK(std::count_if(factors.begin(), factors.end(), [](float f) { return f != 1.f && f != 8.f; }) > 3);
}

TEST_CASE("rope_factors: the scaling comes back from its factors, or none does") {
  for (const rope_scaling_config scaling : {rope_scaling_config{rope_type::llama3, 8.f, 1.f, 4.f, 8192},
                                            {rope_type::llama3, 32.f, 1.f, 4.f, 8192},
                                            {rope_type::llama3, 8.f, 1.f, 4.f, 64}})
    CHECK(llama3_scaling_of(factors_of(scaling, 500'000.f, 32), 500'000.f) == scaling);
  CHECK(llama3_scaling_of(std::vector<float>(16, 1.f), 10'000.f) == rope_scaling_config{});
  auto bent = factors_of({rope_type::llama3, 8.f, 1.f, 4.f, 8192}, 500'000.f, 32);
  CHECK_FALSE(llama3_scaling_of(bent, 10'000.f));
  for (const float wrong :
       {0.f, -1.f, 0.5f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    bent[20] = wrong;
    CHECK_FALSE(llama3_scaling_of(bent, 500'000.f));
  }
  CHECK_FALSE(llama3_scaling_of({}, 10'000.f));
}
