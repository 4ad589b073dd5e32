// SPDX-License-Identifier: MIT
// Drafts by prompt lookup: the tokens that followed the same short n-gram earlier in the history, and when to try them.
// Source: Saxena 2023, prompt lookup decoding; transformers, prompt_lookup_num_tokens and max_matching_ngram_size.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace intaglio::runtime {

/// The result of a lookup: a draft's length, and how well the text before it matches.
struct looked_up {
  std::size_t tokens = 0;   ///< drafted
  std::size_t matched = 0;  ///< tokens before the draft that match the earlier text, up to a limit: the number of
                            ///< earlier drafts that would have been right
  std::size_t from = 0;     ///< where the draft's tokens begin in the history
};

/// The tokens at `from` of the history, which repeat themselves where it ends.
inline void copy_from(std::span<const std::int32_t> history, std::size_t from, std::span<std::int32_t> out) {
  const std::size_t size = history.size();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = from + i < size ? history[from + i] : out[from + i - size];
}

/// Fills `out` with the tokens that followed an earlier occurrence of the history's last tokens. It uses the longest
/// n-gram of at least `shortest` and at most `longest` tokens, and its latest occurrence. A continuation that reaches
/// the end of the history repeats itself, as periodic text does.
/// @return no tokens if there is no such n-gram, else out.size()
inline looked_up prompt_lookup(std::span<const std::int32_t> history, std::size_t longest, std::size_t shortest,
                               std::span<std::int32_t> out) {
  constexpr std::size_t counted = 64;
  const std::size_t size = history.size();
  const auto same_before = [&](std::size_t end, std::size_t limit) {
    std::size_t same = 0;
    while (same < limit && same < end && history[end - 1 - same] == history[size - 1 - same]) ++same;
    return same;
  };
  std::size_t best = 0, follows = 0;
  for (std::size_t end = size; end-- > 1 && best < longest;)  // an occurrence ends before `end`
    if (const std::size_t same = same_before(end, longest); same > best) best = same, follows = end;
  if (best < (std::max<std::size_t>)(shortest, 1)) return {};
  copy_from(history, follows, out);
  return {out.size(), same_before(follows, counted), follows};
}

/// Prompt lookup for one session. Text that says earlier text again with another token instead of one goes on
/// after that token, although no n-gram of at least two tokens ends with it.
class lookup_trail {
 public:
  /// @return as prompt_lookup
  looked_up find(std::span<const std::int32_t> history, std::size_t longest, std::span<std::int32_t> out) {
    const std::size_t size = history.size();
    if (const looked_up found = prompt_lookup(history, longest, 2, out); found.tokens != 0) {
      after_ = size - found.from;
      return found;
    }
    if (after_ == 0 || after_ + 1 >= size) return {};
    const std::size_t from = size - after_;  // the last token replaces the one before
    std::size_t same = 0;
    while (same < most_same && same + 1 < from && history[from - 2 - same] == history[size - 2 - same]) ++same;
    if (same < least_same) return {};
    copy_from(history, from, out);
    return {out.size(), same / 2, from};
  }

 private:
  static constexpr std::size_t least_same = 4, most_same = 64;
  std::size_t after_ = 0;  ///< tokens from the text that was said again to the end of the history; 0: none was yet
};

/// Decides whether a session tries drafts: passes over wrong drafts may cost at most a share of all decoding. Times are
/// in decode passes.
class draft_budget {
 public:
  static constexpr double share = 0.02, start = 2, most = 6;
  static constexpr double guess = 5;  ///< cost of a pass before one was measured

  /// Whether a pass over `drafts` drafts, which takes as long as `cost` decode passes, may be tried although it may
  /// draw only one token. A match is expected to continue for half of its present length. A pass that costs more than
  /// it can save is allowed when the whole budget is left, since its time may have been measured wrongly; the budget
  /// must then recover. The first pass is allowed.
  bool allows(double cost, std::size_t drafted, std::size_t matched) const noexcept {
    return pays(cost, drafted, counted_on(drafted, matched));
  }
  /// Whether verifying `drafted` drafts pays if `expected` of them are likely right, for any proposer.
  bool pays(double cost, std::size_t drafted, double expected) const noexcept {
    return !tried_ || credit_ + (cost < 1 + static_cast<double>(drafted) ? expected : 0) >= (std::min)(cost - 1, most);
  }
  static double counted_on(std::size_t drafted, std::size_t matched) noexcept {
    return (std::min)(static_cast<double>(drafted), static_cast<double>(matched) / 2);
  }
  void decoded(std::uint32_t tokens) noexcept { credit_ = (std::min)(most, credit_ + share * tokens); }
  void verified(std::uint32_t taken, double cost) noexcept {
    credit_ = (std::min)(most, credit_ + taken - cost);
    tried_ = true;
  }
  double credit() const noexcept { return credit_; }

 private:
  double credit_ = start;
  bool tried_ = false;
};

}  // namespace intaglio::runtime
