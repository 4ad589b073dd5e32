// SPDX-License-Identifier: MIT
// Proofs of the walk's kernels: gates, choice, vectors of some features, and the trace.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/arithmetic.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "intaglio/reference/ternary_walk.hpp"
#include "intaglio/reference/walk_kernels.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// Compares the first features and the last ones.
[[gnu::cold]] inline double walk_gate_up(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::walk_gate_up_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::walk_gate_up_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows, run_rows = (std::min)(rows, 64u);
  const auto values = trial.floats(columns);
  std::vector<std::int8_t> q(columns);
  std::vector<reference::factors> factor(1);
  reference::norm_quantize(values, trial.weight<float>(call[at.norm_weight], 0, columns), columns, c.eps, q, factor);
  const std::uint32_t shares = call.groups[0], sums = c.sum_words;
  const gpu::buffer in = trial.filled(values, values.size()), out = trial.room(std::uint64_t{4} * rows),
                    gates = trial.room(std::uint64_t{4} * rows), memory = trial.memory_of(trial.state()),
                    totals =
                        trial.filled(std::vector<float>(
                                         static_cast<std::size_t>(kernels::walk_total_words(rows, shares, sums)), 1.f),
                                     0);
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.state, &memory}, {at.gates, &gates}, {at.totals, &totals}});
  const bool keeps_gates = call[at.gates].where != plan::region::none;
  const auto scales = trial.weight<float>(call[at.scales], 0, 2);
  std::vector<float> expected(run_rows), kept(run_rows);
  double worst = 0;
  for (const std::uint32_t first : {0u, rows - run_rows}) {
    const std::uint64_t count = run_rows * (columns / 16), word = std::uint64_t{first} * (columns / 16);
    const auto gate = trial.weight<std::uint32_t>(call[at.weight], word, count),
               up = trial.weight<std::uint32_t>(call[at.up], word, count);
    reference::walk_gate_up(q, factor[0], gate, up, scales, expected, kept);
    worst = (std::max)(worst, apart(read<float>(out, first, run_rows), expected));
    if (keeps_gates) worst = (std::max)(worst, apart(read<float>(gates, first, run_rows), kept));
  }
  // The totals for walk_down are compared with totals of the device's own values.
  auto left = read<float>(totals, 0, rows / 4 + shares + sums);
  const auto of_values =
      reference::walk_totals(read<float>(out, 0, rows), trial.weight<float>(call[at.value_norm], 0, rows), 1);
  const auto largest = left.begin() + rows / 4, zeros = largest + shares;
  if (std::any_of(zeros, left.end(), [](float zero) { return std::bit_cast<std::uint32_t>(zero) != 0; }))
    return HUGE_VAL;
  *largest = *std::max_element(largest, zeros);
  left.resize(rows / 4 + 1);
  const std::span<const float> found(left), expected_totals(of_values);
  return (std::max)({worst, apart(found.first(rows / 4), expected_totals.first(rows / 4)),
                     apart(found.last(1), expected_totals.last(1))});
}

/// Compares the kernel walk_down with the reference. @return the largest difference
[[gnu::cold]] inline double walk_down(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::walk_down_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::walk_down_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows;
  auto values = trial.floats(columns);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 3 != 0) values[i] = 0;  // features that are off
  std::vector<std::int8_t> q(columns);
  std::vector<reference::factors> factor(1);
  reference::norm_quantize(values, trial.weight<float>(call[at.norm_weight], 0, columns), columns, c.eps, q, factor);
  std::vector<float> expected = trial.floats(rows);
  const std::uint32_t shares = c.shares;
  const gpu::buffer totals =
      trial.filled(reference::walk_totals(values, trial.weight<float>(call[at.norm_weight], 0, columns), shares),
                   static_cast<std::size_t>(
                       kernels::walk_total_words(columns, shares, kernels::walk_sum_words(call.groups[0], c.words))));
  const gpu::buffer in = trial.filled(values, values.size()), out = trial.filled(expected, expected.size()),
                    kept = trial.room(std::uint64_t{4} * columns), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.state, &memory}, {at.values, &kept}, {at.totals, &totals}});
  if (call[at.values].where != plan::region::none) {
    std::vector<float> steps(columns);
    for (std::size_t i = 0; i < steps.size(); ++i)
      steps[i] = kernels::arithmetic::product(static_cast<float>(q[i]), factor[0].inverse_scale);
    if (const double off = apart(read<float>(kept, 0, columns), steps); !(off <= 3e-2)) return off;
  }
  reference::walk_down(q, factor[0], trial.weight<std::uint32_t>(call[at.weight], 0, std::size_t{columns} * rows / 16),
                       trial.weight<float>(call[at.scales], 0, 1), expected);
  return apart(read<float>(out, 0, expected.size()), expected);
}

/// Scores, some of equal size.
[[gnu::cold]] inline double walk_select(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::walk_select_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::walk_select_kernel>;
  const std::uint32_t columns = c.columns, count = c.count;
  auto scores = trial.floats(columns);
  for (std::size_t i = 0; i + 3 < scores.size(); i += 3) scores[i + 1] = -scores[i];
  std::vector<std::uint32_t> expected(std::size_t{2} * count);
  reference::walk_select(scores, expected);
  const gpu::buffer in = trial.filled(scores, columns), out = trial.room(std::uint64_t{8} * count),
                    memory = trial.filled(trial.state(), 0);
  trial.run(call, {{at.input, &in}, {at.choice, &out}, {at.state, &memory}});
  return read<std::uint32_t>(out, 0, expected.size()) == expected ? 0 : 1;
}

/// Features at a regular distance, with scores.
inline std::vector<std::uint32_t> some_features(kernel_trial& trial, std::uint32_t count, std::uint32_t features) {
  std::vector<std::uint32_t> out;
  const auto scores = trial.floats(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::uint32_t>(std::uint64_t{i} * features / count));
    out.push_back(std::bit_cast<std::uint32_t>(scores[i]));
  }
  return out;
}

/// Compares the first features and the last ones.
[[gnu::cold]] inline double walk_up(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::walk_up_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::walk_up_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows, count = c.count, some = (std::min)(count, 32u);
  const auto type = static_cast<kernels::element>(c.weight_element);
  const auto values = trial.floats(columns), norm = trial.weight<float>(call[at.norm_weight], 0, columns);
  const auto choice = some_features(trial, count, rows);
  std::vector<float> x(columns);
  reference::rms_norm(values, norm, c.eps, x);
  const gpu::buffer in = trial.filled(values, columns), list = trial.filled(choice, choice.size()),
                    out = trial.room(std::uint64_t{4} * count), memory = trial.filled(trial.state(), 0);
  trial.run(call, {{at.input, &in}, {at.choice, &list}, {at.output, &out}, {at.state, &memory}});
  double worst = 0;
  for (const std::uint32_t first : {0u, count - some}) {
    std::vector<float> expected(some);
    const std::uint64_t row = columns * reference::elements::size_bytes(type);
    for (std::uint32_t i = 0; i < some; ++i) {
      const auto bytes = trial.weight<std::byte>(call[at.weight], choice[2 * (first + i)] * row, row);
      const std::array<std::uint32_t, 2> one{0, choice[2 * (first + i) + 1]};
      reference::walk_up(x, bytes, type, call.act(), one, std::span(expected).subspan(i, 1));
    }
    worst = (std::max)(worst, apart(read<float>(out, first, some), expected));
  }
  return worst;
}

/// Compares the kernel walk_sum with the reference. @return the largest difference
[[gnu::cold]] inline double walk_sum(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::walk_sum_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::walk_sum_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows, count = c.count;
  const auto type = static_cast<kernels::element>(c.weight_element);
  auto values = trial.floats(count);
  for (std::size_t i = 64; i + 64 < values.size(); ++i) values[i] = 0;  // their vectors need not be read here
  const bool listed = c.listed != 0;
  const auto choice = listed ? some_features(trial, count, columns) : std::vector<std::uint32_t>{};
  const std::uint32_t splits = c.splits;
  std::vector<float> expected = trial.floats(std::size_t{splits} * rows);
  const gpu::buffer in = trial.filled(values, count),
                    list = trial.filled(choice, (std::max<std::size_t>)(choice.size(), 1)),
                    out = trial.filled(expected, expected.size()), memory = trial.filled(trial.state(), 0);
  trial.run(call, {{at.input, &in}, {at.choice, &list}, {at.output, &out}, {at.state, &memory}});
  // A feature whose value is 0 adds nothing: the other vectors follow each other, with the number of zeros between them
  // that keeps each in its slot.
  const std::uint64_t row = rows * reference::elements::size_bytes(type);
  std::vector<std::byte> down;
  std::vector<std::uint32_t> choice_of_down;
  for (std::uint32_t i = 0; i < count; ++i) {
    choice_of_down.insert(choice_of_down.end(),
                          {static_cast<std::uint32_t>(values[i] == 0 ? 0 : down.size() / row), 0u});
    if (values[i] == 0 && !down.empty()) continue;
    const auto bytes = trial.weight<std::byte>(call[at.weight], (listed ? choice[2 * i] : i) * row, row);
    down.insert(down.end(), bytes.begin(), bytes.end());
  }
  reference::walk_sum(values, choice_of_down, down, type, c.epilogue == kernels::epilogue::add, expected, splits);
  return apart(read<float>(out, 0, expected.size()), expected);
}

/// Traces every layer; some contributions are equal.
[[gnu::cold]] inline double walk_trace(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::walk_trace_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::walk_trace_kernel>;
  const std::uint32_t columns = c.columns, features = c.features, layers = c.layers, count = c.count,
                      slot_count = c.slot_count;
  const std::uint32_t value_stride = c.value_stride, choice_stride = c.choice_stride,
                      words = kernels::trace_words(count);
  const bool listed = c.listed != 0;
  const auto norms = trial.weight<float>(call[at.norms], 0, std::uint64_t{layers} * features);
  auto values = trial.floats(std::size_t{layers - 1} * value_stride + columns);
  for (std::size_t i = 2; i < values.size(); i += 3) values[i] = 0;
  const auto scores = trial.floats(values.size());
  std::vector<std::uint32_t> choice(listed ? std::size_t{layers - 1} * choice_stride + 2 * columns : 1);
  for (std::uint32_t layer = 0; listed && layer < layers; ++layer)
    std::ranges::copy(some_features(trial, columns, features), choice.begin() + std::ptrdiff_t{layer} * choice_stride);
  auto first = trial.state();
  first[kernels::state::tokens] = 7;
  const gpu::buffer in = trial.filled(values, values.size()), gates = trial.filled(scores, scores.size()),
                    list = trial.filled(choice, choice.size()),
                    out = trial.room(std::uint64_t{4} * slot_count * layers * words), memory = trial.filled(first, 0);
  trial.run(call, {{at.values, &in}, {at.gates, &gates}, {at.choice, &list}, {at.trace, &out}, {at.state, &memory}});
  double worst = 0;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    std::vector<std::uint32_t> expected{kernel_trial::position, 7};
    expected.resize(words);
    reference::walk_trace(
        std::span(values).subspan(std::size_t{layer} * value_stride, columns),
        listed ? std::span<const float>{} : std::span(scores).subspan(std::size_t{layer} * value_stride, columns),
        listed ? std::span<const std::uint32_t>(choice).subspan(std::size_t{layer} * choice_stride,
                                                                std::size_t{2} * columns)
               : std::span<const std::uint32_t>{},
        std::span(norms).subspan(std::size_t{layer} * features, features), count, expected);
    const auto found =
        read<std::uint32_t>(out, (std::size_t{kernel_trial::position % slot_count} * layers + layer) * words, words);
    const auto size = [](const std::vector<std::uint32_t>& of) { return std::bit_cast<float>(of[2]); };
    worst = (std::max)(worst, apart(std::array{size(found)}, std::array{size(expected)}));
    if (found[0] != expected[0] || found[1] != expected[1] ||
        !std::equal(found.begin() + 3, found.end(), expected.begin() + 3))
      return 1;
  }
  return worst;
}

}  // namespace intaglio::runtime::proofs
