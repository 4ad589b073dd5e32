// SPDX-License-Identifier: MIT
// Kernels walk_select, walk_up and walk_sum.
#include "intaglio/reference/walk_kernels.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::vector<std::uint32_t> selected(kernel_device& on, const std::vector<float>& scores, std::uint32_t count, std::uint32_t subgroups) {
  const auto input = on.filled(scores), choice = on.poisoned(std::size_t{8} * count), state = on.filled(fresh_state(3, 1, 1, 8));
  on.run(kernels::kernel::walk_select, subgroups, {{"columns", static_cast<std::uint32_t>(scores.size())}, {"count", count}}, {{"input", &input}, {"choice", &choice}, {"state", &state}}, {1, 1, 1});
  return choice.read<std::uint32_t>();
}

}  // namespace

TEST_CASE("walk_select: the largest sizes, of equal ones the lowest, rising") {
  kernel_device on;
  random_numbers random(31);
  for (const auto& [columns, count, subgroups] : {std::array{1024u, 100u, 1u}, {172u, 16u, 4u}, {96u, 95u, 2u}, {2000u, 1u, 4u}}) {
    std::vector<float> scores = random.floats(columns, -2, 2);
    for (std::size_t i = 0; i + 5 < scores.size(); i += 5) scores[i + 3] = -scores[i];
    for (std::size_t i = 0; i < scores.size(); i += 7) scores[i] = i % 2 == 0 ? 0.f : -0.f;
    std::vector<std::uint32_t> expected(std::size_t{2} * count);
    reference::walk_select(scores, expected);
    INFO(count << " of " << columns);
    CHECK(selected(on, scores, count, subgroups) == expected);
  }
  const std::vector<float> equal(64, 0.5f);
  std::vector<std::uint32_t> expected(20);
  reference::walk_select(equal, expected);
  CHECK(selected(on, equal, 10, 2) == expected);
}

TEST_CASE("walk_up and walk_sum: the reference's bits, listed or all") {
  kernel_device on;
  on.fixed_width = GENERATE(true, false);
  random_numbers random(32);
  for (const auto& [hidden, features, count, subgroups, element] : {std::array{256u, 600u, 150u, 2u, 0u}, {64u, 172u, 13u, 1u, 1u}, {40u, 96u, 96u, 4u, 2u}}) {
    const auto type = static_cast<kernels::element>(element);
    INFO(hidden << " x " << count << " of " << features << ", element " << element);
    std::vector<std::uint32_t> matrix;
    for (std::size_t i = 0; i < std::size_t{hidden} * features / (type == kernels::element::f32 ? 1 : 2); ++i) {
      const auto two = random.floats(2, -1, 1);
      matrix.push_back(type == kernels::element::f32   ? std::bit_cast<std::uint32_t>(two[0])
                       : type == kernels::element::f16 ? std::uint32_t{f16_from_f32(two[0])} | std::uint32_t{f16_from_f32(two[1])} << 16
                                                       : std::uint32_t{bf16_from_f32(two[0])} | std::uint32_t{bf16_from_f32(two[1])} << 16);
    }
    const auto bytes = std::as_bytes(std::span(matrix));
    const auto x = random.floats(hidden, -2, 2), norm = random.floats(hidden, 0.5f, 1.5f), scores = random.floats(features, -3, 3), stream = random.floats(hidden, -1, 1);
    std::vector<std::uint32_t> choice(std::size_t{2} * count);
    reference::walk_select(scores, choice);
    std::vector<float> y(hidden), values(count), sums = stream, all(hidden);
    reference::rms_norm(x, norm, 1e-5f, y);
    reference::walk_up(y, bytes, type, activation::silu, choice, values);
    reference::walk_sum(values, choice, bytes, type, true, sums);
    reference::walk_sum(scores, {}, bytes, type, false, all);

    const auto input = on.filled(x), norms = on.filled(norm), weight = on.filled(matrix), list = on.filled(choice), output = on.poisoned(std::size_t{4} * count), state = on.filled(fresh_state(3, 1, 1, 8));
    on.run(kernels::kernel::walk_up, subgroups, {{"columns", hidden}, {"rows", features}, {"count", count}, {"weight_element", element}, {"eps", 1e-5f}, {"activation", shader::activation_function(activation::silu)}},
           {{"input", &input}, {"norm_weight", &norms}, {"weight", &weight}, {"choice", &list}, {"output", &output}, {"state", &state}}, {2, 1, 1});
    CHECK_SAME(on, output.read<float>(), values);
    const auto added = on.filled(stream), of_all = on.filled(scores), stored = on.poisoned(std::size_t{4} * hidden);
    on.run(kernels::kernel::walk_sum, subgroups,
           {{"columns", features}, {"rows", hidden}, {"count", count}, {"weight_element", element}, {"listed", 1u}, {"epilogue", 1u}},
           {{"input", &output}, {"choice", &list}, {"weight", &weight}, {"output", &added}, {"state", &state}}, {(hidden + 31) / 32, 1, 1});
    CHECK_SAME(on, added.read<float>(), sums);
    on.run(kernels::kernel::walk_sum, subgroups,
           {{"columns", features}, {"rows", hidden}, {"count", features}, {"weight_element", element}, {"listed", 0u}, {"epilogue", 0u}},
           {{"input", &of_all}, {"weight", &weight}, {"output", &stored}, {"state", &state}}, {(hidden + 31) / 32, 1, 1});
    CHECK_SAME(on, stored.read<float>(), all);
  }
}
