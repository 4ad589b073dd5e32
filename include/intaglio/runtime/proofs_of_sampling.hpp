// SPDX-License-Identifier: MIT
// Proofs of the screened head, of the sampler, and of the kernel that accepts drafts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/reference/head_screen.hpp"
#include "intaglio/reference/sample.hpp"
#include "intaglio/runtime/kernel_trial.hpp"
#include "intaglio/runtime/proofs_of_products.hpp"
#include "intaglio/runtime/sampling.hpp"

namespace intaglio::runtime::proofs {

/// Counts as a fault: values that do not bound the logit, or bounds that are far wider than necessary.
[[gnu::cold]] inline double head_screen(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::head_screen_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::head_screen_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows, some = (std::min)(rows, 8u);
  const auto values = trial.floats(columns), norm = trial.weight<float>(call[at.norm_weight], 0, columns);
  const gpu::buffer in = trial.filled(values, columns), bounds = trial.room(std::uint64_t{4} * rows),
                    y = trial.room(std::uint64_t{4} * columns), lowest = trial.room(std::uint64_t{4} * call.groups[0]),
                    memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.bounds, &bounds}, {at.y, &y}, {at.lowest, &lowest}, {at.state, &memory}});
  const auto found_lowest = read<float>(lowest, 0, call.groups[0]);
  const float least = *std::max_element(found_lowest.begin(), found_lowest.end());
  const auto upper = read<float>(bounds, 0, rows);
  if (!(*std::max_element(upper.begin(), upper.end()) >= least)) return 1;
  double worst = 0;
  for (const std::uint32_t first : {0u, rows - some}) {
    const auto codes =
        trial.weight<std::int8_t>(call[at.codes], std::uint64_t{first} * columns, std::uint64_t{some} * columns);
    const auto expected =
        reference::head_screen(values, norm, codes, trial.weight<float>(call[at.scales], first, some), c.eps);
    worst = (std::max)(worst, apart(read<float>(y, 0, columns), expected.y));
    for (std::uint32_t i = 0; i < some; ++i) {
      const double width = static_cast<double>(expected.upper[i]) - expected.lower[i],
                   above = static_cast<double>(upper[first + i]) - expected.upper[i];
      if (std::isinf(expected.upper[i])) worst = (std::max)(worst, std::isinf(upper[first + i]) ? 0.0 : 1.0);
      else if (!(above >= -1e-3 * width && above <= 0.1 * width) || !(least >= expected.lower[i] - 0.1 * width))
        return 1;
    }
  }
  return worst;
}

/// Bounds of which every 97th logit must be computed, for greedy and for top-k; then bounds of which all must be
/// computed, as a high temperature requires.
[[gnu::cold]] inline double head_rescore(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::head_rescore_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::head_rescore_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows;
  const auto type = static_cast<kernels::element>(c.weight_element);
  const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
  const auto y = trial.floats(columns);
  double worst = 0;
  for (const sampling_options& options : {sampling_options{}, sampling_options{.temperature = 4.0f, .top_k = 20},
                                          sampling_options{.temperature = 4.0f}}) {
    auto words = trial.state();
    write_sampling(options, words);
    const bool all = reference::screening_of(reference::sampling_of(words), kernel_trial::position + trial.tokens, rows,
                                             call.groups[0])
                         .rank == 0;
    std::vector<float> bounds(rows, -1e30f);
    for (std::uint32_t row = rows % 97 / 2; row < rows; row += 97) bounds[row] = 1e30f;
    const auto start = bounds;
    const gpu::buffer in = trial.filled(y, columns), out = trial.filled(bounds, rows),
                      lowest = trial.room(std::uint64_t{4} * call.groups[0]),
                      firsts = trial.room(std::uint64_t{8} * call.groups[0]),
                      memory = trial.filled(words, words.size());
    trial.run(call, {{at.y, &in}, {at.bounds, &out}, {at.lowest, &lowest}, {at.firsts, &firsts}, {at.state, &memory}});
    const auto found = read<float>(out, 0, rows);
    if (first_of(firsts, call.groups[0]) != reference::first_ranked(found)) return 1;
    std::vector<float> found_some, expected_some;
    for (std::uint32_t row = rows % 97 / 2; row < rows; row += 97) {
      if (!all && row >= 97 * 8 && row + 97 < rows) continue;  // keep some at both ends
      float expected = 1e30f;
      reference::head_rescore(y, trial.weight<std::byte>(call[at.weight], row * row_bytes, row_bytes), type, 0,
                              {&expected, 1});
      found_some.push_back(found[row]), expected_some.push_back(expected);
      if (all && row >= 97 * 8) break;
    }
    worst = (std::max)(worst, apart(found_some, expected_some));
    for (std::uint32_t row = 0; row < rows; ++row)
      if ((found[row] != start[row]) != (all || start[row] > 0)) return 1;
  }
  return worst;
}

/// Compares the kernel sample with the reference. @return the largest difference
[[gnu::cold]] inline double sample(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::sample_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::sample_kernel>;
  const std::uint32_t vocabulary = c.vocab_size, draws = trial.batched ? trial.width : c.draws,
                      rows = (std::min)(draws, trial.tokens);
  const auto logits = trial.floats(std::size_t{rows} * vocabulary);
  const gpu::buffer in = trial.filled(logits, std::size_t{draws} * vocabulary),
                    ring = trial.room(draws * kernels::ring_bytes(trial.table->ring_size)),
                    scratch = trial.room(draws * kernels::sample_scratch_bytes(vocabulary, c.slice)),
                    drawn = trial.room(std::uint64_t{4} * draws),
                    counters = trial.filled(std::vector<std::uint32_t>(draws), draws);
  std::vector<reference::ranked_token> firsts((std::max)(c.first_count, 1u));
  firsts.back() = reference::first_ranked(std::span(logits).first(vocabulary));
  const gpu::buffer first = trial.filled(firsts, firsts.size());
  // Compute the reference first: the pipeline takes long to compile and may still be being made.
  std::vector<std::vector<std::uint32_t>> states, expected;
  for (const sampling_options& options :
       {sampling_options{},
        sampling_options{
            .temperature = 0.8f, .top_k = 20, .top_p = 0.9f, .min_p = 0.01f, .repeat_penalty = 1.2f, .seed = 7},
        sampling_options{.temperature = 1.1f, .seed = 8}, sampling_options{.temperature = 1, .top_p = 0.6f, .seed = 9},
        sampling_options{.temperature = 2, .min_p = 0.1f, .seed = 10}, sampling_options{.repeat_penalty = 1.2f}}) {
    if (c.form == kernels::sample_form::greedy && options.temperature > 0) continue;
    auto& words = states.emplace_back(trial.state());
    words[kernels::state::count] = rows;
    write_sampling(options, words);
    words[kernels::state::repeat_last_n] = (std::min)(words[kernels::state::repeat_last_n], trial.table->context);
    auto& tokens = expected.emplace_back();
    for (std::uint32_t i = 0; i < rows; ++i)
      tokens.push_back(reference::successor(std::span(logits).subspan(std::size_t{i} * vocabulary, vocabulary),
                                            trial.table->max_tokens, trial.table->context, words, i));
  }
  for (std::size_t turn = 0; turn < states.size(); ++turn) {
    const gpu::buffer memory = trial.memory_of(states[turn]);
    trial.run(call, {{at.logits, &in},
                     {at.state, &memory},
                     {at.ring, &ring},
                     {at.scratch, &scratch},
                     {at.drawn, &drawn},
                     {at.firsts, &first},
                     {at.counters, &counters}});
    const bool rings = trial.batched || draws == 1;
    for (std::uint32_t i = 0; i < rows; ++i)
      if (read<std::uint32_t>(rings ? ring : drawn, trial.batched ? std::size_t{i} * trial.table->ring_size : i,
                              1)[0] != expected[turn][i])
        return 1;
  }
  return 0;
}

/// Two drafts, of which the first is right; with two tokens a pass only the first draft exists.
[[gnu::cold]] inline double accept(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::accept_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::accept_kernel>;
  const std::uint32_t draws = c.draws, count = (std::min)(draws, 3u);
  std::vector<std::uint32_t> drawn(draws), words = trial.state(), ring(trial.table->ring_size);
  words[kernels::state::count] = count;
  for (std::uint32_t i = 0; i < draws; ++i) drawn[i] = 3 * i + 1;
  words[kernels::state::tokens + 1] = drawn[0];
  const gpu::buffer in = trial.filled(drawn, draws), memory = trial.filled(words, words.size()),
                    out = trial.room(kernels::ring_bytes(trial.table->ring_size));
  trial.run(call, {{at.drawn, &in}, {at.state, &memory}, {at.ring, &out}});
  const std::uint32_t taken = reference::accept(drawn, trial.table->max_tokens, trial.table->context, words, ring);
  const bool right = read<std::uint32_t>(memory, 0, words.size()) == words &&
                     read<std::uint32_t>(out, 0, taken) == std::vector(ring.begin(), ring.begin() + taken) &&
                     read<std::uint32_t>(out, trial.table->ring_size, 1)[0] == taken;
  return right ? 0 : 1;
}

}  // namespace intaglio::runtime::proofs
