// SPDX-License-Identifier: MIT
// The progress of a long operation on a file.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace intaglio::io {

/// How much of a file is done.
struct file_progress {
  std::uint64_t bytes = 0, total_bytes = 0;
  std::size_t tensors = 0, total_tensors = 0;
  std::string_view tensor;  ///< the current tensor
};

}  // namespace intaglio::io
