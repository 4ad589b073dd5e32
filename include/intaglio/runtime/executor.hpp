// SPDX-License-Identifier: MIT
// Runs a plan's table: pipelines, arena, caches and state are made and every sequence is recorded once; after that only
// the mailbox is written and command buffers are submitted. Plain code over the table, the same for every model.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
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
#include "intaglio/runtime/clear_memory.hpp"
#include "intaglio/runtime/compile_ahead.hpp"
#include "intaglio/runtime/flights.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/mailbox.hpp"
#include "intaglio/runtime/pass_kind.hpp"
#include "intaglio/runtime/pass_times.hpp"
#include "intaglio/runtime/patience.hpp"
#include "intaglio/runtime/recorded_sequence.hpp"
#include "intaglio/runtime/sampling.hpp"
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

/// Whether decode of a device's plan runs with all layers in one dispatch.
inline bool runs_in_one(const plan::device_plan& plan) { return !plan.table().decode_in_one.in_one.empty(); }

/// One job at a time: a mailbox (position, tokens, sampling) and some passes of one sequence. Submissions of it may be
/// in flight while the host reads what earlier ones drew. Used by one thread.
class executor {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t max_in_flight = flights::most, mailboxes = 4;
  static constexpr std::uint32_t max_buffers = 1024;  ///< command buffers of one submission

  /// @param table engraved, outlives it  @param weights loaded, or still being loaded by the caller's transfers on this
  /// device
  /// @error argument_error: the plan cannot be proven for the class; device_error, out_of_memory, device_lost
  executor(const gpu::device& on, const plan::table& table, weight_memory weights, const plan::device_class& of,
           gpu::pipeline_cache* cache)
      : executor(on, plan_for(table, of), std::move(weights), kernel_set(on), cache) {}
  /// @param kernels may have some of its pipelines already, made or begun
  /// @param soon leaves to complete() what takes the longest to compile: the sampler's drawing form, where there are
  /// others, and the dispatch of all layers, in
  ///        whose place decode runs the chain until then
  executor(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan, weight_memory weights,
           kernel_set kernels, gpu::pipeline_cache* cache, bool soon = false)
      : device_(on), plan_(std::move(plan)), table_(&plan_->table()),
        decode_(runs_in_one(*plan_) && !begins_as_chain(*plan_, soon) ? &table_->decode_in_one : &table_->decode),
        in_one_later_(begins_as_chain(*plan_, soon) ? &table_->decode_in_one : nullptr), weights_(std::move(weights)),
        kernels_(std::move(kernels)), queue_(on) {
    gpu::translated([&] { create(cache, soon); });
  }
  /// Ends what is left to do, so that the next start finds it done.
  ~executor() {
    if (complete_ || note_in_ == nullptr) return;
    try {
      drain();
      written_ = 0;  // nobody needs what is in the caches any more
      complete();
    } catch (...) {  // the next start will see
    }
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// The plan that an executor runs on a device of a class.
  /// @param table engraved, outlives it  @error argument_error: it cannot be proven for the class
  static std::shared_ptr<const plan::device_plan> plan_for(const plan::table& table, const plan::device_class& of,
                                                           std::vector<plan::product_shape> shapes = {}) {
    return std::make_shared<const plan::device_plan>(table, of, plan::device_plan_options{std::move(shapes)});
  }
  /// Whose pipelines an executor begins with, all, or those that it needs for first tokens.
  static std::vector<const plan::sequence*> begins_with(const plan::device_plan& plan, bool soon = false) {
    const plan::table& table = plan.table();
    if (!runs_in_one(plan) || begins_as_chain(plan, soon)) return {&table.decode, &table.prefill};
    if (!held_against_chain(table.decode_in_one)) return {&table.decode_in_one, &table.prefill};
    return {&table.decode_in_one, &table.prefill, &table.decode};
  }

  /// And whose it needs later.
  static std::vector<const plan::sequence*> goes_on_with(const plan::device_plan& plan, bool soon) {
    if (!begins_as_chain(plan, soon)) return {};
    return {&plan.table().decode_in_one};
  }

  /// As it is recorded.
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

  /// Holds every pipeline of decode and prefill against the CPU reference, but the dispatch of all layers. Before there
  /// is an executor.
  /// @return the first that differs, or an empty kernel  @error device_lost, out_of_memory; as of kernel_set::of
  /// @param draws with the samplers that complete() proves else  @param soon as begins_with has it
  static kernel_fault prove_kernels(const gpu::device& on, const plan::device_plan& plan, const kernel_set& kernels,
                                    const weight_memory& weights, bool draws = true, bool soon = false) {
    return gpu::translated([&] {
      const std::vector<const plan::sequence*> list = begins_with(plan, soon);
      kernel_fault fault = runtime::prove_kernels(on, plan.table(), kernels, weights, list, draws);
      weights.expect_unchanged();  // or a file that was cut would look like a kernel that is wrong
      return fault;
    });
  }
  /// Holds a dispatch of all layers against prefill or, of coded weights, whose chunks may round in another way,
  /// against the chain of decode. Before the first job.
  /// @param ahead compiles the dispatch of all layers meanwhile, or nothing
  /// @return as prove_kernels
  kernel_fault prove_in_one(compile_ahead&& ahead = {}) {
    return gpu::translated([&] {
      kernel_fault fault;
      ahead.wait();
      if (decode_->in_one.empty()) return fault;
      takes_times_ = false;  // what is proven is the recordings that run else
      const bool agree = all_layers_agree();
      weights_.expect_unchanged();
      if (!agree)
        fault = {std::string(kernels::interface_of(decode_->in_one.front().kernel).name),
                 std::string(decode_->in_one.front().label.view()), 1};
      for (pass_clock& each : clocks_) each.reset();
      takes_times_ = true;
      return fault;
    });
  }
  /// What is left of the start of an executor that began soon: waits for the last pipelines, proves and records them.
  /// Decode jobs do that too, between two passes, as they are made; until then they run the chain and draw by the
  /// sampler's interim form. What is in flight is waited for; the job goes on.
  /// @error device_error: the sampler differs from the reference; out_of_memory, device_lost; the job is then dropped
  void complete() {
    if (complete_) return;
    gpu::translated([&] {
      drain_flights();
      kernels_.wait();
      go_on(pending() ? next_position() : written_, true, true);
    });
  }
  /// Whether every pass can be run at once.
  bool is_complete() const noexcept { return complete_; }
  /// What to note in the pipelines' cache when all is proven: at once, if nothing is left but what is compiled. @param
  /// in outlives the executor
  /// @param as_chain instead, where it turns out that the dispatch of all layers is wrong on this device
  void note_when_complete(gpu::pipeline_cache& in, std::string note, std::string as_chain = {}) {
    if (complete_) return in.set_note(std::move(note));
    note_ = std::move(note);
    note_as_chain_ = std::move(as_chain);
    note_in_ = &in;
    if (kernels_.ready()) complete();
  }
  /// Both proofs. @error as of both
  kernel_fault prove() {
    kernel_fault fault = prove_kernels(device_, *plan_, kernels_, weights_);
    return fault.kernel.empty() ? prove_in_one() : fault;
  }
  /// Where a pass drew no token: true if workgroups of the dispatch of all layers waited in vain for each other. From
  /// then on decode is the chain of dispatches; the job is dropped, and what its passes before that one drew and left
  /// in the cache stands.
  /// @param prove hold the chain's pipelines against the CPU reference first, in memory of the proof's own
  /// @error device_error naming a kernel of the chain that differs: decode is then left as it was, and draws nothing;
  /// device_lost, out_of_memory
  bool leave_in_one(bool prove = true) {
    return gpu::translated([&] {
      if (decode_->in_one.empty()) return false;
      drain();
      std::uint32_t gave_up = 0;
      gpu::transfer(device_, std::uint64_t{1} << 16)
          .download(state_, table_->progress_offset() + 4 * kernels::layers::progress_gave_up,
                    std::as_writable_bytes(std::span(&gave_up, 1)));
      if (gave_up == 0) return false;
      complete();
      recorded_sequence chain = record_proven(std::array{&table_->decode}, prove, nullptr);
      decode_ = &table_->decode;
      long_from_ = never;
      long_ = {};
      timed_long_ = {};
      sequence(pass_kind::decode) = std::move(chain);
      record_timed(pass_kind::decode);
      completed_ = 0;
      return true;
    });
  }
  const kernel_set& kernels() const noexcept { return kernels_; }
  /// Decode of another plan for the same device, whose products have other shapes, recorded. Of a sampler with a greedy
  /// form only that.
  struct decode_form {
    std::shared_ptr<const plan::device_plan> plan;
    recorded_sequence recorded;
  };
  /// @param plan of the same engraved table and class  @error as of kernel_set::add
  decode_form decode_with(std::shared_ptr<const plan::device_plan> plan, gpu::pipeline_cache* cache) {
    return gpu::translated([&] {
      const plan::sequence& of = decode_->in_one.empty() ? plan->table().decode : plan->table().decode_in_one;
      const plan::sequence* const list[] = {&of};
      kernels_.add(list, cache);
      const bool has_forms = !of.greedy.empty();
      recorded_sequence made =
          record_sequence(device_, *table_, of, kernels_, addresses_, nullptr, false, 0, {!has_forms, has_forms});
      counters_.recordings += made.size();
      return decode_form{std::move(plan), std::move(made)};
    });
  }
  /// Decode runs in that form from here on, and what it ran in before is there instead. What is in flight is waited
  /// for, and the job dropped.
  void exchange_decode(decode_form& with) {
    drain();
    std::swap(sequence(pass_kind::decode), with.recorded);
  }
  /// Gives up the weights, for another executor; this one may then only be destroyed.
  weight_memory release_weights() {
    note_in_ = nullptr;  // nothing is left to prove
    return std::move(weights_);
  }

  /// Records the sequence that gives logits of every token, and with `hidden` all states between layers. Does nothing
  /// where it is there.
  void prepare_logits(bool hidden, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      const pass_kind kind = hidden ? pass_kind::probe : pass_kind::logits;
      if (sequence(kind).plan != nullptr) return;
      const plan::sequence& plan = table_->logits;
      const plan::sequence* const list[] = {&plan};
      kernels_.add(list, cache);
      if (plan.arena_bytes > arena_.size_bytes() && !wide_arena_)
        wide_arena_ = gpu::buffer(device_, plan.arena_bytes, gpu::placement::device_local, "the arena of logits");
      const gpu::buffer& arena = wide_arena_ ? wide_arena_ : arena_;
      address_table addresses = addresses_;
      addresses.arena = arena.address();
      probe copy;
      copy.arena = &arena;
      copy.logits_bytes = std::uint64_t{4} * plan.max_tokens * table_->config->vocab_size;
      if (hidden) copy.state_bytes = std::uint64_t{4} * plan.max_tokens * table_->config->hidden_size;
      copy.logits_at = (table_->config->num_hidden_layers + 1) * copy.state_bytes;
      gpu::buffer output(device_, copy.logits_at + copy.logits_bytes, gpu::placement::readback,
                         "logits on their way to the host");
      copy.to = &output;
      recorded_sequence made = record_sequence(device_, *table_, plan, kernels_, addresses, &copy);
      counters_.recordings += made.size();
      (hidden ? probe_output_ : logits_output_) = std::move(output);
      sequence(kind) = std::move(made);
    });
  }

  /// Records the sequence over drafts. Does nothing where it is there.
  /// @param prove hold its pipelines against the CPU reference
  /// @error device_error naming a kernel that differs; out_of_memory, device_lost
  void prepare_verify(bool prove, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      if (sequence(pass_kind::verify).plan != nullptr) return;
      drain();
      sequence(pass_kind::verify) = record_proven(plan_->all_of(&plan::table::verify), prove, cache);
      if (table_->verify.max_tokens <= few_tokens) return;
      sequence(pass_kind::verify_few) =
          record_sequence(device_, *table_, plan_->over(&plan::table::verify, few_tokens), kernels_, addresses_);
      counters_.recordings += sequence(pass_kind::verify_few).size();
    });
  }

  /// The first run of a pass over drafts, where there was none yet and the context has room for one at `position`: it
  /// comes in small submissions, and drivers may take long. Nobody takes what it draws, and what it leaves in the
  /// caches lies behind what is fed. @error device_lost, out_of_memory
  /// @param tokens of the pass
  void warm_verify(std::uint32_t position, std::uint32_t tokens, const sampling_options& sampling, double budget_ms) {
    const pass_kind kind = verify_kind(tokens);
    if (sequence(kind).speed.segment_ms() > 0 || position + tokens > table_->context) return;
    begin(kind, position, std::vector<std::uint32_t>(tokens), sampling, 1);
    while (pending()) {
      submit(budget_ms, 1);
      wait();
    }
    verify_costs_[static_cast<std::size_t>(kind)] = 0;
  }
  /// Time of a pass over drafts in decode passes, as measured of both at about the same time, since devices need a
  /// while to reach their clocks; 0: not yet.
  double verify_cost(pass_kind kind) const { return verify_costs_[static_cast<std::size_t>(kind)]; }
  static constexpr std::uint32_t few_tokens = plan::device_plan::few_drafts;
  /// Of a pass over so many tokens, all but the first drafts.
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
    if (kind == pass_kind::decode) begin_decode(position, greedy);
    const std::size_t box = static_cast<std::size_t>(counters_.jobs % mailboxes);
    if (box_used_[box] != 0) finish_until(box_used_[box]);
    const std::span<std::uint32_t> words = box_words(box);
    std::fill(words.begin(), words.end(), 0u);
    words[kernels::state::position] = position;
    words[kernels::state::count] = static_cast<std::uint32_t>(tokens.size());
    write_sampling(sampling, words);
    std::copy(tokens.begin(), tokens.end(), words.begin() + kernels::state::tokens);
    job_ = {kind, box, passes, 0, 0, true, position + static_cast<std::uint32_t>(tokens.size()), greedy};
    counters_.jobs += 1;
    completed_ = 0;
  }

  /// How many of the first `position` positions a pass behind them finds in the caches: all, or none where the ring of
  /// a layer with a window was written too far past them, be it by passes that ran ahead.
  std::uint32_t kept(std::uint32_t position) const {
    for (std::uint8_t kind = 0; kind < table_->pattern.kinds(); ++kind)
      if (!table_->caches[kind].holds(position, written_)) return 0;
    return position;
  }

  /// For whoever saves and restores what passes left in memory, when nothing is in flight: the KV cache, keys and
  /// values of each layer in turn; the state; and up to which position both were written.
  const placed_items& caches() const noexcept { return caches_; }
  const gpu::buffer& state() const noexcept { return state_; }
  const weight_memory& weights() const noexcept { return weights_; }
  std::uint32_t written() const noexcept { return written_; }
  void restored(std::uint32_t written) noexcept { written_ = written; }

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
    if (!complete_ && job_.kind == pass_kind::decode && !job_.feed) go_on_if_made(next_position(), job_.greedy);
    const batch_of_commands next = collect(budget_ms, max_passes);
    std::uint64_t number = 0;
    try {
      number = queue_.submit({buffers_.data(), next.buffers}, sequence(job_.kind).segments[job_.segment].name());
    } catch (...) {
      sample_ = {};
      drop();
      throw;
    }
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
                                                      of.layers, {!job_.greedy, job_.greedy, draws_by_});
      if (traces_ && job_.kind == pass_kind::decode) traces_->overwritten(job_.end - 1 + job_.pass);
      counters_.recordings += fresh.size();
      std::size_t used = 0;
      if (job_.feed) buffers_[used++] = feeds_[job_.box].handle();
      for (const VkCommandBuffer each : fresh.handles) buffers_[used++] = each;
      if (job_.greedy) buffers_[used - 1] = fresh.greedy.handle();
      try {
        box_used_[job_.box] = queue_.submit({buffers_.data(), used}, fresh.segments.front().name());
        counters_.submits += 1;
        queue_.wait(box_used_[job_.box], patience(sequence(job_.kind).speed));
        weights_.expect_unchanged();
      } catch (...) {
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
  /// @error device_lost: also where it does not end within the queue's patience
  void wait() {
    poll();
    if (flights_.empty()) return;
    queue_.wait(flights_.oldest().number, patience(sequence(flights_.oldest().kind).speed));
    retire(true);
  }
  /// Waits for all that is in flight and drops what is not submitted.
  void drain() {
    drop();
    drain_flights();
  }
  /// Forgets the job; what is in flight goes on.
  void drop() noexcept { job_.pass = job_.passes = 0; }

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

  /// Runs one pass of a sequence with a timestamp after every dispatch, recorded for the purpose.
  /// @error argument_error: a kind that copies to the host, or one that is not recorded; device_error: the device has
  /// no timestamps
  std::vector<dispatch_time> measure(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens) {
    if (kind == pass_kind::logits || kind == pass_kind::probe || sequence(kind).plan == nullptr)
      throw argument_error("kind of the timed pass", "decode, prefill or a prepared verify",
                           "one with a copy to the host, or not prepared");
    return gpu::translated([&] {
      drain();
      complete();
      const bool is_long = this->is_long(kind, position);
      auto& timed = this->timed(kind, false, is_long);
      if (timed.plan == nullptr) timed = timed_sequence(kind, false, is_long);
      begin(kind, position, tokens, {}, 1);
      if (traces_ && kind == pass_kind::decode) traces_->overwritten(position);
      std::vector<VkCommandBuffer> all{feeds_[job_.box].handle()};
      all.insert(all.end(), timed.handles.begin(), timed.handles.end());
      box_used_[job_.box] = queue_.submit(all, "timed pass");
      drop();
      queue_.wait(box_used_[job_.box], gpu::queue::first_patience);
      read_times(timed);
      return timed.dispatches;
    });
  }

 private:
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
    return const_cast<executor*>(this)->timed(kind, greedy, is_long);
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
      if (kind != pass_kind::decode || !draws_later_) record(false, is_long);
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
  /// A sequence that was not there when the executor was made. @error device_error naming a kernel that differs from
  /// the reference
  /// @param list it, and those of it for fewer rows
  recorded_sequence record_proven(std::span<const plan::sequence* const> list, bool prove, gpu::pipeline_cache* cache) {
    kernels_.add(list, cache);
    if (prove)
      for (const plan::sequence* each : list)
        if (const kernel_fault fault = kernel_proof(device_, *table_, kernels_, weights_).check(*each);
            !fault.kernel.empty())
          refuse(device_, fault);
    const plan::sequence& plan = *list.front();
    recorded_sequence made =
        record_sequence(device_, *table_, plan, kernels_, addresses_, nullptr, false, 0, {true, !plan.greedy.empty()});
    counters_.recordings += made.size() + (made.greedy.handle() != nullptr ? 1 : 0);
    return made;
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
    std::uint32_t end = 0;  ///< position behind the first pass
    bool greedy = false;    ///< its last segments are the form that draws nothing
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
    std::uint32_t left = (std::min)(of.speed.allowed(budget_ms), max_buffers - 1);
    batch_of_commands out{0, 0, 0, job_};
    job& at = out.behind;
    if (job_.feed) buffers_[out.buffers++] = feeds_[job_.box].handle();
    at.feed = false;
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
        at.segment = 0;
        ++at.pass;
        ++out.passes;
      }
    }
    return out;
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

  void create(gpu::pipeline_cache* cache, bool soon) {
    kernels_.add(begins_with(*plan_, soon), cache);
    kernels_.add(goes_on_with(*plan_, soon), cache);
    const bool has_forms = !decode_->greedy.empty();
    draws_later_ = has_forms && soon;
    complete_ = in_one_later_ == nullptr && !draws_later_;
    if (complete_) kernels_.wait();
    const bool draws = !draws_later_;
    const decoder_config& config = *table_->config;
    arena_ = gpu::buffer(device_, (std::max)(table_->arena_bytes(), std::uint64_t{4}), gpu::placement::device_local,
                         "the arena");
    state_ = gpu::buffer(device_, table_->state_bytes(), gpu::placement::device_local, "the session's state");
    ring_ =
        gpu::buffer(device_, kernels::ring_bytes(table_->ring_size), gpu::placement::readback, "the ring of tokens");
    box_bytes_ = (std::uint64_t{4} * (kernels::state::tokens + table_->max_tokens) + 255) / 256 * 256;
    mailbox_ = mailbox(device_, mailboxes * box_bytes_);
    std::vector<std::uint64_t> sizes;
    for (std::uint32_t layer = 0; layer < config.num_hidden_layers; ++layer)
      sizes.insert(sizes.end(), {table_->cache_of(layer).key_bytes, table_->cache_of(layer).value_bytes});
    caches_ = place_items(device_, sizes, gpu::placement::device_local, "the KV cache");

    if (table_->trace.top != 0) {
      trace_ = gpu::buffer(device_, table_->trace.bytes(), gpu::placement::readback, "the trace");
      addresses_.trace = trace_.address();
      traces_.emplace(table_->trace);
    }

    addresses_.arena = arena_.address();
    addresses_.arena_memory = &arena_;
    addresses_.state = state_.address();
    addresses_.ring = ring_.address();
    for (std::uint32_t layer = 0; layer < config.num_hidden_layers; ++layer) {
      addresses_.keys.push_back(caches_.items[2 * layer].address);
      addresses_.values.push_back(caches_.items[2 * layer + 1].address);
    }
    addresses_.first_weight = weights_.first;
    for (const auto& item : weights_.placed.items) addresses_.weights.push_back(item.address);

    write_arguments();

    for (std::size_t box = 0; box < mailboxes; ++box)
      feeds_[box] =
          mailbox_.feed(device_, model_name(*table_), box * box_bytes_, state_, 0, box_words(box).size_bytes());
    sequence(pass_kind::decode) =
        record_sequence(device_, *table_, *decode_, kernels_, addresses_, nullptr, false, 0, {draws, has_forms});
    sequence(pass_kind::prefill) = record_sequence(device_, *table_, table_->prefill, kernels_, addresses_);
    counters_.recordings = mailboxes + sequence(pass_kind::decode).size() + sequence(pass_kind::prefill).size() +
                           (draws && has_forms ? 1 : 0);
    if (has_long(*decode_)) begin_long();
    record_long({draws, has_forms});
    record_timed(pass_kind::decode);
    record_timed(pass_kind::prefill);
    buffers_.resize(max_buffers);
    clear();
  }

  /// Whether decode begins as the chain of dispatches. Not where passes leave traces: what is proven between them would
  /// too.
  static bool begins_as_chain(const plan::device_plan& plan, bool soon) {
    return soon && runs_in_one(plan) && plan.table().trace.top == 0;
  }
  /// Tokens in the KV cache before the next pass of a decode job.
  std::uint32_t next_position() const noexcept { return job_.end - 1 + job_.pass; }
  /// Does what a job that decodes, or is about to, at a position can do of what is left of the start. What is in flight
  /// may be waited for.
  void go_on_if_made(std::uint32_t position, bool greedy) {
    const auto made = [&](const auto&... parts) {
      return (!pending() || job_.segment == 0) && may_prove_behind(position) && (kernels_.made(parts) && ...);
    };
    const bool takes =
        in_one_later_ != nullptr && made(in_one_later_->prologue, in_one_later_->in_one, in_one_later_->epilogue);
    const bool lengthens = long_later_ && made(decode_->in_one_long);
    const bool draws = draws_later_ && !greedy && draws_by_ == kernels::sample_form::interim && kernels_.ready();
    if (!takes && !lengthens && !draws) return;
    gpu::translated([&] {
      drain_flights();
      go_on(position, takes || lengthens, draws);
    });
  }
  /// Sees to it that decode can draw. What is in flight may be waited for.
  void begin_decode(std::uint32_t position, bool greedy) {
    if (complete_) return;
    drop();
    go_on_if_made(position, greedy);
    if (greedy || !draws_later_ || draws_by_ == kernels::sample_form::interim) return;
    gpu::translated([&] {
      drain_flights();
      record_decode(kernels::sample_form::interim);
    });
  }
  /// Decode with both of its last segments, or the greedy one alone. Nothing is in flight.
  void record_decode(kernels::sample_form draws_by, bool draws = true) {
    const sampler_forms forms{draws, !decode_->greedy.empty(), draws_by};
    recorded_sequence made =
        record_sequence(device_, *table_, *decode_, kernels_, addresses_, nullptr, false, 0, forms);
    counters_.recordings += made.size() + (forms.drawing && forms.greedy ? 1 : 0);
    made.speed = sequence(pass_kind::decode).speed;
    record_long(forms);
    sequence(pass_kind::decode) = std::move(made);
    draws_by_ = draws_by;
  }
  /// Whether there is another form for long contexts.
  static bool has_long(const plan::sequence& decode) { return !decode.in_one_long.empty(); }
  void begin_long() {
    long_plan_ = *decode_;
    long_plan_.in_one = decode_->in_one_long;
    long_from_ = decode_->long_from;
  }
  /// Whether there is room for the proof of all layers in one dispatch behind what was written, so that a pass at a
  /// position still finds all that it needs.
  bool may_prove_behind(std::uint32_t position) const {
    const std::uint32_t end = (std::max)(written_, position) + proven_tokens;
    for (std::uint8_t kind = 0; kind < table_->pattern.kinds(); ++kind)
      if (!table_->caches[kind].holds(position, end)) return false;
    return end <= table_->context;
  }
  /// What a sequence has to show that another one has not: of samplers with several forms the drawing form, or all
  /// else.
  std::vector<kernel_proof::claim> claims_beside(const plan::sequence& of, const plan::sequence& other,
                                                 bool draws) const {
    std::vector<const gpu::pipeline*> there;
    const auto each_of = [&](const plan::sequence& some, auto&& takes) {
      for (const kernel_proof::claim& each : kernel_proof::claims_of(some))
        if (each.may_wait == draws) takes(each, &kernels_.of(*each.call));
    };
    std::vector<kernel_proof::claim> out;
    each_of(other, [&](const auto&, const gpu::pipeline* its) { there.push_back(its); });
    each_of(of, [&](const kernel_proof::claim& each, const gpu::pipeline* its) {
      if (std::find(there.begin(), there.end(), its) == there.end()) out.push_back(each);
    });
    return out;
  }
  /// Does what is left of the start. Nothing is in flight.
  /// @param position of the next pass  @param takes whether all layers in one dispatch are made, or their form for long
  /// contexts  @param draws whether the sampler's drawing form is
  void go_on(std::uint32_t position, bool takes, bool draws) {
    const bool between_passes = !pending() || job_.segment == 0;
    const job interrupted = std::exchange(job_, {});
    kernel_proof proof(device_, *table_, kernels_, weights_);
    if (draws && draws_later_) {
      auto claims = claims_beside(*decode_, {}, true);
      if (in_one_later_ != nullptr)
        for (const kernel_proof::claim& each : claims_beside(*in_one_later_, *decode_, true)) claims.push_back(each);
      for (const kernel_proof::claim& each : claims)
        if (const kernel_fault fault = proof.check(each); !fault.kernel.empty()) refuse(device_, fault);
      weights_.expect_unchanged();
      draws_later_ = false;
      draws_by_ = kernels::sample_form::any;
    }
    if (takes && (in_one_later_ != nullptr || long_later_)) {
      const plan::sequence& in_one = in_one_later_ != nullptr ? *in_one_later_ : *decode_;
      const bool long_too = has_long(in_one) && kernels_.made(in_one.in_one_long);
      in_one_later_ = nullptr;
      long_later_ = false;
      if (!between_passes || !may_prove_behind(position))
        note_in_ = nullptr;  // decode stays as it is, and the next start sees to it
      else if (!take_in_one(in_one, long_too, proof, position)) note_ = note_as_chain_;
      else long_later_ = has_long(in_one) && !long_too;
    }
    complete_ = in_one_later_ == nullptr && !draws_later_ && !long_later_;
    record_decode(draws_by_, !draws_later_ || draws_by_ == kernels::sample_form::interim);
    record_timed(pass_kind::decode);
    job_ = interrupted;
    if (!complete_ || note_in_ == nullptr) return;
    note_in_->set_note(note_);
    note_in_->store();
  }
  /// Proves all layers in one dispatch behind what sessions have written and a position, and puts them into the chain's
  /// place. Nothing is in flight, and there is no job.
  /// @param long_too with their form for long contexts
  /// @return whether they are right; else decode is the chain  @error device_lost, out_of_memory
  bool take_in_one(const plan::sequence& in_one, bool long_too, kernel_proof& proof, std::uint32_t position) {
    for (const kernel_proof::claim& each : claims_beside(in_one, table_->decode, false))
      if (!proof.check(each).kernel.empty()) return false;
    const auto record = [&](const plan::sequence& as) {
      const bool has_forms = !as.greedy.empty();
      decode_ = &as;
      sequence(pass_kind::decode) =
          record_sequence(device_, *table_, as, kernels_, addresses_, nullptr, false, 0, {!has_forms, has_forms});
      long_from_ = never;
      long_ = {};
    };
    const auto agrees = [&] {
      decode_ = &in_one;
      write_arguments();
      record(in_one);
      if (long_too) begin_long();
      record_long({in_one.greedy.empty(), !in_one.greedy.empty()});
      const bool agree = all_layers_agree_behind((std::max)(written_, position));
      weights_.expect_unchanged();
      return agree;
    };
    try {
      if (agrees()) return true;
    } catch (...) {
      note_in_ = nullptr;
      record(table_->decode);
      throw;
    }
    record(table_->decode);
    return false;
  }
  /// The form for long contexts, where there is one.
  void record_long(sampler_forms forms) {
    if (long_from_ == never) return;
    long_ = record_sequence(device_, *table_, long_plan_, kernels_, addresses_, nullptr, false, 0, forms);
    counters_.recordings += long_.size() + (forms.drawing && forms.greedy ? 1 : 0);
  }

  void write_arguments() {
    if (decode_->in_one.empty()) return;
    arguments_ = arguments_of(device_, *table_, *decode_, addresses_);
    addresses_.arguments = arguments_.address();
  }

  static bool held_against_chain(const plan::sequence& decode) {
    return !decode.in_one.empty() && decode.in_one.front().kernel == kernels::kernel::layers_coded;
  }
  static constexpr std::uint32_t proven_tokens = 3;
  /// all_layers_agree() where sessions have their memory: what passes leave in it is put back, but for the caches
  /// behind what was written.
  bool all_layers_agree_behind(std::uint32_t position) {
    gpu::transfer transfer(device_, std::uint64_t{1} << 16);
    std::vector<std::byte> state(state_.size_bytes()), ring(ring_.mapped().begin(), ring_.mapped().end()),
        boxes(mailbox_.mapped().begin(), mailbox_.mapped().end());
    transfer.download(state_, 0, state);
    const executor_counters counters = counters_;
    const std::uint32_t completed = completed_;
    const pace prompts = sequence(pass_kind::prefill).speed;
    const auto clocks = clocks_;
    const bool takes_times = std::exchange(takes_times_, false);  // what is proven is the recordings that run else
    const bool agrees = all_layers_agree(position);
    takes_times_ = takes_times;
    clocks_ = clocks;
    sequence(pass_kind::prefill).speed = prompts;
    verify_costs_ = {};  // in passes of decode
    completed_ = completed;
    counters_ = counters;
    std::copy(boxes.begin(), boxes.end(), mailbox_.mapped().begin());
    std::copy(ring.begin(), ring.end(), ring_.mapped().begin());
    transfer.upload(state_, 0, state);
    transfer.finish();
    return agrees;
  }
  /// The same tokens as a prompt or by the chain, and one by one: the stream behind the last layer and the last layer's
  /// cache must have the same bits.
  /// @param behind that position; absent: there is no session yet, and all is cleared
  bool all_layers_agree(std::optional<std::uint32_t> behind = {}) {
    const std::uint32_t vocabulary = table_->config->vocab_size,
                        count = (std::min)({proven_tokens, table_->prefill.max_tokens, table_->context}),
                        first = behind.value_or(0);
    const std::array<std::uint32_t, proven_tokens> ids{vocabulary - 1, vocabulary / 3, vocabulary / 2},
        others{vocabulary / 2, vocabulary - 1, vocabulary / 3};
    const std::size_t width = std::size_t{4} * table_->config->hidden_size;
    const auto state_of = [&](std::uint64_t stream) {
      gpu::transfer transfer(device_, std::uint64_t{1} << 20);
      std::vector<std::byte> out(width);
      transfer.download(arena_, stream, out);
      for (const auto& item : std::span(caches_.items).last(2)) {
        std::vector<std::byte> cache(item.bytes);
        transfer.download(caches_.buffers[item.buffer], item.offset, cache);
        out.insert(out.end(), cache.begin(), cache.end());
      }
      return out;
    };
    const auto feed = [&](pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens) {
      begin(kind, position, tokens, {}, 1);
      while (pending()) {
        if (!may_submit()) wait();
        submit(HUGE_VAL, 1);
      }
      drain();
      sequence(kind).speed = {};  // a driver that compiles on first use would have made it slow
    };
    const auto one_by_one = [&] {
      for (std::uint32_t i = 0; i < count; ++i) feed(pass_kind::decode, first + i, std::span(ids).subspan(i, 1));
    };
    std::vector<std::byte> expected;
    if (held_against_chain(*decode_)) {
      const bool has_forms = !table_->decode.greedy.empty();
      recorded_sequence other = record_sequence(device_, *table_, table_->decode, kernels_, addresses_, nullptr, false,
                                                0, {!has_forms, has_forms});
      const plan::sequence* in_one = std::exchange(decode_, &table_->decode);
      std::swap(sequence(pass_kind::decode), other);
      one_by_one();
      expected = state_of(decode_->residual_offset);
      std::swap(sequence(pass_kind::decode), other);
      decode_ = in_one;
    } else {
      feed(pass_kind::prefill, first, std::span(ids).first(count));
      expected = state_of(table_->prefill.residual_offset + (count - 1) * width);
    }
    const auto agrees = [&] {
      if (behind)
        feed(pass_kind::prefill, first,
             std::span(others).first(count));  // what is there may not pass for what is held against it
      else clear();
      one_by_one();
      return state_of(decode_->residual_offset) == expected;
    };
    bool same = agrees();
    if (long_from_ != never) {  // the other form as well, from the first position on
      const std::uint32_t from = std::exchange(long_from_, 0);
      same = agrees() && same;
      long_from_ = from;
    }
    if (!behind) clear();
    return same;
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
  const plan::table* table_;            ///< the plan's
  const plan::sequence* decode_;        ///< of the table
  const plan::sequence* in_one_later_;  ///< what complete() puts in its place, if anything
  weight_memory weights_;
  kernel_set kernels_;
  gpu::buffer arena_, wide_arena_, state_, ring_, arguments_, trace_, logits_output_, probe_output_;
  std::optional<trace_ring> traces_;
  placed_items caches_;
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
  bool complete_ = true;  ///< decode is recorded as it stays
  bool draws_later_ = false,
       long_later_ = false;  ///< complete() sees to the sampler's drawing form, to decode's form for long contexts
  kernels::sample_form draws_by_ = kernels::sample_form::any;  ///< what is recorded of them, if anything
  gpu::pipeline_cache* note_in_ = nullptr;
  std::string note_, note_as_chain_;
  job job_;
  std::array<std::uint64_t, mailboxes> box_used_{};
  flights flights_;
  std::uint32_t completed_ = 0;
  std::uint32_t written_ = 0;  ///< positions below this were written since the first one was
  gpu::queue queue_;           // goes first, and waits: what is above may be in flight
};

}  // namespace intaglio::runtime
