// SPDX-License-Identifier: MIT
// How long a wait for a sequence goes on without a sign of life.
#pragma once

#include <chrono>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/runtime/pace.hpp"

namespace intaglio::runtime {

inline std::chrono::nanoseconds patience(const pace& speed) {
  return speed.segment_ms() > 0 ? gpu::queue::patience : gpu::queue::first_patience;
}

}  // namespace intaglio::runtime
