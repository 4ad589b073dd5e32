// SPDX-License-Identifier: MIT
// Decode of the only active session of a batch: it runs as a session without a batch does, in the caches that prompts
// are fed in. Its keys and values are copied from its pages first, and back to them at the end.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/batch_recordings.hpp"

namespace intaglio::runtime {

/// Recordings of a batch, and recordings of decode of a single session.
class batch_alone : public batch_recordings {
 public:
  /// Whether the only active slot may decode in the caches of a single session, which is faster.
  bool has_alone() const noexcept { return alone_decode_.plain.plan != nullptr; }
  /// Whether such a slot runs the resident dispatch.
  bool alone_is_resident() const noexcept { return has_alone() && !alone_decode_.plain.plan->resident.empty(); }

  /// Whether keep_alone_logits() gives the logits of all tokens. A screened head has only bounds for tokens that cannot
  /// be drawn.
  bool alone_has_logits() const { return has_alone() && !alone_is_screened(); }

  /// Copies all positions of a slot but the last from its pages to the caches. decode_alone() then continues from
  /// there, until prefill() or another slot uses the caches.
  /// @param held number of positions that the caches already hold
  /// @error device_lost, out_of_memory
  void enter_alone(std::uint32_t slot, const slot_words& to, std::uint32_t held = 0) {
    namespace state = kernels::state;
    commands_.clear();
    feed_changed();
    const auto position = static_cast<std::uint32_t>(to.tokens.size()) - 1;
    if (held < position) move(0, state::move_from_pool, slot, held / kernels::cache_octet, octets(position));
    if (!states_.empty()) take_state(states_.slot(slot), states_.alone());
    const std::span<std::uint32_t> words = alone_mailbox();
    std::fill(words.begin(), words.end(), 0u);
    words[state::position] = position;
    words[state::count] = 1;
    write_sampling(to.sampling, words);
    write_adapter(to.adapter, words);
    words[state::tokens] = static_cast<std::uint32_t>(to.tokens.back());
    for (std::size_t i = 0; looks_back(to.sampling) && i < to.tokens.size(); ++i)
      words[state::history(table_->max_tokens) + i] = static_cast<std::uint32_t>(to.tokens[i]);
    commands_.push_back(feed_alone_.handle());
    flush("pages of " + model_name(*table_), hang_limit(alone_decode_.plain.speed));
    alone_position_ = position;
    alone_draws_ = draws(to.sampling);
  }
  /// Draws tokens of the slot that entered; they are drawn_alone(0) and on. @error device_lost, out_of_memory
  void decode_alone(std::uint32_t passes, double budget_ms) {
    commands_.clear();
    for (std::uint32_t done = 0; done < passes;) {
      const bool is_long = alone_position_ >= long_from_;
      const std::uint32_t now = is_long ? passes - done : (std::min)(passes - done, long_from_ - alone_position_);
      alone_form& form = is_long ? alone_long_ : alone_decode_;
      const bool greedy = !alone_draws_ && form.plain.greedy.handle() != VK_NULL_HANDLE;
      run(form.plain, form.timed[greedy ? 1 : 0], decode_times_, now, budget_ms, greedy);
      done += now;
      alone_position_ += now;
    }
  }
  /// Copies the logits of the last pass of decode_alone() to the logits of a slot, where alone_has_logits().
  /// @error device_lost, out_of_memory
  void keep_alone_logits(std::uint32_t slot) {
    if (!logits_) make_logits();
    const std::uint32_t slot_count = table_->shape.slot_count, which = was_long() ? slot_count + slot : slot;
    copy_alone_.resize(std::size_t{2} * slot_count);
    if (copy_alone_[which].handle() == VK_NULL_HANDLE)
      copy_alone_[which] =
          copy_of_logits((was_long() ? alone_long_ : alone_decode_).plain.plan->logits_offset, slot, 1);
    commands_.assign({copy_alone_[which].handle()});
    flush("logits of " + model_name(*table_), gpu::queue::hang_limit);
  }

  std::uint32_t drawn_alone(std::uint32_t index) const {
    std::uint32_t out = 0;
    std::memcpy(&out, alone_ring_.mapped().data() + std::size_t{4} * (index % table_->ring_size), sizeof out);
    return out;
  }
  /// Copies positions `first` to before `end`, written since enter_alone(), to the pages of the slot that entered, and
  /// advances the slot's state to `end`. The slot may continue in the caches.
  /// @error device_lost, out_of_memory
  void leave_alone(std::uint32_t slot, std::uint32_t first, std::uint32_t end) {
    commands_.clear();
    feed_changed();
    move(0, kernels::state::move_to_pool, slot, first / kernels::cache_octet, octets(end));
    if (!states_.empty()) take_state(states_.alone(), states_.slot(slot));
    flush("pages of " + model_name(*table_), gpu::queue::hang_limit);
  }

 protected:
  using batch_recordings::batch_recordings;
  ~batch_alone() = default;

  void create(gpu::pipeline_cache* cache) {
    batch_recordings::create(cache);
    if (const plan::sequence* const of = one_alone(*plan_)) record_alone(*of);
  }
  /// From here on an only active slot decodes as a row of a batch.
  void forget_alone() {
    alone_decode_ = {};
    alone_long_ = {};
    long_from_ = never;
  }
  /// Whether a workgroup of a single session's pass reached its spin limit.
  bool alone_timed_out() { return alone_is_resident() && timed_out(alone_, table_->progress_offset()); }
  /// Whether a workgroup of a resident dispatch timed out. The dispatch's progress is at an offset of its state.
  bool timed_out(const gpu::buffer& state, std::uint64_t progress) {
    std::uint32_t out = 0;
    gpu::transfer(device_, 4096)
        .download(state, progress + 4 * kernels::layers::progress_timed_out,
                  std::as_writable_bytes(std::span(&out, 1)));
    return out != 0;
  }

  /// Feeds tokens one at a time, as the only active session, into pages of slot 0. @return logits of the last token
  std::vector<float> fed_alone(std::span<const std::int32_t> tokens, const slot_words& as) {
    for (std::uint32_t count = 1; count <= tokens.size(); ++count) {
      slot_words words = as;
      words.tokens = tokens.first(count);
      set(0, words);
      enter_alone(0, words);
      decode_alone(1, HUGE_VAL);
      leave_alone(0, count - 1, count);
    }
    std::vector<float> out(table_->config->vocab_size);
    gpu::transfer(device_, std::uint64_t{1} << 20)
        .download(arena_, (was_long() ? alone_long_ : alone_decode_).plain.plan->logits_offset,
                  std::as_writable_bytes(std::span(out)));
    return out;
  }
  /// Whether the last pass ran the form for long contexts.
  bool was_long() const { return alone_position_ > long_from_; }
  /// Whether the head of a single session is screened.
  bool alone_is_screened() const {
    return std::any_of(alone_decode_.plain.plan->epilogue.begin(), alone_decode_.plain.plan->epilogue.end(),
                       [](const plan::dispatch& each) { return each.kernel == kernels::kernel::head_screen; });
  }
  static constexpr std::uint32_t never = ~0u;
  std::uint32_t long_from_ = never;  ///< passes from this position on run the form for long contexts
  void forget_speed_of_alone() { alone_decode_.plain.speed = alone_long_.plain.speed = {}; }

 private:
  [[gnu::cold]] void record_alone(const plan::sequence& of) {
    alone_ring_ =
        gpu::buffer(device_, kernels::ring_bytes(table_->ring_size), gpu::placement::readback, "the ring of tokens");
    address_table addresses = prompt_addresses();
    addresses.ring = alone_ring_.address();
    if (!of.resident.empty()) {
      alone_arguments_ = arguments_of(device_, *table_, of, addresses);
      addresses.arguments = alone_arguments_.address();
    }
    const auto record = [&](const plan::sequence& as) {
      alone_form out;
      out.plain =
          record_sequence(device_, *table_, as, kernels_, addresses, nullptr, false, 0, {true, !as.greedy.empty()});
      for (const bool greedy : {false, true})
        if (!greedy || !as.greedy.empty()) out.timed[greedy ? 1 : 0] = timed_sequence(as, addresses, greedy);
      return out;
    };
    alone_decode_ = record(of);
    if (const plan::sequence* const long_form = one_alone_long(*plan_)) {
      long_from_ = plan_->long_from(!of.resident.empty());
      alone_long_ = record(*long_form);
    } else if (!of.resident_long.empty()) {
      long_plan_ = of;
      long_plan_.resident = of.resident_long;
      long_from_ = of.long_from;
      alone_long_ = record(long_plan_);
    }
  }

  std::uint32_t alone_position_ = 0;
  bool alone_draws_ = false;
};

}  // namespace intaglio::runtime
