// SPDX-License-Identifier: MIT
#include "intaglio/reference/walk.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "../shared.hpp"

using namespace intaglio::reference;
using intaglio::activation;
using nlohmann::json;

namespace {

/// The vectors' own generator: a linear congruential one, its upper bits as -1 .. 1.
std::vector<float> made(std::size_t count, std::uint64_t seed, float times = 1) {
  std::vector<float> out(count);
  for (float& value : out) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = (static_cast<float>(seed >> 40) / 16777216.f * 2.f - 1.f) * times;
  }
  return out;
}
std::vector<float> turned(const std::vector<float>& matrix, std::size_t rows, std::size_t columns) {
  std::vector<float> out(matrix.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = matrix[r * columns + c];
  return out;
}
json vectors(const char* name) {
  std::ifstream file(shared("vectors") / name);
  return json::parse(file);
}
void expect_near(std::span<const float> found, const json& wanted, double tolerance = 3e-6) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i);
    CHECK(std::fabs(static_cast<double>(found[i]) - wanted[i].get<double>()) <= tolerance);
  }
}
void expect_nearest(const std::vector<scored_feature>& found, const json& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].feature == wanted[i][0].get<std::uint32_t>());
    CHECK(std::fabs(static_cast<double>(found[i].score) - wanted[i][1].get<double>()) <= 3e-6);
  }
}

struct made_layer {
  std::vector<float> gate, up, down;  ///< down by features
  explicit made_layer(std::uint64_t layer)
      : gate(made(128, 100 + layer)), up(made(128, 200 + layer)), down(turned(made(128, 300 + layer), 8, 16)) {}
  walked_layer view() const { return {8, gate, up, down}; }
};

}  // namespace

TEST_CASE("walk: LARQL's own numbers") {
  for (const json& model : vectors("larql_ffn.json")["models"]) {
    const activation act = model["activation"] == "Silu" ? activation::silu : activation::gelu_tanh;
    const std::vector<float> x = made(24, 7);
    const auto row = [&](std::size_t r) { return std::span(x).subspan(8 * r, 8); };
    for (std::uint64_t l = 0; l < 2; ++l) {
      INFO(model["model_type"] << " layer " << l);
      const std::string at = "_L" + std::to_string(l);
      const made_layer layer(l);
      std::vector<std::vector<scored_feature>> fours;
      for (std::size_t r = 0; r < 3; ++r) {
        expect_near(full_walk(layer.view(), act, row(r)), model["dense_out" + at][r]);
        const std::vector<float> scores = gate_scores(layer.gate, row(r));
        expect_nearest(nearest_features(scores, 5), model["gate_knn_top5" + at + "_row" + std::to_string(r)]);
        fours.push_back(nearest_features(scores, 4));
        std::vector<float> products(16);
        for (std::size_t f = 0; f < 16; ++f)
          products[f] = evaluate(*intaglio::shader::activation_function(act), scores[f],
                                 dot(walked_layer::row(layer.up, f, 8), row(r)));
        expect_near(products, model["dense_activation" + at][r]);
      }
      const std::vector<std::uint32_t> all = rising_union(fours);
      CHECK(json(all) == model["gate_knn_batch_top4_union" + at]);
      for (std::size_t r = 0; r < 3; ++r)
        expect_near(walk(layer.view(), act, gate_scores(layer.gate, row(r)), row(r), all),
                    model["walk_sparse_top4_allrows" + at][r]);
      for (const std::size_t k : {2u, 4u, 8u})
        expect_near(sparse_walk(layer.view(), act, row(0), k),
                    model["walk_sparse_top" + std::to_string(k) + "_row0" + at]);
      CHECK(sparse_walk(layer.view(), act, row(0), 16) == full_walk(layer.view(), act, row(0)));
      CHECK(exact_walk(layer.view(), act, row(0)) == full_walk(layer.view(), act, row(0)));
    }
    made_layer layer(0);
    for (std::size_t r = 0; r < 3; ++r)
      expect_near(full_walk(layer.view(), act, row(r)), model["walk_full_mmap_L0"][r]);
    // Another down vector: of whatever kind, the walk reads it (LARQL's exact path did not).
    const std::vector<float> before = full_walk(layer.view(), act, row(0)), old = layer.down, other = made(8, 999);
    const auto feature = model["override_feature_L0"].get<std::size_t>();
    std::ranges::copy(other, layer.down.begin() + static_cast<std::ptrdiff_t>(8 * feature));
    expect_near(sparse_walk(layer.view(), act, row(0), 4), model["walk_sparse_top4_row0_L0_with_override"]);
    CHECK(full_walk(layer.view(), act, row(0)) != before);
    layer.down = old;
    // A feature that is put instead of another, and one that is taken out: both for all rows (LARQL's batches did
    // not see it).
    std::ranges::copy(made(8, 555, 4), layer.gate.begin() + 3 * 8);
    expect_nearest(nearest_features(gate_scores(layer.gate, row(0)), 5),
                   model["patch_gate_knn_top5_L0_row0_after_insert"]);
    const auto deleted = model["patch_deleted_feature"].get<std::size_t>();
    std::fill_n(layer.gate.begin() + static_cast<std::ptrdiff_t>(8 * deleted), 8, 0.f);
    expect_nearest(nearest_features(gate_scores(layer.gate, row(0)), 5),
                   model["patch_gate_knn_top5_L0_row0_after_delete"]);
  }
}

TEST_CASE("walk: LARQL's small indexes") {
  const json cases = vectors("larql_index_cases.json");
  const auto rows = [](const json& of) {
    std::vector<float> out;
    for (const json& row : of)
      for (const json& value : row) out.push_back(value.get<float>());
    return out;
  };
  const std::vector<float> gates = rows(cases["dense_index"]["layer0"]);
  const auto check = cases["dense_index"]["checks"][0];
  const auto found = nearest_features(gate_scores(gates, check["query"].get<std::vector<float>>()), 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(found[i].feature == check["expect_order_prefix"][i]);
  const std::vector<float> experts = rows(cases["expert_range_index"]["rows"]);
  for (const json& each : cases["expert_range_index"]["checks"]) {
    const std::vector<float> scores = gate_scores(experts, each["query"].get<std::vector<float>>());
    const auto two = nearest_features(scores, 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(two[i].feature == each["expect_top2"][i]);
    for (const auto& one : nearest_features(scores, 3, 3, 6)) CHECK(one.feature >= 3);
    CHECK(nearest_features(scores, 9, 0, 3).size() == 3);
  }
}

TEST_CASE("walk: nearest features are those of a search in f64") {
  constexpr std::size_t width = 200, features = 500, wanted = 40;
  const std::vector<float> gates = made(width * features, 11), x = made(width, 12);
  std::vector<double> exact(features);
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t i = 0; i < width; ++i)
      exact[f] += static_cast<double>(gates[f * width + i]) * static_cast<double>(x[i]);
  std::vector<std::uint32_t> order(features);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return std::fabs(exact[a]) > std::fabs(exact[b]); });
  for (std::size_t i = 0; i < wanted; ++i)
    REQUIRE(std::fabs(exact[order[i]]) - std::fabs(exact[order[i + 1]]) > 1e-6);  // no tie that rounding decides
  const auto found = nearest_features(gate_scores(gates, x), wanted);
  REQUIRE(found.size() == wanted);
  for (std::size_t i = 0; i < wanted; ++i) CHECK(found[i].feature == order[i]);

  // Equals come with the lowest first, whatever their sign; numbers that are none are refused.
  const std::vector<float> ties{1, -2, 2, 0, -1};
  const auto ordered = nearest_features(ties, 9);
  const std::vector<scored_feature> by_hand{{1, -2}, {2, 2}, {0, 1}, {4, -1}, {3, 0}};
  CHECK(ordered == by_hand);
  const std::vector<float> none{0, std::numeric_limits<float>::quiet_NaN()};
  CHECK_THROWS_MATCHES(nearest_features(none, 1), intaglio::argument_error,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("NaN of feature 1")));
}

TEST_CASE("walk: with squared ReLU what is left out changes nothing") {
  const made_layer layer(0);
  const std::vector<float> x = made(8, 7), scores = gate_scores(layer.gate, x);
  const auto active = active_features(activation::relu_squared, scores);
  CHECK(active.size() > 2);
  CHECK(active.size() < 14);
  const auto exact = exact_walk(layer.view(), activation::relu_squared, x),
             full = full_walk(layer.view(), activation::relu_squared, x);
  for (std::size_t i = 0; i < 8; ++i) CHECK(std::fabs(exact[i] - full[i]) <= 1e-6f);
  // A NaN is not left out: it must show.
  const std::vector<float> bad{-1, std::numeric_limits<float>::quiet_NaN(), 1};
  CHECK(active_features(activation::relu_squared, bad) == std::vector<std::uint32_t>{1, 2});
}
