// SPDX-License-Identifier: MIT
// How long a wait for a sequence goes on without a sign of life.
#pragma once

#include <chrono>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/runtime/pace.hpp"

namespace intaglio::runtime {

/// Hang limit of a submission of a sequence: longer until the sequence was seen to end.
inline std::chrono::nanoseconds hang_limit(const pace& speed) {
  return speed.segment_ms() > 0 ? gpu::queue::hang_limit : gpu::queue::first_hang_limit;
}

}  // namespace intaglio::runtime
