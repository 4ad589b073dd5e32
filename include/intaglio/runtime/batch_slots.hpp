// SPDX-License-Identifier: MIT
// Which session has which slot and pages of a batch: how pages are taken, grow, are shared and are given back.
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
#include "intaglio/runtime/prompt_lookup.hpp"
#include "intaglio/runtime/proposer.hpp"
#include "intaglio/runtime/session_body.hpp"

namespace intaglio::runtime {

/// The sessions of a batch with their pages.
class batch_slots {
 public:
  /// The plan; for a cut plan the whole of it.
  const plan::table& table() const { return *body_->table; }
  const gpu::device& device() const { return body_->device; }
  std::uint32_t context() const { return table().context; }
  std::uint32_t slot_count() const { return run_->table().shape.all_slots(); }
  std::uint32_t free_slots() const {
    std::uint32_t out = 0;
    for (const member& each : members_) out += each.number == 0 ? 1 : 0;
    return out;
  }
  /// A vacant slot in the group that has the fewest sessions; slots() if none is vacant.
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

  /// The tokens that a pass drew after a session's drafts, for a caller that draws on the host.
  struct offer {
    std::vector<std::int32_t> drafts;
    std::vector<std::uint32_t> drawn, rows;  ///< tokens drawn after each draft, and slots whose rows were used
    std::size_t from = 0;                    ///< length of the history before the pass
    std::uint32_t taken = 0;                 ///< number of drafts that the caller drew too
    double cost = 0;                         ///< of the pass, in passes without drafts
    bool is_proposed = false;                ///< the proposer made the drafts
  };

  struct member {
    std::uint64_t number = 0;  ///< 0: no session
    std::vector<std::int32_t> history;
    runtime::page_pool::list pages;
    batch_options options;
    std::uint32_t prompt = 0;            ///< number of its tokens
    std::uint32_t fed = 0;               ///< positions that the pages hold while the prompt, or the whole history, is
                                         ///< fed, or when the session last left the caches
    std::optional<std::uint32_t> found;  ///< prompt tokens found in pages when it was first fed
    /// Name of the page after which the last copy of recurrent states is, while the session draws.
    std::uint64_t copied = 0;
    std::uint32_t reported = 0;  ///< tokens drawn since the slot was last set on the device
    bool started = false, ready = false;
    std::vector<std::int32_t> drafts;        ///< for the next pass
    std::vector<std::uint32_t> draft_slots;  ///< slots whose rows they use
    offer offered;                           ///< of the last pass, with keep_logits
    draft_budget drafting;
    lookup_trail looks;
    draft_counts drafted;      ///< counts since it joined
    draft_record right;        ///< results of the proposer's drafts
    bool is_proposed = false;  ///< the proposer made the drafts
    double proposed_ms = 0;    ///< time that the proposer took
    bool is_spoiled = false;   ///< a wrong draft left values that are not finite in its pages
  };

  /// The session that had a slot last.
  struct former {
    std::uint64_t number = 0;
    std::uint32_t found = 0;
    draft_counts drafted;
    std::vector<std::int32_t> history;
    adapter_choice adapter{0, 0};
  };

  /// Number of positions that are written; the last token drawn is not.
  static std::uint32_t positions(std::size_t prompt, std::uint32_t max_tokens) {
    return static_cast<std::uint32_t>(prompt) + max_tokens - 1;
  }
  std::uint32_t all_positions(const member& of) const { return positions(of.prompt, of.options.max_tokens); }
  /// Positions whose pages are taken at once: `ahead` more than there are tokens, so that the slot is seldom set anew
  /// on the device because of pages.
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
    grows_ = same_bits_;  // a session that is fed anew has to continue with the same tokens
  }

  const member* find(batch_handle whose) const {
    return whose.number != 0 && whose.slot < members_.size() && members_[whose.slot].number == whose.number
               ? &members_[whose.slot]
               : nullptr;
  }
  member* find(batch_handle whose) { return const_cast<member*>(std::as_const(*this).find(whose)); }
  /// The session that had the slot last and has left.
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

  /// Gives the executor a slot's history, pages and sampling options anew.
  void update_slot(std::uint32_t slot, member& of) {
    of.reported = 0;
    run_->set(slot, words_of(of));
  }
  runtime::slot_words words_of(const member& of) const {
    return {of.history, of.pages.pages,      (std::min)(all_positions(of), held(of)),
            of.ready,   of.options.sampling, of.options.adapter};
  }
  std::uint32_t held(const member& of) const {
    return static_cast<std::uint32_t>(of.pages.pages.size()) * pool_->page_size();
  }

  /// Copies what a session wrote to the caches while it decoded without others to its pages.
  void settle() {
    if (alone_ == slot_count()) return;
    const std::uint32_t slot = std::exchange(alone_, slot_count());
    member& of = members_[slot];
    const auto end = static_cast<std::uint32_t>(of.history.size()) - 1;
    if (end > alone_from_) guarded([&] { run_->leave_alone(slot, alone_from_, end); });
    in_caches_ = slot, of.fed = end;
    update_slot(slot, of);
  }

  void remove(std::uint32_t slot, member& of) {
    give_back(slot, of);
    std::erase(waiting_, slot);
    left_[slot] = {of.number, of.found.value_or(0), of.drafted, std::move(of.history), of.options.adapter};
    of = {};
  }

  /// Gives back the pages of a slot. The pool remembers their content.
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

  /// Clears pages. Masked positions are read and multiplied by zero, so the next session with these pages must find
  /// finite values in them.
  void clean(std::uint32_t slot) {
    settle();
    guarded([&] { run_->clean(slot, pool_->spoiled()); });
    pool_->cleaned();
    in_caches_ = slot_count();
  }

  /// Takes pages for that number of positions. Where there are too few, sessions that joined later give their pages
  /// back, the last one first.
  /// @return false: there are too few pages nevertheless
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
    const auto after = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](std::uint32_t each) { return members_[each].number > members_[slot].number; });
    waiting_.insert(after, slot);
  }
  /// Takes pages for the next tokens of all ready sessions, in the order in which they joined.
  void grow(std::uint32_t tokens) {
    if (!grows_) return;
    order_.clear();
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot)
      if (members_[slot].ready) order_.push_back(slot);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return members_[a].number < members_[b].number; });
    for (const std::uint32_t slot : order_) {
      member& of = members_[slot];
      if (!of.ready) continue;  // has given its pages back to an earlier session
      const auto now = static_cast<std::uint32_t>(of.history.size()) - 1;
      const std::uint32_t all = all_positions(of), wanted = (std::min)(all, now + tokens);
      if (wanted <= held(of)) continue;
      if (!pool_->grow(of.pages, (std::min)(all, now + (std::max)(tokens, ahead))) && !make_room(slot, wanted)) {
        put_back(slot);
        continue;
      }
      if (alone_ == slot) run_->set(slot, words_of(of));  // read when the session leaves the caches
      else update_slot(slot, of);
    }
  }

  /// Runs a pass and handles its failure. What a failed pass leaves in pages is not used: the sessions that it fed have
  /// left, and the pool remembers nothing of it.
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
  std::vector<std::uint64_t> logits_of_;          ///< by slot: the session whose logits the executor has
  std::vector<std::uint32_t> logits_row_;         ///< by slot: the row of these logits
  std::vector<former> left_;                      ///< by slot: the session that had it last
  std::deque<std::uint32_t> waiting_;  ///< slots whose prompts are not fed yet, in the order in which they joined
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> rows_;  ///< of the next passes of each group
  std::vector<batch_token> drawn_;
  std::uint64_t last_number_ = 0;
  std::uint32_t alone_ = 0, alone_from_ = 0;  ///< slot that decodes in the caches of a single session, slots(): none;
                                              ///< positions of its pages before that
  std::uint32_t in_caches_ = 0;               ///< slot whose fed tokens the caches hold, slots(): none
  /// Whether prefill gives the bits of decode, so that pages may be shared whichever of them wrote them.
  bool same_bits_ = true;
  bool grows_ = true;  ///< pages are taken as sessions grow; else all at once
};

}  // namespace intaglio::runtime
