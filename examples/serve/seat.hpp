// SPDX-License-Identifier: MIT
// The user of a slot of the batch, and what is remembered of it while others use the slot. Only the engine's source
// file includes this.
#pragma once

#include <intaglio/runtime/batch_handle.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "form_draws.hpp"
#include "token_engine.hpp"

namespace intaglio::serve {

/// The user of a slot: a generation or a question.
struct seat {
  batch_handle handle{};
  std::shared_ptr<generation> who{};
  std::shared_ptr<question> asked{};
  std::vector<std::int32_t> history{};  ///< for sessions that draw on the host, or continue after the context is full
  std::shared_ptr<form_draws::draw> drawing{};  ///< under way on another thread
  std::int32_t of_device = 0;                   ///< the token that the device drew meanwhile
  draft_counts drafts_before{};                 ///< of its slots before this one

  bool keeps_logits() const { return asked != nullptr || who->drawn_by_host(); }

  /// Drafts of this slot are counted beside those of the slots before.
  void count(const draft_counts& now) {
    who->drafted = drafts_before.drafted + now.drafted;
    who->accepted = drafts_before.accepted + now.accepted;
  }
  /// Where the context has no room for another token, and the generation goes on after its end: history becomes the
  /// tokens that are fed again. @return whether it did
  bool shorten(std::uint32_t context) {
    if (!who->shifts() || history.size() < context) return false;
    history = who->after_shift(history);
    return true;
  }
};

/// The generation has a seat from its prompt on.
inline seat first_seat_of(const std::shared_ptr<generation>& who) {
  const bool follows = who->drawn_by_host() || who->shifts();
  return {.who = who, .history = follows ? who->prompt() : std::vector<std::int32_t>{}};
}

/// What a generation asks of the batch after this number of tokens: until it ends, or the context does.
/// @param lookup, drafted tokens that are drafted at most for a pass, by prompt lookup and by a model
inline batch_options batch_options_of(const generation& who, std::size_t tokens, std::uint32_t context,
                                      std::uint32_t lookup, std::uint32_t drafted) {
  return {.sampling = who.sampling(),
          .max_tokens = std::min(who.max_tokens() - static_cast<std::uint32_t>(who.ids().size()),
                                 context - static_cast<std::uint32_t>(tokens)),
          .keep_logits = who.drawn_by_host(),
          .prompt_lookup_num_tokens = lookup,
          .adapter = who.adapter(),
          .draft_num_tokens = drafted};
}

}  // namespace intaglio::serve
