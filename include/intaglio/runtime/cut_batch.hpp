// SPDX-License-Identifier: MIT
// Sessions that decode together over several devices. A plan with a batch is cut between layers, and each device runs
// one stage. The last stage has the slots and the sampler. Each earlier stage has a thread, which runs the calls that
// arrive on its link.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/runtime/batch_handle.hpp"
#include "intaglio/runtime/cut_session.hpp"
#include "intaglio/runtime/last_batch_stage.hpp"

namespace intaglio {
namespace runtime {

/// A stage of a batch before the last one, on its device.
class front_batch_stage {
 public:
  /// @param run runner of the stage's plan, not joined yet  @param budget_ms limit of a submission
  front_batch_stage(const gpu::device& on, std::shared_ptr<const plan::stage> plan, std::unique_ptr<batch_executor> run,
                    double budget_ms)
      : plan_(std::move(plan)), budget_ms_(budget_ms), run_(std::move(run)) {
    run_->join(std::make_unique<batch_crossing>(on, run_->table()));
  }

  /// Runs the calls that arrive until the link ends, and passes them with the rows to the next stage. After a failure
  /// it passes the failure on instead of the rows.
  void serve(stage_link& in, stage_link& out) noexcept {
    stage_message message;
    while (in.take(message)) {
      try {
        if (!message.failure) gpu::translated([&] { run(message); });
      } catch (...) { message.failure = std::current_exception(); }
      if (!out.put(message)) break;
    }
    in.end(), out.end();
  }

 private:
  void run(stage_message& message) {
    run_->ends().supply(message.bytes);
    const std::uint32_t tokens = run_call(*run_, message.words, budget_ms_);
    message.hold(run_->ends().given(tokens));
  }

  std::shared_ptr<const plan::stage> plan_;
  double budget_ms_;
  std::unique_ptr<batch_executor> run_;
};

/// Loads a stage's part of a file. @error as basic_batch
inline std::unique_ptr<front_batch_stage> load_front_batch(const gpu::device& on,
                                                           std::shared_ptr<const plan::stage> plan,
                                                           const io::checkpoint& from, const session_options& options,
                                                           module_source source) {
  return gpu::translated([&] {
    gpu::pipeline_cache cache(on, options.cache_folder ? *options.cache_folder : gpu::default_cache_folder(),
                              plan->table().hash);
    auto run = load_plan<batch_executor>(on, plan->table(), cache, from, options, source);
    cache.store();
    return std::make_unique<front_batch_stage>(on, std::move(plan), std::move(run), options.submit_budget_ms);
  });
}

/// Number of calls that the earlier stages may be asked for at once: a pass and a chunk of each group, and one call
/// that is waited for.
inline std::size_t room_of(const last_batch_stage& last) { return 2 * std::size_t{last.groups()} + 1; }
/// Connects earlier stages to the runner of the last one.
inline void join_stages(const gpu::device& on, last_batch_stage& last,
                        std::vector<std::unique_ptr<front_batch_stage>> fronts) {
  using threads_of = stage_threads<front_batch_stage>;
  last.join_stages(threads_of::ends(std::make_shared<threads_of>(std::move(fronts), room_of(last), stage_poll(on))));
}

}  // namespace runtime

/// Makes sessions that decode together over several devices, given in the order of the stages. With one device the
/// batch has no stages. Otherwise the plan's slots exist once for each device, as groups that take turns, so that all
/// devices are busy: a plan of 16 slots has 32 slots on two devices. All groups share the plan's pages. Each device
/// loads its part of the file, all at the same time.
/// @param tables plans with a batch that the program carries, all of one model: one is chosen for each device; they
///   outlive the batch
/// @error as basic_batch and cut_session
inline basic_batch cut_batch(std::span<const gpu::device> on, std::span<const plan::table* const> tables,
                             const io::checkpoint& from, const session_options& options = {},
                             const cut_options& wish = {}, runtime::module_source source = &runtime::modules_of<>) {
  using namespace runtime;
  return gpu::translated([&] {
    if (on.size() == 1 && wish.after.empty()) return basic_batch(on.front(), tables, from, options, source);
    const device_cut cut = cut_over(on, tables, wish, static_cast<std::uint32_t>(on.size()));
    for (const auto& each : cut.stages)
      if (each->table().batch.layers == 0) throw argument_error("plan", "one with a batch", "one without");
    expect_for_cut(from, options);
    require_stage_memory(on, cut);
    auto body = open_session(on.back(), tables, from, options);
    auto [fronts, last] = load_stages<last_batch_stage>(
        *body, on, cut, from, options, source,
        [&](const gpu::device& its, const std::shared_ptr<const plan::stage>& stage, const session_options& own) {
          return load_front_batch(its, stage, from, own, source);
        });
    join_stages(on.back(), *last, std::move(fronts));
    return basic_batch(std::move(body), std::move(last));
  });
}

}  // namespace intaglio
