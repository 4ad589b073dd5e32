// SPDX-License-Identifier: MIT
// The last stage of a cut plan with a batch. It asks the earlier stages to run its calls, and asks ahead where it can,
// so that all stages are busy: for the next chunk of a prompt and for the next pass of each group of slots.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/runtime/batch_calls.hpp"
#include "intaglio/runtime/stage_crossing.hpp"

namespace intaglio::runtime {

/// Calls that the earlier stages were asked for. The stages run them in this order; results are taken in any order.
class asked_calls {
 public:
  using number = std::uint64_t;  ///< of a call; 0: none
  /// @param device of the last stage, for errors
  asked_calls(gpu::device device, stages_before before) : device_(std::move(device)), before_(std::move(before)) {}

  /// Sends a slot's words with the next call.
  void note(std::uint32_t slot, const slot_words& to) { words_.note(slot, to); }
  bool has_room() const noexcept { return under_way_.size() < before_.room; }
  /// @error device_error: the earlier stages have ended
  number ask(batch_call what, std::span<const std::uint32_t> its) {
    while (!has_room()) take();
    words_.take(what, its, message_.words);
    message_.bytes = {};
    message_.failure = nullptr;
    under_way_.push_back(++last_);
    if (!before_.asked->put(message_)) refuse_end();
    return last_;
  }
  /// Waits for a call. @return its rows, valid until the next call  @error the error of an earlier stage
  std::span<const std::byte> receive(number of) {
    for (;;) {
      const auto found = std::find_if(came_.begin(), came_.end(), [&](const outcome& each) { return each.of == of; });
      if (found == came_.end()) {
        take();
        continue;
      }
      taken_ = std::move(found->message);
      came_.erase(found);
      if (taken_.failure) std::rethrow_exception(std::exchange(taken_.failure, nullptr));
      return taken_.bytes;
    }
  }
  /// Drops a call, whose result is no longer wanted.
  void forget(number of) {
    if (of == 0) return;
    std::erase_if(came_, [&](const outcome& each) { return each.of == of; });
    if (std::find(under_way_.begin(), under_way_.end(), of) != under_way_.end()) unwanted_.push_back(of);
  }
  /// Drops all calls, and waits for them.
  void forget_all() noexcept {
    try {
      while (!under_way_.empty()) take();
    } catch (...) {  // the stages have ended; the next call reports that
      under_way_.clear();
    }
    came_.clear();
    unwanted_.clear();
  }

 private:
  struct outcome {
    number of = 0;
    stage_message message;
  };
  void take() {
    stage_message message;
    if (!before_.given->take(message)) refuse_end();
    const number of = under_way_.front();
    under_way_.pop_front();
    if (std::erase(unwanted_, of) == 0) came_.push_back({of, std::move(message)});
  }
  [[noreturn]] void refuse_end() const {
    throw device_error(device_.label(), "take rows of the stream", "the stages before this one have ended");
  }

  gpu::device device_;
  stages_before before_;
  batch_words words_;
  std::deque<number> under_way_;
  std::vector<number> unwanted_;
  std::vector<outcome> came_;
  stage_message message_, taken_;
  number last_ = 0;
};

/// A batch_executor whose rows come from earlier stages, once it was joined to them.
class last_batch_stage final : public batch_executor {
 public:
  using batch_executor::batch_executor;

  /// Call it before the first call. @error out_of_memory, device_lost
  void join_stages(stages_before before) {
    join(std::make_unique<batch_crossing>(device_, *table_));
    asked_.emplace(device_, std::move(before));
    heads_.resize(table_->shape.all_slots());
    passes_.resize(groups());
  }

  void set(std::uint32_t slot, const slot_words& to) override {
    batch_executor::set(slot, to);
    if (!asked_) return;
    asked_->note(slot, to);
    const bool runs = to.running && !to.tokens.empty();
    if (runs) passes_[group_of(slot)].is_stale = true;  // a session that has left writes values that are not read
    heads_[slot] = runs ? head{true, static_cast<std::uint32_t>(to.tokens.size()) - 1, to.limit,
                               static_cast<std::uint32_t>(to.tokens.back()), 0}
                        : head{};
  }

  void ask_prefill(std::uint32_t slot, std::uint32_t position, std::span<const std::int32_t> tokens,
                   std::uint32_t from_pages, std::uint32_t moved_from) override {
    chunk_words(slot, position, tokens, from_pages, moved_from);
    for (const chunk& each : chunks_)
      if (each.words == its_) return;
    if (asked_->has_room()) chunks_.push_back({asked_->ask(batch_call::chunk, its_), its_});
  }
  void prefill(std::uint32_t slot, std::uint32_t position, std::span<const std::int32_t> tokens,
               std::uint32_t from_pages, std::uint32_t moved_from, double budget_ms) override {
    check_chunk(tokens);
    chunk_words(slot, position, tokens, from_pages, moved_from);
    if (chunks_.empty() || chunks_.front().words != its_) {
      forget_chunks();
      chunks_.push_back({asked_->ask(batch_call::chunk, its_), its_});
    }
    const auto number = chunks_.front().number;
    chunks_.pop_front();
    ends_->supply(asked_->receive(number));
    batch_executor::prefill(slot, position, tokens, from_pages, moved_from, budget_ms);
  }
  void feed_alone(std::uint32_t position, std::span<const std::int32_t> tokens, double budget_ms) override {
    check_chunk(tokens);
    forget_chunks();
    its_.assign({position});
    its_.insert(its_.end(), tokens.begin(), tokens.end());
    ends_->supply(asked_->receive(asked_->ask(batch_call::chunk_for_nobody, its_)));
    batch_executor::feed_alone(position, tokens, budget_ms);
  }
  void clean(std::uint32_t slot, std::span<const std::uint32_t> pages) override {
    forget_chunks();
    its_.assign({slot});
    its_.insert(its_.end(), pages.begin(), pages.end());
    (void)asked_->receive(asked_->ask(batch_call::clean, its_));
    batch_executor::clean(slot, pages);
  }
  /// Runs passes of the groups in turns, so that each stage works for one group while other stages work for other
  /// groups. The pass after the last one is asked for as well, as if all sessions continued.
  void decode_groups(std::span<const std::uint32_t> rows, std::uint32_t passes, bool keep_logits,
                     double budget_ms) override {
    if (!asked_) return batch_executor::decode_groups(rows, passes, keep_logits, budget_ms);
    for (std::uint32_t group = 0; group < rows.size(); ++group)
      if (rows[group] != 0) ask_pass(group, rows[group]);
    for (std::uint32_t pass = 0; pass < passes; ++pass)
      for (std::uint32_t group = 0; group < rows.size(); ++group) {
        if (rows[group] == 0) continue;
        if (!ask_pass(group, rows[group])) continue;  // all of its slots are full
        ends_->supply(asked_->receive(std::exchange(passes_[group].number, 0)));
        decode(rows[group], 1, keep_logits && pass + 1 == passes, budget_ms, group);
        note_drawn(group, rows[group]);
        if (asked_->has_room()) ask_pass(group, rows[group]);
      }
  }
  void forget_asked() noexcept override {
    if (!asked_) return;
    asked_->forget_all();
    chunks_.clear();
    for (pass_asked& each : passes_) each = {};
  }

 private:
  /// What the next pass of a slot feeds, if it takes part.
  struct head {
    bool runs = false;
    std::uint32_t position = 0, limit = 0, token = 0;
    std::uint32_t drawn = 0;  ///< tokens drawn since it was set
  };
  struct chunk {
    asked_calls::number number;
    std::vector<std::uint32_t> words;
  };
  struct pass_asked {
    asked_calls::number number = 0;
    bool is_stale = false;  ///< a session has joined since, or continues in another way
  };

  void chunk_words(std::uint32_t slot, std::uint32_t position, std::span<const std::int32_t> tokens,
                   std::uint32_t from_pages, std::uint32_t moved_from) {
    its_.assign({slot, position, from_pages, moved_from});
    its_.insert(its_.end(), tokens.begin(), tokens.end());
  }
  void forget_chunks() {
    for (const chunk& each : chunks_) asked_->forget(each.number);
    chunks_.clear();
  }
  /// Asks for a group's next pass, where that was not done. @return false: none of its slots goes on
  bool ask_pass(std::uint32_t group, std::uint32_t rows) {
    pass_asked& its = passes_[group];
    if (its.number != 0 && !its.is_stale) return true;
    asked_->forget(its.number);
    its = {};
    its_.assign({group, rows});
    bool any = false;
    for (std::uint32_t i = 0; i < rows; ++i) {
      const head& of = heads_[group * table_->shape.slot_count + i];
      any = any || of.runs;
      its_.insert(its_.end(), {of.position, of.runs ? 1u : 0u, of.token});
    }
    if (any) its.number = asked_->ask(batch_call::pass, its_);
    return any;
  }
  /// What a pass drew goes into the next one, as the sampler has it.
  void note_drawn(std::uint32_t group, std::uint32_t rows) {
    for (std::uint32_t i = 0; i < rows; ++i) {
      const std::uint32_t slot = group * table_->shape.slot_count + i;
      head& of = heads_[slot];
      if (!of.runs) continue;
      of.token = drawn(slot, of.drawn++);
      ++of.position;
      of.runs = of.position < of.limit && of.token < table_->config->vocab_size;
      if (!of.runs) of = {false, 0, 0, 0, of.drawn};
    }
  }

  std::optional<asked_calls> asked_;
  std::vector<head> heads_;         ///< by slot
  std::vector<pass_asked> passes_;  ///< by group: its next pass, where that was asked for
  std::deque<chunk> chunks_;        ///< chunks that were asked for ahead
  std::vector<std::uint32_t> its_;
};

}  // namespace intaglio::runtime
