// SPDX-License-Identifier: MIT
#include "intaglio/shader/activation.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;
using shader::activation_function, shader::expression_of, shader::operation, shader::real;

namespace {

struct swiglu_7 {  // a gated unit of its own: both parameters
  static constexpr std::string_view name = "swiglu_7";
  constexpr real operator()(real gate, real up) const { return gate / (1.0f + exp(-1.702f * gate)) * (up + 1.0f); }
};
struct nameless {
  constexpr auto operator()(real gate) const { return gate + 1.0f; }
};
struct renamed : shader::silu {
  static constexpr std::string_view name = "renamed";
};
constexpr auto last_of = [](const shader::expression& e) { return e.steps[e.size - 1u]; };

static_assert(shader::element_wise<shader::silu> && shader::element_wise<swiglu_7> && !shader::element_wise<int> &&
              !shader::element_wise<activation>);
// The last step of a function of the gate alone is the product with `up`.
static_assert(last_of(expression_of<shader::silu>).what == operation::multiply);
static_assert(expression_of<shader::silu>.steps[last_of(expression_of<shader::silu>).of[1]].what == operation::up);
static_assert(expression_of<shader::relu_squared>.size == 6 && expression_of<shader::relu_squared>.name == "relu2");
static_assert(expression_of<nameless>.name == "activation");

}  // namespace

TEST_CASE("an activation is one of the config's words or a type") {
  CHECK(activation_function{activation::silu} == activation_function{shader::silu{}});
  CHECK(activation_function { activation::gelu_tanh } -> name == "gelu_tanh");
  CHECK(activation_function{} == activation_function{activation::relu_squared});
  CHECK_FALSE(activation_function{swiglu_7{}} == activation_function{shader::silu{}});
}

TEST_CASE("a hash distinguishes functions, not their names") {
  CHECK(expression_of<shader::silu>.hash() == expression_of<renamed>.hash());
  CHECK(expression_of<shader::silu>.hash() != expression_of<nameless>.hash());
  CHECK(expression_of<shader::silu>.hash() != expression_of<shader::gelu_tanh>.hash());
}
