// SPDX-License-Identifier: MIT
// Kernels walk_gate_up and walk_down.
#include "intaglio/reference/ternary_walk.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::vector<std::uint32_t> codes(random_numbers& random, std::size_t words) {
  std::vector<std::uint32_t> out(words);
  for (auto& word : out)
    for (std::uint32_t i = 0; i < 16; ++i) word |= random.below(3) << (2 * i);
  return out;
}

/// One token's FFN.
struct walk_problem {
  std::uint32_t hidden, features;
  std::vector<float> x, norm, h_norm, h, scales, stream;
  std::vector<std::uint32_t> gate, up, down;

  /// @param on share of the features with a value, of 256
  walk_problem(random_numbers& random, std::uint32_t hidden_size, std::uint32_t intermediate_size, std::uint32_t on)
      : hidden(hidden_size), features(intermediate_size), x(random.floats(hidden, -2, 2)),
        norm(random.floats(hidden, 0.5f, 1.5f)), h_norm(random.floats(features, 0.5f, 1.5f)),
        h(random.floats(features, -3, 3)), scales(random.floats(2, 0.01f, 0.1f)), stream(random.floats(hidden, -1, 1)),
        gate(codes(random, std::size_t{hidden} * features / 16)), up(codes(random, gate.size())),
        down(codes(random, gate.size())) {
    for (float& value : h)
      if (random.below(256) >= on) value = 0;
  }
};

std::vector<float> gate_up(kernel_device& on, const walk_problem& p, std::uint32_t subgroups, std::uint32_t groups,
                           std::uint32_t count = 1) {
  const std::uint32_t share = (p.features + 4 * groups - 1) / (4 * groups) * 4,
                      shares = (p.features + share - 1) / share, zeros = 7;
  const auto value_norm = on.filled(p.h_norm),
             totals = on.poisoned(4 * kernels::walk_total_words(p.features, shares, zeros));
  const auto input = on.filled(p.x), norm = on.filled(p.norm), gate = on.filled(p.gate), up = on.filled(p.up),
             scales = on.filled(p.scales);
  const auto output = on.poisoned(std::size_t{4} * p.features), state = on.filled(fresh_state(3, count, 1, 8));
  on.run(kernels::kernel::walk_gate_up, subgroups,
         {{"columns", p.hidden}, {"rows", p.features}, {"eps", 1e-5f}, {"features", share}, {"sum_words", zeros}},
         {{"input", &input},
          {"norm_weight", &norm},
          {"weight", &gate},
          {"up", &up},
          {"scales", &scales},
          {"output", &output},
          {"state", &state},
          {"value_norm", &value_norm},
          {"totals", &totals}},
         {shares, 1, 1});
  const auto found = output.read<float>();
  auto left = totals.read<float>();
  if (count == 0) {
    for (const float value : left) CHECK(std::bit_cast<std::uint32_t>(value) == 0xa5a5a5a5u);
    return found;
  }
  for (std::uint32_t i = 0; i < zeros; ++i, left.pop_back()) CHECK(std::bit_cast<std::uint32_t>(left.back()) == 0);
  const auto largest = left.begin() + p.features / 4;
  *largest = *std::max_element(largest, left.end());
  left.resize(p.features / 4 + 1);
  CHECK_SAME(on, left, reference::walk_totals(found, p.h_norm, 1));
  return found;
}
std::vector<float> down(kernel_device& on, const walk_problem& p, std::uint32_t subgroups, std::uint32_t words,
                        std::uint32_t splits = 1) {
  constexpr std::uint32_t shares = 3;
  const std::uint32_t stripes = (p.hidden / 16 + words - 1) / words;
  auto totals_in = reference::walk_totals(p.h, p.h_norm, shares);
  std::swap(totals_in[p.features / 4], totals_in.back());  // any of them may have the greatest
  totals_in.resize(kernels::walk_total_words(p.features, shares, kernels::walk_sum_words(stripes, words)));
  const auto totals = on.filled(totals_in);
  const auto input = on.filled(p.h), norm = on.filled(p.h_norm), weight = on.filled(p.down),
             scales = on.filled(p.scales), output = on.filled(p.stream), state = on.filled(fresh_state(3, 1, 1, 8));
  on.run(kernels::kernel::walk_down, subgroups,
         {{"columns", p.features},
          {"rows", p.hidden},
          {"eps", 1e-5f},
          {"words", words},
          {"splits", splits},
          {"shares", shares}},
         {{"input", &input},
          {"norm_weight", &norm},
          {"weight", &weight},
          {"scales", &scales},
          {"output", &output},
          {"state", &state},
          {"totals", &totals}},
         {stripes, splits, 1});
  return output.read<float>();
}
std::vector<float> expected_gate_up(const walk_problem& p) {
  std::vector<std::int8_t> q(p.hidden);
  std::vector<reference::factors> factor(1);
  reference::norm_quantize(p.x, p.norm, p.hidden, 1e-5f, q, factor);
  std::vector<float> out(p.features);
  reference::walk_gate_up(q, factor[0], p.gate, p.up, p.scales, out);
  return out;
}
std::vector<float> expected_down(const walk_problem& p) {
  std::vector<std::int8_t> q(p.features);
  std::vector<reference::factors> factor(1);
  reference::norm_quantize(p.h, p.h_norm, p.features, 1e-5f, q, factor);
  std::vector<float> out = p.stream;
  reference::walk_down(q, factor[0], p.down, std::span(p.scales).first(1), out);
  return out;
}

}  // namespace

TEST_CASE("walk_gate_up: the reference's bits in every module and width") {
  kernel_device on;
  const auto [integer_dot, wide_loads] = GENERATE(table<bool, bool>({{true, false}, {false, false}, {false, true}}));
  on.integer_dot = integer_dot, on.wide_loads = wide_loads;
  if (wide_loads && on.device().description().type != gpu::device_type::cpu) return;
  on.fixed_width = integer_dot || wide_loads;
  random_numbers random(21);
  for (const auto& [hidden, features, subgroups, groups] : {std::array{256u, 96u, 1u, 3u},
                                                            {64u, 20u, 4u, 2u},
                                                            {16u, 4u, 1u, 1u},
                                                            {2560u, 32u, 2u, 2u},
                                                            {528u, 340u, 2u, 2u}}) {
    INFO(hidden << " x " << features << ", " << subgroups << " subgroups");
    const walk_problem p(random, hidden, features, 256);
    const auto expected = expected_gate_up(p);
    CHECK_SAME(on, gate_up(on, p, subgroups, groups), expected);
  }
  const walk_problem p(random, 64, 16, 256);
  const auto untouched = gate_up(on, p, 1, 1, 0);  // a pass of no tokens
  for (const float value : untouched) CHECK(std::bit_cast<std::uint32_t>(value) == 0xa5a5a5a5u);
}

TEST_CASE("walk_down: the reference's bits whatever is on, and however many do it", "[dear]") {
  kernel_device on;
  const auto [integer_dot, wide_loads] = GENERATE(table<bool, bool>({{true, false}, {false, false}, {false, true}}));
  on.integer_dot = integer_dot, on.wide_loads = wide_loads;
  if (wide_loads && on.device().description().type != gpu::device_type::cpu) return;
  on.fixed_width = integer_dot || wide_loads;
  random_numbers random(22);
  for (const auto& [hidden, features, share, subgroups] : {std::array{256u, 1024u, 64u, 1u},
                                                           {256u, 1024u, 256u, 2u},
                                                           {48u, 2112u, 30u, 4u},
                                                           {16u, 16u, 256u, 1u},
                                                           {80u, 6912u, 256u, 1u}}) {
    INFO(hidden << " x " << features << ", " << share << " of 256 on, " << subgroups << " subgroups");
    const walk_problem p(random, hidden, features, share);
    const auto expected = expected_down(p);
    CHECK_SAME(on, down(on, p, subgroups, 4), expected);
    if (hidden == 48) CHECK_SAME(on, down(on, p, subgroups, 2), expected);
    if (hidden == 80) CHECK_SAME(on, down(on, p, subgroups, 32), expected);
    for (const std::uint32_t splits : {2u, 7u}) CHECK_SAME(on, down(on, p, subgroups, 4, splits), expected);
    if (hidden == 256) CHECK_SAME(on, down(on, p, 8, 16, 5), expected);  // lists of several shares
  }
  walk_problem none(random, 64, 64, 0);
  CHECK_SAME(on, down(on, none, 1, 4), none.stream);
  // A value that is no number makes the stream show it.
  walk_problem bad(random, 64, 64, 256);
  bad.h[5] = std::numeric_limits<float>::infinity();
  for (const float value : down(on, bad, 1, 4)) CHECK_FALSE(std::isfinite(value));
}

TEST_CASE("walk_gate_up and walk_down leave gates and values for a trace, and the same bits otherwise") {
  kernel_device on;
  const auto [integer_dot, wide_loads] = GENERATE(table<bool, bool>({{true, false}, {false, false}, {false, true}}));
  on.integer_dot = integer_dot, on.wide_loads = wide_loads;
  if (wide_loads && on.device().description().type != gpu::device_type::cpu) return;
  constexpr std::uint32_t subgroups = 2, splits = 3, shares = 3;
  random_numbers random(77);
  const walk_problem p(random, 128, 192, 90);
  std::vector<std::int8_t> q(p.hidden), h8(p.features);
  std::vector<reference::factors> factor(1), h_factor(1);
  reference::norm_quantize(p.x, p.norm, p.hidden, 1e-5f, q, factor);
  reference::norm_quantize(p.h, p.h_norm, p.features, 1e-5f, h8, h_factor);
  std::vector<float> gated(p.features), expected_gates(p.features), expected_values;
  reference::walk_gate_up(q, factor[0], p.gate, p.up, p.scales, gated, expected_gates);
  for (const std::int8_t value : h8)
    expected_values.push_back(kernels::arithmetic::product(static_cast<float>(value), h_factor[0].inverse_scale));

  const auto input = on.filled(p.x), norm = on.filled(p.norm), gate = on.filled(p.gate), up = on.filled(p.up),
             scales = on.filled(p.scales), state = on.filled(fresh_state(3, 1, 1, 8));
  const auto output = on.poisoned(std::size_t{4} * p.features), gates = on.poisoned(std::size_t{4} * p.features);
  const auto value_norm = on.filled(p.h_norm), left = on.poisoned(4 * kernels::walk_total_words(p.features, shares, 0));
  on.run(kernels::kernel::walk_gate_up, subgroups,
         {{"columns", p.hidden}, {"rows", p.features}, {"eps", 1e-5f}, {"features", 64u}, {"sum_words", 0u}},
         {{"input", &input},
          {"norm_weight", &norm},
          {"weight", &gate},
          {"up", &up},
          {"scales", &scales},
          {"output", &output},
          {"state", &state},
          {"gates", &gates},
          {"value_norm", &value_norm},
          {"totals", &left}},
         {shares, 1, 1});
  CHECK_SAME(on, output.read<float>(), gated);
  CHECK_SAME(on, gates.read<float>(), expected_gates);
  const auto h = on.filled(p.h), h_norm = on.filled(p.h_norm), weight = on.filled(p.down), sums = on.filled(p.stream),
             values = on.poisoned(std::size_t{4} * p.features);
  auto totals_in = reference::walk_totals(p.h, p.h_norm, shares);
  totals_in.resize(kernels::walk_total_words(p.features, shares, kernels::walk_sum_words(2, 4)));
  const auto totals = on.filled(totals_in);
  on.run(kernels::kernel::walk_down, subgroups,
         {{"columns", p.features},
          {"rows", p.hidden},
          {"eps", 1e-5f},
          {"words", 4u},
          {"splits", splits},
          {"shares", shares}},
         {{"input", &h},
          {"norm_weight", &h_norm},
          {"weight", &weight},
          {"scales", &scales},
          {"output", &sums},
          {"state", &state},
          {"values", &values},
          {"totals", &totals}},
         {2, splits, 1});
  CHECK_SAME(on, sums.read<float>(), expected_down(p));
  CHECK_SAME(on, values.read<float>(), expected_values);
}
