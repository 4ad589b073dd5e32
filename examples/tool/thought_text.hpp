// SPDX-License-Identifier: MIT
// A reply as a terminal shows it: what the model thinks aloud (<think> ... </think>) is set apart, and its marks are
// left out.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace intaglio::tool {

class thought_text {
 public:
  /// @param begin, end what is written around a thought, such as escape sequences
  thought_text(std::string begin, std::string end) : begin_(std::move(begin)), end_(std::move(end)) {}

  /// The next piece of the reply, as far as it is sure not to be part of a mark.
  std::string show(std::string_view piece) {
    held_ += piece;
    std::string out;
    if (state_ == state::beginning) open(out);
    if (state_ == state::thought) close(out);
    if (state_ == state::text) out += std::exchange(held_, {});
    return out;
  }
  /// What was held back, at the end of the reply.
  std::string finish() {
    std::string out = std::exchange(held_, {});
    if (state_ == state::thought) out += end_;
    state_ = state::beginning;
    return out;
  }

 private:
  enum class state { beginning, thought, text };
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> marks{
      {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}}};
  static constexpr std::string_view blank = " \n\r\t";

  void open(std::string& out) {
    const std::size_t first = held_.find_first_not_of(blank);
    if (first == std::string::npos) return;
    const std::string_view rest = std::string_view(held_).substr(first);
    bool may_be = false;
    for (const auto& [begin, end] : marks) {
      may_be = may_be || begin.starts_with(rest);
      if (!rest.starts_with(begin)) continue;
      out += begin_;
      closing_ = end;
      state_ = state::thought;
      held_.erase(0, first + begin.size());
      fresh_ = true;
      return;
    }
    if (!may_be) state_ = state::text;
  }
  void close(std::string& out) {
    if (fresh_) held_.erase(0, (std::min)(held_.find_first_not_of(blank), held_.size()));
    if (held_.empty()) return;
    fresh_ = false;
    const std::size_t at = held_.find(closing_);
    if (at != std::string::npos) {
      const std::size_t last = held_.find_last_not_of(blank, at == 0 ? 0 : at - 1);
      if (at != 0 && last != std::string::npos) out += held_.substr(0, last + 1);
      out += end_;
      held_.erase(0, at + closing_.size());
      state_ = state::text;
      return;
    }
    std::size_t kept = (std::min)(held_.size(), closing_.size() - 1);
    while (kept > 0 && !closing_.starts_with(std::string_view(held_).substr(held_.size() - kept))) --kept;
    // White space in front of the mark is part of nothing.
    while (kept < held_.size() && blank.find(held_[held_.size() - kept - 1]) != std::string_view::npos) ++kept;
    out += held_.substr(0, held_.size() - kept);
    held_.erase(0, held_.size() - kept);
  }

  std::string begin_, end_, held_;
  std::string_view closing_;
  state state_ = state::beginning;
  bool fresh_ = false;  ///< nothing of the thought has come yet
};

}  // namespace intaglio::tool
