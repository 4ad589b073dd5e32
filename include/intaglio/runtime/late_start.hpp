// SPDX-License-Identifier: MIT
// What an executor makes late: the rest of its start, which is proven and recorded between two passes, and sequences
// that are made when they are first needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/resident_prover.hpp"

namespace intaglio::runtime {

/// Whether decode of a device's plan runs the resident dispatch.
inline bool runs_resident(const plan::device_plan& plan) { return !plan.table().resident_decode.resident.empty(); }

/// Passes of a single session while some of their pipelines are still being made.
class late_start : public resident_prover {
 public:
  /// Finishes the start of an executor that began before all pipelines were made: waits for the last pipelines, proves
  /// and records them. Decode jobs do that too, between two passes, once the pipelines are made; until then they run
  /// the chain and draw by the sampler's interim form. Waits for passes on the device; the job continues.
  /// @error device_error: the sampler differs from the reference; out_of_memory, device_lost; the job is dropped then
  void complete() {
    if (start_.is_complete()) return;
    gpu::translated([&] {
      drain_flights();
      kernels_.wait();
      go_on(pending() ? next_position() : written_, {true, true});
    });
  }
  /// Whether every kind of pass can run at once.
  bool is_complete() const noexcept { return start_.is_complete(); }
  /// Sets the note that is written to the pipeline cache when all is proven; at once, if only compiled pipelines are
  /// left.
  /// @param in outlives the executor
  /// @param as_chain the note if the resident dispatch turns out to be wrong on this device
  void note_when_complete(gpu::pipeline_cache& in, std::string note, std::string as_chain = {}) {
    if (start_.is_complete()) return in.set_note(std::move(note));
    start_.note_when_complete(in, std::move(note), std::move(as_chain));
    if (kernels_.ready()) complete();
  }

  /// Number of tokens in a chunk of a long prompt; 0: only ordinary chunks are available. The first call makes the
  /// pipelines, recordings and an arena for it; without memory for them prompts are fed in ordinary chunks.
  /// @param left tokens that are still to be fed  @param prove compare its pipelines with the CPU reference
  /// @error device_lost, out_of_memory
  std::uint32_t long_chunk(std::uint32_t left, bool prove, gpu::pipeline_cache* cache) {
    const plan::sequence* const plan = ends_ ? nullptr : plan_->long_prefill();
    if (plan == nullptr || left < plan->max_tokens || no_long_chunks_) return 0;
    if (sequence(pass_kind::prefill_long).plan == nullptr)
      gpu::translated([&] { prepare_long_prefill(*plan, prove, cache); });
    return no_long_chunks_ ? 0 : plan->max_tokens;
  }

 protected:
  late_start(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan, const plan::sequence& decode,
             executor_start start, weight_memory weights, kernel_set kernels)
      : resident_prover(on, std::move(plan), decode, std::move(start), std::move(weights), std::move(kernels)) {}
  ~late_start() = default;

  /// Whether decode begins as the chain of dispatches. It does not where passes leave traces, since proofs between the
  /// passes would leave traces too.
  static bool begins_as_chain(const plan::device_plan& plan, bool soon) {
    return soon && runs_resident(plan) && plan.table().trace.top == 0;
  }

  /// Does the parts of the remaining start that a decode job at a position can do. May wait for passes on the device.
  void go_on_if_made(std::uint32_t position, bool greedy) override {
    const executor_start::step step =
        start_.next(*decode_, (!pending() || job_.segment == 0) && may_prove_after(position), greedy, kernels_.ready(),
                    [&](array_view<const plan::dispatch> part) { return kernels_.made(part); });
    if (!step) return;
    gpu::translated([&] {
      drain_flights();
      go_on(position, step);
    });
  }
  /// Makes decode ready to draw. May wait for passes on the device.
  void begin_decode(std::uint32_t position, bool greedy) override {
    if (start_.is_complete()) return;
    drop();
    go_on_if_made(position, greedy);
    if (greedy || start_.can_draw()) return;
    gpu::translated([&] {
      drain_flights();
      record_decode(kernels::sample_form::interim);
    });
  }

  /// Whether there is another form for long contexts.
  bool has_long(const plan::sequence& decode) const {
    return !decode.resident_long.empty() || plan_->long_decode() != nullptr;
  }
  void begin_long() {
    if (decode_->resident_long.empty()) {
      long_plan_ = *plan_->long_decode();
      long_from_ = plan_->long_from(!decode_->resident.empty());
      return;
    }
    long_plan_ = *decode_;
    long_plan_.resident = decode_->resident_long;
    long_from_ = decode_->long_from;
  }
  /// Records the form for long contexts, if there is one.
  void record_long(sampler_forms forms) {
    if (long_from_ == never) return;
    // It gets the same number of segments as the other form.
    const std::uint32_t layers = decode_->resident.empty() ? 0 : long_plan_.repeats();
    long_ = record_sequence(device_, *table_, long_plan_, kernels_, addresses_, nullptr, false, layers, forms);
    counters_.recordings += long_.size() + (forms.drawing && forms.greedy ? 1 : 0);
  }

  /// Adds a sequence that did not exist when the executor was made. @error device_error naming a kernel that differs
  /// from the reference
  /// @param list the sequence and its forms for fewer rows
  /// @param addresses null: the session's
  [[gnu::cold]] recorded_sequence record_proven(array_view<const plan::sequence* const> list, bool prove,
                                                gpu::pipeline_cache* cache, const address_table* addresses = nullptr) {
    kernels_.add(list, cache);
    if (prove)
      for (const plan::sequence* each : list)
        if (const kernel_fault fault = kernel_proof(device_, *table_, kernels_, weights_).check(*each);
            !fault.kernel.empty())
          refuse(device_, fault);
    const plan::sequence& plan = *list.front();
    recorded_sequence made =
        record_sequence(device_, *table_, plan, kernels_, addresses != nullptr ? *addresses : addresses_, nullptr,
                        false, 0, {true, !plan.greedy.empty()});
    counters_.recordings += made.size() + (made.greedy.handle() != nullptr ? 1 : 0);
    return made;
  }

 private:
  /// Without room, or with a pipeline that differs from the reference, there are no long chunks.
  [[gnu::cold]] void prepare_long_prefill(const plan::sequence& plan, bool prove, gpu::pipeline_cache* cache) {
    drain();
    const std::array list{&plan};
    address_table addresses = addresses_;
    no_long_chunks_ = true;
    try {
      long_arena_ = gpu::buffer(device_, plan.arena_bytes, gpu::placement::device_local, "the arena of long prompts");
      addresses.arena = long_arena_.address();
      kernels_.add(list, cache);
      if (prove && !kernel_proof(device_, *table_, kernels_, weights_).check(plan).kernel.empty()) return;
    } catch (const out_of_memory&) { return; }
    sequence(pass_kind::prefill_long) = record_proven(list, false, cache, &addresses);
    no_long_chunks_ = false;
    if (cache != nullptr) cache->store();
  }
  /// Records decode with both of its last segments, or with only the greedy one. No pass may be on the device.
  void record_decode(kernels::sample_form draws_by, bool draws = true) {
    const sampler_forms forms{draws, !decode_->greedy.empty(), draws_by};
    recorded_sequence made =
        record_sequence(device_, *table_, *decode_, kernels_, addresses_, nullptr, false, 0, forms);
    counters_.recordings += made.size() + (forms.drawing && forms.greedy ? 1 : 0);
    made.speed = sequence(pass_kind::decode).speed;
    record_long(forms);
    sequence(pass_kind::decode) = std::move(made);
    start_.record_drawing(draws_by);
  }

  /// Whether the proof of the resident dispatch fits after the written positions, so that a pass at a position still
  /// finds everything that it needs.
  bool may_prove_after(std::uint32_t position) const {
    const std::uint32_t end = (std::max)(written_, position) + proven_tokens;
    for (std::uint8_t kind = 0; kind < table_->pattern.kinds(); ++kind)
      if (!table_->caches[kind].holds(position, end)) return false;
    return end <= table_->context;
  }

  /// Dispatches of a sequence that another sequence does not prove: the drawing form of samplers with several forms, or
  /// all other dispatches.
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

  /// Does the remaining steps of the start. No pass may be on the device.
  /// @param position of the next pass  @param step which pipelines are made
  void go_on(std::uint32_t position, executor_start::step step) {
    const bool between_passes = !pending() || job_.segment == 0;
    const pass_job interrupted = std::exchange(job_, {});
    kernel_proof proof(device_, *table_, kernels_, weights_);
    if (step.drawing && start_.draws_later()) {
      auto claims = claims_beside(*decode_, {}, true);
      if (start_.resident() != nullptr)
        for (const kernel_proof::claim& each : claims_beside(*start_.resident(), *decode_, true))
          claims.push_back(each);
      for (const kernel_proof::claim& each : claims)
        if (const kernel_fault fault = proof.check(each); !fault.kernel.empty()) refuse(device_, fault);
      weights_.expect_unchanged();
      start_.take_drawing();
    }
    if (step.layers && (start_.resident() != nullptr || start_.lengthens_later())) {
      const plan::sequence& resident = start_.resident() != nullptr ? *start_.resident() : *decode_;
      const bool long_too = has_long(resident) && kernels_.made(resident.resident_long);
      start_.take_layers();
      if (!between_passes || !may_prove_after(position))
        start_.forget_note();  // decode stays unchanged, and the next start reports the error
      else if (!take_resident(resident, long_too, proof, position)) start_.note_chain();
      else if (has_long(resident) && !long_too) start_.leave_long();
    }
    record_decode(start_.draws_by(), start_.can_draw());
    record_timed(pass_kind::decode);
    job_ = interrupted;
    start_.keep_note();
  }

  /// Proves the resident dispatch in positions after everything that sessions have written, and replaces the chain by
  /// it. No pass may be on the device, and there must be no job.
  /// @param long_too with its form for long contexts
  /// @return whether it is right; else decode stays the chain  @error device_lost, out_of_memory
  bool take_resident(const plan::sequence& resident, bool long_too, kernel_proof& proof, std::uint32_t position) {
    for (const kernel_proof::claim& each : claims_beside(resident, table_->decode, false))
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
      decode_ = &resident;
      write_arguments();
      record(resident);
      if (long_too) begin_long();
      record_long({resident.greedy.empty(), !resident.greedy.empty()});
      const bool agree = all_layers_agree_after((std::max)(written_, position));
      weights_.expect_unchanged();
      return agree;
    };
    try {
      if (agrees()) return true;
    } catch (...) {
      start_.forget_note();
      record(table_->decode);
      throw;
    }
    record(table_->decode);
    if (has_long(*decode_)) begin_long();
    return false;
  }

  bool no_long_chunks_ = false;
};

}  // namespace intaglio::runtime
