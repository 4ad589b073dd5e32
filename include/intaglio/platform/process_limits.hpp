// SPDX-License-Identifier: MIT
// Limits of work in a child process, and its result.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace intaglio::platform {
/// Limits of work that may not end, or may want too much memory.
struct process_limits {
  unsigned seconds = 2;  ///< seconds of wall-clock time, and of CPU time
  std::size_t output_bytes = std::size_t{16} << 20;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  ///< beyond the memory that the process already has
};

/// The result of limited work: its text, or why there is none.
struct limited_result {
  bool done = false;
  std::string text;  ///< the text of the work, or of the failure
};

}  // namespace intaglio::platform
