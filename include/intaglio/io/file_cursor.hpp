// SPDX-License-Identifier: MIT
// Reads little-endian fields of a file in sequence, through a small window.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

static_assert(std::endian::native == std::endian::little,
              "model files hold little-endian numbers and are read without conversion");

/// Reads fields one after another; every error names the field and its offset.
class file_cursor {
 public:
  explicit file_cursor(const mapped_file& file) : file_(&file) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return file_->size() - offset_; }
  const mapped_file& file() const { return *file_; }

  template <class T>
  T number(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    need(sizeof(T), what);
    T out;
    copy(&out, sizeof(T));
    return out;
  }

  /// Reads a u64 length and this number of bytes, at most `limit`.
  std::string text(std::string_view what, std::uint64_t limit) {
    const std::uint64_t start = offset_;
    const auto length = number<std::uint64_t>(what);
    if (length > limit)
      fail(start, std::string(what) + " is too long",
           "at most " + std::to_string((std::min)(limit, file_->size())) + " bytes", std::to_string(length));
    need(length, what);
    std::string out(static_cast<std::size_t>(length), '\0');
    copy(out.data(), out.size());
    return out;
  }

  void skip(std::uint64_t count, std::string_view what) {
    need(count, what);
    offset_ += count;
  }

  [[noreturn]] void fail(std::uint64_t offset, std::string what, std::string expected = {},
                         std::string found = {}) const {
    throw file_error(file_->path(), offset, std::move(what), std::move(expected), std::move(found));
  }

 private:
  static constexpr std::size_t window_bytes = 64 * 1024;

  void need(std::uint64_t count, std::string_view what) const {
    if (count > left())
      fail(offset_, std::string(what) + " runs past the end of the file (download cut short?)",
           std::to_string(count) + " bytes", std::to_string(left()));
  }
  void copy(void* out, std::size_t count) {
    auto* to = static_cast<std::byte*>(out);
    while (count != 0) {
      if (offset_ >= begin_ + window_.size()) {  // never in front of the window: fields are read forwards
        window_.resize(static_cast<std::size_t>((std::min<std::uint64_t>)(window_bytes, left())));
        begin_ = offset_;
        file_->read(begin_, window_);
      }
      const auto at = static_cast<std::size_t>(offset_ - begin_), chunk = (std::min)(count, window_.size() - at);
      std::memcpy(to, window_.data() + at, chunk);
      to += chunk;
      count -= chunk;
      offset_ += chunk;
    }
  }

  const mapped_file* file_;
  std::uint64_t offset_ = 0, begin_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace intaglio::io
