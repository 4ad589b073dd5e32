// SPDX-License-Identifier: MIT
#include "intaglio/reference/ternary_float.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

namespace {

using namespace intaglio;
using kernels::row_order;

std::vector<std::int8_t> codes(std::mt19937& random, std::size_t count) {
  std::vector<std::int8_t> out(count);
  for (auto& code : out) code = static_cast<std::int8_t>(static_cast<int>(random() % 3) - 1);
  return out;
}
std::vector<float> normals(std::mt19937& random, std::size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (auto& value : out) value = normal(random);
  return out;
}
std::vector<std::uint32_t> repacked(const row_order& order, const std::vector<std::vector<std::int8_t>>& tensors,
                                    std::uint32_t columns) {
  std::vector<std::uint32_t> words(kernels::tile_words(order.rows(), columns));
  kernels::repack_ternary(order, std::vector<std::span<const std::int8_t>>(tensors.begin(), tensors.end()), columns, 0,
                          words);
  return words;
}

TEST_CASE("a ternary product of floats is the scaled sum of what the codes keep", "[law]") {
  constexpr std::uint32_t rows = 8, columns = 1040, tokens = 3;
  std::mt19937 random(5);
  const auto w = codes(random, rows * columns);
  const auto x = normals(random, tokens * columns), start = normals(random, tokens * rows);
  const std::array<float, 1> scale{0.75f};
  const auto weight = repacked(row_order::plain(rows), {w}, columns);
  std::vector<float> y(tokens * rows), sum = start;
  reference::ternary_float({.columns = columns, .rows = rows}, x, weight, scale, y);
  reference::ternary_float({.columns = columns, .rows = rows, .epilogue = kernels::epilogue::add}, x, weight, scale,
                           sum);
  for (std::size_t token = 0; token < tokens; ++token)
    for (std::size_t row = 0; row < rows; ++row) {
      double exact = 0;
      for (std::size_t c = 0; c < columns; ++c) exact += double{x[token * columns + c]} * w[row * columns + c];
      CHECK(std::abs(y[token * rows + row] - 0.75 * exact) < 1e-4);
      CHECK(sum[token * rows + row] == start[token * rows + row] + y[token * rows + row]);
    }
}

TEST_CASE("integers within 24 bits give the integer product's result", "[law]") {
  constexpr std::uint32_t rows = 4, columns = 2560;
  std::mt19937 random(6);
  const auto weight = repacked(row_order::plain(rows), {codes(random, rows * columns)}, columns);
  std::vector<std::int8_t> q(columns);
  std::vector<float> x(columns);
  for (std::size_t i = 0; i < columns; ++i) x[i] = q[i] = static_cast<std::int8_t>(random() % 255 - 127);
  for (std::uint32_t row = 0; row < rows; ++row)
    CHECK(reference::ternary_sum(weight, columns, row, x) ==
          static_cast<float>(reference::ternary_dot(weight, columns, row, q)));
}

TEST_CASE("the order of the sum is that of 32 lanes of tiles of 16 columns") {
  constexpr std::uint32_t columns = 1024;
  const auto weight = repacked(row_order::plain(4), {std::vector<std::int8_t>(4 * columns, 1)}, columns);
  // 2^24 + 1 is no float: a 1 after it in its lane is lost, ones that meet in another lane are not.
  std::vector<float> x(columns);
  x[0] = 16777216.0f;
  x[1] = x[512] = 1.0f;
  CHECK(reference::ternary_sum(weight, columns, 0, x) == 16777216.0f);
  x[16] = x[17] = 1.0f;
  CHECK(reference::ternary_sum(weight, columns, 0, x) == 16777218.0f);
}

TEST_CASE("gated and rope_cache take each source's scale") {
  constexpr std::uint32_t columns = 32, head_dim = 8;
  std::mt19937 random(7);
  const auto a = codes(random, 16 * columns), b = codes(random, 8 * columns), c = codes(random, 8 * columns);
  const auto x = normals(random, columns);
  const auto exact = [&](const std::vector<std::int8_t>& w, std::size_t row, double scale) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += double{x[i]} * w[row * columns + i];
    return sum * scale;
  };
  const std::array<float, 3> scales{1.0f, 0.5f, 0.25f};
  std::vector<float> y(8);
  reference::ternary_float(
      {.columns = columns, .rows = 16, .epilogue = kernels::epilogue::gated, .gate = activation::silu}, x,
      repacked(row_order::gate_up(8), {b, c}, columns), scales, y);
  for (std::size_t row = 0; row < 8; ++row) {
    const double gate = exact(b, row, 1.0), up = exact(c, row, 0.5);
    CHECK(std::abs(y[row] - gate / (1 + std::exp(-gate)) * up) < 1e-4);
  }
  std::vector<float> q(16);
  std::vector<std::byte> keys(kernels::key_cache_elements(1, 8, 4) * 4),
      values(kernels::value_cache_elements(1, 8, 4) * 4);
  // Position 0 turns nothing.
  reference::ternary_float({.columns = columns,
                            .rows = 32,
                            .epilogue = kernels::epilogue::rope_cache,
                            .head_dim = head_dim,
                            .q_size = 16,
                            .kv_size = 8,
                            .context = 4,
                            .cache_element = kernels::element::f32},
                           x, repacked(row_order::rope_pairs(head_dim, 16, 8), {a, b, c}, columns), scales, q, 0, keys,
                           values);
  for (std::size_t row = 0; row < 16; ++row) CHECK(std::abs(q[row] - exact(a, row, 1.0)) < 1e-5);
  for (std::size_t row = 0; row < 8; ++row)
    CHECK(std::abs(reference::elements::read(values, kernels::element::f32, row) - exact(c, row, 0.25)) < 1e-5);
}

}  // namespace
