// SPDX-License-Identifier: MIT
// Runs the sequences of a plan with a batch. Prefill feeds one slot's prompt in the caches of a single session and
// copies the result to the slot's pages. Decode passes take a token of every slot. One slot may also decode as a single
// session does, in the same caches. All commands are recorded once; the host writes slots into a mailbox, which is
// copied where they changed. Each call waits for the device.
// call waits.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/batch_passes.hpp"
#include "intaglio/runtime/compile_ahead.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/kernel_proof.hpp"

namespace intaglio::runtime {

/// Largest distance between logits of the resident dispatch and logits of the chain, relative to the length of the
/// logits.
constexpr double nearness(const plan::dispatch& all) {
  return kernels::leave_chain_bits[static_cast<std::size_t>(all.kernel)] ? 0 : 0.03;
}
/// Largest distance between logits of a session that decodes without others and its logits in a batch: 0 where passes
/// of a batch have the bits of single decode. Products in f16 round their inputs.
constexpr double nearness_alone(const plan::batch_shape& shape) {
  return shape.coded_products == plan::chunk_arithmetic::f16 ? 0.1 : 0;
}
/// The length of the difference, relative to the length of the expected vector; infinite where either is not finite.
inline double distance_of(std::span<const float> found, std::span<const float> expected) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = double{found[i]} - double{expected[i]};
    apart += difference * difference, size += double{expected[i]} * double{expected[i]};
  }
  return std::isfinite(apart) && std::isfinite(size) && size != 0 ? std::sqrt(apart / size) : HUGE_VAL;
}

/// Runs passes of a batch, one call at a time.
class batch_executor : public batch_passes {
 public:
  /// @param table engraved, with a batch; outlives it  @param weights loaded, or still being loaded
  /// @error argument_error: the plan cannot be proven for the class; device_error, out_of_memory, device_lost
  batch_executor(const gpu::device& on, const plan::table& table, weight_memory weights, const plan::device_class& of,
                 gpu::pipeline_cache* cache)
      : batch_executor(on, plan_for(table, of), std::move(weights), kernel_set(on), cache) {}
  /// @param kernels may hold some of the pipelines already
  batch_executor(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan, weight_memory weights,
                 kernel_set kernels, gpu::pipeline_cache* cache, bool = false)
      : batch_passes(on, std::move(plan), std::move(weights), std::move(kernels)) {
    gpu::translated([&] { create(cache); });
  }

  virtual ~batch_executor() = default;

  static std::vector<const plan::sequence*> goes_on_with(const plan::device_plan&, bool) { return {}; }
  /// The plan fitted to a device, as executor::plan_for makes it. A batch never has all forms of a sampler.
  static std::shared_ptr<const plan::device_plan> plan_for(const plan::table& table, const plan::device_class& of,
                                                           std::vector<plan::product_shape> shapes = {}) {
    return std::make_shared<const plan::device_plan>(table, of, plan::device_plan_options{std::move(shapes), false});
  }

  /// Compares every pipeline with the CPU reference. Needs no executor. @return the first pipeline that differs, or an
  /// empty kernel
  [[gnu::cold]] static kernel_fault prove_kernels(const gpu::device& on, const plan::device_plan& plan,
                                                  const kernel_set& kernels, const weight_memory& weights, bool = true,
                                                  bool = false, const load_look& look = {}) {
    std::vector<const plan::sequence*> sequences = begins_with(plan);
    for (const plan::sequence* each : plan.all_of(&plan::table::resident_batch))
      std::erase(sequences, each);  // batch has the dispatches around the resident one too
    return gpu::translated(
        [&] { return runtime::prove_kernels(on, plan.table(), kernels, weights, sequences, true, look); });
  }
  /// Compares the resident dispatch with the chain of dispatches, also for a single session. The two sum in different
  /// orders, except with ternary weights. Where they are too far apart, passes use the chain, and a single session
  /// decodes as a row of a batch. No session may have been set.
  /// @param look is called between passes; after what it throws the executor may only be destroyed
  [[gnu::cold]] kernel_fault prove_resident(compile_ahead&& = {}, const load_look& look = {}) {
    if (!runs_resident_ && !alone_is_resident()) return {};
    gpu::translated([&] {
      const bool kept = static_cast<bool>(logits_);
      if (runs_resident_ && !agrees_with_chain(look)) runs_resident_ = false, differs_ = true;
      if (alone_is_resident() && !alone_agrees(look)) forget_alone(), differs_ = true;
      if (!kept) forget_logits();
      for (std::uint32_t slot = 0; slot < table_->shape.all_slots(); ++slot) set(slot, {});
      clear();
      decode_times_.reset();
      group_recordings& all = of_groups_.front();
      for (std::vector<recorded_sequence>* const list : {&all.resident, &all.chain})
        for (recorded_sequence& each : *list)
          each.speed = {};  // a driver that compiles on first use made the measured time too long
      forget_speed_of_alone();
    });
    return {};
  }
  /// Whether passes run the resident dispatch.
  bool runs_resident() const noexcept { return runs_resident_; }
  /// Whether several rows of a pass may be positions of one session: in the chain, and in resident dispatches whose
  /// rows read what rows in front of them compute.
  bool takes_drafts() const noexcept {
    return !runs_resident_ ||
           kernels::take_drafts[static_cast<std::size_t>(table_->resident_batch.resident.front().kernel)];
  }
  void note_when_complete(gpu::pipeline_cache& in, std::string note, const std::string& = {}) {
    if (!differs_) in.set_note(std::move(note));
  }
  /// Runs prove_kernels with the executor's own pipelines, and prove_resident.
  kernel_fault prove() {
    const kernel_fault fault = prove_kernels(device_, *plan_, kernels_, weights_);
    return fault.kernel.empty() ? prove_resident() : fault;
  }

  /// Sets what a slot is from the next call on. The first token that it draws then is drawn(slot, 0).
  virtual void set(std::uint32_t slot, const slot_words& to) { batch_memory::set(slot, to); }
  /// Announces a call of prefill(), after earlier announcements: earlier stages of a cut plan begin to run it.
  virtual void ask_prefill(std::uint32_t, std::uint32_t, std::span<const std::int32_t>, std::uint32_t, std::uint32_t) {}
  /// After a failure: waits for everything that earlier stages of a cut plan were asked for, and forgets it.
  virtual void forget_asked() noexcept {}

  /// Feeds tokens of a slot's prompt from `position` on, and copies their keys and values to its pages.
  /// @param from_pages number of positions before `position`, a multiple of 8, that the slot's pages hold and the
  ///   caches do not: they are copied to the caches first
  /// @param moved_from position, a multiple of 8, before which the slot's pages are complete
  /// @error argument_error: more tokens than a chunk has; device_lost, out_of_memory
  virtual void prefill(std::uint32_t slot, std::uint32_t position, std::span<const std::int32_t> tokens,
                       std::uint32_t from_pages, std::uint32_t moved_from, double budget_ms) {
    namespace state = kernels::state;
    check_chunk(tokens);
    commands_.clear();
    feed_changed();
    if (from_pages != 0) move(0, state::move_from_pool, slot, 0, octets(from_pages));
    run_prefill(position, tokens, budget_ms, slot_mailbox(slot));
    const std::uint32_t end = position + static_cast<std::uint32_t>(tokens.size());
    if (const std::uint32_t first = (std::max)(position, moved_from); first < end)
      move(1, state::move_to_pool, slot, first / kernels::cache_octet, octets(end));
    flush("pages of " + model_name(*table_), hang_limit(prefill_.speed));
  }

  /// Makes this executor the runner of a stage of a cut plan: rows of the stream are copied in before each pass, or out
  /// after it.
  void join(std::unique_ptr<batch_crossing> ends) {
    gpu::translated([&] {
      ends->record(table_->prefill, table_->batch, arena_);
      for (std::uint32_t group = 0; group < groups() && !table_->batch.has_sampler; ++group) record_heads(group);
      ends_ = std::move(ends);
    });
  }
  batch_crossing& ends() const noexcept { return *ends_; }

  /// Copies one state of recurrent layers to another. @error device_lost, out_of_memory
  void copy_state(batch_states::name from, batch_states::name to) {
    commands_.clear();
    take_state(from, to);
    flush("a state of " + model_name(*table_), gpu::queue::hang_limit);
  }

  /// Feeds tokens in the caches of a single session and copies nothing to any pages. @error as prefill()
  virtual void feed_alone(std::uint32_t position, std::span<const std::int32_t> tokens, double budget_ms) {
    check_chunk(tokens);
    commands_.clear();
    run_prefill(position, tokens, budget_ms);
    flush("prefill of " + model_name(*table_), hang_limit(prefill_.speed));
  }
  /// Reads rows of the stream, as pass_runner::read_stream does.
  void read_stream(std::uint32_t first, std::span<float> into) {
    gpu::transfer(device_, std::uint64_t{1} << 20)
        .download(arena_, table_->prefill.residual_offset + std::uint64_t{4} * first * table_->config->hidden_size,
                  std::as_writable_bytes(into));
  }

  /// Runs `passes` passes of every group over its first slots.
  /// @param rows number of slots of each group; 0: the group has no sessions  @error device_lost, out_of_memory
  virtual void decode_groups(std::span<const std::uint32_t> rows, std::uint32_t passes, bool keep_logits,
                             double budget_ms) {
    for (std::uint32_t group = 0; group < rows.size(); ++group)
      if (rows[group] != 0) decode(rows[group], passes, keep_logits, budget_ms, group);
  }

  /// Writes zeros over values that are not finite after a failed pass: in the caches of a single session, between the
  /// kernels, and in these pages, which belong to no session. @param slot a vacant slot  @error device_lost,
  /// out_of_memory
  virtual void clean(std::uint32_t slot, std::span<const std::uint32_t> pages) {
    namespace state = kernels::state;
    for (std::uint32_t group = 0; group < groups(); ++group)
      if (runs_resident_ && timed_out(state_, group_at(group) + table_->batch_progress_offset()))
        runs_resident_ = false;
    if (alone_timed_out()) forget_alone();
    if (cleaning_.handle() == VK_NULL_HANDLE)
      cleaning_ = clear_commands(device_, "clear the caches of " + model_name(*table_), {&arena_, &alone_}, {&caches_});
    commands_.assign({cleaning_.handle()});
    const std::uint32_t page_size = table_->shape.page_size,
                        most = kernels::attention_span / kernels::cache_octet;  // octets that every ring holds
    const std::array<std::int32_t, 1> any{};
    for (std::size_t done = 0; done < pages.size(); done += table_->slot_pages()) {
      const auto some = pages.subspan(done, (std::min<std::size_t>)(table_->slot_pages(), pages.size() - done));
      const auto positions = static_cast<std::uint32_t>(some.size()) * page_size;
      batch_memory::set(slot, {any, some, positions, false, {}});
      for (std::uint32_t first = 0, end = octets(positions); first < end; first += most) {
        feed_changed();
        move(0, state::move_to_pool, slot, first, (std::min)(end, first + most));
        flush("clean pages of " + model_name(*table_), hang_limit(of_groups_.front().moves.speed));
      }
    }
    batch_memory::set(slot, {});
    feed_changed();
    flush("clear the caches of " + model_name(*table_), gpu::queue::hang_limit);
  }

 protected:
  void check_chunk(std::span<const std::int32_t> tokens) const {
    if (const std::uint32_t most = table_->prefill.max_tokens; tokens.size() > most)
      throw argument_error("tokens of a chunk", "at most " + std::to_string(most), std::to_string(tokens.size()));
  }

 private:
  static constexpr std::uint32_t most_fed = 3;
  /// Tokens that a proof feeds to a slot. Their keys and values fit in its first page.
  std::array<std::int32_t, most_fed> proof_tokens(std::uint32_t slot) const {
    const std::uint32_t vocabulary = table_->config->vocab_size;
    std::array<std::int32_t, most_fed> out{};
    for (std::uint32_t i = 0; i < most_fed; ++i)
      out[i] = static_cast<std::int32_t>((vocabulary / 3 * (i + 1) + vocabulary / 11 * slot) % vocabulary);
    return out;
  }
  std::uint32_t proof_positions() const { return (std::min)({most_fed, table_->context, table_->shape.page_size}); }
  /// Number of values of a row that proofs compare: its logits, or its stream in a stage of a cut plan without a head.
  std::uint32_t proof_width() const {
    return table_->batch.has_head ? table_->config->vocab_size : table_->config->hidden_size;
  }
  /// Logits of the first `rows` slots, or rows of the stream in a stage without a head.
  /// @param one whether passes run the resident dispatch
  std::vector<float> fed(std::uint32_t rows, bool one, const load_look& look) {
    const bool before = std::exchange(runs_resident_, one);
    const std::uint32_t positions = proof_positions();
    const plan::sequence& batch = table_->batch;
    std::vector<std::uint32_t> last(rows);
    clear();
    for (std::uint32_t count = 1; count <= positions; ++count) {
      if (look) look();
      for (std::uint32_t slot = 0; slot < rows; ++slot) {
        const auto tokens = proof_tokens(slot);
        set(slot, {std::span(tokens).first(count), std::span(&slot, 1), positions, true, {}});
        last[slot] = static_cast<std::uint32_t>(tokens[count - 1]);
      }
      if (batch.takes_stream) upload_rows(device_, arena_, batch.stream_in_offset, last, table_->config->hidden_size);
      decode(rows, 1, batch.has_head && count == positions, HUGE_VAL);
    }
    runs_resident_ = before;
    std::vector<float> out(std::size_t{rows} * proof_width());
    if (batch.has_head) std::copy_n(logits(0).data(), out.size(), out.begin());
    else
      gpu::transfer(device_, std::uint64_t{1} << 20)
          .download(arena_, batch.residual_offset, std::as_writable_bytes(std::span(out)));
    return out;
  }
  /// Logits of rows that are positions of one session, all computed in one pass. @param one as fed()
  std::vector<float> fed_together(bool one) {
    const bool before = std::exchange(runs_resident_, one);
    const std::uint32_t positions = (std::min)(proof_positions(), table_->shape.slot_count), page = 0;
    const auto tokens = proof_tokens(0);
    clear();
    for (std::uint32_t i = 0; i < positions; ++i)  // each after the row before it
      set(i, {std::span(tokens).first(i + 1), std::span(&page, 1), positions, true, {}, {0, 0}, i});
    decode(positions, 1, true, HUGE_VAL);
    runs_resident_ = before;
    const float* const first = logits(0).data();
    return {first, first + std::size_t{positions} * table_->config->vocab_size};
  }
  /// Compares passes over every number of rows with the chain. The difference between two orders of an f16 sum is far
  /// below `nearness`.
  bool agrees_with_chain(const load_look& look) {
    const std::uint32_t most = (std::min)(table_->shape.slot_count, table_->shape.pages), width = proof_width();
    for (std::uint32_t rows = (std::min)(most, recorded_rows(1));; rows = (std::min)(most, recorded_rows(rows + 1))) {
      const std::vector<float> expected = fed(rows, false, look), found = fed(rows, true, look);
      for (std::uint32_t slot = 0; slot < rows; ++slot) {
        const std::size_t at = std::size_t{slot} * width;
        if (!(distance_of(std::span(found).subspan(at, width), std::span(expected).subspan(at, width)) <=
              nearness(table_->resident_batch.resident.front())))
          return false;
      }
      if (rows == most) break;
    }
    return is_stage() || !takes_drafts() ||
           distance_of(fed_together(true), fed_together(false)) <= nearness(table_->resident_batch.resident.front());
  }
  /// Compares single decode, in both forms where there are two, with a pass of the batch's chain.
  bool alone_agrees(const load_look& look) {
    const std::vector<float> expected = fed(1, false, look);
    const auto agrees = [&] {
      if (look) look();
      const auto tokens = proof_tokens(0);
      const std::uint32_t page = 0, positions = proof_positions();
      clear();
      const std::vector<float> found =
          fed_alone(std::span(tokens).first(positions), {{}, std::span(&page, 1), positions, true, {}});
      if (!alone_is_screened()) return distance_of(found, expected) <= nearness_alone(table_->shape);
      const auto largest = std::max_element(expected.begin(), expected.end()) - expected.begin();
      return std::max_element(found.begin(), found.end()) - found.begin() == largest &&
             distance_of(std::span(found).subspan(static_cast<std::size_t>(largest), 1),
                         std::span(expected).subspan(static_cast<std::size_t>(largest), 1)) <=
                 nearness_alone(table_->shape);
    };
    bool out = agrees();
    if (long_from_ != never) {
      const std::uint32_t from = std::exchange(long_from_, 0);
      out = agrees() && out;
      long_from_ = from;
    }
    return out;
  }

  /// Runs a pass over a chunk in the caches of a single session.
  /// @param slot words of the slot whose adapter is used, or none
  void run_prefill(std::uint32_t position, std::span<const std::int32_t> tokens, double budget_ms,
                   std::span<const std::uint32_t> slot = {}) {
    namespace state = kernels::state;
    const std::span<std::uint32_t> words = alone_mailbox();
    std::fill(words.begin(), words.end(), 0u);
    words[state::position] = position;
    words[state::count] = static_cast<std::uint32_t>(tokens.size());
    for (const std::uint32_t each : {state::adapter, state::adapter_scale})
      if (!slot.empty()) words[each] = slot[each];
    for (std::size_t i = 0; i < tokens.size(); ++i) words[state::tokens + i] = static_cast<std::uint32_t>(tokens[i]);
    commands_.push_back(feed_alone_.handle());
    if (ends_) cross_in(false);
    run(prefill_, timed_prefill_, prefill_times_, 1, budget_ms);
    if (ends_) cross_out();
  }
};

}  // namespace intaglio::runtime
