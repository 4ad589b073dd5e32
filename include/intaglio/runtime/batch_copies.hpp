// SPDX-License-Identifier: MIT
// Copies of the states of recurrent layers in a batch: when they are made, and from which one a prompt is fed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "intaglio/runtime/batch_slots.hpp"

namespace intaglio::runtime {

/// The sessions of a batch with copies of their states. Plans without recurrent layers have no copies.
class batch_copies : public batch_slots {
 protected:
  using batch_slots::batch_slots;

  /// Number of tokens in the next chunk. With recurrent layers a chunk ends after the last full page, where the state
  /// is copied.
  std::uint32_t chunk_after(std::uint32_t fed, std::uint32_t all) const {
    const std::uint32_t last_page = copies_ ? all / pool_->page_size() * pool_->page_size() : 0,
                        end = fed < last_page ? last_page : all;
    return (std::min)(body_->prefill_tokens, end - fed);
  }
  /// Loads the newest copy within the prompt's cached pages into the prompt's state, and feeds the prompt
  /// from there. Without such a copy the prompt is fed from its beginning.
  void take_copy(std::uint32_t slot, member& of, std::uint32_t all) {
    const auto found = copies_->newest(pool_->names_of(
        std::span(of.history).first((std::min<std::size_t>)(of.fed + 1, of.history.size())), of.pages.root));
    of.fed = found ? found->pages * pool_->page_size() : 0;
    if (!found) return;
    const auto to = of.fed < all ? batch_states::alone() : batch_states::slot(slot);
    guarded([&] { run_->copy_state(run_->states().copy(found->index), to); });
  }
  /// Copies the prompt's state if its chunk ends at the end of a page, and to the session's slot when the whole prompt
  /// is fed.
  void copy_after_chunk(std::uint32_t slot, member& of, std::uint32_t all) {
    if (of.fed % pool_->page_size() == 0) {
      pool_->remember(of.pages, std::span(of.history).first(of.fed));
      (void)make_copy(batch_states::alone(), of, of.fed);
    }
    if (of.fed == all) guarded([&] { run_->copy_state(batch_states::alone(), batch_states::slot(slot)); });
  }

  /// Number of tokens after which the state of some session is to be copied.
  std::uint32_t tokens_to_copy() const {
    if (!copies_ || !same_bits_) return ~0u;
    std::uint32_t out = copy_every();
    for (const member& each : members_)
      if (each.ready)
        out = (std::min)(out, copy_every() - static_cast<std::uint32_t>(each.history.size() - 1) % copy_every());
    return out;
  }
  /// Keeps one copy of the state of each session that draws tokens, and replaces it by a later one from time to time.
  void copy_decoded() {
    if (!copies_ || !same_bits_) return;
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot) {
      member& of = members_[slot];
      if (!of.ready || of.history.size() == of.prompt) continue;
      const auto position = static_cast<std::uint32_t>(of.history.size()) - 1;
      if (position % copy_every() != 0) continue;
      if (alone_ == slot && position > alone_from_) {
        guarded([&] { run_->leave_alone(slot, alone_from_, position); });
        alone_from_ = position;
      }
      pool_->remember(of.pages, std::span(of.history).first(position));
      if (const std::uint64_t made = make_copy(batch_states::slot(slot), of, position); made != 0) {
        copies_->forget(of.copied);
        of.copied = made;
      }
    }
  }

 private:
  /// Distance in positions between two copies of a session that draws tokens: whole pages.
  std::uint32_t copy_every() const {
    constexpr std::uint32_t least = 64;
    return (std::max)(least / pool_->page_size(), 1u) * pool_->page_size();
  }
  /// Copies a state at the end of full pages that the pool remembers. @return the last page's name; 0: the session has
  /// no such page, or the copy exists already
  std::uint64_t make_copy(batch_states::name from, const member& of, std::uint32_t position) {
    const auto names = pool_->names_of(std::span(of.history).first(std::size_t{position} + 1), of.pages.root);
    if (names.empty() || names.size() * pool_->page_size() != position || copies_->has(names.back())) return 0;
    guarded([&, index = copies_->put(names.back())] { run_->copy_state(from, run_->states().copy(index)); });
    return names.back();
  }
};

}  // namespace intaglio::runtime
