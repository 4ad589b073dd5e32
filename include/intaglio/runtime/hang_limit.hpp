// SPDX-License-Identifier: MIT
// How long to wait for a sequence before it counts as hung.
#pragma once

#include <chrono>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/runtime/pace.hpp"

namespace intaglio::runtime {

/// Hang limit of a submission of a sequence. It is longer until the sequence has ended once.
inline std::chrono::nanoseconds hang_limit(const pace& speed) {
  return speed.segment_ms() > 0 ? gpu::queue::hang_limit : gpu::queue::first_hang_limit;
}

}  // namespace intaglio::runtime
