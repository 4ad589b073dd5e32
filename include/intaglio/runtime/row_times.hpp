// SPDX-License-Identifier: MIT
// The times of a batch's passes by their number of rows, and what a pass with rows of drafts costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "intaglio/plan/fit.hpp"

namespace intaglio::runtime {

/// Measured times of passes over 1 to slot_count rows.
class row_times {
 public:
  explicit row_times(std::uint32_t slot_count = 0) : ms_(slot_count + 1, -1), slot_count_(slot_count) {}

  /// Records the time of a pass. The first pass over a number of rows is ignored, since it may have compiled kernels.
  void observe(std::uint32_t rows, double ms) noexcept {
    double& mean = ms_[rows];
    mean = mean < 0 ? 0 : mean == 0 ? ms : 0.8 * mean + 0.2 * ms;
  }
  bool has(std::uint32_t rows) const noexcept { return rows < ms_.size() && ms_[rows] > 0; }
  /// A time in passes over `rows` rows; 0 if their time is unknown.
  double in_passes(double ms, std::uint32_t rows) const noexcept { return has(rows) ? ms / ms_[rows] : 0; }

  /// The cost of a pass over `ready` rows and `drafted` rows of drafts, in passes over the `ready` rows alone: as it
  /// was measured, else in line with the nearest numbers of rows that were. After the largest of these a pass of the
  /// same recording is expected to take as long, since GPUs compute a tile's rows together; it is measured when it is
  /// tried.
  double cost(std::uint32_t ready, std::uint32_t drafted) const noexcept {
    const double guess = 1 + drafted / 2.0;
    if (!has(ready)) return guess;
    const std::uint32_t wanted = ready + drafted;
    std::uint32_t below = (std::min)(wanted, slot_count_), above = (std::min)(wanted, slot_count_);
    while (below > ready && !has(below)) --below;
    while (above <= slot_count_ && !has(above)) ++above;
    if (below == ready && above > slot_count_) return guess;
    const double at_below = relative(below, ready);
    if (below == wanted) return at_below;
    if (above > slot_count_) {
      const bool is_same = plan::recorded_rows(below, slot_count_) == plan::recorded_rows(wanted, slot_count_);
      return is_same ? at_below : 1 + (at_below - 1) * drafted / (below - ready);
    }
    return at_below + (relative(above, ready) - at_below) * (wanted - below) / (above - below);
  }

 private:
  /// No pass with drafts is expected to be cheaper than one without.
  double relative(std::uint32_t rows, std::uint32_t ready) const noexcept {
    return (std::max)(1.0, ms_[rows] / ms_[ready]);
  }

  std::vector<double> ms_;  ///< by rows; 0 and less: unknown
  std::uint32_t slot_count_;
};

}  // namespace intaglio::runtime
