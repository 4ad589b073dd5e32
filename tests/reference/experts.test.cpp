// SPDX-License-Identifier: MIT
#include "intaglio/reference/experts.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

using namespace intaglio;

namespace {
std::vector<std::uint32_t> routed(const std::vector<float>& logits, std::size_t used) {
  std::vector<std::uint32_t> out(2 * used);
  reference::route(logits, out);
  return out;
}
float share(const std::vector<std::uint32_t>& choice, std::size_t j) {
  return std::bit_cast<float>(choice[choice.size() / 2 + j]);
}
}  // namespace

TEST_CASE("a token has the experts of largest logits, of equal ones the lowest first", "[reference]") {
  const auto two = routed({-1, 3, 0.5f, 3, -7, 2}, 2);
  CHECK(two[0] == 1);
  CHECK(two[1] == 3);
  CHECK(share(two, 0) == 0.5f);
  const auto three = routed({-1, 3, 0.5f, 3, -7, 2}, 3);
  CHECK(three[2] == 5);
  const double all = 2 + std::exp(-1.0);
  CHECK(std::abs(share(three, 2) - std::exp(-1.0) / all) < 1e-7);
  const auto equal = routed({4, 4, 4, 4}, 4);
  for (std::uint32_t j = 0; j < 4; ++j) CHECK(equal[j] == j);
}

TEST_CASE("by logistics an expert counts by its own logit, and a bias acts on the choice alone", "[reference]") {
  const std::vector<float> logits{0, 2, -1, 1}, bias{0, -1, 2, 0};
  const auto gate = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<std::uint32_t> two(4);
  reference::route(logits, two, {.score = expert_score::logistic, .choosing = bias, .factor = 2.5f, .added = 0.5f});
  CHECK(two[0] == 2);
  CHECK(two[1] == 3);
  CHECK(std::abs(share(two, 0) - 2.5 * gate(-1) / (gate(-1) + gate(1) + 0.5)) < 1e-6);
  CHECK(std::abs(share(two, 1) - 2.5 * gate(1) / (gate(-1) + gate(1) + 0.5)) < 1e-6);
  reference::route(logits, two, {.over_all = true, .score = expert_score::logistic});
  CHECK(two[0] == 1);
  CHECK(two[1] == 3);
  CHECK(std::abs(share(two, 0) - gate(2)) < 1e-6);
}

TEST_CASE("by probabilities an expert counts by its part of all, and a bias acts on the choice alone", "[reference]") {
  const std::vector<float> logits{0, 2, -1, 1}, bias{0, -1, 2, 0};
  double all = 0;
  for (const float logit : logits) all += std::exp(double{logit});
  const auto part = [&](double x) { return std::exp(x) / all; };
  std::vector<std::uint32_t> two(4);
  reference::routing how{.score = expert_score::probability, .choosing = bias};
  reference::route(logits, two, how);
  CHECK(two[0] == 2);
  CHECK(two[1] == 3);
  CHECK(std::abs(share(two, 0) - part(-1) / (part(-1) + part(1))) < 1e-6);
  how.least = 0.5f;  // above the sum of the two
  reference::route(logits, two, how);
  CHECK(std::abs(share(two, 0) - part(-1) / 0.5) < 1e-6);
  reference::route(logits, two, {.over_all = true, .score = expert_score::probability});
  CHECK(two[0] == 1);
  CHECK(two[1] == 3);
  CHECK(std::abs(share(two, 0) - part(2)) < 1e-6);
}

TEST_CASE("experts of groups are chosen in the best ones: by the best expert, and by two with a bias", "[reference]") {
  const std::vector<float> logits{3, -5, 2, 1, 0, -1, 2, -6};  // four groups of two
  std::vector<std::uint32_t> two(4);
  reference::routing how{.score = expert_score::probability, .groups = 4, .groups_used = 2};
  reference::route(logits, two, how);
  CHECK((two[0] == 0 && two[1] == 2));  // of groups 0 and 1, which comes before group 3
  std::vector<std::uint32_t> three(6);
  reference::route(logits, three, how);
  CHECK(three[2] == 3);  // not 6, whose logit is larger
  const std::vector<float> none(8, 0.f), bias{0, -2, 0, 0, 0.5f, 0.5f, 0, 0};
  how.score = expert_score::logistic;
  how.choosing = none;
  reference::route(logits, three, how);
  CHECK((three[0] == 0 && three[1] == 2 && three[2] == 3));  // sums 0.96, 1.61, 0.77, 0.88
  how.choosing = bias;
  reference::route(logits, three, how);  // sums -1.04, 1.61, 1.77, 0.88
  CHECK((three[0] == 4 && three[1] == 2 && three[2] == 5));
  const auto gate = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(std::abs(share(three, 0) - gate(0) / (gate(0) + gate(2) + gate(-1))) < 1e-6);
}

TEST_CASE("a router that gives no number chooses experts that there are, and the number is not lost", "[reference]") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto first = routed({none, 1, 2}, 2);
  CHECK(first[0] == 0);
  CHECK(first[1] == 2);
  CHECK(std::isnan(share(first, 0)));
  const auto all = routed({none, none, none}, 3);
  for (std::uint32_t j = 0; j < 3; ++j) CHECK(all[j] == j);
}

TEST_CASE("what experts gave is weighed and added", "[reference]") {
  const std::vector<float> input{1, 2, 3, 4, 10, 20, 30, 40};
  const std::vector<std::uint32_t> choice{5, 2, std::bit_cast<std::uint32_t>(0.25f),
                                          std::bit_cast<std::uint32_t>(0.5f)};
  std::vector<float> output{100, 100, 100, 100};
  reference::expert_sum(input, choice, 2, 4, output);
  CHECK(output == std::vector<float>{105.25f, 110.5f, 115.75f, 121});
}

TEST_CASE("a product takes the matrix of its expert, and its own input or the token's", "[reference]") {
  // Expert e has e + 1 everywhere.
  const std::uint32_t columns = 8, rows = 4, experts = 3;
  std::vector<float> weights;
  for (std::uint32_t e = 0; e < experts; ++e) weights.insert(weights.end(), rows * columns, static_cast<float>(e + 1));
  const std::vector<float> input{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2};
  const std::vector<std::uint32_t> choice{2, 0, 0, 0};
  const reference::matmul_shape shape{.columns = columns, .rows = rows, .codec = kernels::codec::f32};
  std::vector<float> output(2 * rows);
  reference::expert_matmul(shape, 2, false, std::span(input).first(columns), choice, std::as_bytes(std::span(weights)),
                           output);
  CHECK(output == std::vector<float>{24, 24, 24, 24, 8, 8, 8, 8});
  reference::expert_matmul(shape, 2, true, input, choice, std::as_bytes(std::span(weights)), output);
  CHECK(output == std::vector<float>{24, 24, 24, 24, 16, 16, 16, 16});
}
