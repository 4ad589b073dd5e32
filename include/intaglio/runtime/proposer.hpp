// SPDX-License-Identifier: MIT
// What proposes the next tokens of sessions, so that one pass of the model may verify several: an interface, and prompt
// lookup behind it. draft_model.hpp has a smaller model behind it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/runtime/prompt_lookup.hpp"
#include "intaglio/runtime/sampling.hpp"

namespace intaglio::runtime {

/// Next tokens of one session that are wanted.
struct draft_wish {
  std::uint64_t who = 0;                        ///< of the session: none twice
  std::span<const std::int32_t> history{};      ///< its prompt and what it drew
  sampling_options sampling{};                  ///< how it draws
  std::uint32_t end = 0;                        ///< tokens that its history gets at most
  std::vector<std::int32_t>* drafts = nullptr;  ///< in: as many as are wanted; out: those proposed, no more
  double expected = 0;                          ///< out: of them that are counted on to be right
};

/// Proposes tokens. What it proposes changes how soon tokens are drawn, never which.
class proposer {
 public:
  proposer() = default;
  proposer(const proposer&) = delete;
  proposer& operator=(const proposer&) = delete;
  virtual ~proposer() = default;

  /// For all sessions that want drafts before the next pass. Those that are not among them may have left.
  /// @error device_lost, out_of_memory
  virtual void propose(std::span<draft_wish> wishes) = 0;
  /// Milliseconds that a token of each takes, as measured lately; 0: none to speak of, or not known yet.
  virtual double token_ms() const noexcept { return 0; }
};

/// By prompt lookup: free, and it knows from the history how much to expect.
class lookup_proposer final : public proposer {
 public:
  explicit lookup_proposer(std::size_t longest_ngram) : longest_(longest_ngram) {}

  void propose(std::span<draft_wish> wishes) override {
    for (draft_wish& each : wishes) {
      const looked_up found = prompt_lookup(each.history, longest_, 2, *each.drafts);
      each.drafts->resize((std::min)(found.tokens, found.matched));  // a chance match of a few tokens takes few rows
      each.expected = draft_budget::counted_on(each.drafts->size(), found.matched);
    }
  }

 private:
  std::size_t longest_;
};

/// How often a session's drafts were right lately. Where none were tried for a while it is hoped again.
class draft_record {
 public:
  static constexpr double hoped = 0.7;  ///< share of drafts that are right, before any was tried

  /// @param right the first ones of `drafted`
  void verified(std::uint32_t drafted, std::uint32_t right) noexcept {
    fade(0.9);
    right_ += right;
    tried_ += right + (right < drafted ? 1 : 0);
  }
  void decoded(std::uint32_t tokens) noexcept { fade(std::pow(0.99, tokens)); }
  /// The probability that a draft is right if those before it are.
  double rate() const noexcept { return (right_ + hoped) / (tried_ + 1); }
  /// The expected number of right drafts among `drafts`.
  double expected(std::uint32_t drafts) const noexcept {
    double out = 0, all = 1;
    for (std::uint32_t i = 0; i < drafts; ++i) out += all *= rate();
    return out;
  }

 private:
  void fade(double share) noexcept { right_ *= share, tried_ *= share; }

  double right_ = 0, tried_ = 0;
};

}  // namespace intaglio::runtime
