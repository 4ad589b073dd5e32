// SPDX-License-Identifier: MIT
#include "intaglio/reference/ternary_matmul.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "shared.hpp"

namespace {

using namespace intaglio;
using kernels::row_order;

/// The generator of the vectors, mulberry32, from its public description.
std::vector<double> mulberry(std::uint32_t seed, std::size_t count) {
  std::vector<double> out(count);
  for (auto& value : out) {
    seed += 0x6D2B79F5u;
    std::uint32_t t = (seed ^ (seed >> 15)) * (1u | seed);
    t = (t + (t ^ (t >> 7)) * (61u | t)) ^ t;
    value = (t ^ (t >> 14)) / 4294967296.0;
  }
  return out;
}

std::vector<std::int8_t> ternary(std::uint32_t seed, std::size_t count) {
  std::vector<std::int8_t> out;
  for (const double r : mulberry(seed, count))
    out.push_back(static_cast<std::int8_t>(r < 0.333 ? -1 : r < 0.666 ? 0 : 1));
  return out;
}

std::vector<std::int8_t> eight_bit(std::uint32_t seed, std::size_t count) {
  std::vector<std::int8_t> out;
  for (const double r : mulberry(seed, count)) out.push_back(static_cast<std::int8_t>(std::floor(r * 255) - 127));
  return out;
}

std::vector<std::uint32_t> repacked(const row_order& order, const std::vector<std::vector<std::int8_t>>& tensors,
                                    std::uint32_t columns) {
  std::vector<std::uint32_t> words(kernels::tile_words(order.rows(), columns));
  kernels::repack_ternary(order, std::vector<std::span<const std::int8_t>>(tensors.begin(), tensors.end()), columns, 0,
                          words);
  return words;
}

reference::factors factors_of(std::span<const std::int8_t> q, float inverse_scale) {
  return {inverse_scale, std::accumulate(q.begin(), q.end(), 0)};
}

TEST_CASE("ternary products agree with 0xBitNet's reference") {
  const auto vectors =
      nlohmann::json::parse(std::ifstream(shared("vectors/oxbitnet_ops.json")))["ops"]["ternary_gemv_k384"];
  constexpr std::uint32_t rows = 4, columns = 384;
  std::vector<std::int8_t> codes;
  for (std::uint32_t row = 0; row < rows; ++row)
    for (const auto code : ternary(50 + row, columns)) codes.push_back(code);
  const auto q = eight_bit(200, columns);
  const std::array<reference::factors, 1> factors{factors_of(q, 0.03f)};
  const std::array<float, 1> scale{0.01f};
  std::vector<float> y(rows, 1.0f);
  const auto weight = repacked(row_order::plain(rows), {codes}, columns);
  reference::ternary_matmul({.columns = columns, .rows = rows}, q, factors, weight, scale, y);
  for (std::size_t row = 0; row < rows; ++row) CHECK(std::abs(y[row] - vectors["output"][row].get<float>()) < 2e-6f);
  auto added = y;
  reference::ternary_matmul({.columns = columns, .rows = rows, .epilogue = kernels::epilogue::add}, q, factors, weight,
                            scale, added);
  for (std::size_t row = 0; row < rows; ++row) CHECK(added[row] == y[row] + y[row]);
}

/// The kernel's own way: unsigned codes and a correction by the sum of the inputs.
TEST_CASE("codes 0, 1, 2 and the sum of the inputs give the same integer", "[law]") {
  constexpr std::uint32_t rows = 8, columns = 2560;
  const auto weight = repacked(row_order::plain(rows), {ternary(1, rows * columns)}, columns);
  const auto q = eight_bit(2, columns);
  for (std::uint32_t row = 0; row < rows; ++row) {
    std::int32_t sum = -std::accumulate(q.begin(), q.end(), 0);
    for (std::uint32_t c = 0; c < columns; ++c)
      sum += static_cast<std::int32_t>(kernels::tile_code(weight, row, c, columns)) * q[c];
    CHECK(reference::ternary_dot(weight, columns, row, q) == sum);
  }
}

TEST_CASE("gated takes each source's scale and joins neighbours") {
  constexpr std::uint32_t columns = 16, hidden = 6;
  const auto gate = ternary(3, hidden * columns), up = ternary(4, hidden * columns);
  const auto q = eight_bit(5, 2 * columns);
  const std::array<reference::factors, 2> factors{factors_of(std::span(q).first(columns), 0.01f),
                                                  factors_of(std::span(q).last(columns), 0.02f)};
  const std::array<float, 2> scales{0.5f, 0.25f};
  std::vector<float> y(2 * hidden);
  for (const auto kind : {activation::relu_squared, activation::silu, activation::gelu_tanh}) {
    reference::ternary_matmul(
        {.columns = columns, .rows = 2 * hidden, .epilogue = kernels::epilogue::gated, .gate = kind}, q, factors,
        repacked(row_order::gate_up(hidden), {gate, up}, columns), scales, y);
    for (std::size_t token = 0; token < 2; ++token)
      for (std::size_t row = 0; row < hidden; ++row) {
        double g = 0, u = 0;
        for (std::size_t c = 0; c < columns; ++c) {
          g += gate[row * columns + c] * q[token * columns + c] * 0.5 * factors[token].inverse_scale;
          u += up[row * columns + c] * q[token * columns + c] * 0.25 * factors[token].inverse_scale;
        }
        const double activated = kind == activation::relu_squared ? std::max(g, 0.0) * std::max(g, 0.0)
                                 : kind == activation::silu
                                     ? g / (1 + std::exp(-g))
                                     : g / 2 * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g)));
        CHECK(std::abs(y[token * hidden + row] - activated * u) < 1e-5 * (1 + std::abs(activated * u)));
      }
  }
}

TEST_CASE("rope_cache rotates q and k by halves and writes k and v at their positions") {
  constexpr std::uint32_t columns = 32, head_dim = 8, q_size = 16, kv_size = 8, context = 10, position = 7, tokens = 4;
  const auto wq = ternary(6, q_size * columns), wk = ternary(7, kv_size * columns), wv = ternary(8, kv_size * columns);
  const auto q = eight_bit(9, tokens * columns);
  std::vector<reference::factors> factors;
  for (std::size_t token = 0; token < tokens; ++token)
    factors.push_back(factors_of(std::span(q).subspan(token * columns, columns), 0.01f));
  const std::array<float, 3> scales{1.0f, 0.5f, 0.25f};
  std::vector<float> output(tokens * q_size);
  std::vector<std::byte> keys(kernels::key_cache_elements(1, head_dim, context) * 4),
      values(kernels::value_cache_elements(1, head_dim, context) * 4);
  const reference::ternary_matmul_shape shape{.columns = columns,
                                              .rows = q_size + 2 * kv_size,
                                              .epilogue = kernels::epilogue::rope_cache,
                                              .head_dim = head_dim,
                                              .q_size = q_size,
                                              .kv_size = kv_size,
                                              .context = context,
                                              .rope_theta = 10'000.f,
                                              .cache_element = kernels::element::f32};
  reference::ternary_matmul(shape, q, factors,
                            repacked(row_order::rope_pairs(head_dim, q_size, kv_size), {wq, wk, wv}, columns), scales,
                            output, position, keys, values);
  const auto product = [&](const std::vector<std::int8_t>& w, std::size_t token, std::size_t row, double scale) {
    double sum = 0;
    for (std::size_t c = 0; c < columns; ++c) sum += w[row * columns + c] * q[token * columns + c];
    return sum * scale * 0.01f;
  };
  const auto rotated = [&](const std::vector<std::int8_t>& w, std::size_t token, std::size_t row, double scale) {
    const std::size_t within = row % head_dim, pair = within % (head_dim / 2);
    const double angle =
        static_cast<double>(position + token) * std::pow(10'000.0, -2.0 * static_cast<double>(pair) / head_dim);
    const double first = product(w, token, row - within + pair, scale),
                 second = product(w, token, row - within + pair + head_dim / 2, scale);
    return within == pair ? first * std::cos(angle) - second * std::sin(angle)
                          : second * std::cos(angle) + first * std::sin(angle);
  };
  for (std::uint32_t token = 0; token < tokens; ++token) {
    for (std::size_t row = 0; row < q_size; ++row)
      CHECK(std::abs(output[token * q_size + row] - rotated(wq, token, row, 1.0)) < 1e-5);
    if (position + token >= context) continue;  // the fourth token has no room and must not be written
    for (std::uint32_t row = 0; row < kv_size; ++row) {
      const std::size_t at = (position + token) * head_dim + row,
                        key = kernels::key_cache_index(0, position + token, row, head_dim, context);
      CHECK(std::abs(reference::elements::read(keys, kernels::element::f32, key) - rotated(wk, token, row, 0.5)) <
            1e-5);
      CHECK(std::abs(reference::elements::read(values, kernels::element::f32, at) - product(wv, token, row, 0.25)) <
            1e-5);
    }
  }
  CHECK(reference::elements::read(keys, kernels::element::f32,
                                  kernels::key_cache_index(0, position - 1, 0, head_dim, context)) == 0.0f);
}

}  // namespace
