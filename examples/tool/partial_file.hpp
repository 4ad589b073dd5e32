// SPDX-License-Identifier: MIT
// A file that is written from its beginning on, whose SHA-256 is known up to where it is.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/io/sha256.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace intaglio::tool {

/// The first bytes of a file on its way to the disk. Each failure of the disk is a file_error.
class partial_file {
 public:
  /// Opens the file, or makes it, and reads its present content.
  explicit partial_file(std::string path) : path_(std::move(path)) {
    file_ = platform::open_file(platform::path_of(path_), platform::file_access::journal_no_link);
    if (file_ < 0) fail("cannot open", errno);
    std::vector<std::byte> piece(std::size_t{1} << 20);
    for (;;) {
      const std::int64_t count = platform::read_at(file_, size_, piece);
      if (count < 0) fail("cannot read", errno);
      if (count == 0) break;
      hash_.add(std::span(piece).first(static_cast<std::size_t>(count)));
      size_ += static_cast<std::uint64_t>(count);
    }
  }
  partial_file(const partial_file&) = delete;
  partial_file& operator=(const partial_file&) = delete;
  ~partial_file() {
    if (file_ >= 0) platform::close_file(file_);
  }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  void empty() {
    if (!platform::cut_file(file_, 0)) fail("cannot be emptied", errno);
    size_ = 0;
    hash_ = {};
  }
  void append(std::string_view data) {
    while (!data.empty()) {
      const std::int64_t count = platform::write_at(file_, size_, std::as_bytes(std::span(data)));
      if (count <= 0) fail("cannot write", errno);
      hash_.add(std::as_bytes(std::span(data.data(), static_cast<std::size_t>(count))));
      size_ += static_cast<std::uint64_t>(count);
      data.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void flush() {
    if (!platform::flush_file(file_)) fail("cannot flush", errno);
  }
  /// SHA-256 of all bytes; nothing may be added afterwards.
  std::string sha256() { return hash_.hex(); }

 private:
  [[noreturn]] void fail(const std::string& what, int number) const {
    throw file_error(path_, size_,
                     what + ": " + platform::system_text(number) +
                         (platform::is_full(number) ? "; what is there is kept, the next run goes on from it" : ""));
  }

  std::string path_;
  platform::file_number file_ = -1;
  std::uint64_t size_ = 0;
  io::sha256 hash_;
};

}  // namespace intaglio::tool
