// SPDX-License-Identifier: MIT
#include "intaglio/runtime/sampling.hpp"

#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <limits>

using intaglio::argument_error;
using intaglio::sampling_options;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(),
                infinite = std::numeric_limits<float>::infinity();

std::string refusal(const sampling_options& options) {
  try {
    intaglio::runtime::validate(options, 1000, 512);
  } catch (const argument_error& caught) { return caught.argument(); }
  return "accepted";
}

}  // namespace

TEST_CASE("sampling parameters at the borders of their ranges are accepted") {
  CHECK(refusal({}) == "accepted");
  CHECK(refusal({.temperature = 0}) == "accepted");
  CHECK(refusal({.temperature = -0.0f}) == "accepted");
  CHECK(refusal({.temperature = 1000}) == "accepted");
  CHECK(refusal({.top_k = 1}) == "accepted");
  CHECK(refusal({.top_k = 1000}) == "accepted");
  CHECK(refusal({.top_p = 1}) == "accepted");
  CHECK(refusal({.top_p = std::numeric_limits<float>::denorm_min()}) == "accepted");
  CHECK(refusal({.min_p = 0}) == "accepted");
  CHECK(refusal({.min_p = 1}) == "accepted");
  CHECK(refusal({.repeat_penalty = 0.5f}) == "accepted");
  CHECK(refusal({.repeat_last_n = 512}) == "accepted");
  CHECK(refusal({.repeat_last_n = 0}) == "accepted");
  CHECK_NOTHROW(intaglio::runtime::validate(sampling_options{}, 100, 5));  // the default follows the context
}

TEST_CASE("sampling parameters outside their ranges are refused by name") {
  for (const float bad : {not_a_number, -not_a_number, infinite, -infinite, -1.0f}) {
    CHECK(refusal({.temperature = bad}) == "temperature");
    CHECK(refusal({.top_p = bad}) == "top_p");
    CHECK(refusal({.min_p = bad}) == "min_p");
    CHECK(refusal({.repeat_penalty = bad}) == "repeat_penalty");
  }
  CHECK(refusal({.top_k = 0}) == "top_k");
  CHECK(refusal({.top_k = 1001}) == "top_k");
  CHECK(refusal({.top_p = 0}) == "top_p");
  CHECK(refusal({.top_p = 1.001f}) == "top_p");
  CHECK(refusal({.top_p = 2}) == "top_p");
  CHECK(refusal({.min_p = 1.5f}) == "min_p");
  CHECK(refusal({.repeat_penalty = 0}) == "repeat_penalty");
  CHECK(refusal({.repeat_last_n = 513}) == "repeat_last_n");
}

TEST_CASE("a refusal names the range and the value") {
  try {
    intaglio::runtime::validate({.top_k = 2000}, 1000, 512);
    FAIL("top_k 2000 of 1000 was accepted");
  } catch (const argument_error& caught) {
    CHECK(std::string(caught.what()) == "top_k: expected 1 .. 1000 (the vocabulary), found 2000");
  }
}

TEST_CASE("sampling parameters reach the words that the kernel reads") {
  namespace state = intaglio::kernels::state;
  std::array<std::uint32_t, state::tokens> words{};
  intaglio::runtime::write_sampling({.temperature = -0.0f,
                                     .top_k = 40,
                                     .top_p = 0.5f,
                                     .min_p = 0.25f,
                                     .repeat_penalty = 2,
                                     .repeat_last_n = 7,
                                     .seed = 0x1122334455667788},
                                    words);
  CHECK(words[state::temperature] == 0);
  CHECK(words[state::top_k] == 40);
  CHECK(words[state::top_p] == std::bit_cast<std::uint32_t>(0.5f));
  CHECK(words[state::min_p] == std::bit_cast<std::uint32_t>(0.25f));
  CHECK(words[state::repeat_penalty] == std::bit_cast<std::uint32_t>(2.0f));
  CHECK(words[state::repeat_last_n] == 7);
  CHECK(words[state::seed_low] == 0x55667788);
  CHECK(words[state::seed_high] == 0x11223344);
  CHECK(words[state::position] == 0);
  intaglio::runtime::write_sampling({}, words);
  CHECK(words[state::top_k] == 0);
}
