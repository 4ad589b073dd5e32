// SPDX-License-Identifier: MIT
// How threads of a cut session's stages wait: they poll for a short time before they sleep.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <chrono>
#include <thread>

#include "intaglio/gpu/device.hpp"

namespace intaglio::runtime {

/// How long the threads of a session's stages poll before they sleep: a token crosses twice, and waking a thread takes
/// longer than the copy. CPU drivers and small hosts have no core to spare.
inline std::chrono::microseconds stage_poll(const gpu::device& on) {
  static const bool spare = std::thread::hardware_concurrency() >= 4;  // asked once: each wait comes here
  return std::chrono::microseconds(spare && on.description().type != gpu::device_type::cpu ? 2000 : 0);
}
/// Polls until `done` or for a time. @return whether it is done
template <class Done>
bool poll_for(std::chrono::microseconds time, const Done& done) {
  const auto start = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::steady_clock::now() - start >= time) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace intaglio::runtime
