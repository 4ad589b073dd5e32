// SPDX-License-Identifier: MIT
// Stop strings over a stream of pieces: text that may be the start of a stop string is held back until it is decided.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"

namespace intaglio::runtime {

/// The largest number of stop strings, and the longest one.
inline constexpr std::size_t max_stop_strings = 16, max_stop_bytes = 1024;

/// Watches a stream for the first occurrence of any stop string, also across the borders of pieces.
class stop_text {
 public:
  stop_text() = default;
  /// @error argument_error: a stop string is empty or over 1024 bytes, or there are more than 16
  explicit stop_text(std::vector<std::string> stops) : stops_(std::move(stops)) {
    if (stops_.size() > max_stop_strings)
      throw argument_error("stop", "at most " + std::to_string(max_stop_strings) + " strings",
                           std::to_string(stops_.size()));
    for (const auto& stop : stops_)
      if (stop.empty() || stop.size() > max_stop_bytes)
        throw argument_error("stop", "strings of 1 .. " + std::to_string(max_stop_bytes) + " bytes",
                             std::to_string(stop.size()) + " bytes");
  }

  /// Appends to `out` the text that surely precedes any stop string. Once stopped() it appends nothing.
  void add(std::string_view piece, std::string& out) {
    if (stopped_) return;
    if (stops_.empty()) {
      out += piece;
      return;
    }
    held_ += piece;
    // The stop string that is complete first wins; of several, the longest. So the result does not depend on how the
    // text was cut into pieces.
    std::size_t begin = 0, end = std::string::npos;
    for (const auto& stop : stops_) {
      const std::size_t at = held_.find(stop);
      if (at == std::string::npos || at + stop.size() > end || (at + stop.size() == end && at > begin)) continue;
      begin = at;
      end = at + stop.size();
    }
    if (end != std::string::npos) {
      out.append(held_, 0, begin);
      held_.clear();
      stopped_ = true;
      return;
    }
    const std::size_t sure = held_.size() - undecided();
    out.append(held_, 0, sure);
    held_.erase(0, sure);
  }

  /// Notes that the stream has ended without a stop string, and appends the text that was held back.
  void finish(std::string& out) {
    out += held_;
    held_.clear();
  }

  bool stopped() const noexcept { return stopped_; }

 private:
  /// Length of the longest end of the held text that is a beginning of a stop string.
  std::size_t undecided() const {
    std::size_t longest = 0;
    for (const auto& stop : stops_)
      for (std::size_t length = (std::min)(stop.size() - 1, held_.size()); length > longest; --length)
        if (std::string_view(held_).substr(held_.size() - length) == std::string_view(stop).substr(0, length))
          longest = length;
    return longest;
  }

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace intaglio::runtime
