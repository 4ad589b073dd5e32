// SPDX-License-Identifier: MIT
#include "intaglio/reference/sample.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <numeric>
#include <random>

namespace {

using namespace intaglio;
using reference::sampling;
namespace at = kernels::state;
using ids = std::vector<std::uint32_t>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

ids kept(const std::vector<float>& logits, sampling s) {
  if (s.temperature == 0) s.temperature = 1;
  const auto weights = reference::sampling_weights(logits, s);
  ids out;
  for (std::uint32_t id = 0; id < weights.size(); ++id)
    if (weights[id] != 0) out.push_back(id);
  return out;
}

std::uint32_t chosen(const std::vector<float>& logits, const sampling& s, const ids& recent = {}) {
  return reference::choose(logits, recent, s, 0);
}

/// Logits whose probabilities are 1/2, 1/4, ... in the order of ids.
const std::vector<float> halves = [] {
  std::vector<float> out(8);
  for (std::size_t i = 0; i < 8; ++i) out[i] = -static_cast<float>(static_cast<double>(i) * 0.6931471805599453);
  return out;
}();

// Known answers of the Random123 distribution.
static_assert(reference::philox({0, 0, 0, 0}, {0, 0}) ==
              std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(reference::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
              std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(reference::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
static_assert(reference::power(0) == 1u << 24);

TEST_CASE("power falls monotonically and is exact to 5 units") {
  std::uint32_t last = reference::full_power;
  int wrong = 0;
  for (std::uint32_t f = 0; f < 1u << 20; ++f) {
    const std::uint32_t now = reference::power(f);
    wrong += now > last || std::abs(now - 16777216.0 * std::exp2(-static_cast<double>(f) / 1048576.0)) > 5;
    last = now;
  }
  CHECK(wrong == 0);
  CHECK(last >= reference::full_power / 2);
}

TEST_CASE("temperature 0 takes the first of the largest") {
  CHECK(chosen({0, 3, 1, 3}, {}) == 1);
  CHECK(chosen({-0.0f, 0.0f}, {}) == 0);
  CHECK(chosen({1, 2}, {.temperature = nan}) == 1);
  CHECK(chosen({-infinity, 2, -infinity}, {}) == 1);
}

TEST_CASE("logits that are no numbers give no token") {
  CHECK(chosen({1, nan, 2}, {}) == 3);
  CHECK(chosen({1, infinity}, {.temperature = 1}) == 2);
  CHECK(chosen({-infinity, -infinity}, {}) == 2);
}

TEST_CASE("the penalty divides what is positive and multiplies what is not, once") {
  CHECK(chosen({4, 3, -1, -1.5f}, {.repeat_penalty = 2}, {0, 0}) == 1);
  CHECK(chosen({-1, -1.5f}, {.repeat_penalty = 2}, {0, 99}) == 1);
  CHECK(reference::penalised(std::vector<float>{4, -3, 2}, ids{0, 1, 0}, 2) == std::vector<float>{2, -6, 2});
}

TEST_CASE("top-k keeps the first k, lowest ids among equals") {
  const std::vector<float> logits{1, 5, 4, 4, 2};
  CHECK(kept(logits, {.top_k = 1}) == ids{1});
  CHECK(kept(logits, {.top_k = 2}) == ids{1, 2});
  CHECK(kept(logits, {.top_k = 4}) == ids{1, 2, 3, 4});
  CHECK(kept(logits, {.top_k = 0}).size() == 5);
  CHECK(kept(logits, {.top_k = 9}).size() == 5);
}

TEST_CASE("top-p keeps the shortest start that reaches p") {
  CHECK(kept(halves, {.top_p = 0}) == ids{0});
  CHECK(kept(halves, {.top_p = -1}) == ids{0});
  CHECK(kept(halves, {.top_p = 0.5f}) == ids{0});  // 128 / 255 is just above 1/2
  CHECK(kept(halves, {.top_p = 0.51f}) == ids{0, 1});
  CHECK(kept(halves, {.top_p = 0.9f}) == ids{0, 1, 2, 3});
  CHECK(kept(halves, {.top_p = 1}).size() == 8);
  CHECK(kept(halves, {.top_p = nan}).size() == 8);
  // After top-k the rest counts as the whole: of 1/2, 1/4 the first has 2/3.
  CHECK(kept(halves, {.top_p = 0.6f, .top_k = 2}) == ids{0});
  // Filters act before the temperature.
  CHECK(kept(halves, {.temperature = 100, .top_p = 0.51f}) == ids{0, 1});
  // Half of 2^18 equal tokens are kept: the sums need more than 32 bits.
  CHECK(kept(std::vector<float>(262'144, 1.0f), {.top_p = 0.5f}).size() == 131'072);
}

TEST_CASE("min-p is relative to the best") {
  CHECK(kept(halves, {.min_p = 0.24f}) == ids{0, 1, 2});
  CHECK(kept(halves, {.min_p = 1}) == ids{0});
  CHECK(kept(halves, {.min_p = -1}).size() == 8);
}

std::uint32_t chosen_at(std::uint32_t position, std::uint64_t seed = 42) {
  return reference::choose(halves, {}, {.temperature = 1, .seed = seed}, position);
}

TEST_CASE("weights are probabilities", "[law]") {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(500);
  for (auto& l : logits) l = normal(random);
  for (const float temperature : {0.25f, 0.7f, 1.0f, 2.0f}) {
    const auto weights = reference::sampling_weights(logits, {.temperature = temperature});
    const double total = static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}));
    double sum = 0;
    for (const float l : logits) sum += std::exp(double{l} / temperature);
    for (std::size_t id = 0; id < logits.size(); ++id)
      CHECK(std::abs(static_cast<double>(weights[id]) / total - std::exp(double{logits[id]} / temperature) / sum) <
            6e-6);
  }
}

TEST_CASE("a weight falls with its logit, and but for the unit does not depend on the largest", "[law]") {
  std::mt19937 random(12);
  std::uniform_real_distribution<float> wide(-40, 40);
  for (const float scale : {reference::log2_e, 0.3f, 20.0f, 1e5f})
    for (int run = 0; run < 2000; ++run) {
      const float logit = wide(random), next = std::nextafter(logit, -infinity),
                  largest = logit + std::abs(wide(random)) * 0.4f / scale, larger = largest + 3 / scale;
      CHECK(reference::weight(next, largest, scale) <= reference::weight(logit, largest, scale));
      const auto shift = static_cast<int>(std::ceil(reference::exponent(larger, scale)) -
                                          std::ceil(reference::exponent(largest, scale)));
      const std::uint64_t of_larger = reference::weight(logit, larger, scale);
      CHECK((of_larger == 0 || of_larger << shift == reference::weight(logit, largest, scale)));
    }
  CHECK(reference::weight(1, 1, reference::log2_e) <= std::uint64_t{1} << 44);
  CHECK(reference::weight(-infinity, std::numeric_limits<float>::lowest(), 1) == 0);
  CHECK(reference::weight(std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), 3) > 0);
}

TEST_CASE("draw covers every weight by its share and nothing else") {
  const std::vector<std::uint64_t> weights{0, 1, 0, 3, 0};
  CHECK(reference::draw(weights, 0) == 1);
  CHECK(reference::draw(weights, 0x3FFFFFFFu) == 1);
  CHECK(reference::draw(weights, 0x40000000u) == 3);
  CHECK(reference::draw(weights, 0xFFFFFFFFu) == 3);
  const std::vector<std::uint64_t> many(262'144, std::uint64_t{1} << 44);  // the total is 2^62
  CHECK(reference::draw(many, 0) == 0);
  CHECK(reference::draw(many, 0x80000000u) == 131'072);
  CHECK(reference::draw(many, 0xFFFFFFFFu) == 262'143);
}

TEST_CASE("frequencies over positions follow the weights", "[law]") {
  std::vector<int> counts(8);
  constexpr int runs = 40'000;
  for (std::uint32_t position = 0; position < runs; ++position) ++counts[chosen_at(position)];
  for (std::size_t id = 0; id < 8; ++id) {
    const double p = std::exp2(-static_cast<double>(id)) * 128 / 255;
    CHECK(std::abs(counts[id] - runs * p) < 4.5 * std::sqrt(runs * p));
  }
}

TEST_CASE("the draw is a function of seed and position") {
  int same = 0, moved = 0;
  for (std::uint32_t position = 0; position < 200; ++position) {
    same += chosen_at(position) == chosen_at(position);
    moved += chosen_at(position, 43) != chosen_at(position) ||
             chosen_at(position, std::uint64_t{42} << 32) != chosen_at(position);
  }
  CHECK(same == 200);
  CHECK(moved > 50);
}

TEST_CASE("only what the filters leave is drawn") {
  const sampling s{.temperature = 5, .top_p = 0.6f, .seed = 3};
  for (std::uint32_t position = 0; position < 100; ++position) CHECK(reference::choose(halves, {}, s, position) < 2);
}

TEST_CASE("the kernel moves state, history and ring on") {
  constexpr std::uint32_t max_tokens = 2, context = 4;
  std::vector<std::uint32_t> state(at::words(max_tokens, context)), ring(3, 99);
  const std::vector<float> logits{5, 1, 6, 2};
  const auto before = state;
  reference::sample(logits, max_tokens, context, state, ring);  // count is 0
  CHECK(state == before);
  state[at::count] = 2;
  state[at::generated] = 5;
  state[at::repeat_penalty] = std::bit_cast<std::uint32_t>(4.0f);
  state[at::repeat_last_n] = 1;
  state[at::history(max_tokens)] = 0;
  state[at::history(max_tokens) + 1] = 2;  // the last token fed is penalised, the one before is not
  reference::sample(logits, max_tokens, context, state, ring);
  CHECK(state[at::tokens] == 0);
  CHECK(state[at::history(max_tokens) + 1] == 2);
  CHECK(state[at::history(max_tokens) + 2] == 0);
  CHECK(ring == ids{99, 99, 0});
  CHECK(state[at::position] == 2);
  CHECK(state[at::count] == 1);
  CHECK(state[at::generated] == 6);
  state[at::repeat_last_n] = 1000;  // clamped to what there is
  reference::sample(logits, max_tokens, context, state, ring);
  CHECK(state[at::tokens] == 3);
  CHECK(ring == ids{3, 99, 0});
  reference::sample(logits, max_tokens, context, state, ring);  // no room in history for the answer
  CHECK(state[at::tokens] == 2);
  CHECK(state[at::position] == 4);
  reference::sample(logits, max_tokens, context, state,
                    ring);  // past the context nothing is read or written out of bounds
  CHECK(state[at::position] == 5);
}

}  // namespace
