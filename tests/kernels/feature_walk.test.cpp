// SPDX-License-Identifier: MIT
// Kernels walk_select, walk_up, walk_sum and walk_trace; the gates that matmul leaves for it.
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/walk_kernels.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::vector<std::uint32_t> selected(kernel_device& on, const std::vector<float>& scores, std::uint32_t count,
                                    std::uint32_t subgroups) {
  const auto input = on.filled(scores), choice = on.poisoned(std::size_t{8} * count),
             state = on.filled(fresh_state(3, 1, 1, 8));
  on.run(kernels::kernel::walk_select, subgroups,
         {{"columns", static_cast<std::uint32_t>(scores.size())}, {"count", count}},
         {{"input", &input}, {"choice", &choice}, {"state", &state}}, {1, 1, 1});
  return choice.read<std::uint32_t>();
}

}  // namespace

TEST_CASE("walk_select: the largest sizes, of equal ones the lowest, rising") {
  kernel_device on;
  random_numbers random(31);
  for (const auto& [columns, count, subgroups] :
       {std::array{1024u, 100u, 1u}, {172u, 16u, 4u}, {96u, 95u, 2u}, {2000u, 1u, 4u}}) {
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
  for (const auto& [hidden, features, count, subgroups, element] :
       {std::array{256u, 600u, 150u, 2u, 0u}, {64u, 172u, 13u, 1u, 1u}, {40u, 96u, 96u, 4u, 2u}}) {
    const auto type = static_cast<kernels::element>(element);
    INFO(hidden << " x " << count << " of " << features << ", element " << element);
    std::vector<std::uint32_t> matrix;
    for (std::size_t i = 0; i < std::size_t{hidden} * features / (type == kernels::element::f32 ? 1 : 2); ++i) {
      const auto two = random.floats(2, -1, 1);
      matrix.push_back(type == kernels::element::f32 ? std::bit_cast<std::uint32_t>(two[0])
                       : type == kernels::element::f16
                           ? std::uint32_t{f16_from_f32(two[0])} | std::uint32_t{f16_from_f32(two[1])} << 16
                           : std::uint32_t{bf16_from_f32(two[0])} | std::uint32_t{bf16_from_f32(two[1])} << 16);
    }
    const auto bytes = std::as_bytes(std::span(matrix));
    const auto x = random.floats(hidden, -2, 2), norm = random.floats(hidden, 0.5f, 1.5f),
               scores = random.floats(features, -3, 3), stream = random.floats(hidden, -1, 1);
    std::vector<std::uint32_t> choice(std::size_t{2} * count);
    reference::walk_select(scores, choice);
    std::vector<float> y(hidden), values(count), sums = stream, all(hidden);
    reference::rms_norm(x, norm, 1e-5f, y);
    reference::walk_up(y, bytes, type, activation::silu, choice, values);
    reference::walk_sum(values, choice, bytes, type, true, sums);
    reference::walk_sum(scores, {}, bytes, type, false, all);

    const auto input = on.filled(x), norms = on.filled(norm), weight = on.filled(matrix), list = on.filled(choice),
               output = on.poisoned(std::size_t{4} * count), state = on.filled(fresh_state(3, 1, 1, 8));
    on.run(kernels::kernel::walk_up, subgroups,
           {{"columns", hidden},
            {"rows", features},
            {"count", count},
            {"weight_element", element},
            {"eps", 1e-5f},
            {"activation", shader::activation_function(activation::silu)}},
           {{"input", &input},
            {"norm_weight", &norms},
            {"weight", &weight},
            {"choice", &list},
            {"output", &output},
            {"state", &state}},
           {2, 1, 1});
    CHECK_SAME(on, output.read<float>(), values);
    const auto added = on.filled(stream), of_all = on.filled(scores), stored = on.poisoned(std::size_t{4} * hidden);
    on.run(kernels::kernel::walk_sum, subgroups,
           {{"columns", features},
            {"rows", hidden},
            {"count", count},
            {"weight_element", element},
            {"listed", 1u},
            {"epilogue", 1u},
            {"stripe", 32u},
            {"splits", 1u}},
           {{"input", &output}, {"choice", &list}, {"weight", &weight}, {"output", &added}, {"state", &state}},
           {(hidden + 31) / 32, 1, 1});
    CHECK_SAME(on, added.read<float>(), sums);
    on.run(kernels::kernel::walk_sum, subgroups,
           {{"columns", features},
            {"rows", hidden},
            {"count", features},
            {"weight_element", element},
            {"listed", 0u},
            {"epilogue", 0u},
            {"stripe", 32u},
            {"splits", 1u}},
           {{"input", &of_all}, {"weight", &weight}, {"output", &stored}, {"state", &state}},
           {(hidden + 31) / 32, 1, 1});
    CHECK_SAME(on, stored.read<float>(), all);
    // Parts of the sum, which a norm adds.
    constexpr std::uint32_t splits = 4;
    std::vector<float> parts(std::size_t{splits} * hidden);
    reference::walk_sum(scores, {}, bytes, type, false, parts, splits);
    for (std::size_t c = 0; c < hidden; ++c)
      CHECK((parts[c] + parts[2 * hidden + c]) + (parts[hidden + c] + parts[3 * hidden + c]) == all[c]);
    const auto in_parts = on.poisoned(std::size_t{4} * splits * hidden);
    on.run(kernels::kernel::walk_sum, subgroups,
           {{"columns", features},
            {"rows", hidden},
            {"count", features},
            {"weight_element", element},
            {"listed", 0u},
            {"epilogue", 0u},
            {"stripe", 64u},
            {"splits", splits}},
           {{"input", &of_all}, {"weight", &weight}, {"output", &in_parts}, {"state", &state}},
           {(hidden + 63) / 64, splits, 1});
    CHECK_SAME(on, in_parts.read<float>(), parts);
  }
}

TEST_CASE(
    "walk_trace: the largest contributions of every layer, of equal ones the lowest feature, and the size of all") {
  kernel_device on;
  random_numbers random(33);
  constexpr std::uint32_t layers = 3, slot_count = 4, position = 6;
  for (const auto& [columns, features, count, subgroups, listed] : {std::array{172u, 172u, 16u, 1u, 0u},
                                                                    {1000u, 1000u, 64u, 3u, 0u},
                                                                    {40u, 300u, 40u, 2u, 1u},
                                                                    {128u, 200u, 1u, 4u, 1u}}) {
    INFO(count << " of " << columns << " of " << features << " features");
    const std::uint32_t value_stride = columns + 5, choice_stride = 2 * columns + 8,
                        words = kernels::trace_words(count);
    auto values = random.floats(layers * value_stride, -2, 2);
    for (std::size_t i = 0; i + 4 < values.size(); i += 4) values[i] = 0, values[i + 1] = -values[i + 3];
    const auto scores = random.floats(values.size(), -3, 3);
    auto norms = random.floats(layers * features, 0, 2);
    for (std::size_t i = 0; i + 4 < norms.size(); i += 2) norms[i] = 0.5f;
    std::vector<std::uint32_t> choice(std::size_t{layers} * choice_stride);
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      for (std::uint32_t i = 0; i < columns; ++i)
        choice[layer * choice_stride + 2 * i] = i * features / columns,
                                           choice[layer * choice_stride + 2 * i + 1] =
                                               std::bit_cast<std::uint32_t>(random.floats(1, -1, 1)[0]);
    auto first = fresh_state(position, 1, 1, 8);
    first[kernels::state::tokens] = 77;
    const auto in = on.filled(values), gates = on.filled(scores), list = on.filled(choice), norm = on.filled(norms),
               state = on.filled(first),
               trace = on.filled(std::vector<std::uint32_t>(std::size_t{slot_count} * layers * words, 5u));
    std::vector<std::pair<std::string_view, const guarded_buffer*>> buffers{
        {"values", &in}, {"norms", &norm}, {"trace", &trace}, {"state", &state}};
    buffers.emplace_back(listed != 0 ? "choice" : "gates", listed != 0 ? &list : &gates);
    on.run(kernels::kernel::walk_trace, subgroups,
           {{"columns", columns},
            {"features", features},
            {"layers", layers},
            {"count", count},
            {"slots", slot_count},
            {"value_stride", value_stride},
            {"choice_stride", choice_stride},
            {"listed", listed}},
           buffers, {layers, 1, 1});
    const auto found = trace.read<std::uint32_t>();
    for (std::uint32_t slot = 0; slot < slot_count; ++slot)
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        std::vector<std::uint32_t> part(found.begin() + std::ptrdiff_t{slot * layers + layer} * words,
                                        found.begin() + std::ptrdiff_t{slot * layers + layer + 1} * words),
            expected(words, 5u);
        if (slot == position % slot_count) {
          expected[0] = position, expected[1] = 77;
          reference::walk_trace(std::span<const float>(values).subspan(layer * value_stride, columns),
                                listed != 0 ? std::span<const float>{}
                                            : std::span<const float>(scores).subspan(layer * value_stride, columns),
                                listed != 0
                                    ? std::span<const std::uint32_t>(choice).subspan(layer * choice_stride, 2 * columns)
                                    : std::span<const std::uint32_t>{},
                                std::span<const float>(norms).subspan(layer * features, features), count, expected);
          const float size = std::bit_cast<float>(part[2]), wanted = std::bit_cast<float>(expected[2]);
          CHECK(std::fabs(size - wanted) <= 1e-5f * wanted);
          part[2] = expected[2];
        }
        CHECK(part == expected);
      }
  }
}

TEST_CASE("matmul leaves the gates of gated rows where a trace wants them") {
  kernel_device on;
  const int module = GENERATE(0, 1, 2);
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
  random_numbers random(34);
  reference::matmul_shape shape;
  shape.columns = 64, shape.rows = 96, shape.codec = kernels::codec::f32, shape.epilogue = kernels::epilogue::gated,
  shape.gate = activation::silu;
  const auto x = random.floats(shape.columns, -2, 2),
             matrix = random.floats(std::size_t{shape.columns} * shape.rows, -1, 1);
  std::vector<std::byte> packed(kernels::matmul_weight_bytes(shape.codec, shape.rows, shape.columns));
  const std::span<const std::byte> rows[] = {std::as_bytes(std::span(matrix))};
  kernels::repack_matmul(shape.codec, kernels::row_order::plain(shape.rows), rows, shape.columns, 0, packed);
  std::vector<float> expected(shape.rows / 2), gates(shape.rows / 2);
  reference::matmul(shape, x, packed, expected, 0, {}, {}, {}, gates);
  const auto input = on.filled(x), weight = on.filled(packed), output = on.poisoned(4 * expected.size()),
             kept = on.poisoned(4 * gates.size()), state = on.filled(fresh_state(3, 1, 1, 8));
  on.run(kernels::kernel::matmul, 1,
         {{"columns", shape.columns},
          {"rows", shape.rows},
          {"codec", static_cast<std::uint32_t>(shape.codec)},
          {"prologue", static_cast<std::uint32_t>(kernels::prologue::plain)},
          {"epilogue", static_cast<std::uint32_t>(shape.epilogue)},
          {"tile_tokens", 1u},
          {"staged", 1u},
          {"activation", shader::activation_function(activation::silu)}},
         {{"input", &input}, {"weight", &weight}, {"output", &output}, {"state", &state}, {"gates", &kept}}, {3, 1, 1});
  CHECK_SAME(on, output.read<float>(), expected);
  CHECK_SAME(on, kept.read<float>(), gates);
}
