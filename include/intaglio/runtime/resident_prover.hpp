// SPDX-License-Identifier: MIT
// Compares the resident dispatch with passes that run layer by layer, in a session's own memory.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/pass_runner.hpp"

namespace intaglio::runtime {

/// Writes pseudo-random numbers around 0 as rows of the stream for a stage of a cut plan; the same token gets the same
/// row.
[[gnu::cold]] inline void upload_rows(const gpu::device& on, const gpu::buffer& arena, std::uint64_t offset,
                                      std::span<const std::uint32_t> tokens, std::uint32_t width) {
  std::vector<float> rows;
  rows.reserve(tokens.size() * width);
  for (const std::uint32_t token : tokens)
    for (std::uint32_t i = 0; i < width; ++i) {
      const std::uint64_t mixed = (std::uint64_t{token} * width + i + 1) * 0x9E3779B97F4A7C15u;
      rows.push_back(static_cast<float>(mixed >> 40) / static_cast<float>(1u << 23) - 1.f);
    }
  gpu::transfer transfer(on, std::uint64_t{1} << 20);
  transfer.upload(arena, offset, std::as_bytes(std::span(rows)));
  transfer.finish();
}

/// Compares an executor's resident dispatch with the chain of dispatches that it replaces.
class resident_prover : public pass_runner {
 protected:
  using pass_runner::pass_runner;
  ~resident_prover() = default;

  /// Whether the resident dispatch is compared with the chain: where prefill has other bits than decode.
  static bool held_against_chain(const plan::table& table, const plan::sequence& decode) {
    if (decode.resident.empty()) return false;
    for (const plan::dispatch& each : table.prefill.period)
      if (each.kernel == kernels::kernel::attention_f16) return true;
    return plan::is_held_against_chain(decode.resident.front());
  }
  static constexpr std::uint32_t proven_tokens = 3;
  /// Runs all_layers_agree() while sessions use the memory. Everything that its passes write is restored, except the
  /// caches after the written positions.
  bool all_layers_agree_after(std::uint32_t position) {
    gpu::transfer transfer(device_, std::uint64_t{1} << 16);
    std::vector<std::byte> state(state_.size_bytes()), ring(ring_.mapped().begin(), ring_.mapped().end()),
        boxes(mailbox_.mapped().begin(), mailbox_.mapped().end());
    transfer.download(state_, 0, state);
    const executor_counters counters = counters_;
    const std::uint32_t completed = completed_;
    const pace prompts = sequence(pass_kind::prefill).speed;
    const auto clocks = clocks_;
    const bool takes_times = std::exchange(takes_times_, false);  // the proof covers the recordings without timestamps
    const bool agrees = all_layers_agree(position);
    takes_times_ = takes_times;
    clocks_ = clocks;
    sequence(pass_kind::prefill).speed = prompts;
    verify_costs_ = {};  // in decode passes, whose time may change
    completed_ = completed;
    counters_ = counters;
    std::copy(boxes.begin(), boxes.end(), mailbox_.mapped().begin());
    std::copy(ring.begin(), ring.end(), ring_.mapped().begin());
    transfer.upload(state_, 0, state);
    transfer.finish();
    return agrees;
  }
  std::uint64_t stream_bytes() const { return std::uint64_t{4} * table_->config->hidden_size; }
  /// The result of a pass: a token's stream after the last layer, which is at an offset of the arena, and the last
  /// layer's cache.
  std::vector<std::byte> end_state(std::uint64_t stream) {
    gpu::transfer transfer(device_, std::uint64_t{1} << 20);
    std::vector<std::byte> out(stream_bytes());
    transfer.download(arena_, stream, out);
    for (const auto& item : std::span(caches_.items).last(2)) {
      std::vector<std::byte> cache(item.bytes);
      transfer.download(caches_.buffers[item.buffer], item.offset, cache);
      out.insert(out.end(), cache.begin(), cache.end());
    }
    return out;
  }
  /// Runs a job of one pass and waits. A stage of a cut plan gets rows that represent its tokens.
  void feed(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens) {
    if (const plan::sequence& of = plan_of(kind, position); of.takes_stream)
      upload_rows(device_, arena_, of.stream_in_offset, tokens, table_->config->hidden_size);
    begin(kind, position, tokens, {}, 1);
    while (pending()) {
      if (!may_submit()) wait();
      submit(HUGE_VAL, 1);
    }
    drain();
    sequence(kind).speed = {};  // a driver that compiles on first use made the measured time too long
  }
  /// Compares tokens that prefill or the chain computed with resident decode, one at a time: the stream after the last
  /// layer and the last layer's cache must have the same bits.
  /// @param behind that position; absent: no session uses the memory yet, and all of it is cleared
  [[gnu::cold]] bool all_layers_agree(std::optional<std::uint32_t> after = {}) {
    const std::uint32_t vocabulary = table_->config->vocab_size,
                        count = (std::min)({proven_tokens, table_->prefill.max_tokens, table_->context}),
                        first = after.value_or(0);
    const std::array<std::uint32_t, proven_tokens> ids{vocabulary - 1, vocabulary / 3, vocabulary / 2},
        others{vocabulary / 2, vocabulary - 1, vocabulary / 3};
    const auto one_by_one = [&] {
      for (std::uint32_t i = 0; i < count; ++i) feed(pass_kind::decode, first + i, std::span(ids).subspan(i, 1));
    };
    std::vector<std::byte> expected;
    if (held_against_chain(*table_, *decode_)) {
      const std::uint32_t from = std::exchange(long_from_, never);
      const bool has_forms = !table_->decode.greedy.empty();
      recorded_sequence other = record_sequence(device_, *table_, table_->decode, kernels_, addresses_, nullptr, false,
                                                0, {!has_forms, has_forms});
      const plan::sequence* resident = std::exchange(decode_, &table_->decode);
      std::swap(sequence(pass_kind::decode), other);
      one_by_one();
      expected = end_state(decode_->residual_offset);
      std::swap(sequence(pass_kind::decode), other);
      decode_ = resident;
      long_from_ = from;
    } else {
      feed(pass_kind::prefill, first, std::span(ids).first(count));
      expected = end_state(table_->prefill.residual_offset + (count - 1) * stream_bytes());
    }
    const auto agrees = [&] {
      if (after)
        feed(pass_kind::prefill, first,
             // overwrites the expected values, so that they cannot pass for computed ones
             std::span(others).first(count));
      else clear();
      one_by_one();
      return end_state(plan_of(pass_kind::decode, first).residual_offset) == expected;
    };
    bool same = agrees();
    if (long_from_ != never) {  // also the other form, from the first position on
      const std::uint32_t from = std::exchange(long_from_, 0);
      same = agrees() && same;
      long_from_ = from;
    }
    if (!after) clear();
    return same;
  }
};

}  // namespace intaglio::runtime
