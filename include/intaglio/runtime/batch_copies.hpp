// SPDX-License-Identifier: MIT
// Copies of recurrent layers' states in a batch: where they are made, and which one a prompt is fed from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "intaglio/runtime/batch_slots.hpp"

namespace intaglio::runtime {

/// The sessions of a batch with copies of their states, where the plan has recurrent layers; of others nothing.
class batch_copies : public batch_slots {
 protected:
  using batch_slots::batch_slots;

  /// Tokens of the next chunk. Where layers are recurrent one ends behind the last full page, to be copied there.
  std::uint32_t chunk_behind(std::uint32_t fed, std::uint32_t all) const {
    const std::uint32_t last_page = copies_ ? all / pool_->page_size() * pool_->page_size() : 0,
                        end = fed < last_page ? last_page : all;
    return (std::min)(body_->prefill_tokens, end - fed);
  }
  /// The prompt's state becomes the newest copy within what its pages hold, and it is fed from there; from its
  /// beginning where there is none.
  void take_copy(std::uint32_t slot, member& of, std::uint32_t all) {
    const auto found = copies_->newest(pool_->names_of(
        std::span(of.history).first((std::min<std::size_t>)(of.fed + 1, of.history.size())), of.pages.root));
    of.fed = found ? found->pages * pool_->page_size() : 0;
    if (!found) return;
    const auto to = of.fed < all ? batch_states::alone() : batch_states::slot(slot);
    guarded([&] { run_->copy_state(run_->states().copy(found->place), to); });
  }
  /// Copies a prompt's state where its chunk ends behind a page, and to its slot where all is fed.
  void copy_behind_chunk(std::uint32_t slot, member& of, std::uint32_t all) {
    if (of.fed % pool_->page_size() == 0) {
      pool_->remember(of.pages, std::span(of.history).first(of.fed));
      (void)make_copy(batch_states::alone(), of, of.fed);
    }
    if (of.fed == all) guarded([&] { run_->copy_state(batch_states::alone(), batch_states::slot(slot)); });
  }

  /// Tokens after which somebody's state is to be copied.
  std::uint32_t tokens_to_copy() const {
    if (!copies_ || !same_bits_) return ~0u;
    std::uint32_t out = copy_every();
    for (const member& each : members_)
      if (each.ready)
        out = (std::min)(out, copy_every() - static_cast<std::uint32_t>(each.history.size() - 1) % copy_every());
    return out;
  }
  /// Who draws has one copy of its state behind what it drew, now and then a later one.
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
  /// Positions from one copy to the next, of who draws: whole pages.
  std::uint32_t copy_every() const {
    constexpr std::uint32_t least = 64;
    return (std::max)(least / pool_->page_size(), 1u) * pool_->page_size();
  }
  /// A copy of a state behind full pages that are remembered. @return the last one's name; 0: it has none, or there is
  /// a copy
  std::uint64_t make_copy(batch_states::name from, const member& of, std::uint32_t position) {
    const auto names = pool_->names_of(std::span(of.history).first(std::size_t{position} + 1), of.pages.root);
    if (names.empty() || names.size() * pool_->page_size() != position || copies_->has(names.back())) return 0;
    guarded([&, place = copies_->put(names.back())] { run_->copy_state(from, run_->states().copy(place)); });
    return names.back();
  }
};

}  // namespace intaglio::runtime
