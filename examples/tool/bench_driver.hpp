// SPDX-License-Identifier: MIT
// Drives an executor pass by pass with the clock running, and counts what the host does meanwhile. Includes Vulkan.
#pragma once

#include "allocation_count.hpp"
#include "bench_variants.hpp"
#include "console.hpp"

#include <intaglio/platform/clock.hpp>
#include <intaglio/runtime/executor.hpp>

#include <algorithm>
#include <chrono>

namespace intaglio::tool {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// What one decode run took, and what the host did for it; all but seconds are for one token.
struct decode_cost {
  double seconds = 0;
  double thread_us = 0;   ///< CPU time of the thread that drives
  double process_us = 0;  ///< of all threads, a CPU driver's own among them
  double allocations = 0, submits = 0, waits = 0, recorded_commands = 0;
};

/// Median time of each dispatch of a sequence in the order prologue, one layer (the mean over layers), epilogue.
struct timed_sequence {
  const plan::sequence* of;
  std::uint32_t tokens;
  std::vector<const plan::dispatch*> calls;
  std::vector<double> microseconds;
  std::uint64_t times_run(std::size_t index) const {
    const bool of_layer = index >= of->prologue.size() && index < of->prologue.size() + of->recorded()[1].size();
    return of_layer && of->resident.empty() ? of->times(*calls[index]) : 1;
  }
};

/// One executor. SIGINT and SIGTERM end a run between submissions.
class bench_driver {
 public:
  explicit bench_driver(std::unique_ptr<runtime::executor> run) : run_(std::move(run)) {}

  /// Whether decode runs the resident dispatch.
  bool resident() const { return !run_->plan_of(runtime::pass_kind::decode).resident.empty(); }

  /// What a cold start has left to do.
  void complete() { run_->complete(); }

  /// Feeds a prompt from position 0 and waits for its end.
  /// @param chunk tokens of a pass; 0: the plan's
  double prompt_seconds(std::uint32_t prompt, std::uint32_t chunk = 0) {
    const std::uint32_t widest = chunk != 0 ? chunk : run_->table().prefill.max_tokens;
    const std::vector<std::uint32_t> ids(run_->table().max_tokens, 1);
    const std::vector<std::int32_t> all(prompt, 1);  // for stages before the executor's
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t at = 0; at < prompt;) {
      const std::uint32_t many = chunk != 0 ? 0 : run_->long_chunk(prompt - at, false, nullptr),
                          count = many != 0 ? many : std::min(prompt - at, widest);
      run_->begin(many != 0 ? runtime::pass_kind::prefill_long : runtime::pass_kind::prefill, at,
                  std::span(ids).first(count), {}, 1);
      run_->ask_ahead(runtime::pass_kind::prefill, at + count, std::span(all).subspan(at + count), widest);
      while (run_->pending()) {
        if (!run_->may_submit()) run_->wait();
        run_->submit(submit_budget_ms, runtime::executor::max_buffers);
      }
      at += count;
      stop_on_signal();
    }
    while (run_->in_flight() != 0) run_->wait();
    return seconds_since(start);
  }

  /// Decodes `tokens` tokens after `position` cached ones.
  decode_cost decode(std::uint32_t position, std::uint32_t tokens, const decode_mode& mode = {}) {
    const std::uint32_t id = 1;
    run_->take_times(!mode.untimed);
    const std::uint32_t passes =
        mode.passes_per_submit != 0 ? mode.passes_per_submit : std::max(1u, run_->table().ring_size / 4);
    const reading before(run_->device());
    const auto start = std::chrono::steady_clock::now();
    run_->begin(runtime::pass_kind::decode, position, {&id, 1}, {}, tokens);
    while (run_->completed() < tokens) {
      if (mode.record_each) {
        run_->submit_recorded();
      } else {
        while (run_->may_submit()) run_->submit(submit_budget_ms, passes);
        run_->wait();
      }
      stop_on_signal();
    }
    decode_cost out = reading(run_->device()).since(before, tokens);
    out.seconds = seconds_since(start);
    return out;
  }

  timed_sequence timed(runtime::pass_kind kind, std::uint32_t position, std::uint32_t tokens) {
    const plan::sequence& of = run_->plan_of(kind, position);
    timed_sequence out{&of, tokens, {}, {}};
    for (const auto part : of.recorded())
      for (const auto& each : part) out.calls.push_back(&each);
    std::vector<std::vector<double>> samples(out.calls.size());
    const std::vector<std::uint32_t> ids(tokens, 1);
    for (int repeat = 0; repeat < 6; ++repeat) {
      std::vector<double> sum(out.calls.size());
      for (const auto& each : run_->measure(kind, position, ids)) {
        const auto index =
            static_cast<std::size_t>(std::find(out.calls.begin(), out.calls.end(), each.what) - out.calls.begin());
        sum[index] += each.nanoseconds / 1e3;
      }
      if (repeat != 0)
        for (std::size_t i = 0; i < sum.size(); ++i)
          samples[i].push_back(sum[i] / static_cast<double>(out.times_run(i)));
      stop_on_signal();
    }
    for (const auto& each : samples) out.microseconds.push_back(median(each));
    return out;
  }

 private:
  static constexpr double submit_budget_ms = 250;

  /// Clocks and counters at one moment.
  struct reading {
    double thread, process;
    std::uint64_t allocations, submits, waits, commands;

    explicit reading(const gpu::device& on)
        : thread(microseconds(platform::processor_time_of_thread())), process(microseconds(platform::processor_time())),
          allocations(allocations_of_thread()), submits(on.counters().submits), waits(on.counters().waits),
          commands(on.counters().recorded_commands) {}
    static double microseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }
    decode_cost since(const reading& before, std::uint32_t tokens) const {
      const auto each = [&](auto now, auto then) { return static_cast<double>(now - then) / tokens; };
      return {.seconds = 0,
              .thread_us = each(thread, before.thread),
              .process_us = each(process, before.process),
              .allocations = each(allocations, before.allocations),
              .submits = each(submits, before.submits),
              .waits = each(waits, before.waits),
              .recorded_commands = each(commands, before.commands)};
    }
  };

  static void stop_on_signal() { graceful_stop::look(); }

  std::unique_ptr<runtime::executor> run_;
};

}  // namespace intaglio::tool
