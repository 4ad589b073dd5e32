// SPDX-License-Identifier: MIT
// How prompts of a batch's sessions are fed: one chunk at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "intaglio/runtime/batch_drafts.hpp"

namespace intaglio::runtime {

/// The sessions of a batch, whose prompts are fed in the order in which they joined.
class batch_feeding : public batch_drafts {
 protected:
  using batch_drafts::batch_drafts;

  /// Prepares the next prompt for its next chunk. @return null: no prompt waits, or there are too few pages
  member* next_to_feed() {
    if (waiting_.empty()) return nullptr;
    const std::uint32_t slot = waiting_.front();
    member& of = members_[slot];
    if (of.pages.pages.empty()) {  // it gave its pages back, like all sessions after it
      auto pages = pool_->take(of.history, first_positions(of.history.size(), all_positions(of)),
                               adapter_key(of.options.adapter));
      if (!pages) return nullptr;
      of.pages = std::move(*pages);
    }
    settle();  // the prompt uses the caches
    if (!of.started) {
      of.started = true;
      pool_->share(of.pages, of.history, first_positions(of.history.size(), all_positions(of)));
      of.fed = of.pages.shared * pool_->page_size();
      in_caches_ = slot_count();
      update_slot(slot, of);
    }
    return &of;
  }
  /// Number of tokens of a prompt that prefill feeds. The first decode pass feeds the last token.
  static std::uint32_t fed_ahead(const member& of) { return static_cast<std::uint32_t>(of.history.size()) - 1; }

  /// Asks earlier stages of a cut plan for the next chunks of the prompt that is fed next.
  /// @return false: no chunk is left to ask for
  bool ask_for_chunks() {
    const member* const of = next_to_feed();
    if (of == nullptr) return false;
    const std::uint32_t slot = waiting_.front(), all = fed_ahead(*of);
    bool in_caches = in_caches_ == slot;
    if (of->fed == all) return false;
    guarded([&] {  // one chunk for each group keeps all stages busy
      for (std::uint32_t fed = of->fed, left = run_->groups(); fed < all && left != 0; --left, in_caches = true) {
        const std::uint32_t count = chunk_after(fed, all);
        run_->ask_prefill(slot, fed, std::span(of->history).subspan(fed, count), in_caches ? 0 : fed,
                          of->pages.shared * pool_->page_size());
        fed += count;
      }
    });
    return true;
  }

  void feed_waiting() {
    member* const next = next_to_feed();
    if (next == nullptr) return;
    member& of = *next;
    const std::uint32_t slot = waiting_.front(), all = fed_ahead(of);
    if (copies_ && in_caches_ != slot) take_copy(slot, of, all);
    if (!of.found) of.found = of.fed;
    if (of.fed < all) {
      const std::uint32_t count = chunk_after(of.fed, all);
      guarded([&] {
        run_->prefill(slot, of.fed, std::span(of.history).subspan(of.fed, count), in_caches_ == slot ? 0 : of.fed,
                      of.pages.shared * pool_->page_size(), body_->submit_budget_ms);
      });
      in_caches_ = slot;
      of.fed += count;
      if (copies_) copy_after_chunk(slot, of, all);
    }
    if (of.fed < all) return;
    pool_->remember(of.pages, std::span(of.history).first(all));
    of.ready = true;
    update_slot(slot, of);
    waiting_.pop_front();
  }
};

}  // namespace intaglio::runtime
