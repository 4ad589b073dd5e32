// SPDX-License-Identifier: MIT
// A file that somebody still writes, from its beginning to its end, such as a download: who reads it waits for the
// bytes.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::io {

/// Any thread may call.
class file_arrival {
 public:
  virtual ~file_arrival() = default;
  /// Bytes of the whole file.
  virtual std::uint64_t size() const = 0;
  /// Returns when the first `end` bytes are in the file. @throws what ended it; that what has been read is true no more
  virtual void wait(std::uint64_t end) const = 0;
  /// Returns when all is there and was found to be what was promised. @throws as wait()
  virtual void finish() const = 0;
};

}  // namespace intaglio::io
