// SPDX-License-Identifier: MIT
// An interface for drafting the next tokens of sessions, so that one pass of the model verifies several tokens.
// draft_model.hpp implements it with a smaller model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/runtime/sampling.hpp"

namespace intaglio::runtime {

/// A request for drafts of one session.
struct draft_wish {
  std::uint64_t who = 0;                        ///< identifies the session; never used twice
  std::span<const std::int32_t> history{};      ///< its prompt and the tokens that it drew
  sampling_options sampling{};                  ///< its sampling options
  std::uint32_t end = 0;                        ///< largest length of its history
  std::vector<std::int32_t>* drafts = nullptr;  ///< in: as many as are wanted; out: the drafts, at most that number
  double expected = 0;                          ///< out: number of drafts that are likely right
};

/// Drafts tokens. Drafts change how soon tokens are drawn, never which tokens.
class proposer {
 public:
  proposer() = default;
  proposer(const proposer&) = delete;
  proposer& operator=(const proposer&) = delete;
  virtual ~proposer() = default;

  /// Drafts for all sessions that ask before the next pass. Other sessions may have left.
  /// @error device_lost, out_of_memory
  virtual void propose(std::span<draft_wish> wishes) = 0;
  /// Milliseconds that a token of each session takes, as measured lately; 0: negligible or unknown.
  virtual double token_ms() const noexcept { return 0; }
};

/// How often a session's drafts were right lately. Without drafts for a while the estimate returns to its initial
/// value.
class draft_record {
 public:
  static constexpr double hoped = 0.7;  ///< assumed share of right drafts before any was verified

  /// @param right number of leading right drafts among `drafted`
  void verified(std::uint32_t drafted, std::uint32_t right) noexcept {
    fade(0.9);
    right_ += right;
    tried_ += right + (right < drafted ? 1 : 0);
  }
  void decoded(std::uint32_t tokens) noexcept { fade(std::pow(0.99, tokens)); }
  /// The probability that a draft is right if all drafts before it are right.
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
