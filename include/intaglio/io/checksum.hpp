// SPDX-License-Identifier: MIT
// XXH3 of 64 bits, by the xxHash library's header: the checksum of packed files. It detects damage, not forgery.
#pragma once

#include "intaglio/core/compiler.hpp"

// Keeps the library's names out of programs that link it.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace intaglio::io {

/// XXH3 of bytes, 64 bits.
inline std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

/// XXH3 of bytes that are added piece by piece.
class running_checksum {
 public:
  running_checksum() { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  /// The checksum of the bytes that were added after the last call.
  std::uint64_t take() {
    const std::uint64_t out = XXH3_64bits_digest(&state_);
    XXH3_64bits_reset(&state_);
    return out;
  }

 private:
  XXH3_state_t state_;
};

}  // namespace intaglio::io
