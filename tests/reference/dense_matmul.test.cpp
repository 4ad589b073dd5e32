// SPDX-License-Identifier: MIT
#include "intaglio/reference/dense_matmul.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

namespace {

using namespace intaglio;

TEST_CASE("the head is a norm and a dense product", "[law]") {
  constexpr std::size_t columns = 260, rows = 7, tokens = 2;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(columns * tokens), norm(columns), output(rows * tokens);
  for (auto& v : x) v = normal(random);
  for (auto& v : norm) v = normal(random);
  for (const auto type : {kernels::element::f16, kernels::element::bf16, kernels::element::f32}) {
    std::vector<std::byte> bytes(columns * rows * reference::elements::size_bytes(type));
    reference::elements weight(bytes, type);
    for (std::size_t i = 0; i < columns * rows; ++i) weight.store(i, normal(random));
    reference::dense_matmul(x, norm, bytes, type, columns, rows, 1e-6f, output);
    for (std::size_t token = 0; token < tokens; ++token) {
      double square = 0;
      for (std::size_t c = 0; c < columns; ++c) square += double{x[token * columns + c]} * x[token * columns + c];
      const double r = 1 / std::sqrt(square / columns + 1e-6);
      for (std::size_t row = 0; row < rows; ++row) {
        double exact = 0;
        for (std::size_t c = 0; c < columns; ++c)
          exact += double{weight[row * columns + c]} * x[token * columns + c] * r * norm[c];
        CHECK(std::abs(output[token * rows + row] - exact) < 5e-5);
      }
    }
  }
}

}  // namespace
