// SPDX-License-Identifier: MIT
// Who has which slot and which pages of a batch: how they are taken, grow, are shared and given back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/runtime/batch_executor.hpp"
#include "intaglio/runtime/batch_handle.hpp"
#include "intaglio/runtime/page_pool.hpp"
#include "intaglio/runtime/prefix_states.hpp"
#include "intaglio/runtime/proposer.hpp"
#include "intaglio/runtime/session_body.hpp"

namespace intaglio::runtime {

/// The sessions of a batch with their pages.
class batch_slots {
 public:
  /// The plan; of a cut one the whole.
  const plan::table& table() const { return *body_->table; }
  const gpu::device& device() const { return body_->device; }
  std::uint32_t context() const { return table().context; }
  std::uint32_t slot_count() const { return run_->table().shape.all_slots(); }
  std::uint32_t free_slots() const {
    std::uint32_t out = 0;
    for (const member& each : members_) out += each.number == 0 ? 1 : 0;
    return out;
  }
  /// A slot that nobody has, in the group that has the fewest sessions; as many as there are slots: none.
  std::uint32_t free_slot() const {
    const std::uint32_t each_has = run_->table().shape.slot_count;
    std::uint32_t out = slot_count(), fewest = each_has;
    for (std::uint32_t group = 0; group < run_->groups(); ++group) {
      std::uint32_t taken = 0, first = slot_count();
      for (std::uint32_t slot = (group + 1) * each_has; slot-- > group * each_has;)
        if (members_[slot].number != 0) ++taken;
        else first = slot;
      if (taken < fewest) out = first, fewest = taken;
    }
    return out;
  }
  std::uint32_t waiting_for_pages() const {
    std::uint32_t out = 0;
    for (const member& each : members_) out += each.number != 0 && each.pages.pages.empty() ? 1 : 0;
    return out;
  }

 protected:
  batch_slots(std::shared_ptr<session_body> body, std::unique_ptr<batch_executor> run)
      : body_(std::move(body)), run_(std::move(run)) {
    if (run_ != nullptr) start();
  }

  /// What a pass drew behind a session's drafts, for a caller that draws on the host.
  struct offer {
    std::vector<std::int32_t> drafts;
    std::vector<std::uint32_t> drawn, rows;  ///< behind each draft, and whose row it had
    std::size_t from = 0;                    ///< tokens of the history before the pass
    std::uint32_t taken = 0;                 ///< drafts that the caller drew
    double cost = 0;                         ///< of the pass, in passes without drafts
    bool is_proposed = false;                ///< the drafts are the proposer's
  };

  struct member {
    std::uint64_t number = 0;  ///< 0: nobody
    std::vector<std::int32_t> history;
    runtime::page_pool::list pages;
    batch_options options;
    std::uint32_t prompt = 0;            ///< tokens of it
    std::uint32_t fed = 0;               ///< positions that the pages hold while the prompt, or all so far, is fed,
                                         ///< or when it last left the caches
    std::optional<std::uint32_t> found;  ///< of the prompt's, found there when it was first fed
    std::uint64_t copied = 0;            ///< of recurrent layers: page behind which its last copy while it draws is
    std::uint32_t told = 0;              ///< tokens drawn since the device was told of the slot
    bool started = false, ready = false;
    std::vector<std::int32_t> drafts;        ///< of the next pass
    std::vector<std::uint32_t> draft_slots;  ///< whose rows they have
    offer offered;                           ///< of the last pass, with keep_logits
    draft_budget drafting;
    draft_counts drafted;      ///< so far
    draft_record right;        ///< of the proposer's drafts
    bool is_proposed = false;  ///< the drafts are the proposer's
    double proposed_ms = 0;    ///< that they took
    bool is_spoiled = false;   ///< a wrong draft left no numbers in its pages
  };

  /// Who had a slot last.
  struct former {
    std::uint64_t number = 0;
    std::uint32_t found = 0;
    draft_counts drafted;
    std::vector<std::int32_t> history;
    adapter_choice adapter{0, 0};
  };

  /// Positions that are written: the last token drawn is not.
  static std::uint32_t positions(std::size_t prompt, std::uint32_t max_tokens) {
    return static_cast<std::uint32_t>(prompt) + max_tokens - 1;
  }
  std::uint32_t all_positions(const member& of) const { return positions(of.prompt, of.options.max_tokens); }
  /// Positions whose pages are taken at once: `ahead` more than there are tokens, so that the device is seldom told of
  /// new ones.
  std::uint32_t first_positions(std::size_t tokens, std::uint32_t all) const {
    return grows_ ? (std::min)(all, static_cast<std::uint32_t>(tokens) + ahead) : all;
  }
  static constexpr std::uint32_t ahead = 64;

  void start() {
    const plan::table& t = table();
    if (t.batch.layers == 0) throw argument_error("plan", "one with a batch", "one without");
    members_.resize(slot_count());
    logits_of_.resize(slot_count()), logits_row_.resize(slot_count());
    left_.resize(slot_count());
    rows_.resize(run_->groups());
    alone_ = in_caches_ = slot_count();
    order_.reserve(slot_count());
    pool_.emplace(t.shape.pages, t.shape.page_size);
    if (t.kept_bytes() != 0) copies_.emplace(t.batch_snapshots());
    drawn_.reserve(std::size_t{slot_count()} * 8);
    for (const plan::dispatch& each : t.prefill.period)
      same_bits_ =
          same_bits_ && each.kernel != kernels::kernel::matmul_chunk && each.kernel != kernels::kernel::attention_f16;
    grows_ = same_bits_;  // who is fed anew has to go on as before
  }

  const member* find(batch_handle whose) const {
    return whose.number != 0 && whose.slot < members_.size() && members_[whose.slot].number == whose.number
               ? &members_[whose.slot]
               : nullptr;
  }
  member* find(batch_handle whose) { return const_cast<member*>(std::as_const(*this).find(whose)); }
  /// Who had the slot last and has left.
  const former* find_left(batch_handle whose) const {
    return whose.number != 0 && whose.slot < left_.size() && left_[whose.slot].number == whose.number
               ? &left_[whose.slot]
               : nullptr;
  }
  const member& present(batch_handle whose) const {
    const member* const of = find(whose);
    if (of == nullptr) throw argument_error("session of the batch", "one that is there", "one that has left");
    return *of;
  }

  void tell(std::uint32_t slot, member& of) {
    of.told = 0;
    run_->set(slot, words_of(of));
  }
  runtime::slot_words words_of(const member& of) const {
    return {of.history, of.pages.pages,      (std::min)(all_positions(of), held(of)),
            of.ready,   of.options.sampling, of.options.adapter};
  }
  std::uint32_t held(const member& of) const {
    return static_cast<std::uint32_t>(of.pages.pages.size()) * pool_->page_size();
  }

  /// What a session that decoded alone has in the caches goes to its pages.
  void settle() {
    if (alone_ == slot_count()) return;
    const std::uint32_t slot = std::exchange(alone_, slot_count());
    member& of = members_[slot];
    const auto end = static_cast<std::uint32_t>(of.history.size()) - 1;
    if (end > alone_from_) guarded([&] { run_->leave_alone(slot, alone_from_, end); });
    in_caches_ = slot, of.fed = end;
    tell(slot, of);
  }

  void remove(std::uint32_t slot, member& of) {
    give_back(slot, of);
    std::erase(waiting_, slot);
    left_[slot] = {of.number, of.found.value_or(0), of.drafted, std::move(of.history), of.options.adapter};
    of = {};
  }

  /// Gives back the pages of a slot. What they hold is remembered.
  void give_back(std::uint32_t slot, member& of) {
    if (alone_ == slot && of.ready && same_bits_) settle();
    if (alone_ == slot) alone_ = slot_count();
    if (in_caches_ == slot) in_caches_ = slot_count();
    run_->set(slot, {});
    if (of.ready && same_bits_) pool_->remember(of.pages, std::span(of.history).first(of.history.size() - 1));
    pool_->release(of.pages);
    of.ready = of.started = false;
    of.fed = 0;
    if (!pool_->spoiled().empty()) clean(slot);
  }

  /// Masked positions are read and multiplied by zero, so the next session with these pages must find numbers in them.
  void clean(std::uint32_t slot) {
    settle();
    guarded([&] { run_->clean(slot, pool_->spoiled()); });
    pool_->cleaned();
    in_caches_ = slot_count();
  }

  /// Pages for that many positions. Where there are too few, those who joined after it give theirs back, the last one
  /// first.
  /// @return false: there are too few nevertheless
  bool make_room(std::uint32_t slot, std::uint32_t wanted) {
    member& of = members_[slot];
    while (!pool_->grow(of.pages, wanted)) {
      std::uint32_t last = slot;
      for (std::uint32_t i = 0; i < slot_count(); ++i)
        if (members_[i].number > members_[last].number && !members_[i].pages.pages.empty()) last = i;
      if (last == slot) return false;
      put_back(last);
    }
    return true;
  }
  void put_back(std::uint32_t slot) {
    give_back(slot, members_[slot]);
    std::erase(waiting_, slot);
    const auto behind = std::find_if(waiting_.begin(), waiting_.end(),
                                     [&](std::uint32_t each) { return members_[each].number > members_[slot].number; });
    waiting_.insert(behind, slot);
  }
  /// Pages for the next tokens of all that are ready, in the order in which they came.
  void grow(std::uint32_t tokens) {
    if (!grows_) return;
    order_.clear();
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot)
      if (members_[slot].ready) order_.push_back(slot);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return members_[a].number < members_[b].number; });
    for (const std::uint32_t slot : order_) {
      member& of = members_[slot];
      if (!of.ready) continue;  // put back for one before it
      const auto now = static_cast<std::uint32_t>(of.history.size()) - 1;
      const std::uint32_t all = all_positions(of), wanted = (std::min)(all, now + tokens);
      if (wanted <= held(of)) continue;
      if (!pool_->grow(of.pages, (std::min)(all, now + (std::max)(tokens, ahead))) && !make_room(slot, wanted)) {
        put_back(slot);
        continue;
      }
      if (alone_ == slot) run_->set(slot, words_of(of));  // read when it leaves the caches
      else tell(slot, of);
    }
  }

  /// What a failed pass leaves in pages is not relied on: the sessions that were fed then have left, and nothing is
  /// remembered of it.
  template <class Body>
  void guarded(Body&& body) {
    try {
      body();
    } catch (...) {
      run_->forget_asked();
      waiting_.clear();
      alone_ = in_caches_ = slot_count();
      for (member& each : members_) each = {};
      pool_.emplace(table().shape.pages, table().shape.page_size);
      if (copies_) copies_->forget_all();
      for (std::uint32_t slot = 0; slot < slot_count(); ++slot) run_->set(slot, {});
      throw;
    }
  }

  std::shared_ptr<runtime::session_body> body_;
  std::unique_ptr<runtime::batch_executor> run_;
  std::optional<runtime::page_pool> pool_;
  std::optional<runtime::prefix_states> copies_;  ///< where the plan has recurrent layers
  std::vector<member> members_;                   ///< by slot
  std::vector<std::uint64_t> logits_of_;          ///< by slot: whose logits the executor has
  std::vector<std::uint32_t> logits_row_;         ///< by slot: the row that they are of
  std::vector<former> left_;                      ///< by slot: who had it last
  std::deque<std::uint32_t> waiting_;  ///< slots whose prompts are not fed yet, in the order in which they joined
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> rows_;  ///< of each group's next passes
  std::vector<batch_token> drawn_;
  std::uint64_t last_number_ = 0;
  std::uint32_t alone_ = 0, alone_from_ = 0;  ///< slot that decodes in the caches of a session alone, slots(): none;
                                              ///< positions of its pages before it did
  std::uint32_t in_caches_ = 0;  ///< slot whose tokens the caches hold as far as they are fed, slots(): none
  bool same_bits_ = true;        ///< prefill leaves decode's bits, so that pages may be shared whatever wrote them
  bool grows_ = true;            ///< pages are taken as sessions grow; else all at once
};

}  // namespace intaglio::runtime
