// SPDX-License-Identifier: MIT
// Runs a plan's table for a single session: makes pipelines, memory and recordings, and proves the pipelines. Pipelines
// that are made later are proven and used between two passes. The code is not a template: it is the same for every
// model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/compile_ahead.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/late_start.hpp"

namespace intaglio::runtime {

/// Runs the passes of a single session (pass_runner) with proven pipelines. They are proven before the executor is
/// made; later pipelines between passes. Decode runs the resident dispatch where the device and the proof allow it.
/// Used by one thread.
class executor final : public late_start {
 public:
  /// @param table engraved, outlives the executor  @param weights loaded, or still being loaded by the caller's
  ///   transfers on this device
  /// @error argument_error: the plan cannot be proven for the class; device_error, out_of_memory, device_lost
  executor(const gpu::device& on, const plan::table& table, weight_memory weights, const plan::device_class& of,
           gpu::pipeline_cache* cache)
      : executor(on, plan_for(table, of), std::move(weights), kernel_set(on), cache) {}
  /// @param kernels may hold some of the pipelines already, made or begun
  /// @param soon leaves to complete() what takes longest to compile: the sampler's drawing form, where it has others,
  ///   and the resident dispatch; decode runs the chain until then
  executor(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan, weight_memory weights,
           kernel_set kernels, gpu::pipeline_cache* cache, bool soon = false)
      : late_start(on, plan,
                   runs_resident(*plan) && !begins_as_chain(*plan, soon) ? plan->table().resident_decode
                                                                         : plan->table().decode,
                   executor_start(begins_as_chain(*plan, soon) ? &plan->table().resident_decode : nullptr),
                   std::move(weights), std::move(kernels)) {
    gpu::translated([&] { create(cache, soon); });
  }
  /// Finishes the start, so that the next start finds its results in the cache.
  ~executor() {
    if (start_.is_complete() || !start_.has_note()) return;
    try {
      drain();
      written_ = 0;  // the content of the caches is no longer needed
      complete();
    } catch (...) {  // the next start reports it
    }
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// The plan that an executor runs on a device of a class.
  /// @param table engraved, outlives the result  @error argument_error: the plan cannot be proven for the class
  static std::shared_ptr<const plan::device_plan> plan_for(const plan::table& table, const plan::device_class& of,
                                                           std::vector<plan::product_shape> shapes = {}) {
    return std::make_shared<const plan::device_plan>(table, of, plan::device_plan_options{std::move(shapes)});
  }
  /// Sequences whose pipelines an executor makes first: all, or with `soon` the sequences of the first tokens.
  static std::vector<const plan::sequence*> begins_with(const plan::device_plan& plan, bool soon = false) {
    const plan::table& table = plan.table();
    std::vector<const plan::sequence*> out{&table.decode, &table.prefill};
    if (runs_resident(plan) && !begins_as_chain(plan, soon)) {
      out.front() = &table.resident_decode;
      if (held_against_chain(table, table.resident_decode)) out.push_back(&table.decode);
    }
    if (plan.long_decode() != nullptr) out.push_back(plan.long_decode());
    return out;
  }

  /// Sequences whose pipelines an executor makes later.
  static std::vector<const plan::sequence*> goes_on_with(const plan::device_plan& plan, bool soon) {
    if (!begins_as_chain(plan, soon)) return {};
    return {&plan.table().resident_decode};
  }

  /// Compares every pipeline of decode and prefill, as it is recorded, with the CPU reference, except the resident
  /// dispatch. It needs no executor.
  /// @param draws whether to prove the samplers that complete() would prove otherwise  @param soon as in begins_with()
  /// @param look as in runtime::prove_kernels
  /// @return the first pipeline that differs, or an empty kernel  @error device_lost, out_of_memory; as kernel_set::of
  [[gnu::cold]] static kernel_fault prove_kernels(const gpu::device& on, const plan::device_plan& plan,
                                                  const kernel_set& kernels, const weight_memory& weights,
                                                  bool draws = true, bool soon = false, const load_look& look = {}) {
    return gpu::translated([&] {
      const std::vector<const plan::sequence*> list = begins_with(plan, soon);
      kernel_fault fault = runtime::prove_kernels(on, plan.table(), kernels, weights, list, draws, look);
      weights.expect_unchanged();  // else a truncated file would look like a wrong kernel
      return fault;
    });
  }
  /// Compares the resident dispatch with prefill or, with coded weights, whose chunks may round differently, with the
  /// chain of decode. Call it before the first job.
  /// @param ahead compiles the resident dispatch meanwhile, or does nothing
  /// @param look is called before passes; after what it throws the executor may only be destroyed
  /// @return as prove_kernels
  kernel_fault prove_resident(compile_ahead&& ahead = {}, const load_look& look = {}) {
    return gpu::translated([&] {
      kernel_fault fault;
      ahead.wait();
      if (look) look();
      if (decode_->resident.empty()) return fault;
      takes_times_ = false;  // the proof covers the recordings without timestamps
      const bool agree = all_layers_agree();
      weights_.expect_unchanged();
      if (!agree)
        fault = {std::string(kernels::interface_of(decode_->resident.front().kernel).name),
                 std::string(decode_->resident.front().label.view()), 1};
      for (pass_clock& each : clocks_) each.reset();
      takes_times_ = true;
      return fault;
    });
  }
  /// Runs prove_kernels and prove_resident. @error as these functions
  kernel_fault prove() {
    kernel_fault fault = prove_kernels(device_, *plan_, kernels_, weights_);
    return fault.kernel.empty() ? prove_resident() : fault;
  }
  /// Handles a pass that drew no token: true if workgroups of the resident dispatch timed out. From then on decode runs
  /// the chain of dispatches. The job is dropped; the tokens of its earlier passes and their entries in the cache stay
  /// valid.
  /// @param prove compare the chain's pipelines with the CPU reference first, in memory of the proof
  /// @error device_error naming a kernel of the chain that differs: decode stays unchanged then, and draws nothing;
  ///   device_lost, out_of_memory
  bool leave_resident(bool prove = true) {
    return gpu::translated([&] {
      if (decode_->resident.empty()) return false;
      drain();
      std::uint32_t timed_out = 0;
      gpu::transfer(device_, std::uint64_t{1} << 16)
          .download(state_, table_->progress_offset() + 4 * kernels::layers::progress_timed_out,
                    std::as_writable_bytes(std::span(&timed_out, 1)));
      if (timed_out == 0) return false;
      complete();
      recorded_sequence chain = record_proven(std::array{&table_->decode}, prove, nullptr);
      decode_ = &table_->decode;
      long_from_ = never;
      long_ = {};
      timed_long_ = {};
      if (has_long(*decode_)) begin_long();
      record_long({true, !decode_->greedy.empty()});
      sequence(pass_kind::decode) = std::move(chain);
      record_timed(pass_kind::decode);
      if (ends_) ends_->record(pass_kind::decode, *decode_, arena_);
      completed_ = 0;
      return true;
    });
  }
  /// Recorded decode of another plan for the same device, whose products have other shapes. If the sampler has a greedy
  /// form, only that form is recorded.
  struct decode_form {
    std::shared_ptr<const plan::device_plan> plan;
    recorded_sequence recorded;
  };
  /// @param plan of the same engraved table and class  @error as kernel_set::add
  decode_form decode_with(std::shared_ptr<const plan::device_plan> plan, gpu::pipeline_cache* cache) {
    return gpu::translated([&] {
      const plan::sequence& of = decode_->resident.empty() ? plan->table().decode : plan->table().resident_decode;
      const plan::sequence* const list[] = {&of};
      kernels_.add(list, cache);
      const bool has_forms = !of.greedy.empty();
      recorded_sequence made =
          record_sequence(device_, *table_, of, kernels_, addresses_, nullptr, false, 0, {!has_forms, has_forms});
      counters_.recordings += made.size();
      return decode_form{std::move(plan), std::move(made)};
    });
  }
  /// Exchanges the decode recordings with the recordings of another form. Waits for passes that run, and drops the job.
  void exchange_decode(decode_form& with) {
    drain();
    std::swap(sequence(pass_kind::decode), with.recorded);
  }
  /// Moves the weights to another executor. This one may only be destroyed afterwards.
  weight_memory release_weights() {
    start_.forget_note();  // nothing is left to prove
    return std::move(weights_);
  }

  /// Makes this executor the runner of a stage of a cut plan: each pass takes or gives rows of the stream. Call it
  /// before the first job. It finishes the executor's start.
  void join(std::unique_ptr<stage_ends> ends) {
    gpu::translated([&] {
      complete();
      // Rows cross at one offset, whatever the position.
      if (long_from_ != never && ((decode_->takes_stream && long_plan_.stream_in_offset != decode_->stream_in_offset) ||
                                  (decode_->gives_stream && long_plan_.residual_offset != decode_->residual_offset)))
        long_from_ = never;
      ends->record(pass_kind::decode, *decode_, arena_);
      ends->record(pass_kind::prefill, table_->prefill, arena_);
      ends_ = std::move(ends);
    });
  }

  /// Records the sequence that gives logits of every token and, with `hidden`, all states between layers. Does nothing
  /// if it is recorded already.
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
      if (plan.has_head) copy.logits_bytes = std::uint64_t{4} * plan.max_tokens * table_->config->vocab_size;
      if (hidden) copy.state_bytes = std::uint64_t{4} * plan.max_tokens * table_->config->hidden_size;
      copy.logits_at = (table_->config->num_hidden_layers + 1) * copy.state_bytes;
      gpu::buffer output(device_, (std::max)(copy.logits_at + copy.logits_bytes, std::uint64_t{4}),
                         gpu::placement::readback, "logits on their way to the host");
      copy.to = &output;
      recorded_sequence made = record_sequence(device_, *table_, plan, kernels_, addresses, &copy);
      counters_.recordings += made.size();
      (hidden ? probe_output_ : logits_output_) = std::move(output);
      sequence(kind) = std::move(made);
      if (ends_) ends_->record(kind, plan, arena);
    });
  }

  /// Records the sequence over drafts. Does nothing if it is recorded already.
  /// @param prove compare its pipelines with the CPU reference
  /// @error device_error naming a kernel that differs; out_of_memory, device_lost
  void prepare_verify(bool prove, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      if (sequence(pass_kind::verify).plan != nullptr) return;
      drain();
      sequence(pass_kind::verify) = record_proven(plan_->all_of(&plan::table::verify), prove, cache);
      if (ends_)
        for (const pass_kind each : {pass_kind::verify, pass_kind::verify_short})
          ends_->record(each, table_->verify, arena_);
      if (table_->verify.max_tokens <= short_tokens) return;
      sequence(pass_kind::verify_short) =
          record_sequence(device_, *table_, plan_->over(&plan::table::verify, short_tokens), kernels_, addresses_);
      counters_.recordings += sequence(pass_kind::verify_short).size();
    });
  }

  /// Runs a pass over drafts for the first time, unless one has run or the context has no room for one at `position`.
  /// The first run is split into small submissions, since drivers may take long. Its tokens are dropped, and its
  /// entries in the caches are after the positions that are fed. @error device_lost, out_of_memory
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
  /// Runs one pass of a sequence that is recorded with a timestamp after every dispatch.
  /// @error argument_error: a kind that copies to the host, or one that is not recorded; device_error: the device has
  ///   no timestamps
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
      recurrent_.positions().lose();  // the state is one token further, or at another position
      drop();
      queue_.wait(box_used_[job_.box], gpu::queue::first_hang_limit);
      read_times(timed);
      return timed.dispatches;
    });
  }

 private:
  void create(gpu::pipeline_cache* cache, bool soon) {
    kernels_.add(begins_with(*plan_, soon), cache);
    kernels_.add(goes_on_with(*plan_, soon), cache);
    const bool has_forms = !decode_->greedy.empty();
    if (has_forms && soon) start_.leave_drawing();
    if (start_.is_complete()) kernels_.wait();
    const bool draws = !start_.draws_later();
    make_memory();
    sequence(pass_kind::decode) =
        record_sequence(device_, *table_, *decode_, kernels_, addresses_, nullptr, false, 0, {draws, has_forms});
    sequence(pass_kind::prefill) = record_sequence(device_, *table_, table_->prefill, kernels_, addresses_);
    counters_.recordings = mailboxes + sequence(pass_kind::decode).size() + sequence(pass_kind::prefill).size() +
                           (draws && has_forms ? 1 : 0);
    if (has_long(*decode_)) begin_long();
    record_long({draws, has_forms});
    record_timed(pass_kind::decode);
    record_timed(pass_kind::prefill);
    buffers_.resize(2 * max_buffers + 1);  // the state may be copied after each pass
    clear();
  }
};

}  // namespace intaglio::runtime
