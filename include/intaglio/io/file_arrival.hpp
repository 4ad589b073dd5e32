// SPDX-License-Identifier: MIT
// A file that is still being written from its beginning to its end, such as a download. Readers wait for the bytes.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::io {

/// The state of such a file. Any thread may call its functions.
class file_arrival {
 public:
  virtual ~file_arrival() = default;
  /// Bytes of the complete file.
  virtual std::uint64_t size() const = 0;
  /// Waits until the first `end` bytes are in the file. @throws what ended the transfer, or that bytes which were
  /// already read have changed
  virtual void wait(std::uint64_t end) const = 0;
  /// Waits until the file is complete and verified. @throws as wait()
  virtual void finish() const = 0;
};

}  // namespace intaglio::io
