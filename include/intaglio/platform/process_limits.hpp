// SPDX-License-Identifier: MIT
// What work in a process of its own may take, and what comes of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace intaglio::platform {

struct process_limits {
  unsigned seconds = 2;  ///< of the clock, and of CPU time
  std::size_t output_bytes = std::size_t{16} << 20;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  ///< beyond what the process has already
};

/// What came of it: the text, or why there is none.
struct limited_result {
  bool done = false;
  std::string text;  ///< of the work, or of the failure
};

}  // namespace intaglio::platform
