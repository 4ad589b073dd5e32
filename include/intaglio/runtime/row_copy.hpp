// SPDX-License-Identifier: MIT
// The host's copy of rows that cross from one stage to the next.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>

#include "intaglio/core/joining_thread.hpp"

namespace intaglio::runtime {

/// Copies rows. One thread copies about 7 GB/s (host of two H200), so rows of 4 MiB and more are copied by up to four
/// threads on hosts with 16 hardware threads and more.
inline void copy_rows(std::byte* to, std::span<const std::byte> from) {
  constexpr std::size_t least = std::size_t{2} << 20, most_helpers = 3;
  if (from.size() < 2 * least) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return;
  }
  static const std::size_t threads = std::thread::hardware_concurrency() / 8;  // asking takes longer than a small copy
  const std::size_t helpers = (std::min)({from.size() / least - 1, threads - (threads == 0 ? 0 : 1), most_helpers}),
                    part = from.size() / (helpers + 1);
  std::array<joining_thread, most_helpers> copying;
  std::size_t at = 0;
  try {
    for (std::size_t i = 0; i < helpers; ++i, at += part)
      copying[i] = joining_thread([=] { std::memcpy(to + at, from.data() + at, part); });
  } catch (const std::system_error&) {  // no more threads: this one copies the rest
  }
  std::memcpy(to + at, from.data() + at, from.size() - at);
}

}  // namespace intaglio::runtime
