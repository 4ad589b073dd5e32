// SPDX-License-Identifier: MIT
#include "intaglio/reference/activation.hpp"
#include "intaglio/reference/experts.hpp"

#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("gated gives the reference's bits, whatever the activation, and leaves tokens past the count alone",
          "[kernels]") {
  kernel_device on;
  random_numbers random(12);
  constexpr std::uint32_t tokens = 3, room = 4;
  const std::uint32_t width = GENERATE(4u, 76u, 1320u), groups = GENERATE(1u, 3u);
  const activation type = GENERATE(activation::relu_squared, activation::silu, activation::gelu_tanh, activation::gelu);
  const shader::activation_function act(type);
  const float scale = GENERATE(1.f, 30.f);
  const auto gates = random.floats(std::size_t{room} * width, -90, 90),
             ups = random.floats(std::size_t{room} * width, -3, 3);
  std::vector<float> expected(gates.size());
  reference::gated(*act, gates, ups, expected, scale);
  for (const std::uint32_t subgroups : on.widths()) {
    const auto gate = on.filled(gates), up = on.filled(ups), out = on.poisoned(4 * expected.size()),
               state = on.filled(fresh_state(5, tokens, room, 64));
    const auto untouched = out.read<std::uint32_t>();
    on.run(kernels::kernel::gated, subgroups,
           {{"width", width}, {"scale", scale}, {"up_stride", width}, {"experts_used", 1u}, {"activation", act}},
           {{"gate", &gate}, {"up", &up}, {"output", &out}, {"state", &state}}, {groups, room, 1});
    const auto found = out.read<float>();
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + tokens * width),
               std::vector<float>(expected.begin(), expected.begin() + tokens * width));
    const auto words = out.read<std::uint32_t>();
    CHECK(std::equal(words.begin() + tokens * width, words.end(), untouched.begin() + tokens * width));
  }
}

TEST_CASE("gated takes a layer's part of what a token has for all layers", "[kernels]") {
  kernel_device on;
  random_numbers random(13);
  constexpr std::uint32_t tokens = 3, width = 64, layers = 5, layer = 3;
  const shader::activation_function act(activation::gelu_tanh);
  const auto gates = random.floats(tokens * width, -4, 4), all = random.floats(tokens * layers * width, -3, 3);
  std::vector<float> ups, expected(gates.size());
  for (std::uint32_t t = 0; t < tokens; ++t)
    for (std::uint32_t i = 0; i < width; ++i) ups.push_back(all[(t * layers + layer) * width + i]);
  reference::gated(*act, gates, ups, expected);
  const std::vector<float> from(all.begin() + layer * width, all.end());
  const auto gate = on.filled(gates), up = on.filled(from), out = on.poisoned(4 * expected.size()),
             state = on.filled(fresh_state(5, tokens, tokens, 64));
  on.run(kernels::kernel::gated, on.widths().front(),
         {{"width", width}, {"scale", 1.f}, {"up_stride", layers * width}, {"activation", act}},
         {{"gate", &gate}, {"up", &up}, {"output", &out}, {"state", &state}}, {1, tokens, 1});
  CHECK_SAME(on, out.read<float>(), expected);
}

TEST_CASE("gated bounds logits where they are, in order and to less than the bound", "[kernels]") {
  kernel_device on;
  constexpr float bound = 12;
  const shader::activation_function act(shader::softcap{});
  std::vector<float> logits;
  for (int i = -400; i <= 400; ++i) logits.push_back(0.25f * static_cast<float>(i));
  while (logits.size() % 4 != 0) logits.push_back(0);
  const auto width = static_cast<std::uint32_t>(logits.size());
  std::vector<float> expected(width);
  reference::gated(*act, logits, logits, expected, bound);
  const auto values = on.filled(logits), state = on.filled(fresh_state(0, 1, 1, 64));
  on.run(kernels::kernel::gated, on.widths().front(),
         {{"width", width}, {"scale", bound}, {"up_stride", width}, {"experts_used", 1u}, {"activation", act}},
         {{"gate", &values}, {"up", &values}, {"output", &values}, {"state", &state}}, {1, 1, 1});
  const auto found = values.read<float>();
  CHECK_SAME(on, found, expected);
  for (std::size_t i = 0; i < 801; ++i) {
    CHECK(std::abs(found[i] - bound * std::tanh(logits[i] / bound)) < 1e-5f);
    if (i != 0) CHECK(found[i] >= found[i - 1]);
  }
}

TEST_CASE("gated adds the biases of the experts that a token has", "[kernels]") {
  kernel_device on;
  random_numbers random(13);
  constexpr std::uint32_t tokens = 3, experts = 5, used = 2, rows = 76, width = used * rows;
  const shader::activation_function act(shader::clamped_swiglu{});
  const auto gates = random.floats(tokens * width, -9, 9), ups = random.floats(tokens * width, -9, 9),
             gate_biases = random.floats(experts * rows, -3, 3), up_biases = random.floats(experts * rows, -3, 3);
  const std::vector<std::uint32_t> choice{4, 1, 0, 0, 0, 3, 0, 0, 2, 4, 0, 0};
  std::vector<float> expected(gates.size());
  reference::gated(*act, reference::biased_experts(gates, choice, used, gate_biases),
                   reference::biased_experts(ups, choice, used, up_biases), expected);
  const auto gate = on.filled(gates), up = on.filled(ups), out = on.poisoned(4 * expected.size()),
             chosen = on.filled(choice), gate_bias = on.filled(gate_biases), up_bias = on.filled(up_biases),
             state = on.filled(fresh_state(5, tokens, tokens, 64));
  on.run(kernels::kernel::gated, on.widths().front(),
         {{"width", width},
          {"scale", 1.f},
          {"up_stride", width},
          {"biased", 1u},
          {"experts_used", used},
          {"activation", act}},
         {{"gate", &gate},
          {"up", &up},
          {"output", &out},
          {"state", &state},
          {"choice", &chosen},
          {"gate_bias", &gate_bias},
          {"up_bias", &up_bias}},
         {2, tokens, 1});
  CHECK_SAME(on, out.read<float>(), expected);
  const double g = 7, u = -7;  // beyond both limits
  CHECK(std::abs(reference::evaluate(*act, 30, -30) - (u + 1) * g / (1 + std::exp(-1.702 * g))) < 1e-4);
}

TEST_CASE("gated adds the biases that all tokens have, to what is activated without a gate too", "[kernels]") {
  kernel_device on;
  random_numbers random(14);
  constexpr std::uint32_t tokens = 3, width = 76;
  const shader::activation_function act = shader::ungated_function(activation::gelu);
  const auto x = random.floats(tokens * width, -9, 9), bias = random.floats(width, -3, 3);
  std::vector<float> biased = x, expected(x.size());
  for (std::size_t i = 0; i < biased.size(); ++i) biased[i] += bias[i % width];
  reference::gated(*act, biased, biased, expected);
  const auto values = on.filled(x), added = on.filled(bias), state = on.filled(fresh_state(5, tokens, tokens, 64));
  on.run(kernels::kernel::gated, on.widths().front(),
         {{"width", width},
          {"scale", 1.f},
          {"up_stride", width},
          {"biased", 2u},
          {"experts_used", 1u},
          {"activation", act}},
         {{"gate", &values},
          {"up", &values},
          {"output", &values},
          {"state", &state},
          {"gate_bias", &added},
          {"up_bias", &added}},
         {1, tokens, 1});
  CHECK_SAME(on, values.read<float>(), expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double gelu = 0.5 * biased[i] * (1 + std::erf(biased[i] / std::sqrt(2.0)));
    CHECK(std::abs(expected[i] - gelu) < 1e-6);
  }
}

TEST_CASE("gated multiplies each side of xIELU by a layer's factor and adds a part of the input", "[kernels]") {
  kernel_device on;
  random_numbers random(15);
  constexpr std::uint32_t tokens = 3, room = 4, width = 76;
  const shader::activation_function act = shader::ungated_function(activation::xielu);
  std::vector<float> x = random.floats(room * width, -6, 6);
  for (std::size_t i = 0; i < 40; ++i) x[5 * i] *= i % 2 == 0 ? 1e-4f : 40.f;
  x[7] = 0, x[8] = -0.f;
  const float limit = GENERATE(-1e-6f, -0.25f);  // of the exponent; larger inputs are on a line
  const std::vector<float> own{0.75f, 0.875f, 0.5f, limit};
  std::vector<float> expected(x.size());
  reference::gated_by_parameters(*act, x, own, expected);
  for (const std::uint32_t subgroups : on.widths()) {
    const auto values = on.filled(x), parameters = on.filled(own), state = on.filled(fresh_state(5, tokens, room, 64));
    on.run(kernels::kernel::gated, subgroups,
           {{"width", width},
            {"scale", 1.f},
            {"up_stride", width},
            {"biased", 3u},
            {"experts_used", 1u},
            {"activation", act}},
           {{"gate", &values}, {"up", &values}, {"output", &values}, {"state", &state}, {"gate_bias", &parameters}},
           {2, room, 1});
    const auto found = values.read<float>();
    constexpr std::size_t count = std::size_t{tokens} * width;
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + count),
               std::vector<float>(expected.begin(), expected.begin() + count));
    CHECK(std::equal(found.begin() + count, found.end(), x.begin() + count));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double in = x[i], curve = (std::expm1((std::min)(in, double{limit})) - in) * 0.875 + 0.5 * in,
                 exact = in > 0 ? 0.75 * in * in + 0.5 * in : curve;
    INFO(in);
    CHECK(std::abs(expected[i] - exact) <= 4e-7 * (std::abs(exact) + std::abs(in)));
  }
}
