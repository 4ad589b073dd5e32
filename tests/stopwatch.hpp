// SPDX-License-Identifier: MIT
// A time that tests can compare with a limit while the machine does other work as well.
#pragma once

#include <chrono>
#include <fstream>

namespace intaglio::testing {

/// Wall time, less what the calling thread waited for a core (Linux's schedstat; nothing is taken off where that is not
/// kept).
class stopwatch {
 public:
  double seconds() const {
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_;
    return wall.count() - (waited() - waited_before_);
  }

 private:
  static double waited() {
    double on_a_core = 0, nanoseconds = 0;
    std::ifstream("/proc/thread-self/schedstat") >> on_a_core >> nanoseconds;
    return nanoseconds * 1e-9;
  }

  double waited_before_ = waited();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace intaglio::testing
