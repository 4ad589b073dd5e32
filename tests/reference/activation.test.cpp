// SPDX-License-Identifier: MIT
#include "intaglio/reference/activation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>

#include "intaglio/shader/activation.hpp"

using namespace intaglio;
using intaglio::reference::evaluate;
using shader::expression_of, shader::real;

namespace {

// Every operation once: a leaky unit between two bounds.
struct every_operation {
  constexpr real operator()(real gate, real up) const {
    const auto inside = !(gate < -2.0f) && gate <= 4.0f;
    const auto special = gate == 1.0f || gate > 100.0f || abs(gate) >= 50.0f;
    return select(special, min(gate, 9.0f) - 1.0f, select(inside, max(-gate, gate / 8.0f) + exp(gate), tanh(gate))) *
           up;
  }
};
float expected(float g, float up) {
  const bool inside = !(g < -2.0f) && g <= 4.0f, special = g == 1.0f || g > 100.0f || std::abs(g) >= 50.0f;
  using kernels::arithmetic::exp, kernels::arithmetic::product;
  if (special) return product(std::min(g, 9.0f) - 1.0f, up);
  return product(inside ? std::max(-g, g / 8.0f) + exp(g) : 1.0f - 2.0f / (exp(product(2.0f, g)) + 1.0f), up);
}

}  // namespace

TEST_CASE("every operation gives what C++ gives", "[reference]") {
  for (const float g : {-200.0f, -3.0f, -2.0f, -0.5f, 0.0f, 0.3f, 1.0f, 4.0f, 4.5f, 60.0f, 1e30f})
    CHECK(evaluate(expression_of<every_operation>, g, 1.7f) == expected(g, 1.7f));
}

TEST_CASE("the config's activations are what their sources say", "[reference]") {
  for (float g = -9; g < 9; g += 0.37f) {
    const double x = g, t = std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x));
    CHECK(std::abs(evaluate(expression_of<shader::relu_squared>, g, 3) - std::pow(std::max(x, 0.0), 2) * 3) < 1e-4);
    CHECK(std::abs(evaluate(expression_of<shader::silu>, g, 3) - x / (1 + std::exp(-x)) * 3) < 1e-5);
    CHECK(std::abs(evaluate(expression_of<shader::gelu_tanh>, g, 3) - 0.5 * x * (1 + t) * 3) < 1e-5);
  }
  CHECK(std::isnan(evaluate(expression_of<shader::silu>, std::numeric_limits<float>::quiet_NaN(), 1)));
}
