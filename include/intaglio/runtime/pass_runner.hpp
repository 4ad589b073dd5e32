// SPDX-License-Identifier: MIT
// Runs passes of recorded sequences: it only writes the mailbox and submits command buffers.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/runtime/clear_memory.hpp"
#include "intaglio/runtime/flights.hpp"
#include "intaglio/runtime/hang_limit.hpp"
#include "intaglio/runtime/pass_recordings.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "intaglio/runtime/stage_ends.hpp"
#include "intaglio/runtime/stage_poll.hpp"

namespace intaglio::runtime {

/// One write of the mailbox, and the passes of one sequence that use it.
struct pass_job {
  pass_kind kind = pass_kind::decode;
  std::size_t box = 0;
  std::uint32_t passes = 0, pass = 0, segment = 0;
  bool feed = false;
  std::uint32_t end = 0;   ///< position after the first pass
  bool greedy = false;     ///< its last segments are the greedy form
  bool several = false;    ///< its pass has several tokens
  bool penalised = false;  ///< its sampler reads the history
};

/// The command buffers of one submission: the first `buffers` of the runner's buffers_.
struct batch_of_commands {
  std::size_t buffers = 0;
  std::uint32_t segments = 0, passes = 0;
  pass_job job_after;      ///< the job when it was submitted
  gpu::queue_point after;  ///< what the submission waits for
};

/// Runs one job at a time: a mailbox (position, tokens, sampling) and some passes of one sequence. Its submissions may
/// be on the device while the host reads tokens of earlier ones. Used by one thread.
class pass_runner : public pass_recordings {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t max_in_flight = flights::most;
  static constexpr std::uint32_t max_buffers = 1024;  ///< command buffers of one submission

  /// Begins a job and drops unsubmitted passes of the last one. Allocates and records nothing once is_complete().
  /// @param position number of tokens in the KV cache before the job
  /// @param tokens of the first pass; later decode passes feed the tokens that they draw
  /// @param passes most passes that submit() may submit in all; 1 except for decode. In a verify job the tokens after
  ///   the first are drafts
  /// @error argument_error: more tokens than such a pass has room for
  void begin(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens,
             const sampling_options& sampling, std::uint32_t passes, std::uint32_t second_text = 0) {
    const bool greedy = !draws(sampling) && sequence(kind).greedy.handle() != nullptr;
    if (const std::uint32_t most = plan_of(kind).max_tokens; tokens.size() > most)
      throw argument_error("tokens of a pass", "at most " + std::to_string(most), std::to_string(tokens.size()));
    if (position == 0) written_ = 0;
    if (!recurrent_.empty()) {
      if (pending()) drop();
      take_back_ = recurrent_.go_to(position);
    }
    if (kind == pass_kind::decode) begin_decode(position, greedy);
    const std::size_t box = static_cast<std::size_t>(counters_.jobs % mailboxes);
    if (box_used_[box] != 0) finish(box_used_[box]);
    const std::span<std::uint32_t> words = box_words(box);
    std::fill(words.begin(), words.end(), 0u);
    words[kernels::state::position] = position;
    words[kernels::state::count] = static_cast<std::uint32_t>(tokens.size());
    write_sampling(sampling, words);
    write_adapter(adapter_, words);
    words[kernels::state::second_text] = second_text;
    std::copy(tokens.begin(), tokens.end(), words.begin() + kernels::state::tokens);
    const std::uint32_t end = position + static_cast<std::uint32_t>(tokens.size());
    job_ = {kind, box, passes, 0, 0, true, end, greedy, tokens.size() > 1, sampling.repeat_penalty != 1.f};
    counters_.jobs += 1;
    completed_ = 0;
    if (ends_) ends_->ask(kind, position, tokens);
  }
  /// Whether this runs a stage of a cut plan.
  bool is_stage() const noexcept { return ends_ != nullptr; }
  /// Asks earlier stages to begin chunks that will be fed after the job's pass: tokens from a position on.
  void ask_ahead(pass_kind kind, std::uint32_t position, std::span<const std::int32_t> tokens, std::uint32_t chunk) {
    if (ends_) written_ = (std::max)(written_, ends_->ask_ahead(kind, position, tokens, chunk));
  }

  /// Number of the first `position` positions that a pass after them finds in the caches: all, or 0 where passes have
  /// overwritten the ring of a layer with a window. With recurrent layers it is the position of a state.
  std::uint32_t kept(std::uint32_t position) const {
    if (!recurrent_.empty()) position = recurrent_.positions().kept(position);
    for (std::uint8_t kind = 0; kind < table_->pattern.kinds(); ++kind)
      if (!table_->caches[kind].holds(position, written_)) return 0;
    return position;
  }

  std::uint32_t written() const noexcept { return written_; }
  /// @param position number of tokens whose state was put into recurrent(), for plans with recurrent layers
  void restored(std::uint32_t written, std::uint32_t position) noexcept {
    written_ = written;
    recurrent_.positions().restored(position);
  }

  /// Whether the job has passes that are not submitted.
  bool pending() const noexcept { return job_.pass < job_.passes; }
  std::size_t in_flight() const noexcept { return flights_.size(); }
  bool may_submit() const noexcept { return pending() && !flights_.full(); }
  /// Number of passes of the job that are done; a done decode pass has written its token to the ring.
  std::uint32_t completed() const noexcept { return completed_; }
  std::uint32_t submitted_passes() const noexcept { return job_.pass; }

  /// Makes one submission: the segments of the job that fit the budget, and at most `max_passes` whole passes. It may
  /// end inside a pass; the next submission continues there.
  /// @param stamped for callers that do not wait: the device takes the time if it has timestamps and is idle
  /// @error device_lost, out_of_memory; the job is dropped then
  void submit(double budget_ms, std::uint32_t max_passes, bool stamped = false) {
    if (!start_.is_complete() && job_.kind == pass_kind::decode && !job_.feed)
      go_on_if_made(next_position(), job_.greedy);
    std::uint64_t number = 0;
    batch_of_commands next;
    const clock::time_point from = clock::now();
    try {
      if (ends_ && job_.pass != 0 && job_.segment == 0) ask_for_drawn();
      if (!pending()) return;
      stamped = stamped && takes_times_ && flights_.empty() && !stamps_.empty();
      next = collect(budget_ms, ends_ ? 1 : max_passes, stamped);
      number =
          queue_.submit({buffers_.data(), next.buffers}, sequence(job_.kind).segments[job_.segment].name(), next.after);
    } catch (...) {
      sample_ = {};
      recurrent_.positions().lose_all();
      drop();
      throw;
    }
    take_back_ = nullptr;
    if (sample_.taken && sample_.number == 0) sample_.number = number;
    const std::uint32_t traced = traces_ && job_.kind == pass_kind::decode ? next.passes : 0;
    for (std::uint32_t i = 0; i < traced; ++i) traces_->submitted(job_.end - 1 + job_.pass + i);
    flights_.add(
        {number, next.segments, next.job_after.pass, counters_.jobs, job_.kind, clock::now(), traced, from, stamped});
    box_used_[job_.box] = number;
    written_ =
        (std::max)(written_, next.job_after.end + next.job_after.pass + (next.job_after.segment != 0 ? 1 : 0) - 1);
    job_ = next.job_after;
    counters_.submits += 1;
    counters_.passes += next.passes;
  }

  /// Records the next pass of the job anew as one command buffer, submits it and waits, as an engine does that records
  /// every token. Replaying is compared with it; do not mix it with submit() within a job.
  /// @error device_lost, out_of_memory; the job is dropped then
  void submit_recorded() {
    gpu::translated([&] {
      drain_flights();
      const plan::sequence& of = *form_of(job_.kind, is_long(job_.kind, job_.end - 1 + job_.pass)).plan;
      const recorded_sequence fresh = record_sequence(device_, *table_, of, kernels_, addresses_, nullptr, false,
                                                      of.layers, {!job_.greedy, job_.greedy, start_.draws_by()});
      if (traces_ && job_.kind == pass_kind::decode) traces_->overwritten(job_.end - 1 + job_.pass);
      counters_.recordings += fresh.size();
      std::size_t used = 0;
      if (take_back_ != nullptr) buffers_[used++] = std::exchange(take_back_, nullptr);
      if (job_.feed) buffers_[used++] = feeds_[job_.box].handle();
      for (const VkCommandBuffer each : fresh.handles) buffers_[used++] = each;
      if (job_.greedy) buffers_[used - 1] = fresh.greedy.handle();
      if (const VkCommandBuffer copy = passed(job_.end + job_.pass)) buffers_[used++] = copy;
      try {
        box_used_[job_.box] = queue_.submit({buffers_.data(), used}, fresh.segments.front().name());
        counters_.submits += 1;
        queue_.wait(box_used_[job_.box], hang_limit(sequence(job_.kind).speed));
        weights_.expect_unchanged();
      } catch (...) {
        recurrent_.positions().lose_all();
        drop();
        throw;
      }
      counters_.passes += 1;
      job_.feed = false;
      completed_ = ++job_.pass;
    });
  }

  /// Notes submissions that are done, without waiting.
  /// @error device_lost
  void poll() {
    while (!flights_.empty() && queue_.finished(flights_.oldest().number)) retire(false);
  }
  /// Waits for the oldest submission on the device, if any.
  /// @error device_lost: also where it does not end within the queue's hang limit
  void wait() {
    poll();
    if (flights_.empty()) return;
    if (ends_) poll_for(stage_poll(device_), [&] { return queue_.finished(flights_.oldest().number); });
    queue_.wait(flights_.oldest().number, hang_limit(sequence(flights_.oldest().kind).speed));
    retire(true);
  }
  /// Number of the job's last submission, for finish().
  std::uint64_t last_submission() const noexcept { return box_used_[job_.box]; }
  /// The end of a submission, for other queues of the device.
  gpu::queue_point end_of(std::uint64_t number) const noexcept { return queue_.end_of(number); }
  /// Whether a submission and those before it are done. A caller that waits for them asks often. @error device_lost
  bool has_ended(std::uint64_t number) {
    while (!flights_.empty() && flights_.oldest().number <= number && queue_.finished(flights_.oldest().number))
      retire(true);
    return flights_.empty() || flights_.oldest().number > number;
  }
  /// Waits for a submission and those before it. @error device_lost
  void finish(std::uint64_t number) {
    while (!flights_.empty() && flights_.oldest().number <= number) wait();
  }
  /// Waits for all submissions and drops unsubmitted passes.
  void drain() {
    drop();
    drain_flights();
  }
  /// Drops the job; its submissions continue.
  void drop() noexcept {
    // Some layers may be a token ahead of others, or their state may not be copied yet.
    if ((pending() && job_.segment != 0) || take_back_ != nullptr) recurrent_.positions().lose();
    take_back_ = nullptr;
    job_.pass = job_.passes = 0;
  }

  /// Takes the traces of done decode passes: the features of their tokens at positions below `size`, each returned
  /// once.
  /// @error argument_error: a plan without a trace
  trace_result take_trace(std::uint32_t size) {
    if (!traces_) throw argument_error("trace", "a plan that keeps one (graph::traced)", "a plan without");
    poll();
    weights_.expect_unchanged();
    return traces_->take(size,
                         {reinterpret_cast<const std::uint32_t*>(trace_.mapped().data()), trace_.mapped().size() / 4});
  }
  /// Drops the traces of positions from `size` on: they were fed ahead and are not part of the text.
  void forget_traces(std::uint32_t size) noexcept {
    if (traces_) traces_->forget(size);
  }

 protected:
  /// Allocates no memory yet. @param decode of the plan's table
  [[gnu::cold]] pass_runner(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan,
                            const plan::sequence& decode, executor_start start, weight_memory weights,
                            kernel_set kernels)
      : pass_recordings(on, std::move(plan), decode, std::move(start), std::move(weights), std::move(kernels)),
        queue_(on) {}
  ~pass_runner() = default;
  pass_runner(const pass_runner&) = delete;
  pass_runner& operator=(const pass_runner&) = delete;

  /// While the start is not complete: does the parts of it that a decode job at a position can do. May wait for passes
  /// on the device.
  virtual void go_on_if_made(std::uint32_t position, bool greedy) = 0;
  /// Prepares decode for a job that begins.
  virtual void begin_decode(std::uint32_t position, bool greedy) = 0;

  bool wants_times(pass_kind kind, bool is_long, const recorded_sequence& of, std::uint32_t segments_left,
                   double budget_ms) const {
    return takes_times_ && !sample_.taken && segments_left >= of.size() &&
           clock_of(kind).is_due(of.speed, of.size(), budget_ms) && timed(kind, job_.greedy, is_long).plan != nullptr;
  }
  /// Segments of the job that fit into the budget, and at most `max_passes` whole passes.
  batch_of_commands collect(double budget_ms, std::uint32_t max_passes, bool stamped) {
    const recorded_sequence& of = sequence(job_.kind);  // valid for both forms: they have the same segments
    std::uint32_t left =
        (std::min)(of.speed.allowed(budget_ms), max_buffers - 1 - 2 * std::uint32_t{stage_ends::most_commands});
    batch_of_commands out{0, 0, 0, job_, {}};
    pass_job& at = out.job_after;
    if (stamped) buffers_[out.buffers++] = stamps_.first();
    if (take_back_ != nullptr) buffers_[out.buffers++] = take_back_;
    if (job_.feed) buffers_[out.buffers++] = feeds_[job_.box].handle();
    at.feed = false;
    if (ends_ && job_.segment == 0)
      out.buffers += ends_->before(job_.kind, job_.box, job_.penalised, buffers_.data() + out.buffers, out.after);
    while (left != 0 && at.pass < at.passes && out.passes < max_passes) {
      const bool is_long = this->is_long(job_.kind, job_.end - 1 + at.pass),
                 times = at.segment == 0 && wants_times(job_.kind, is_long, of, left, budget_ms);
      if (at.segment == 0) {
        if (times) clock_of(job_.kind).begin();
        clock_of(job_.kind).count(1);
      }
      if (times) {  // the whole pass is one command buffer
        buffers_[out.buffers++] = timed(job_.kind, job_.greedy, is_long).handles.front();
        sample_ = {true, 0, job_.kind, job_.greedy, is_long};
        at.segment = of.size();
      } else {
        buffers_[out.buffers++] = (is_long ? long_ : of).handle(at.segment++, job_.greedy);
      }
      const std::uint32_t taken = times ? of.size() : 1;
      out.segments += taken;
      left -= taken;
      if (at.segment == of.size()) {
        if (const VkCommandBuffer copy = passed(at.end + at.pass)) buffers_[out.buffers++] = copy;
        at.segment = 0;
        ++at.pass;
        ++out.passes;
        if (ends_) out.buffers += ends_->after(job_.kind, buffers_.data() + out.buffers);
      }
    }
    if (stamped) buffers_[out.buffers++] = stamps_.last();
    return out;
  }
  /// Decode of a last stage: the first stage feeds the token that the previous pass drew.
  [[gnu::cold]] void ask_for_drawn() {
    drain_flights();
    const std::uint32_t token = drawn(job_.pass - 1);
    if (token < table_->config->vocab_size) return ends_->ask(job_.kind, next_position(), {&token, 1});
    drop();  // no token was drawn; the caller sees that
  }

  /// Notes that the job's pass ends after this many tokens. @return commands that copy the state, or null
  VkCommandBuffer passed(std::uint32_t position) {
    return recurrent_.empty() ? nullptr : recurrent_.passed(position, job_.several);
  }

  /// Number of tokens in the KV cache before the next pass of a decode job.
  std::uint32_t next_position() const noexcept { return job_.end - 1 + job_.pass; }

  void clear() { clear_memory(device_, queue_, model_name(*table_), {&arena_, &state_, &ring_}, {&caches_}); }

  void retire(bool waited) {
    const flights::ended one = flights_.end_oldest(waited, clock::now());
    const flight& done = one.of;
    observe(one);
    if (traces_) traces_->completed(done.traced);
    if (sample_.taken && sample_.number == done.number) collect_times();
    weights_.expect_unchanged();
    if (done.job == counters_.jobs) completed_ = done.passes;
  }
  void drain_flights() {
    while (!flights_.empty()) wait();
  }

  VkCommandBuffer take_back_ = nullptr;  ///< copies the job's first state back, until it is submitted
  std::vector<VkCommandBuffer> buffers_;
  pass_job job_;
  std::array<std::uint64_t, mailboxes> box_used_{};
  std::unique_ptr<stage_ends> ends_;  ///< of a stage of a cut plan
  flights flights_;
  std::uint32_t completed_ = 0;
  std::uint32_t written_ = 0;  ///< all positions below this number were written
  gpu::queue queue_;           // destroyed first, which waits: the members above may be in use by the device
};

}  // namespace intaglio::runtime
