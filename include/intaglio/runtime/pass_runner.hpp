// SPDX-License-Identifier: MIT
// Runs passes of recorded sequences: only the mailbox is written and command buffers are submitted.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/runtime/clear_memory.hpp"
#include "intaglio/runtime/executor_start.hpp"
#include "intaglio/runtime/flights.hpp"
#include "intaglio/runtime/hang_limit.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "intaglio/runtime/mailbox.hpp"
#include "intaglio/runtime/pass_kind.hpp"
#include "intaglio/runtime/pass_times.hpp"
#include "intaglio/runtime/recorded_sequence.hpp"
#include "intaglio/runtime/recurrent_memory.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "intaglio/runtime/session_memory.hpp"
#include "intaglio/runtime/stage_ends.hpp"
#include "intaglio/runtime/trace.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// How often the host did what costs, since the executor was made.
struct executor_counters {
  std::uint64_t submits = 0;     ///< vkQueueSubmit
  std::uint64_t jobs = 0;        ///< writes of the mailbox
  std::uint64_t passes = 0;      ///< whole passes submitted
  std::uint64_t recordings = 0;  ///< command buffers recorded
};

/// One job at a time: a mailbox (position, tokens, sampling) and some passes of one sequence. Submissions of it may be
/// in flight while the host reads what earlier ones drew. Used by one thread.
class pass_runner {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t max_in_flight = flights::most, mailboxes = 4;
  static constexpr std::uint32_t max_buffers = 1024;  ///< command buffers of one submission

  const plan::table& table() const noexcept { return *table_; }
  const plan::device_plan& plan() const noexcept { return *plan_; }
  const gpu::device& device() const noexcept { return device_; }
  const executor_counters& counters() const noexcept { return counters_; }
  std::size_t pipelines() const noexcept { return kernels_.size(); }
  std::uint32_t subgroup_size() const noexcept { return kernels_.subgroup_size(); }
  /// Of decode or prefill; nothing on a device without timestamps, or where a whole pass takes more than half the
  /// submission's budget.
  const pass_times& times(pass_kind kind) const { return clock_of(kind).times(); }
  /// Takes no times from here on, or does again: the yardstick of what they cost.
  void take_times(bool wanted) noexcept { takes_times_ = wanted; }
  const pace& speed(pass_kind kind) const { return sequence(kind).speed; }
  std::uint32_t segments(pass_kind kind) const { return sequence(kind).size(); }
  /// The plan of a kind of pass at a position.
  const plan::sequence& plan_of(pass_kind kind, std::uint32_t position = 0) const noexcept {
    return is_long(kind, position)                                      ? long_plan_
           : kind == pass_kind::decode                                  ? *decode_
           : kind == pass_kind::prefill                                 ? table_->prefill
           : kind == pass_kind::verify || kind == pass_kind::verify_few ? table_->verify
                                                                        : table_->logits;
  }

  const kernel_set& kernels() const noexcept { return kernels_; }

  /// Time of a pass over drafts in decode passes, as measured of both at about the same time, since devices need a
  /// while to reach their clocks; 0: not yet.
  double verify_cost(pass_kind kind) const { return verify_costs_[static_cast<std::size_t>(kind)]; }
  static constexpr std::uint32_t few_tokens = plan::device_plan::few_drafts;
  /// Kind of a pass over a number of tokens, all but the first drafts.
  pass_kind verify_kind(std::size_t tokens) const {
    return tokens <= few_tokens && table_->verify.max_tokens > few_tokens ? pass_kind::verify_few : pass_kind::verify;
  }

  /// Begins a job; what an earlier one had not submitted is dropped. Allocates and records nothing once is_complete().
  /// @param position tokens in the KV cache before it
  /// @param tokens of the first pass; decode passes go on with what they draw
  /// @param passes as many as submit() may submit in all; 1 but for decode. In one of kind verify the tokens behind the
  /// first are drafts
  /// @error argument_error: more tokens than such a pass has room for
  void begin(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens,
             const sampling_options& sampling, std::uint32_t passes) {
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
    if (box_used_[box] != 0) finish_until(box_used_[box]);
    const std::span<std::uint32_t> words = box_words(box);
    std::fill(words.begin(), words.end(), 0u);
    words[kernels::state::position] = position;
    words[kernels::state::count] = static_cast<std::uint32_t>(tokens.size());
    write_sampling(sampling, words);
    std::copy(tokens.begin(), tokens.end(), words.begin() + kernels::state::tokens);
    job_ = {
        kind, box, passes, 0, 0, true, position + static_cast<std::uint32_t>(tokens.size()), greedy, tokens.size() > 1};
    job_.penalised = sampling.repeat_penalty != 1.f;
    counters_.jobs += 1;
    completed_ = 0;
    if (ends_) ends_->ask(kind, position, tokens);
  }
  /// Whether it runs a stage of a cut plan.
  bool is_stage() const noexcept { return ends_ != nullptr; }
  /// Has stages before this one begin chunks that will be fed behind the job's pass: tokens from a position on.
  void ask_ahead(pass_kind kind, std::uint32_t position, std::span<const std::int32_t> tokens, std::uint32_t chunk) {
    if (ends_) written_ = (std::max)(written_, ends_->ask_ahead(kind, position, tokens, chunk));
  }

  /// How many of the first `position` positions a pass behind them finds in the caches: all, or none where the ring of
  /// a layer with a window was written too far past them, be it by passes that ran ahead. Of recurrent layers as many
  /// as there is a state of.
  std::uint32_t kept(std::uint32_t position) const {
    if (!recurrent_.empty()) position = recurrent_.positions().kept(position);
    for (std::uint8_t kind = 0; kind < table_->pattern.kinds(); ++kind)
      if (!table_->caches[kind].holds(position, written_)) return 0;
    return position;
  }

  /// For saving and restoring what passes left in memory, when nothing is in flight: the KV cache, keys and
  /// values of each layer in turn; the state; and up to which position both were written.
  const placed_items& caches() const noexcept { return caches_; }
  const gpu::buffer& state() const noexcept { return state_; }
  const weight_memory& weights() const noexcept { return weights_; }
  std::uint32_t written() const noexcept { return written_; }
  /// Whether recurrent layers, where there are any, can go on behind so many tokens.
  bool has_state_of(std::uint32_t position) const {
    return recurrent_.empty() || recurrent_.positions().kept(position) == position;
  }
  recurrent_memory& recurrent() noexcept { return recurrent_; }
  /// @param position behind the tokens whose state was put into recurrent(), where there is any
  void restored(std::uint32_t written, std::uint32_t position) noexcept {
    written_ = written;
    recurrent_.positions().restored(position);
  }

  /// True while the job has passes that are not submitted.
  bool pending() const noexcept { return job_.pass < job_.passes; }
  std::size_t in_flight() const noexcept { return flights_.size(); }
  bool may_submit() const noexcept { return pending() && !flights_.full(); }
  /// Passes of the job that are done; a decode pass has put its token into the ring.
  std::uint32_t completed() const noexcept { return completed_; }
  std::uint32_t submitted_passes() const noexcept { return job_.pass; }

  /// One submission: as many segments of the job as fit into the budget, and at most `max_passes` whole passes. It may
  /// end inside a pass; the next one goes on there.
  /// @error device_lost, out_of_memory; the job is then dropped
  void submit(double budget_ms, std::uint32_t max_passes) {
    if (!start_.is_complete() && job_.kind == pass_kind::decode && !job_.feed)
      go_on_if_made(next_position(), job_.greedy);
    std::uint64_t number = 0;
    batch_of_commands next;
    try {
      if (ends_ && job_.pass != 0 && job_.segment == 0) ask_for_drawn();
      if (!pending()) return;
      next = collect(budget_ms, ends_ ? 1 : max_passes);
      number = queue_.submit({buffers_.data(), next.buffers}, sequence(job_.kind).segments[job_.segment].name());
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
    flights_.add({number, next.segments, next.behind.pass, counters_.jobs, job_.kind, clock::now(), traced});
    box_used_[job_.box] = number;
    written_ = (std::max)(written_, next.behind.end + next.behind.pass + (next.behind.segment != 0 ? 1 : 0) - 1);
    job_ = next.behind;
    counters_.submits += 1;
    counters_.passes += next.passes;
  }

  /// The next pass of the job, recorded anew as one command buffer, submitted and waited for: what an engine does that
  /// records every token. The yardstick of replaying; not to be mixed with submit() within a job.
  /// @error device_lost, out_of_memory; the job is then dropped
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

  /// Takes note of submissions that are done, without waiting.
  /// @error device_lost
  void poll() {
    while (!flights_.empty() && queue_.finished(flights_.oldest().number)) retire(false);
  }
  /// Waits for the oldest submission in flight, if any.
  /// @error device_lost: also where it does not end within the queue's hang limit
  void wait() {
    poll();
    if (flights_.empty()) return;
    queue_.wait(flights_.oldest().number, hang_limit(sequence(flights_.oldest().kind).speed));
    retire(true);
  }
  /// Waits for all that is in flight and drops what is not submitted.
  void drain() {
    drop();
    drain_flights();
  }
  /// Forgets the job; what is in flight goes on.
  void drop() noexcept {
    // Some layers may be a token ahead of the others, or their state not there yet.
    if ((pending() && job_.segment != 0) || take_back_ != nullptr) recurrent_.positions().lose();
    take_back_ = nullptr;
    job_.pass = job_.passes = 0;
  }

  /// Token drawn by pass `index` of the job, index < completed().
  std::uint32_t drawn(std::uint32_t index) const { return drawn_word(index % table_->ring_size); }
  /// Tokens that the last verify job took, which must be done: drawn(0) and on.
  std::uint32_t accepted() const { return drawn_word(table_->ring_size); }
  /// What decode passes that are done told of the features of their tokens, of positions below `size`, and no one took
  /// yet.
  /// @error argument_error: a plan without a trace
  trace_result take_trace(std::uint32_t size) {
    if (!traces_) throw argument_error("trace", "a plan that keeps one (graph::traced)", "a plan without");
    poll();
    weights_.expect_unchanged();
    return traces_->take(size,
                         {reinterpret_cast<const std::uint32_t*>(trace_.mapped().data()), trace_.mapped().size() / 4});
  }
  /// Positions from `size` on were fed ahead and are no part of what is decoded: nothing is told of them.
  void forget_traces(std::uint32_t size) noexcept {
    if (traces_) traces_->forget(size);
  }

  /// Reads the stream behind the last layer as the last pass of prefill left it, from its token `first` on; the job
  /// must be done. @param into f32 [rows, hidden_size]  @error device_lost, out_of_memory
  void read_stream(std::uint32_t first, std::span<float> into) {
    weights_.expect_unchanged();
    gpu::transfer(device_, std::uint64_t{1} << 20)
        .download(arena_, table_->prefill.residual_offset + std::uint64_t{4} * first * table_->config->hidden_size,
                  std::as_writable_bytes(into));
  }
  /// f32 [max_tokens, vocab_size] of the last logits or probe job; the job must be done.
  std::span<const float> logits(bool hidden) const {
    const auto all = floats(hidden ? probe_output_ : logits_output_);
    return all.last(std::size_t{table_->logits.max_tokens} * table_->config->vocab_size);
  }
  /// f32 [layers + 1, max_tokens, hidden_size] of the last probe job.
  std::span<const float> hidden() const {
    return floats(probe_output_)
        .first(std::size_t{table_->config->num_hidden_layers + 1} * table_->logits.max_tokens *
               table_->config->hidden_size);
  }

 protected:
  /// Makes no memory yet. @param decode of the plan's table
  [[gnu::cold]] pass_runner(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan,
                            const plan::sequence& decode, executor_start start, weight_memory weights,
                            kernel_set kernels)
      : device_(on), plan_(std::move(plan)), table_(&plan_->table()), decode_(&decode), start_(std::move(start)),
        weights_(std::move(weights)), kernels_(std::move(kernels)), queue_(on) {}
  ~pass_runner() = default;
  pass_runner(const pass_runner&) = delete;
  pass_runner& operator=(const pass_runner&) = delete;

  /// While the start is not complete: does what a job that decodes, or is about to, at a position can do of it. What is
  /// in flight may be waited for.
  virtual void go_on_if_made(std::uint32_t position, bool greedy) = 0;
  /// The same before a job, which decode must be able to do.
  virtual void begin_decode(std::uint32_t position, bool greedy) = 0;

  /// A sequence with a timestamp behind every dispatch, in one command buffer.
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
    return const_cast<pass_runner*>(this)->timed(kind, greedy, is_long);
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
  pass_clock& clock_of(pass_kind kind) { return clocks_[static_cast<std::size_t>(kind)]; }
  const pass_clock& clock_of(pass_kind kind) const { return clocks_[static_cast<std::size_t>(kind)]; }
  bool wants_times(pass_kind kind, bool is_long, const recorded_sequence& of, std::uint32_t segments_left,
                   double budget_ms) const {
    return takes_times_ && !sample_.taken && segments_left >= of.size() &&
           clock_of(kind).is_due(of.speed, of.size(), budget_ms) && timed(kind, job_.greedy, is_long).plan != nullptr;
  }
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
  std::uint32_t drawn_word(std::uint32_t index) const {
    std::uint32_t out = 0;
    std::memcpy(&out, ring_.mapped().data() + std::size_t{4} * index, sizeof out);
    return out;
  }
  struct job {
    pass_kind kind = pass_kind::decode;
    std::size_t box = 0;
    std::uint32_t passes = 0, pass = 0, segment = 0;
    bool feed = false;
    std::uint32_t end = 0;   ///< position behind the first pass
    bool greedy = false;     ///< its last segments are the form that draws nothing
    bool several = false;    ///< its pass has several tokens
    bool penalised = false;  ///< its sampler reads the history
  };
  /// What one submission holds: the first `buffers` of buffers_.
  struct batch_of_commands {
    std::size_t buffers = 0;
    std::uint32_t segments = 0, passes = 0;
    job behind;  ///< the job when it was submitted
  };
  /// Segments of the job that fit into the budget, and at most `max_passes` whole passes.
  batch_of_commands collect(double budget_ms, std::uint32_t max_passes) {
    const recorded_sequence& of = sequence(job_.kind);  // of both forms: they have the same segments
    std::uint32_t left =
        (std::min)(of.speed.allowed(budget_ms), max_buffers - 1 - 2 * std::uint32_t{stage_ends::most_commands});
    batch_of_commands out{0, 0, 0, job_};
    job& at = out.behind;
    if (take_back_ != nullptr) buffers_[out.buffers++] = take_back_;
    if (job_.feed) buffers_[out.buffers++] = feeds_[job_.box].handle();
    at.feed = false;
    if (ends_ && job_.segment == 0) cross_in(out.buffers);
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
        if (ends_) cross_out(out.buffers);
      }
    }
    return out;
  }
  /// Adds the commands that copy the stream in or out.
  [[gnu::cold]] void cross_in(std::size_t& used) {
    used += ends_->before(job_.kind, job_.box, job_.penalised, buffers_.data() + used);
  }
  [[gnu::cold]] void cross_out(std::size_t& used) { used += ends_->behind(job_.kind, buffers_.data() + used); }
  /// Decode of a last stage: what the pass before drew goes into the first one.
  [[gnu::cold]] void ask_for_drawn() {
    drain_flights();
    const std::uint32_t token = drawn(job_.pass - 1);
    if (token < table_->config->vocab_size) return ends_->ask(job_.kind, next_position(), {&token, 1});
    drop();  // it drew none, which the caller will see
  }

  /// The job's pass ends behind this many tokens. @return a copy of the state to be made, or null
  VkCommandBuffer passed(std::uint32_t position) {
    return recurrent_.empty() ? nullptr : recurrent_.passed(position, job_.several);
  }
  recorded_sequence& sequence(pass_kind kind) { return sequences_[static_cast<std::size_t>(kind)]; }
  const recorded_sequence& sequence(pass_kind kind) const { return sequences_[static_cast<std::size_t>(kind)]; }

  std::span<std::uint32_t> box_words(std::size_t box) const {
    return mailbox_.words(box * box_bytes_, kernels::state::tokens + table_->max_tokens);
  }
  static std::span<const float> floats(const gpu::buffer& of) {
    const auto bytes = of.mapped();
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4};
  }

  [[gnu::cold]] void make_memory() {
    arena_ = gpu::buffer(device_, (std::max)(table_->arena_bytes(), std::uint64_t{4}), gpu::placement::device_local,
                         "the arena");
    state_ = gpu::buffer(device_, table_->state_bytes(), gpu::placement::device_local, "the session's state");
    ring_ =
        gpu::buffer(device_, kernels::ring_bytes(table_->ring_size), gpu::placement::readback, "the ring of tokens");
    box_bytes_ = (std::uint64_t{4} * (kernels::state::tokens + table_->max_tokens) + 255) / 256 * 256;
    mailbox_ = mailbox(device_, mailboxes * box_bytes_);
    caches_ =
        place_caches(device_, *table_, "the KV cache", [&](std::uint32_t layer) { return table_->cache_of(layer); });
    addresses_ = addresses_of(arena_, caches_, weights_);
    addresses_.state = state_.address();
    addresses_.ring = ring_.address();
    if (table_->kept_bytes() != 0) recurrent_ = recurrent_memory(device_, *table_);
    addresses_.kept = recurrent_.addresses();
    if (table_->trace.top != 0) {
      trace_ = gpu::buffer(device_, table_->trace.bytes(), gpu::placement::readback, "the trace");
      addresses_.trace = trace_.address();
      traces_.emplace(table_->trace);
    }
    write_arguments();
    for (std::size_t box = 0; box < mailboxes; ++box)
      feeds_[box] =
          mailbox_.feed(device_, model_name(*table_), box * box_bytes_, state_, 0, box_words(box).size_bytes());
  }
  /// Tokens in the KV cache before the next pass of a decode job.
  std::uint32_t next_position() const noexcept { return job_.end - 1 + job_.pass; }
  void write_arguments() {
    if (decode_->in_one.empty()) return;
    arguments_ = arguments_of(device_, *table_, *decode_, addresses_);
    addresses_.arguments = arguments_.address();
  }

  void clear() { clear_memory(device_, queue_, model_name(*table_), {&arena_, &state_, &ring_}, {&caches_}); }

  void retire(bool waited) {
    const auto [done, took_ms] = flights_.end_oldest(waited, clock::now());
    if (took_ms) {
      sequence(done.kind).speed.observe(done.segments, *took_ms);
      const double decode_ms = sequence(pass_kind::decode).speed.latest_ms() * sequence(pass_kind::decode).size();
      double& cost = verify_costs_[static_cast<std::size_t>(done.kind)];
      if (done.segments == sequence(done.kind).size() && decode_ms > 0)
        cost = cost > 0 ? 0.5 * (cost + *took_ms / decode_ms) : *took_ms / decode_ms;
    }
    if (traces_) traces_->completed(done.traced);
    if (sample_.taken && sample_.number == done.number) collect_times();
    weights_.expect_unchanged();
    if (done.job == counters_.jobs) completed_ = done.passes;
  }
  void drain_flights() {
    while (!flights_.empty()) wait();
  }
  void finish_until(std::uint64_t number) {
    while (!flights_.empty() && flights_.oldest().number <= number) wait();
  }

  gpu::device device_;
  std::shared_ptr<const plan::device_plan> plan_;
  const plan::table* table_;      ///< the plan's
  const plan::sequence* decode_;  ///< of the table
  executor_start start_;
  weight_memory weights_;
  kernel_set kernels_;
  gpu::buffer arena_, wide_arena_, state_, ring_, arguments_, trace_, logits_output_, probe_output_;
  std::optional<trace_ring> traces_;
  placed_items caches_;
  recurrent_memory recurrent_;
  VkCommandBuffer take_back_ = nullptr;  ///< what puts the job's first state into its place, until it is submitted
  address_table addresses_;
  mailbox mailbox_;
  std::uint64_t box_bytes_ = 0;
  std::array<gpu::recording, mailboxes> feeds_;
  std::array<recorded_sequence, pass_kinds> sequences_;
  std::array<recorded_sequence, pass_kinds> timed_;
  recorded_sequence timed_greedy_;  ///< of decode
  plan::sequence long_plan_;        ///< decode with its other form of the dispatch of all layers, where it has one
  recorded_sequence long_;
  std::array<recorded_sequence, 2> timed_long_;  ///< passes that draw and those that do not
  static constexpr std::uint32_t never = ~0u;
  std::uint32_t long_from_ = never;  ///< passes from this position on are of that form
  std::array<pass_clock, pass_kinds> clocks_{pass_clock(128, 3), pass_clock(16, 0)};  ///< of decode, of prefill
  std::array<double, pass_kinds> verify_costs_{};
  struct sample {
    bool taken = false;
    std::uint64_t number = 0;  ///< of the submission that it is in
    pass_kind kind = pass_kind::decode;
    bool greedy = false, is_long = false;
  };
  sample sample_;  ///< the timed pass under way
  std::vector<std::uint64_t> ticks_;
  bool takes_times_ = true;
  std::vector<VkCommandBuffer> buffers_;
  executor_counters counters_;
  job job_;
  std::array<std::uint64_t, mailboxes> box_used_{};
  std::unique_ptr<stage_ends> ends_;  ///< of a stage of a cut plan
  flights flights_;
  std::uint32_t completed_ = 0;
  std::uint32_t written_ = 0;  ///< positions below this were written since the first one was
  gpu::queue queue_;           // goes first, and waits: what is above may be in flight
};

}  // namespace intaglio::runtime
