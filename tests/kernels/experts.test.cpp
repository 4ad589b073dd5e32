// SPDX-License-Identifier: MIT
#include "intaglio/reference/experts.hpp"

#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;
using kernels::prologue;

namespace {

constexpr std::uint32_t tokens = 3, room = 4, used = 2, experts = 5;

/// Tokens of which one has an expert that another has too.
std::vector<std::uint32_t> choices(random_numbers& random) {
  std::vector<std::uint32_t> out(2 * room * used);
  for (std::uint32_t t = 0; t < room; ++t)
    for (std::uint32_t j = 0; j < used; ++j) {
      out[2 * used * t + j] = (4 + 2 * t + 3 * j) % experts;
      out[2 * used * t + used + j] = std::bit_cast<std::uint32_t>(random.between(0, 1));
    }
  return out;
}

}  // namespace

TEST_CASE("route gives the reference's choice, ties and all, and leaves tokens past the count alone", "[kernels]") {
  kernel_device on;
  random_numbers random(7);
  const std::uint32_t many = GENERATE(4u, 8u, 65u), of = many == 4 ? 4 : 3;
  auto logits = random.floats(std::size_t{room} * many, -6, 6);
  logits[many - 1] = logits[1] = 7;
  std::vector<std::uint32_t> expected(2 * of * room, 0xa5a5a5a5u);
  for (std::uint32_t t = 0; t < tokens; ++t) reference::route(std::span(logits).subspan(t * many, many), std::span(expected).subspan(2 * of * t, 2 * of));
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(logits), choice = on.poisoned(4 * expected.size()), state = on.filled(fresh_state(5, tokens, room, 64));
    on.run(kernels::kernel::route, subgroups, {{"experts", many}, {"experts_used", of}}, {{"logits", &in}, {"choice", &choice}, {"state", &state}}, {1, room, 1});
    const auto found = choice.read<std::uint32_t>();
    for (std::uint32_t t = 0; t < room; ++t)
      for (std::uint32_t j = 0; j < of; ++j) CHECK(found[2 * of * t + j] == expected[2 * of * t + j]);
    const auto shares = [&](const std::vector<std::uint32_t>& from) {
      std::vector<float> out;
      for (std::uint32_t i = 0; i < tokens * of; ++i) out.push_back(std::bit_cast<float>(from[i / of * 2 * of + of + i % of]));
      return out;
    };
    CHECK_SAME(on, shares(found), shares(expected));
  }
}

TEST_CASE("expert_sum gives the reference's bits", "[kernels]") {
  kernel_device on;
  random_numbers random(8);
  const std::uint32_t width = 76;
  const auto input = random.floats(std::size_t{room} * used * width, -3, 3), start = random.floats(std::size_t{room} * width, -3, 3);
  const auto choice = choices(random);
  auto expected = start;
  reference::expert_sum(input, choice, used, width, std::span(expected).first(tokens * width));
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(input), chosen = on.filled(choice), out = on.filled(start), state = on.filled(fresh_state(5, tokens, room, 64));
    on.run(kernels::kernel::expert_sum, subgroups, {{"width", width}, {"experts_used", used}}, {{"input", &in}, {"choice", &chosen}, {"output", &out}, {"state", &state}}, {1, room, 1});
    CHECK_SAME(on, out.read<float>(), expected);
  }
}

TEST_CASE("matmul by chosen experts gives the reference's bits in every module, with the token's input and with its own", "[kernels]") {
  kernel_device on;
  random_numbers random(9);
  const int module = GENERATE(0, 1, 2);
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
  for (const kernels::codec type : {kernels::codec::f32, kernels::codec::bf16, kernels::codec::q8_0, kernels::codec::q4_k}) {
    const std::uint32_t columns = type == kernels::codec::q4_k ? 256 : 96;
    const auto choice = choices(random);
    const auto norm = random.floats(columns, 0.5f, 1.5f);
    for (const bool gates : {true, false}) {
      const reference::matmul_shape shape{.columns = columns, .rows = 24, .codec = type, .epilogue = gates ? epilogue::gated : epilogue::store, .gate = activation::silu};
      const auto order = gates ? kernels::row_order::gate_up(experts * shape.rows / 2) : kernels::row_order::plain(experts * shape.rows);
      const auto weights = random_weight(random, type, order, columns);
      const std::size_t inputs = gates ? room : room * used, width = gates ? 12 : 24;
      const auto x = random.floats(inputs * columns, -2, 2);
      auto y = x;
      if (gates)
        for (std::size_t at = 0; at < x.size(); at += columns) reference::rms_norm(std::span(x).subspan(at, columns), norm, 1e-5f, std::span(y).subspan(at, columns));
      std::vector<float> expected(room * used * width, std::bit_cast<float>(0xa5a5a5a5u));
      reference::expert_matmul(shape, used, !gates, y, choice, weights, std::span(expected).first(tokens * used * width));
      for (const std::uint32_t staged : {1u, 0u}) {
        const auto in = on.filled(x), weight = on.filled(weights), norm_weight = on.filled(norm), chosen = on.filled(choice), out = on.poisoned(4 * expected.size()),
                   state = on.filled(fresh_state(5, tokens, room, 64));
        on.run(kernels::kernel::matmul, 2,
               {{"columns", columns}, {"rows", shape.rows}, {"codec", static_cast<std::uint32_t>(type)}, {"prologue", static_cast<std::uint32_t>(gates ? prologue::norm : prologue::plain)},
                {"epilogue", static_cast<std::uint32_t>(shape.epilogue)}, {"eps", 1e-5f}, {"tile_tokens", 1u}, {"staged", staged}, {"activation", shape.gate}, {"experts_used", used},
                {"own_input", gates ? 0u : 1u}},
               {{"input", &in}, {"norm_weight", &norm_weight}, {"weight", &weight}, {"output", &out}, {"state", &state}, {"choice", &chosen}}, {2, room * used, 1});
        INFO("codec " << static_cast<int>(type) << ", gated " << gates << ", staged " << staged << ", module " << module);
        const auto found = out.read<float>();
        CHECK_SAME(on, std::vector(found.begin(), found.begin() + tokens * used * static_cast<std::ptrdiff_t>(width)),
                   std::vector(expected.begin(), expected.begin() + tokens * used * static_cast<std::ptrdiff_t>(width)));
        CHECK(std::bit_cast<std::uint32_t>(found.back()) == 0xa5a5a5a5u);
      }
    }
  }
}
