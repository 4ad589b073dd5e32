// SPDX-License-Identifier: MIT
// The recorded sequences of a batch's passes for each number of rows, and how they are submitted in pieces of a budget.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/runtime/batch_crossing.hpp"
#include "intaglio/runtime/batch_memory.hpp"
#include "intaglio/runtime/clear_memory.hpp"
#include "intaglio/runtime/hang_limit.hpp"
#include "intaglio/runtime/pass_times.hpp"
#include "intaglio/runtime/stage_poll.hpp"

namespace intaglio::runtime {

/// Recordings of the passes of a batch.
class batch_recordings : public batch_memory {
 public:
  /// Sequences whose pipelines an executor makes first.
  static std::vector<const plan::sequence*> begins_with(const plan::device_plan& plan, bool = false) {
    const plan::table& table = plan.table();
    std::vector<const plan::sequence*> out{&table.prefill, &table.moves};
    for (const auto which : {&plan::table::batch, &plan::table::resident_batch})
      for (const plan::sequence* each : plan.all_of(which))
        if (each->layers != 0) out.push_back(each);
    if (const plan::sequence* const alone = one_alone(plan)) out.push_back(alone);
    if (const plan::sequence* const long_form = one_alone_long(plan)) {
      if (out.back() != &table.decode) out.push_back(&table.decode);  // which shares most dispatches with them
      out.push_back(long_form);
    }
    return out;
  }

 protected:
  [[gnu::cold]] batch_recordings(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan,
                                 weight_memory weights, kernel_set kernels)
      : batch_memory(on, std::move(plan), std::move(weights), std::move(kernels)), queue_(on) {}
  ~batch_recordings() = default;

  using sequence_of = plan::sequence plan::table::*;
  /// The recordings of a group of slots.
  struct group_recordings {
    address_table addresses;
    gpu::buffer arguments;
    std::vector<recorded_sequence> chain, timed_chain, resident,
        timed_resident;  ///< by number of rows; timed recordings: passes that sample, then passes that do not
    recorded_sequence moves;
    std::vector<gpu::recording> feed_header;
    std::vector<gpu::recording> copy_logits;  ///< by number of rows, as chain
    gpu::recording feed_heads;
  };
  /// @param addresses for all groups
  group_recordings recorded_group(std::uint32_t group, address_table addresses) {
    const plan::table& t = *table_;
    group_recordings out;
    addresses.ring = ring_.address() + std::uint64_t{4} * group * t.shape.slot_count * t.ring_size;
    addresses.state = state_.address() + group_at(group);
    if (runs_resident_) {
      out.arguments = arguments_of(device_, t, t.resident_batch, addresses);
      addresses.arguments = out.arguments.address();
    }
    const sampler_forms forms{true, has_greedy_};
    const auto record = [&](sequence_of which, std::uint32_t rows, std::vector<recorded_sequence>& made,
                            std::vector<recorded_sequence>& timed) {
      const plan::sequence& of = plan_->over(which, rows);
      made.push_back(record_sequence(device_, t, of, kernels_, addresses, nullptr, false, 0, forms));
      for (const bool greedy : {false, true}) timed.push_back(timed_sequence(of, addresses, greedy));
    };
    for (std::uint32_t rows = recorded_rows(1);; rows = recorded_rows(rows + 1)) {
      record(&plan::table::batch, rows, out.chain, out.timed_chain);
      if (runs_resident_) record(&plan::table::resident_batch, rows, out.resident, out.timed_resident);
      if (rows == t.shape.slot_count) break;
    }
    out.moves = record_sequence(device_, t, t.moves, kernels_, addresses, nullptr, false, t.config->num_hidden_layers);
    for (std::size_t i = 0; i < headers; ++i)
      out.feed_header.push_back(
          mailbox_.feed(device_, model_name(t), header_at(group, i), state_, group_at(group), header_bytes));
    out.addresses = std::move(addresses);
    return out;
  }

  void create(gpu::pipeline_cache* cache) {
    const plan::table& t = *table_;
    runs_resident_ = !t.resident_batch.resident.empty();
    kernels_.add(begins_with(*plan_), cache);
    make_memory();
    const address_table prompts = prompt_addresses();
    prefill_ = record_sequence(device_, t, t.prefill, kernels_, prompts);
    timed_prefill_ = timed_sequence(t.prefill, prompts);
    address_table addresses = batch_addresses();
    addresses.kept = states_.of_slots();
    draws_.resize(t.shape.all_slots());
    has_greedy_ = !t.batch.greedy.empty();
    for (std::uint32_t group = 0; group < groups(); ++group) of_groups_.push_back(recorded_group(group, addresses));
    feed_alone_ = mailbox_.feed(device_, model_name(t), alone_at(), alone_, 0, alone_bytes());
    for (std::uint32_t slot = 0; slot < t.shape.all_slots(); ++slot)
      feed_slot_.push_back(mailbox_.feed(device_, model_name(t), slot_at(slot), state_, state_at(slot), slot_bytes()));
    clear();
  }
  /// The offset of a slot's words in the whole state.
  std::uint64_t state_at(std::uint32_t slot) const {
    return group_at(group_of(slot)) + header_bytes + slot % table_->shape.slot_count * slot_bytes();
  }
  void clear() {
    clear_memory(device_, queue_, model_name(*table_), {&arena_, &state_, &alone_, &ring_},
                 {&caches_, &pool_, &states_.slot_memory(), &states_.other_memory()});
  }

  /// Rows of the recording that runs a pass over a number of rows: the rows of one tile, twice that, and so on, up to
  /// all rows.
  std::uint32_t recorded_rows(std::uint32_t rows) const { return plan::recorded_rows(rows, table_->shape.slot_count); }
  std::size_t of_rows(std::uint32_t rows) const {
    std::size_t which = 0;
    for (std::uint32_t up_to = recorded_rows(1); up_to < rows; up_to = recorded_rows(up_to + 1)) ++which;
    return which;
  }

  void feed_changed() {
    for (const std::uint32_t slot : changed_) commands_.push_back(feed_slot_[slot].handle());
    changed_.clear();
  }
  void take_state(batch_states::name from, batch_states::name to) {
    const auto [in, out] = states_.copied(from, to);
    commands_.insert(commands_.end(), {in, out});
  }
  void move(std::size_t box, std::uint32_t way, std::uint32_t slot, std::uint32_t first, std::uint32_t end) {
    namespace state = kernels::state;
    group_recordings& of = of_groups_[group_of(slot)];
    const std::span<std::uint32_t> words = header(group_of(slot), box);
    words[state::move] = way, words[state::move_slot] = slot % table_->shape.slot_count,
    words[state::move_first] = first, words[state::move_end] = end;
    commands_.push_back(of.feed_header[box].handle());
    commands_.insert(commands_.end(), of.moves.handles.begin(), of.moves.handles.end());
  }
  /// Copies the first words of all slots of a group; a stage without a sampler runs these commands before each pass.
  void record_heads(std::uint32_t group) {
    gpu::recorder to(device_, "slots of " + model_name(*table_));
    for (std::uint32_t i = 0; i < table_->shape.slot_count; ++i) {
      const std::uint32_t slot = group * table_->shape.slot_count + i;
      mailbox_.copy(to, slot_at(slot), state_, state_at(slot), std::uint64_t{4} * kernels::state::page_table);
    }
    of_groups_[group].feed_heads = to.finish();
  }
  /// Adds the commands that copy rows of the stream in and out.
  [[gnu::cold]] void cross_in(bool batch) {
    if (const VkCommandBuffer copy = ends_->in(batch)) commands_.push_back(copy);
  }
  [[gnu::cold]] void cross_out() {
    if (const VkCommandBuffer copy = ends_->out(false)) commands_.push_back(copy);
  }
  /// Sets that a group's passes are over the first `rows` of its slots.
  void feed_rows(std::uint32_t group, std::uint32_t rows) {
    if (const VkCommandBuffer heads = of_groups_[group].feed_heads.handle(); heads != nullptr)
      commands_.push_back(heads);
    header(group, 2)[kernels::state::count] = rows;
    commands_.push_back(of_groups_[group].feed_header[2].handle());
  }

  void flush(const std::string& label, std::chrono::nanoseconds limit) {
    if (commands_.empty()) return;
    const std::uint64_t number = queue_.submit(commands_, label);
    commands_.clear();
    if (ends_) poll_for(stage_poll(device_), [&] { return queue_.finished(number); });
    queue_.wait(number, limit);
    weights_.expect_unchanged();
  }
  /// Whether no session of a pass samples, and the sampler has a greedy form.
  bool is_greedy(std::uint32_t group, std::uint32_t rows) const {
    const auto first = draws_.begin() + group * table_->shape.slot_count;
    return has_greedy_ && std::none_of(first, first + rows, [](bool draws) { return draws; });
  }
  /// Records a sequence with timestamps in one command buffer. Empty on a device without timestamps, or where the
  /// sampler does not have the form.
  recorded_sequence timed_sequence(const plan::sequence& of, const address_table& addresses, bool greedy = false) {
    if (device_.limits().timestamp_bits == 0 || (greedy && of.greedy.empty())) return {};
    return record_timed_sequence(device_, *table_, of, kernels_, addresses, (std::max)(1u, of.repeats()), greedy);
  }
  /// Runs a pass with timestamps where times are wanted. @return whether it ran
  bool run_timed(const recorded_sequence& of, recorded_sequence& timed, pass_clock& into, double budget_ms) {
    if (timed.plan == nullptr || !into.is_due(of.speed, of.size(), budget_ms)) return false;
    into.begin();
    commands_.insert(commands_.end(), timed.handles.begin(), timed.handles.end());
    flush(std::string(of.plan->name) + " of " + model_name(*table_), hang_limit(of.speed));
    read_times(timed);
    for (const dispatch_time& each : timed.dispatches) into.add(each.what->kernel, each.nanoseconds);
    into.end();
    return true;
  }

  void run(recorded_sequence& of, recorded_sequence& timed, pass_clock& times, std::uint32_t passes, double budget_ms,
           bool greedy = false) {
    const bool one_is_timed = run_timed(of, timed, times, budget_ms);
    times.count(passes);
    run(of, passes - (one_is_timed ? 1 : 0), budget_ms, greedy);
  }
  /// Submits the commands that wait in commands_ and `passes` times the sequence, in pieces of the budget. With
  /// `greedy` the last segment uses the greedy form of the sampler. Waits for everything except what is left in
  /// commands_.
  void run(recorded_sequence& of, std::uint32_t passes, double budget_ms, bool greedy) {
    const std::uint32_t all = passes * of.size();
    for (std::uint32_t done = 0; done < all;) {
      const std::uint32_t count = (std::min)({of.speed.allowed(budget_ms), all - done, most_buffers});
      for (std::uint32_t i = 0; i < count; ++i) commands_.push_back(of.handle((done + i) % of.size(), greedy));
      if (done + count == all && after_ != nullptr) commands_.push_back(std::exchange(after_, nullptr));
      const auto start = std::chrono::steady_clock::now();
      flush(std::string(of.plan->name) + " of " + model_name(*table_), hang_limit(of.speed));
      of.speed.observe(count,
                       std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      done += count;
    }
    if (after_ != nullptr) commands_.push_back(std::exchange(after_, nullptr));
  }
  void make_logits() {
    gpu::translated([&] {
      const plan::batch_shape& shape = table_->shape;
      logits_ = gpu::buffer(device_, std::uint64_t{4} * shape.all_slots() * table_->config->vocab_size,
                            gpu::placement::readback, "logits on their way to the host");
      for (std::uint32_t group = 0; group < groups(); ++group)
        for (std::uint32_t rows = 0; rows < shape.slot_count;) {
          rows = recorded_rows(rows + 1);
          of_groups_[group].copy_logits.push_back(
              copy_of_logits(table_->batch.logits_offset, group * shape.slot_count, rows));
        }
    });
  }
  void forget_logits() {
    for (group_recordings& each : of_groups_) each.copy_logits.clear();
    copy_alone_.clear();
    logits_ = {};
  }
  /// @param from offset in the arena  @param slot the first of `count`
  gpu::recording copy_of_logits(std::uint64_t from, std::uint32_t slot, std::uint32_t count) {
    return gpu::translated([&] {
      const std::uint64_t bytes = std::uint64_t{4} * table_->config->vocab_size;
      gpu::recorder record(device_, "logits of " + model_name(*table_));
      record.copy(arena_, from, logits_, slot * bytes, count * bytes);
      return record.finish();
    });
  }

  static constexpr std::uint32_t most_buffers = 1024;

  std::vector<group_recordings> of_groups_;
  /// One form of decode of a single session.
  struct alone_form {
    recorded_sequence plain;
    std::array<recorded_sequence, 2> timed;  ///< passes that sample, and passes that do not
  };

  /// Decode of a single session in long contexts, where it has a form of its own.
  plan::sequence long_plan_;
  alone_form alone_decode_, alone_long_;  ///< recorded by batch_alone
  bool has_greedy_ = false;               ///< whether the sampler has a greedy form
  recorded_sequence prefill_, timed_prefill_, timed_;
  pass_clock decode_times_{128, 3}, prefill_times_{16, 0};
  gpu::recording feed_alone_, cleaning_;
  std::vector<gpu::recording> feed_slot_,
      copy_alone_;  ///< copies of a single session's logits to each slot that kept them; then those of its form for
                    ///< long contexts
  std::vector<VkCommandBuffer> commands_;
  VkCommandBuffer after_ = nullptr;       ///< submitted with the last pass of run()
  std::unique_ptr<batch_crossing> ends_;  ///< of a stage of a cut plan
  gpu::queue queue_;                      // destroyed first, which waits: the members above may be in use by the device
};

}  // namespace intaglio::runtime
