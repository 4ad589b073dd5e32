// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_router_build.hpp"

#include <catch2/catch_test_macros.hpp>

#include <random>

#include "intaglio/io/feature_index_build.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

TEST_CASE("clustered_experts finds directions that are there, whatever their lengths, and gives every expert a feature",
          "[io][router]") {
  constexpr std::size_t width = 12, features = 60;
  std::mt19937 random(5);
  std::normal_distribution<float> noise(0, 0.05f);
  std::vector<float> gates(features * width);
  for (std::size_t f = 0; f < features; ++f) {
    const float size = 0.5f + static_cast<float>(f % 7);
    for (std::size_t i = 0; i < width; ++i)
      gates[f * width + i] = size * ((i == (f * 3 / 60) * 4 ? 1.f : 0.f) + noise(random));
  }
  const auto found = io::clustered_experts(gates, width, 3, 10);
  for (std::size_t f = 0; f < features; ++f) CHECK(found[f] == found[f * 3 / 60 * 20]);
  CHECK((found[0] != found[20] && found[20] != found[40] && found[0] != found[40]));
  CHECK(io::clustered_experts(gates, width, 3, 10) == found);
  // More experts than directions, all features the same or nothing: none is left empty.
  for (const float value : {1.f, 0.f}) {
    const std::vector<float> same(8 * width, value);
    auto experts = io::clustered_experts(same, width, 8, 3);
    std::ranges::sort(experts);
    CHECK(experts == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("build_router: neighbours or clusters, weights that are the mean gates", "[io][router]") {
  const temporary_folder folder;
  io::build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), folder / "index");
  const io::feature_index index = io::feature_index::open(folder / "index");
  std::uint32_t reported = 0;
  const io::feature_router neighbours = io::build_router(
      index, {.experts = 5, .method = io::router_method::contiguous, .progress = [&](std::uint32_t layers) {
                reported = layers;
              }});
  CHECK(reported == 5);
  for (std::uint32_t layer = 0; layer < 5; ++layer) {
    const io::router_layer& of = neighbours.layer(layer);
    CHECK(std::ranges::is_sorted(of.expert_of));
    std::vector<float> gates(172 * 64), mean(64);
    index.read_f32(layer, io::feature_vector::gate, 0, 172, gates);
    std::size_t size = 0;
    for (std::size_t f = 0; f < 172; ++f) {
      CHECK((of.expert_of[f] == 2) == (f >= 2 * 172 / 5 && f < 3 * 172 / 5));
      if (of.expert_of[f] != 2) continue;
      ++size;
      for (std::size_t i = 0; i < 64; ++i) mean[i] += gates[f * 64 + i];
    }
    for (std::size_t i = 0; i < 64; ++i)
      CHECK(std::abs(of.weights[2 * 64 + i] - mean[i] / static_cast<float>(size)) < 1e-5f);
  }
  const io::feature_router clusters = io::build_router(index, {.experts = 6});
  for (std::uint32_t layer = 0; layer < 5; ++layer) CHECK(clusters.layer(layer).experts() == 6);
  CHECK_THROWS_AS(io::build_router(index, {.experts = 173}), argument_error);
  CHECK_THROWS_AS(io::build_router(index, {.experts = 0}), argument_error);
  CHECK_THROWS_AS(io::build_router(index, {.rounds = 0}), argument_error);
}
