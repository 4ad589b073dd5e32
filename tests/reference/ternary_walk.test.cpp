// SPDX-License-Identifier: MIT
// The walk of features against the dense products, bit for bit, on random weights and through the plans of whole
// models.
#include "intaglio/reference/ternary_walk.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <random>
#include <vector>

using namespace intaglio;
using namespace intaglio::reference;

namespace {

struct problem {
  std::uint32_t hidden, features;
  std::vector<std::int8_t> gate, up, down;  ///< [features, hidden], the same, [hidden, features]
  std::vector<std::uint32_t> gate_tiles, gate_up_tiles, up_rows, down_tiles, down_rows;

  problem(std::uint32_t hidden_size, std::uint32_t intermediate_size, unsigned seed)
      : hidden(hidden_size), features(intermediate_size) {
    std::mt19937 random(seed);
    const auto codes = [&] {
      std::vector<std::int8_t> out(std::size_t{hidden} * features);
      for (auto& code : out) code = static_cast<std::int8_t>(static_cast<int>(random() % 3) - 1);
      return out;
    };
    gate = codes(), up = codes(), down = codes();
    const auto tiles = [](const kernels::row_order& order, std::initializer_list<std::span<const std::int8_t>> of,
                          std::uint32_t columns) {
      std::vector<std::uint32_t> out(kernels::tile_words(order.rows(), columns));
      kernels::repack_ternary(order, std::vector<std::span<const std::int8_t>>(of), columns, 0, out);
      return out;
    };
    gate_tiles = tiles(kernels::row_order::plain(features), {gate}, hidden);
    gate_up_tiles = tiles(kernels::row_order::gate_up(features), {gate, up}, hidden);
    down_tiles = tiles(kernels::row_order::plain(hidden), {down}, features);
    up_rows.resize(std::size_t{features} * hidden / 16);
    kernels::pack_feature_rows(up, up_rows);
    down_rows.resize(up_rows.size());
    for (std::uint32_t word = 0; word < hidden / 16; ++word)
      kernels::pack_feature_columns(
          std::span<const std::int8_t>(down).subspan(std::size_t{word} * 16 * features, std::size_t{16} * features),
          features, 0, word, hidden, down_rows);
  }
};

}  // namespace

TEST_CASE("ternary walk: the bits of the dense products, fewer vectors") {
  const std::vector<float> scales{0.031f, 0.047f}, down_scale{0.02f};
  for (const auto& [hidden, features] : {std::pair{64u, 48u}, {256u, 1024u}, {16u, 16u}}) {
    const problem p(hidden, features, hidden + features);
    std::mt19937 random(5);
    std::vector<float> x(hidden), norm(hidden), sub_norm(features);
    for (auto* of : {&x, &norm, &sub_norm})
      for (float& value : *of) value = static_cast<float>(random() % 2001) / 1000.f - (of == &x ? 1.f : 0.f);
    std::vector<std::int8_t> q(hidden), hq(features);
    std::vector<factors> factor(1), h_factor(1);
    norm_quantize(x, norm, hidden, 1e-5f, q, factor);

    std::vector<float> dense(features), walked(features, std::numeric_limits<float>::quiet_NaN());
    ternary_matmul({.columns = hidden, .rows = 2 * features, .epilogue = kernels::epilogue::gated}, q, factor,
                   p.gate_up_tiles, scales, dense);
    const std::size_t ups = walk_gate_up(q, factor[0], p.gate_tiles, p.up_rows, scales, walked);
    CHECK(walked == dense);
    CHECK(ups > 0);
    CHECK(ups < features);

    norm_quantize(walked, sub_norm, features, 1e-5f, hq, h_factor);
    std::vector<float> dense_out(hidden, 0.25f), walked_out = dense_out;
    ternary_matmul({.columns = features, .rows = hidden, .epilogue = kernels::epilogue::add}, hq, h_factor,
                   p.down_tiles, down_scale, dense_out);
    const std::size_t downs = walk_down(hq, h_factor[0], p.down_rows, down_scale, walked_out);
    CHECK(walked_out == dense_out);
    CHECK(downs > 0);
    CHECK(downs <= ups);
  }
  // What is no number must show.
  const problem p(16, 16, 1);
  std::vector<float> h(16);
  const std::vector<std::int8_t> q(16, 1);
  walk_gate_up(q, {std::numeric_limits<float>::quiet_NaN(), 16}, p.gate_tiles, p.up_rows, scales, h);
  for (const float value : h) CHECK(std::isnan(value));
}
