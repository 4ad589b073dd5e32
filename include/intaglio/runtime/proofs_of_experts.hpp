// SPDX-License-Identifier: MIT
// Proofs of the kernels of a mixture of experts.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "intaglio/plan/product_facts.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// The output of kernel quantize_f16 for the rows that lists of experts name, and their factors.
struct listed_f16 {
  std::vector<std::uint16_t> bits;
  std::vector<float> factors;
};
/// Rounds x to f16, in the lists' order. @param x rows of `columns`  @param row_of index of each pair's row
template <class RowOf>
listed_f16 f16_of_lists(std::span<const float> x, std::uint32_t columns, std::span<const std::uint32_t> tiles,
                        std::uint32_t list_tokens, kernels::f16_order order, RowOf row_of) {
  const std::size_t lists = tiles.size() / (list_tokens + 2);
  listed_f16 out{std::vector<std::uint16_t>(lists * list_tokens * columns), std::vector<float>(lists * list_tokens)};
  for (std::size_t list = 0; list < lists; ++list)
    for (std::size_t i = 0; i < tiles[list * (list_tokens + 2) + 1]; ++i) {
      const std::size_t row = list * list_tokens + i, pair = tiles[list * (list_tokens + 2) + 2 + i];
      const auto made = reference::quantize_f16(x.subspan(row_of(pair) * columns, columns));
      out.factors[row] = made.factor;
      for (std::size_t index = 0; index < columns; ++index)
        out.bits[reference::ordered_index(order, row, index, columns)] = made.bits[index];
    }
  return out;
}

/// A product with the matrices of experts in a trial: inputs, buffers, and the reference on some of its rows.
class expert_proof {
 public:
  expert_proof(kernel_trial& trial, const plan::dispatch& call)
      : trial_(trial), call_(call), facts_(plan::product_facts::of(call, plan::coded_products{})),
        batch_(call.kernel == kernels::kernel::matmul_batch), chunk_(call.kernel == kernels::kernel::matmul_chunk),
        columns_(facts_.columns), rows_(facts_.rows), used_(facts_.experts_used),
        experts_(trial.table->weights[facts_.weight.slot].rows / rows_), outputs_(std::size_t{trial.tokens} * used_),
        inputs_(chunk_ || facts_.own_input ? outputs_ : trial.tokens) {
    shape_.columns = columns_;
    shape_.codec = facts_.codec;
    shape_.epilogue = facts_.epilogue;
    shape_.gate = call.act();
    parts_ = shape_.epilogue == kernels::epilogue::gated ? 2 : 1;
    if (batch_ || chunk_) list_tokens_ = facts_.list_tokens;
    else if (const std::uint32_t tile = facts_.tile_tokens; tile > 1) list_tokens_ = tile;
  }

  /// Runs the dispatch. @return the largest difference, relative to the largest value
  double apart_of_run() {
    const auto values = trial_.floats(inputs_ * columns_);
    choose();
    const std::vector<std::uint32_t> which = lists();
    listed_f16 halved;
    if (chunk_)
      halved =
          f16_of_lists(values, columns_, which, list_tokens_,
                       call_.variant == kernels::variant::matmul_chunk_fragments ? kernels::fragment_order(shape_.codec)
                                                                                 : kernels::f16_order::rows,
                       [](std::size_t pair) { return pair; });
    const gpu::buffer in = chunk_ ? trial_.filled(halved.bits, 0) : make_input(values),
                      factors = trial_.filled(halved.factors, 1),
                      chosen = trial_.filled(which, std::size_t{2} * trial_.width * used_),
                      out = trial_.room(std::uint64_t{4} * trial_.width * used_ * (rows_ / parts_)),
                      memory = trial_.memory_of(trial_.state());
    kernel_trial::bound_buffers buffers{
        {facts_.at.input, &in}, {facts_.at.output, &out}, {facts_.at.state, &memory}, {facts_.some.choice, &chosen}};
    if (chunk_) buffers.emplace_back(facts_.some.factors, &factors);
    trial_.run(call_, buffers);
    if (chunk_) input_ = values;
    return rows_apart(out);
  }

 private:
  /// Chooses experts for each token, the last expert first.
  void choose() {
    choice_.resize(2 * outputs_);
    for (std::uint32_t t = 0; t < trial_.tokens; ++t)
      for (std::uint32_t j = 0; j < used_; ++j) choice_[t * 2 * used_ + j] = (experts_ - 1 + t % 2 + j * 3) % experts_;
  }
  /// The choice as the kernel reads it: by token, or as lists of tokens by expert.
  std::vector<std::uint32_t> lists() const {
    if (list_tokens_ == 0) return choice_;
    std::vector<std::uint32_t> out(
        std::size_t{kernels::expert_tile_count(trial_.width, experts_, used_, list_tokens_)} * (list_tokens_ + 2));
    reference::expert_tiles(choice_, used_, experts_, list_tokens_, out);
    return out;
  }
  /// Makes the activations in the form that the kernel reads, where it does not read f16.
  gpu::buffer make_input(const std::vector<float>& values) {
    input_ = values;
    std::vector<std::uint32_t> words;
    for (std::size_t at = 0; at < values.size(); at += columns_) {
      const auto of_row = std::span(values).subspan(at, columns_);
      if (batch_) std::ranges::copy(reference::fixed_words(of_row), std::back_inserter(words));
      else if (facts_.prologue == kernels::prologue::norm)
        reference::rms_norm(of_row, trial_.weight<float>(facts_.norm_weight, 0, columns_), facts_.eps,
                            std::span(input_).subspan(at, columns_));
    }
    const std::size_t most = std::size_t{trial_.width} * used_;
    return batch_ ? trial_.filled(words, most * kernels::fixed_words(columns_))
                  : trial_.filled(values, most * columns_);
  }

  /// Compares the first and the last rows of each token and expert.
  double rows_apart(const gpu::buffer& out) {
    const std::uint64_t group_bytes = kernels::matmul_group_bytes(shape_.codec, columns_);
    const std::uint32_t run_rows = (std::min)(rows_, 32u);
    shape_.rows = run_rows;
    double worst = 0;
    for (std::size_t row = 0; row < outputs_; ++row)
      for (const std::uint32_t first : {0u, (rows_ - run_rows) / 4 * 4}) {
        const std::uint32_t expert = choice_[row / used_ * 2 * used_ + row % used_];
        std::vector<float> expected(run_rows / parts_);
        const auto x = std::span(input_).subspan((inputs_ == outputs_ ? row : row / used_) * columns_, columns_);
        const auto w = trial_.weight<std::byte>(
            facts_.weight, (std::uint64_t{expert} * rows_ + first) / 4 * group_bytes, run_rows / 4 * group_bytes);
        if (chunk_) {
          const reference::f16_token one = reference::quantize_f16(x);
          reference::matmul_chunk(shape_, std::span(&one, 1), w, expected);
        } else {
          reference::matmul(shape_, x, w, expected);
        }
        const auto found = read<float>(out, row * (rows_ / parts_) + first / parts_, expected.size());
        worst = (std::max)(worst, apart(found, expected));
      }
    return worst;
  }

  kernel_trial& trial_;
  const plan::dispatch& call_;
  plan::product_facts facts_;
  bool batch_, chunk_;
  std::uint32_t columns_, rows_, used_, experts_, parts_ = 1;
  std::uint32_t list_tokens_ = 0;  ///< length of an expert's list; 0: the kernel reads the choice by token
  std::size_t outputs_, inputs_;   ///< rows of the output and of the input
  reference::matmul_shape shape_;
  std::vector<float> input_;  ///< [inputs, columns], after the norm
  std::vector<std::uint32_t> choice_;
};

/// Compares the kernel expert_matmul with the reference. @return the largest difference
[[gnu::cold]] inline double expert_matmul(kernel_trial& trial, const plan::dispatch& call) {
  return expert_proof(trial, call).apart_of_run();
}

/// Proves the adapter of each row from the state; a number over the last adapter's counts as the last adapter.
[[gnu::cold]] inline double stated_route(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::route_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::route_kernel>;
  const std::uint32_t experts = c.experts, slot = c.slot_words;
  std::vector<std::uint32_t> words = slot == 0 ? trial.state() : trial.slots_of(trial.state()), expected;
  for (std::uint32_t t = 0; t < trial.tokens; ++t) {
    const std::size_t first = slot == 0 ? 0 : kernels::state::first_slot + std::size_t{t} * slot;
    words[first + kernels::state::adapter] = slot == 0 ? experts : t % (experts + 1);
    words[first + kernels::state::adapter_scale] =
        std::bit_cast<std::uint32_t>(slot == 0 ? 0.5f : 0.25f * static_cast<float>(t));
    expected.push_back((std::min)(words[first + kernels::state::adapter], experts - 1));
    expected.push_back(words[first + kernels::state::adapter_scale]);
  }
  const gpu::buffer out = trial.room(std::uint64_t{8} * trial.width), memory = trial.filled(words, 0);
  trial.run(call, {{at.choice, &out}, {at.state, &memory}});
  return read<std::uint32_t>(out, 0, expected.size()) == expected ? 0 : 1;
}

/// Proves the choice of all experts in order.
[[gnu::cold]] inline double whole_route(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::route_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::route_kernel>;
  const std::uint32_t experts = c.experts;
  std::vector<std::uint32_t> expected;
  for (std::uint32_t t = 0; t < trial.tokens; ++t) {
    for (std::uint32_t e = 0; e < experts; ++e) expected.push_back(e);
    expected.insert(expected.end(), experts, std::bit_cast<std::uint32_t>(1.f));
  }
  const gpu::buffer out = trial.room(std::uint64_t{8} * trial.width * experts), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.choice, &out}, {at.state, &memory}});
  return read<std::uint32_t>(out, 0, expected.size()) == expected ? 0 : 1;
}

/// Compares the kernel route with the reference. @return the largest difference
[[gnu::cold]] inline double route(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::route_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::route_kernel>;
  if (c.stated == 2) return whole_route(trial, call);
  if (c.stated != 0) return stated_route(trial, call);
  const std::uint32_t experts = c.experts, used = c.experts_used;
  auto logits = trial.floats(std::size_t{trial.tokens} * experts);
  logits[experts - 1] = logits[0];  // a tie
  const gpu::buffer in = trial.filled(logits, std::size_t{trial.width} * experts),
                    out = trial.room(std::uint64_t{8} * trial.width * used), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.logits, &in}, {at.choice, &out}, {at.state, &memory}});
  reference::routing how{.over_all = c.over_all != 0,
                         .score = static_cast<expert_score>(c.score),
                         .factor = c.factor,
                         .added = c.added,
                         .least = c.least,
                         .groups = c.groups,
                         .groups_used = c.groups_used};
  std::vector<float> bias, scale;
  if (c.biased != 0) bias = trial.weight<float>(call[at.bias], 0, experts);
  if (how.score != expert_score::logit) how.choosing = bias;
  else if (!bias.empty()) logits = reference::biased_logits(logits, bias);
  if (c.scaled != 0) scale = trial.weight<float>(call[at.scale], 0, experts);
  how.scale = scale;
  double worst = 0;
  for (std::size_t t = 0; t < trial.tokens; ++t) {
    std::vector<std::uint32_t> expected(2 * used);
    reference::route(std::span(logits).subspan(t * experts, experts), expected, how);
    const auto found = read<std::uint32_t>(out, t * 2 * used, 2 * used);
    if (!std::equal(found.begin(), found.begin() + used, expected.begin())) return 1;
    for (std::size_t j = used; j < 2 * used; ++j)
      worst = (std::max)(
          worst, static_cast<double>(std::abs(std::bit_cast<float>(found[j]) - std::bit_cast<float>(expected[j]))));
  }
  return worst;
}

/// Proves the lists of experts: the number of pairs in each list, and which pairs.
[[gnu::cold]] inline double expert_tiles(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::expert_tiles_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::expert_tiles_kernel>;
  const std::uint32_t experts = c.experts, used = c.experts_used, list_tokens = c.list_tokens, words = list_tokens + 2;
  std::vector<std::uint32_t> choice(std::size_t{2} * trial.tokens * used);
  for (std::uint32_t t = 0; t < trial.tokens; ++t)
    for (std::uint32_t j = 0; j < used; ++j) choice[t * 2 * used + j] = (experts - 1 + t % 3 + j) % experts;
  std::vector<std::uint32_t> expected(std::size_t{c.tiles} * words);
  reference::expert_tiles(choice, used, experts, list_tokens, expected);
  const gpu::buffer chosen = trial.filled(choice, std::size_t{2} * trial.width * used),
                    out = trial.filled(std::vector<std::uint32_t>(expected.size(), ~0u), 0),
                    memory = trial.memory_of(trial.state());
  trial.run(call, {{at.choice, &chosen}, {at.output, &out}, {at.state, &memory}});
  const auto found = read<std::uint32_t>(out, 0, expected.size());
  for (std::size_t list = 0; list < expected.size(); list += words) {
    if (found[list + 1] != expected[list + 1]) return 1;
    if (expected[list + 1] != 0 &&
        (found[list] != expected[list] ||
         !std::equal(expected.begin() + static_cast<std::ptrdiff_t>(list + 2),
                     expected.begin() + static_cast<std::ptrdiff_t>(list + 2 + expected[list + 1]),
                     found.begin() + static_cast<std::ptrdiff_t>(list + 2))))
      return 1;
  }
  return 0;
}

/// Compares the kernel expert_sum with the reference. @return the largest difference
[[gnu::cold]] inline double expert_sum(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::expert_sum_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::expert_sum_kernel>;
  const std::size_t width = c.width, used = c.experts_used;
  const auto values = trial.floats(trial.tokens * used * width), start = trial.floats(trial.tokens * width),
             weights = trial.floats(2 * trial.tokens * used);
  std::vector<std::uint32_t> choice;
  for (const float each : weights) choice.push_back(std::bit_cast<std::uint32_t>(each));
  const bool biased = c.biased != 0;
  const auto biases = trial.floats(2 * width);  // of 2 experts
  for (std::size_t i = 0; i < choice.size(); ++i)
    if (i % (2 * used) < used) choice[i] = i % 2;
  std::vector<float> expected = start;
  if (c.stores != 0) expected.assign(start.size(), 0.f);
  reference::expert_sum(biased ? reference::biased_experts(values, choice, used, biases) : values, choice, used, width,
                        expected);
  const gpu::buffer bias = trial.filled(biases, biases.size());
  const gpu::buffer in = trial.filled(values, trial.width * used * width),
                    chosen = trial.filled(choice, 2 * trial.width * used),
                    out = trial.filled(start, trial.width * width), memory = trial.memory_of(trial.state());
  kernel_trial::bound_buffers buffers{{at.input, &in}, {at.choice, &chosen}, {at.output, &out}, {at.state, &memory}};
  if (biased) buffers.emplace_back(at.bias, &bias);
  trial.run(call, buffers);
  return apart(read<float>(out, 0, expected.size()), expected);
}

}  // namespace intaglio::runtime::proofs
