// SPDX-License-Identifier: MIT
// platform/steady_mapping.hpp on Windows. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/platform/files.hpp"

namespace intaglio::platform {

/// A mapping whose bytes do not change: nobody can write a file that opened_again() has open.
class steady_mapping {
 public:
  steady_mapping(file_number file, std::uint64_t size, whole_reader) : file_(file), size_(size) {}
  steady_mapping(const steady_mapping&) = delete;
  steady_mapping& operator=(const steady_mapping&) = delete;
  ~steady_mapping() {
    if (address_ != nullptr) unmap_file(address_, static_cast<std::size_t>(size_));
  }

  /// Does nothing. @return 0
  int lease() { return 0; }
  /// Maps the file. Windows fills the last page with zeros and maps nothing after it. @return 0 or an errno
  int map(std::uint64_t alignment) {
    const std::uint64_t step = (std::max)(alignment, page_size());
    if (step > page_size()) return ENOTSUP;
    address_ = map_file(file_, static_cast<std::size_t>(size_));
    if (address_ == nullptr) return errno;
    bytes_ = {static_cast<const std::byte*>(address_), static_cast<std::size_t>((size_ + step - 1) / step * step)};
    return 0;
  }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  bool copied() const noexcept { return false; }
  bool lost() const noexcept { return false; }
  bool populate(std::uint64_t, std::uint64_t) const { return true; }

 private:
  file_number file_;
  std::uint64_t size_;
  const void* address_ = nullptr;
  std::span<const std::byte> bytes_;
};

}  // namespace intaglio::platform
