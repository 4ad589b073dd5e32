// SPDX-License-Identifier: MIT
// Passes that take a token of every slot of a group, the logits of these passes, and the times of their dispatches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/runtime/batch_alone.hpp"
#include "intaglio/runtime/pass_kind.hpp"

namespace intaglio::runtime {

/// Decode of a batch.
class batch_passes : public batch_alone {
 public:
  /// Runs `passes` passes over the first `rows` slots of a group. With `keep_logits` the logits of the last pass can be
  /// read.
  /// @error device_lost, out_of_memory
  void decode(std::uint32_t rows, std::uint32_t passes, bool keep_logits, double budget_ms, std::uint32_t group = 0) {
    commands_.clear();
    feed_changed();
    feed_rows(group, rows);
    after_ = nullptr;
    if (ends_) cross_in(true), after_ = ends_->out(true);
    const std::size_t which = of_rows(rows);
    const bool greedy = is_greedy(group, rows);
    group_recordings& of = of_groups_[group];
    if (runs_resident_)
      run(of.resident[which], of.timed_resident[2 * which + (greedy ? 1 : 0)], decode_times_, passes, budget_ms,
          greedy);
    else run(of.chain[which], of.timed_chain[2 * which + (greedy ? 1 : 0)], decode_times_, passes, budget_ms, greedy);
    flush("rows of " + model_name(*table_), gpu::queue::hang_limit);
    if (keep_logits) {
      if (!logits_) make_logits();
      commands_.push_back(of.copy_logits[which].handle());
      flush("logits of " + model_name(*table_), gpu::queue::hang_limit);
    }
  }

  /// Logits of a slot, f32 [vocab_size], after decode() with keep_logits over rows that have the slot.
  std::span<const float> logits(std::uint32_t slot) const {
    const auto* const all = reinterpret_cast<const float*>(logits_.mapped().data());
    return {all + std::size_t{slot} * table_->config->vocab_size, table_->config->vocab_size};
  }

  /// Measured times of passes that draw tokens (decode), for all slots or for a single one, or of prompts (prefill).
  /// Empty on a device without timestamps, or where a whole pass takes more than half of a submission's budget.
  const pass_times& times(pass_kind kind) const {
    return (kind == pass_kind::prefill ? prefill_times_ : decode_times_).times();
  }

  /// Runs one pass over the first `rows` slots and measures each dispatch. @error device_error: no timestamps
  std::vector<dispatch_time> measure(std::uint32_t rows) {
    return gpu::translated([&] {
      timed_ = record_timed_sequence(
          device_, *table_,
          plan_->over(runs_resident_ ? &plan::table::resident_batch : &plan::table::batch, recorded_rows(rows)),
          kernels_, of_groups_.front().addresses, 0, is_greedy(0, rows));
      commands_.clear();
      feed_changed();
      feed_rows(0, rows);
      commands_.insert(commands_.end(), timed_.handles.begin(), timed_.handles.end());
      flush("timed pass", gpu::queue::first_hang_limit);
      read_times(timed_);
      return timed_.dispatches;
    });
  }

 protected:
  using batch_alone::batch_alone;
  ~batch_passes() = default;
};

}  // namespace intaglio::runtime
