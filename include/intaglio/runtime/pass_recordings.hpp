// SPDX-License-Identifier: MIT
// The recorded sequences of a session's passes, their forms, and their measured times.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/runtime/adapter_choice.hpp"
#include "intaglio/runtime/executor_start.hpp"
#include "intaglio/runtime/flights.hpp"
#include "intaglio/runtime/pass_kind.hpp"
#include "intaglio/runtime/pass_memory.hpp"
#include "intaglio/runtime/pass_times.hpp"
#include "intaglio/runtime/submission_stamps.hpp"

namespace intaglio::runtime {

/// Counts of costly host operations since the executor was made.
struct executor_counters {
  std::uint64_t submits = 0;     ///< vkQueueSubmit
  std::uint64_t jobs = 0;        ///< writes of the mailbox
  std::uint64_t passes = 0;      ///< whole passes submitted
  std::uint64_t recordings = 0;  ///< command buffers recorded
};

/// Recordings of the passes of one session.
class pass_recordings : public pass_memory {
 public:
  const executor_counters& counters() const noexcept { return counters_; }

  /// Measured times of decode or prefill. Empty on a device without timestamps, or where a whole pass takes more than
  /// half of a submission's budget.
  const pass_times& times(pass_kind kind) const { return clock_of(kind).times(); }
  /// Turns timestamps of dispatches and submissions off, or on again, to measure what they cost.
  void take_times(bool wanted) noexcept { takes_times_ = wanted; }
  const pace& speed(pass_kind kind) const { return sequence(kind).speed; }
  std::uint32_t segments(pass_kind kind) const { return sequence(kind).size(); }
  /// The plan of a kind of pass at a position.
  const plan::sequence& plan_of(pass_kind kind, std::uint32_t position = 0) const noexcept {
    return is_long(kind, position)                                        ? long_plan_
           : kind == pass_kind::decode                                    ? *decode_
           : kind == pass_kind::prefill                                   ? table_->prefill
           : kind == pass_kind::prefill_long                              ? *plan_->long_prefill()
           : kind == pass_kind::verify || kind == pass_kind::verify_short ? table_->verify
                                                                          : table_->logits;
  }

  /// Time of a pass over drafts in decode passes. Both are measured at about the same time, since devices need a while
  /// to reach their clocks; 0: unknown.
  double verify_cost(pass_kind kind) const { return verify_costs_[static_cast<std::size_t>(kind)]; }
  static constexpr std::uint32_t short_tokens = plan::device_plan::short_drafts;
  /// The kind of pass that verifies a number of tokens; all but the first are drafts.
  pass_kind verify_kind(std::size_t tokens) const {
    return tokens <= short_tokens && table_->verify.max_tokens > short_tokens ? pass_kind::verify_short
                                                                              : pass_kind::verify;
  }

  /// Sets the adapter of jobs that begin from now on.
  void choose(const adapter_choice& to) noexcept { adapter_ = to; }
  const adapter_choice& adapter() const noexcept { return adapter_; }

 protected:
  adapter_choice adapter_{0, 0};

  /// Allocates no memory yet. @param decode of the plan's table
  [[gnu::cold]] pass_recordings(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan,
                                const plan::sequence& decode, executor_start start, weight_memory weights,
                                kernel_set kernels)
      : pass_memory(on, std::move(plan), decode, std::move(weights), std::move(kernels)), start_(std::move(start)),
        stamps_(on) {}
  ~pass_recordings() = default;

  recorded_sequence& sequence(pass_kind kind) { return sequences_[static_cast<std::size_t>(kind)]; }
  const recorded_sequence& sequence(pass_kind kind) const { return sequences_[static_cast<std::size_t>(kind)]; }

  /// Records a sequence with a timestamp after every dispatch, in one command buffer.
  /// @error device_error: no timestamps on this device
  recorded_sequence timed_sequence(pass_kind kind, bool greedy = false, bool is_long = false) {
    const plan::sequence& plan = *form_of(kind, is_long).plan;
    recorded_sequence out =
        record_timed_sequence(device_, *table_, plan, kernels_, addresses_, (std::max)(1u, plan.repeats()), greedy);
    counters_.recordings += out.size();
    return out;
  }
  recorded_sequence& timed(pass_kind kind, bool greedy, bool is_long) {
    return is_long ? timed_long_[greedy ? 1 : 0] : greedy ? timed_greedy_ : timed_[static_cast<std::size_t>(kind)];
  }
  const recorded_sequence& timed(pass_kind kind, bool greedy, bool is_long) const {
    return const_cast<pass_recordings*>(this)->timed(kind, greedy, is_long);
  }

  /// Whether a pass runs the form of decode for long contexts.
  bool is_long(pass_kind kind, std::uint32_t position) const noexcept {
    return kind == pass_kind::decode && position >= long_from_;
  }
  const recorded_sequence& form_of(pass_kind kind, bool is_long) const { return is_long ? long_ : sequence(kind); }
  void record_timed(pass_kind kind) {
    const auto record = [&](bool greedy, bool is_long) {
      recorded_sequence& made = timed(kind, greedy, is_long);
      made = {};
      if (device_.limits().timestamp_bits == 0) return;
      made = timed_sequence(kind, greedy, is_long);
      ticks_.resize((std::max<std::size_t>)(ticks_.size(), made.segments.front().points()));
    };
    for (const bool is_long : {false, true}) {
      if (form_of(kind, is_long).plan == nullptr || (is_long && kind != pass_kind::decode)) continue;
      if (kind != pass_kind::decode || !start_.draws_later()) record(false, is_long);
      if (form_of(kind, is_long).greedy.handle() != nullptr) record(true, is_long);
    }
  }
  /// Notes the time of a submission that has ended: the device's where it wrote one, else the host's. If the host did
  /// not wait for the end, it knows a bound: it saw the end later, and the device did not begin before the submission.
  void observe(const flights::ended& one) {
    const flight& of = one.of;
    std::optional<double> took_ms = of.stamped ? stamps_.took_ms() : std::nullopt;
    if (took_ms) took_ms = (std::min)(*took_ms, one.at_most_ms);
    else took_ms = one.took_ms;
    recorded_sequence& its = sequence(of.kind);
    if (!took_ms) return its.speed.observe_at_most(of.segments, one.at_most_ms);
    its.speed.observe(of.segments, *took_ms);
    const double decode_ms = sequence(pass_kind::decode).speed.latest_ms() * sequence(pass_kind::decode).size();
    double& cost = verify_costs_[static_cast<std::size_t>(of.kind)];
    if (of.segments == its.size() && decode_ms > 0)
      cost = cost > 0 ? 0.5 * (cost + *took_ms / decode_ms) : *took_ms / decode_ms;
  }
  pass_clock& clock_of(pass_kind kind) { return clocks_[static_cast<std::size_t>(kind)]; }
  const pass_clock& clock_of(pass_kind kind) const { return clocks_[static_cast<std::size_t>(kind)]; }
  void collect_times() {
    pass_clock& into = clock_of(sample_.kind);
    const recorded_sequence& of = timed(sample_.kind, sample_.greedy, sample_.is_long);
    sample_ = {};
    const auto ticks = std::span(ticks_).first(of.segments.front().points());
    of.clocks.front().read_ticks(ticks);
    for (std::size_t i = 1; i < ticks.size(); ++i)
      into.add(of.dispatches[i - 1].what->kernel, of.clocks.front().nanoseconds(ticks[i - 1], ticks[i]));
    into.end();
  }

  executor_start start_;
  std::array<recorded_sequence, pass_kinds> sequences_;
  std::array<recorded_sequence, pass_kinds> timed_;
  recorded_sequence timed_greedy_;  ///< of decode
  plan::sequence long_plan_;        ///< decode with the resident dispatch's form for long contexts, where it has one
  recorded_sequence long_;
  std::array<recorded_sequence, 2> timed_long_;  ///< passes that sample, and passes that do not
  static constexpr std::uint32_t never = ~0u;
  std::uint32_t long_from_ = never;  ///< passes from this position on run the form for long contexts
  std::array<pass_clock, pass_kinds> clocks_{pass_clock(128, 3), pass_clock(16, 0)};  ///< of decode, of prefill
  std::array<double, pass_kinds> verify_costs_{};
  /// The pass whose dispatches are timed: taken while it is on the device.
  struct sample {
    bool taken = false;
    std::uint64_t number = 0;  ///< of its submission
    pass_kind kind = pass_kind::decode;
    bool greedy = false, is_long = false;
  };
  sample sample_;  ///< the timed pass on the device
  std::vector<std::uint64_t> ticks_;
  submission_stamps stamps_;
  bool takes_times_ = true;
  executor_counters counters_;
};

}  // namespace intaglio::runtime
