// SPDX-License-Identifier: MIT
// A session over several devices: a plan is cut between layers (plan/cut.hpp), and each device runs one stage. The last
// stage belongs to the session itself. Each earlier stage has a thread, which runs the passes that arrive on its link.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "intaglio/plan/cut.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "intaglio/runtime/session_handle.hpp"
#include "intaglio/runtime/stage_crossing.hpp"
#include "intaglio/runtime/stage_memory.hpp"

namespace intaglio {

/// Where a model is cut.
struct cut_options {
  /// Number of layers in front of each cut (plan::stages_of); empty: chosen by memory and rates.
  std::vector<std::uint32_t> after{};
  /// Bytes a second of each device's memory, or any other measure; empty: all devices are alike.
  std::vector<double> rates{};
};

namespace runtime {

/// A stage before the last one, on its device.
class front_stage {
 public:
  /// @param run runner of the stage's plan, not joined yet  @param cache the pipeline cache that it was made with
  /// @param budget_ms limit of a submission
  /// @param prove whether to compare kernels that are made later with the reference
  front_stage(const gpu::device& on, std::shared_ptr<const plan::stage> plan,
              std::unique_ptr<gpu::pipeline_cache> cache, std::unique_ptr<executor> run, double budget_ms, bool prove)
      : plan_(std::move(plan)), budget_ms_(budget_ms), prove_(prove), poll_(stage_poll(on)), cache_(std::move(cache)),
        run_(std::move(run)) {
    auto ends = std::make_unique<stage_crossing>(on, run_->table(), run_->state());
    ends_ = ends.get();
    run_->join(std::move(ends));
    cache_->store();
  }
  /// The executor that runs the stage, for its plan and counters.
  const executor& stage_executor() const noexcept { return *run_; }

  /// Runs the passes that arrive until the link ends. It begins the next pass as soon as that arrives, also while the
  /// device computes the current one. After a decode pass none arrives, since its token is not drawn yet. A failure
  /// goes to the last stage instead of the rows; the next pass is tried again.
  void serve(stage_link& in, stage_link& out) noexcept {
    stage_message message;
    pass_under_way current, next;
    for (;;) {
      if (!next.is_there && (!current.is_there || in.ready())) {
        if (!in.take(message)) break;
        (current.is_there ? next : current) = begin(message);
      } else if (next.is_there || current.kind == pass_kind::decode || has_ended(current)) {
        if (!hand_on(current, message, out)) break;
        std::swap(current, next);
      } else {
        wait_for([&] { return in.ready() || has_ended(current); });
      }
    }
    in.end(), out.end();
  }

 private:
  struct pass_under_way {
    bool is_there = false;
    pass_kind kind = pass_kind::decode;
    std::uint32_t position = 0, count = 0;
    std::size_t slot = 0;
    std::uint64_t number = 0;  ///< of the pass's last submission
    std::exception_ptr failure;
  };

  /// Whether hand_on() would not wait for a pass.
  bool has_ended(const pass_under_way& of) noexcept {
    try {
      return of.failure || run_->has_ended(of.number);
    } catch (...) {  // hand_on() reports it
      return true;
    }
  }
  /// Polls until something happens, after a while seldom, or for at most a second.
  template <class Happens>
  void wait_for(const Happens& happens) const {
    if (poll_for(poll_, happens)) return;
    for (int i = 0; i < 10'000 && !happens(); ++i) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  /// Submits a pass.
  pass_under_way begin(stage_message& message) noexcept {
    slot_ = (slot_ + 1) % stage_crossing::slot_count;
    pass_under_way out{true, message.kind, message.position, message.count, slot_, 0, message.failure};
    try {
      if (!message.failure) gpu::translated([&] { submit(message); });
      out.number = run_->last_submission();
    } catch (...) {
      run_->drop();
      out.failure = std::current_exception();
    }
    return out;
  }
  void submit(const stage_message& message) {
    if (message.kind == pass_kind::logits) run_->prepare_logits(false, cache_.get());
    if (message.kind == pass_kind::verify || message.kind == pass_kind::verify_short)
      run_->prepare_verify(prove_, cache_.get());
    tokens_.assign(message.count, 0);
    if (run_->table().decode.takes_stream) ends_->supply(message.bytes);
    else std::memcpy(tokens_.data(), message.bytes.data(), (std::min)(message.bytes.size(), 4 * tokens_.size()));
    ends_->give_to(slot_);
    run_->begin(message.kind, message.position, tokens_, {}, 1);
    while (run_->pending()) {
      if (!run_->may_submit()) run_->wait();
      run_->submit(budget_ms_, executor::max_buffers);
    }
  }
  /// Waits for a pass and passes on its rows. @return false: the link has ended
  bool hand_on(pass_under_way& of, stage_message& message, stage_link& out) noexcept {
    message.kind = of.kind, message.position = of.position, message.count = of.count;
    try {
      if (!of.failure)
        gpu::translated([&] {
          run_->finish(of.number);
          message.bytes = ends_->given(of.kind, of.slot, of.count, run_->end_of(of.number));
          if (of.kind == pass_kind::decode && is_blank(message.bytes) && run_->leave_resident(prove_))
            message.bytes = decode_anew(of);
        });
    } catch (...) {
      run_->drop();
      of.failure = std::current_exception();
    }
    if (of.failure) message.bytes = {};
    message.failure = std::exchange(of.failure, nullptr);
    of.is_there = false;
    return out.put(message);
  }

  /// Whether workgroups of the resident dispatch timed out: the rows still hold the unwritten pattern.
  static bool is_blank(std::span<const std::byte> rows) {
    for (std::size_t at = 0; at + 4 <= rows.size(); at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, rows.data() + at, sizeof word);
      if (word == ~0u) return true;
    }
    return false;
  }
  /// Runs a decode pass again, as the chain of dispatches.
  [[gnu::cold]] std::span<const std::byte> decode_anew(const pass_under_way& of) {
    ends_->give_to(of.slot);
    run_->begin(of.kind, of.position, tokens_, {}, 1);
    while (run_->pending()) {
      if (!run_->may_submit()) run_->wait();
      run_->submit(budget_ms_, executor::max_buffers);
    }
    run_->drain();
    return ends_->given(of.kind, of.slot, of.count, run_->end_of(run_->last_submission()));
  }

  std::shared_ptr<const plan::stage> plan_;
  double budget_ms_;
  bool prove_;
  std::chrono::microseconds poll_;
  std::unique_ptr<gpu::pipeline_cache> cache_;  ///< run_ notes in it what it has proven
  stage_crossing* ends_ = nullptr;              ///< run_'s
  std::unique_ptr<executor> run_;
  std::vector<std::uint32_t> tokens_;
  std::size_t slot_ = 0;  ///< index of the memory for the rows of the last pass (stage_crossing)
};

/// Loads a stage's part of a file. @error as basic_session
inline std::unique_ptr<front_stage> load_front(const gpu::device& on, std::shared_ptr<const plan::stage> plan,
                                               const io::checkpoint& from, const session_options& options,
                                               module_source source) {
  return gpu::translated([&] {
    auto cache = std::make_unique<gpu::pipeline_cache>(
        on, options.cache_folder ? *options.cache_folder : gpu::default_cache_folder(), plan->table().hash);
    auto run = load_plan<executor>(on, plan->table(), *cache, from, options, source);
    return std::make_unique<front_stage>(on, std::move(plan), std::move(cache), std::move(run),
                                         options.submit_budget_ms, options.prove_kernels);
  });
}

/// The stages before the last one, each on a thread of its own, and the links between them.
/// @tparam Front a class with serve(): front_stage or front_batch_stage
template <class Front>
class stage_threads {
 public:
  /// @param room number of passes that may be asked for at once
  /// @param poll how long a thread polls for a message before it sleeps
  stage_threads(std::vector<std::unique_ptr<Front>> stages, std::size_t room, std::chrono::microseconds poll = {})
      : room_(room), stages_(std::move(stages)) {
    for (std::size_t i = 0; i <= stages_.size(); ++i) links_.push_back(std::make_shared<local_link>(room_, poll));
    for (std::size_t i = 0; i < stages_.size(); ++i)
      threads_.emplace_back([this, i] { stages_[i]->serve(*links_[i], *links_[i + 1]); });
  }
  ~stage_threads() {
    for (const auto& each : links_) each->end();
    for (std::thread& each : threads_) each.join();
  }
  stage_threads(const stage_threads&) = delete;
  stage_threads& operator=(const stage_threads&) = delete;

  const Front& stage(std::size_t index) const { return *stages_[index]; }
  /// @param of the threads, which live as long as the result
  static stages_before ends(const std::shared_ptr<stage_threads>& of) {
    return {{of, of->links_.front().get()}, {of, of->links_.back().get()}, of->room_};
  }

 private:
  std::size_t room_;
  std::vector<std::unique_ptr<Front>> stages_;
  std::vector<std::shared_ptr<local_link>> links_;
  std::vector<std::thread> threads_;
};

/// Number of passes that keep every stage busy: one in each, and one more, which the first stage begins before it hands
/// on its current one.
constexpr std::size_t passes_to_ask(std::size_t stages) {
  return (std::min)(stages + 1, std::size_t{plan::most_asked_passes});
}

/// Connects earlier stages to the runner of the last one, which is not joined yet.
inline std::shared_ptr<const stage_threads<front_stage>> join_stages(const gpu::device& on, executor& last,
                                                                     std::vector<std::unique_ptr<front_stage>> fronts) {
  using threads_of = stage_threads<front_stage>;
  const std::size_t room = passes_to_ask(fronts.size() + 1);
  const auto threads = std::make_shared<threads_of>(std::move(fronts), room, stage_poll(on));
  last.join(std::make_unique<stage_crossing>(on, last.table(), last.state(), threads_of::ends(threads)));
  return threads;
}

/// Cuts a model over devices without loading anything. A given cut may not fit the devices, and if no cut does, then
/// the chosen one does not either: require_stage_memory() refuses both. @param tables the plans that the program
/// carries, which outlive the cut  @param groups groups of slots, for plans with a batch (plan::stage)
/// @error argument_error: an invalid cut
inline device_cut cut_over(std::span<const gpu::device> on, std::span<const plan::table* const> tables,
                           const cut_options& wish, std::uint32_t groups = 1) {
  if (on.empty()) throw argument_error("devices", "at least one", "none");
  device_cut out;
  for (const gpu::device& each : on) {
    out.tables.push_back(&choose_table(tables, class_of(each)));
    if (out.tables.back()->context != out.tables.front()->context)
      throw argument_error(
          "plans of a cut", "one context for all devices",
          std::to_string(out.tables.front()->context) + " and " + std::to_string(out.tables.back()->context));
  }
  std::vector<std::uint32_t> after = wish.after;
  if (!wish.rates.empty() && wish.rates.size() != on.size())
    throw argument_error("rates of the devices", std::to_string(on.size()), std::to_string(wish.rates.size()));
  if (after.empty() && on.size() > 1) {
    std::vector<plan::stage_costs> costs;
    std::vector<plan::stage_device> devices;
    for (std::size_t i = 0; i < on.size(); ++i) {
      const plan::stage_costs& cost = costs.emplace_back(*out.tables[i], has_one_memory(on[i]));
      const std::uint64_t has = available_memory(on[i]) / same_devices(on, on[i]),
                          taken = (std::min)(has, uncounted_stage_memory(*out.tables[i], cost));
      devices.push_back({has - taken, wish.rates.empty() ? 1.0 : wish.rates[i]});
    }
    after = plan::choose_cut(costs, devices);
  }
  const std::vector<plan::layer_range> ranges = plan::stages_of(out.tables.front()->config->num_hidden_layers, after);
  if (ranges.size() != on.size())
    throw argument_error("cut", "as many stages as devices, " + std::to_string(on.size()),
                         std::to_string(ranges.size()));
  for (std::size_t i = 0; i < on.size(); ++i)
    out.stages.push_back(std::make_shared<const plan::stage>(*out.tables[i], ranges[i], groups));
  return out;
}

/// One progress report for several loads that run at once.
class shared_progress {
 public:
  shared_progress(load_callback to, std::size_t loads) : to_(std::move(to)), parts_(loads) {}
  /// @param index of the load; this object outlives the result
  load_callback part(std::size_t index) {
    if (!to_) return {};
    return [this, index](const load_progress& at) {
      const std::lock_guard own(guard_);
      parts_[index] = at;
      load_progress sum;
      for (const load_progress& each : parts_) {
        sum.bytes_done += each.bytes_done, sum.bytes_total += each.bytes_total;
        sum.tensors_done += each.tensors_done, sum.tensors_total += each.tensors_total;
        sum.seconds_left = (std::max)(sum.seconds_left, each.seconds_left);
      }
      to_(sum);
    };
  }

 private:
  std::mutex guard_;
  load_callback to_;
  std::vector<load_progress> parts_;
};
/// Refuses options that cut sessions do not support.
/// @error argument_error: an option that cut sessions do not support
inline void expect_for_cut(const io::checkpoint& from, const session_options& options) {
  const auto refuse = [&](const char* what, const std::string& found) {
    throw argument_error(what, "a model on one device", found + " for one that is cut over several");
  };
  if (from.packed() != nullptr) refuse("packed file", printable(from.path(), 200));
  if (options.patch != nullptr) refuse("patch", "one");
  if (options.weight_budget) refuse("weight_budget", "one");
  if (options.storage != weight_storage::automatic && options.storage != weight_storage::copied)
    refuse("storage of the weights", "a mapped file");
}

/// Takes the limits and the runner of a session whose own stage is the last of a cut.
template <class Executor = executor>
std::unique_ptr<Executor> take_last_stage(session_body& body, const device_cut& cut, const io::checkpoint& from,
                                          const session_options& options, module_source source) {
  const auto& stage = cut.stages.back();
  body.stage = stage;
  for (const plan::table* each : cut.tables) {
    body.prefill_tokens = (std::min)(body.prefill_tokens, each->prefill.max_tokens);
    body.logits_tokens = (std::min)(body.logits_tokens, each->logits.max_tokens);
    body.verify_tokens = (std::min)(body.verify_tokens, each->verify.max_tokens);
  }
  body.cache.emplace(body.device, options.cache_folder ? *options.cache_folder : gpu::default_cache_folder(),
                     stage->table().hash);
  return load_executor<Executor>(body, stage->table(), from, options, source);
}

/// Loads the stages of a cut, all at once. @param load_front loads a stage before the last one
/// @return these stages and the last one's runner
template <class Executor, class LoadFront>
auto load_stages(session_body& body, std::span<const gpu::device> on, const device_cut& cut, const io::checkpoint& from,
                 const session_options& options, module_source source, LoadFront&& load_front) {
  using front = decltype(load_front(on[0], cut.stages[0], options));
  shared_progress progress(options.progress, on.size());
  std::vector<std::future<front>> loads;
  for (std::size_t i = 0; i + 1 < on.size(); ++i) {
    session_options own = options;
    own.progress = progress.part(i);
    loads.push_back(
        std::async(std::launch::async, [&, own = std::move(own), i] { return load_front(on[i], cut.stages[i], own); }));
  }
  session_options own = options;
  own.progress = progress.part(on.size() - 1);
  std::pair<std::vector<front>, std::unique_ptr<Executor>> out;
  out.second = take_last_stage<Executor>(body, cut, from, own, source);
  for (auto& each : loads) out.first.push_back(each.get());
  return out;
}
/// Loads a session whose model is cut over several devices.
/// @error as cut_session
inline std::shared_ptr<session_body> load_cut_session(std::span<const gpu::device> on,
                                                      std::span<const plan::table* const> tables,
                                                      const io::checkpoint& from, const session_options& options,
                                                      const cut_options& wish, module_source source) {
  const device_cut cut = cut_over(on, tables, wish);
  if (on.size() == 1) return load_session(on.front(), tables, from, options, source);
  expect_for_cut(from, options);
  require_stage_memory(on, cut);
  auto body = open_session(on.back(), tables, from, options);
  auto [fronts, last] =
      load_stages<executor>(*body, on, cut, from, options, source,
                            [&](const gpu::device& its, const std::shared_ptr<const plan::stage>& stage,
                                const session_options& own) { return load_front(its, stage, from, own, source); });
  body->run = std::move(last);
  join_stages(on.back(), *body->run, std::move(fronts));
  return body;
}

}  // namespace runtime

/// Makes a session over several devices, given in the order of the stages; the last one samples. With one device the
/// session has no stages. Each device loads its part of the file, all at the same time. The same device may be opened
/// several times.
/// @param tables the plans that the program carries, all of one model: one is chosen for each device; they outlive the
///   session
/// @error as basic_session; argument_error: an invalid cut, a packed file, a patch, a budget or a weight placement;
///   out_of_memory naming the stage that does not fit and the numbers, before anything is loaded
inline basic_session cut_session(std::span<const gpu::device> on, std::span<const plan::table* const> tables,
                                 const io::checkpoint& from, const session_options& options = {},
                                 const cut_options& wish = {}, runtime::module_source source = &runtime::modules_of<>) {
  return gpu::translated(
      [&] { return basic_session(runtime::load_cut_session(on, tables, from, options, wish, source)); });
}

}  // namespace intaglio
