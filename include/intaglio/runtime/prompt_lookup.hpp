// SPDX-License-Identifier: MIT
// Drafts by prompt lookup: what followed the same few tokens earlier in the history, and when trying them pays.
// Source: Saxena 2023, prompt lookup decoding; transformers, prompt_lookup_num_tokens and max_matching_ngram_size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace intaglio::runtime {

/// Fills `out` with what followed the history's last tokens where they stood before: the longest n-gram of at most `longest` and at least
/// `shortest` tokens counts, of several places the latest. A continuation that reaches the history's end goes on with itself, as periodic text does.
/// @return out.size(), or 0 where no such n-gram stood before
inline std::size_t prompt_lookup(std::span<const std::int32_t> history, std::size_t longest, std::size_t shortest, std::span<std::int32_t> out) {
  const std::size_t size = history.size();
  std::size_t best = 0, follows = 0;
  for (std::size_t end = size; end-- > 1 && best < longest;) {  // what ends before `end` stood before
    std::size_t same = 0;
    while (same < longest && same < end && history[end - 1 - same] == history[size - 1 - same]) ++same;
    if (same > best) best = same, follows = end;
  }
  if (best < std::max<std::size_t>(shortest, 1)) return 0;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = follows + i < size ? history[follows + i] : out[follows + i - size];
  return out.size();
}

/// Weighs a session's drafts: passes over drafts that were wrong may cost no more than a share of what was decoded besides. Time is in decode passes.
class draft_budget {
 public:
  static constexpr double share = 0.02, start = 4, most = 6;

  /// Whether a pass that takes as long as `cost` decode passes may draw one token only. A dearer one than is ever saved for may where all is there, to be
  /// paid off behind it: its time may have been taken wrongly, and its drafts may be right.
  bool allows(double cost) const noexcept { return credit_ >= std::min(cost - 1, most); }
  /// Tokens to decode before it may, at most `limit`.
  std::uint32_t tokens_until(double cost, std::uint32_t limit) const noexcept {
    const double tokens = std::ceil((std::min(cost - 1, most) - credit_) / share);
    return tokens < 1 ? 0 : tokens > limit ? limit : static_cast<std::uint32_t>(tokens);
  }
  void decoded(std::uint32_t tokens) noexcept { credit_ = std::min(most, credit_ + share * tokens); }
  void verified(std::uint32_t taken, double cost) noexcept { credit_ = std::min(most, credit_ + taken - cost); }
  double credit() const noexcept { return credit_; }

 private:
  double credit_ = start;
};

/// How many tokens to decode before the next look at the history: a look waits for the device to be idle. More and more while there is nothing to draft.
class look_interval {
 public:
  static constexpr std::uint32_t shortest = 8, longest = 128;
  static constexpr double least_ms = 5;  ///< of decoding between two looks, each of which takes the host some 50 us
  /// @param pass_ms time of a decode pass, 0 where it is not known
  std::uint32_t tokens(double pass_ms) const noexcept {
    const double least = pass_ms > 0 ? least_ms / pass_ms : 0;
    return std::clamp(least > longest ? longest : static_cast<std::uint32_t>(least) * times_, shortest * times_, longest);
  }
  void found_nothing() noexcept { times_ = std::min(longest / shortest, 2 * times_); }
  void found() noexcept { times_ = 1; }

 private:
  std::uint32_t times_ = 1;
};

}  // namespace intaglio::runtime
