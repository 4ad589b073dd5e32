// SPDX-License-Identifier: MIT
// A file that appears whole or not at all: written beside its place, flushed to the disk, then renamed.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "intaglio/core/error.hpp"

namespace intaglio::io {

/// Not movable; one writer at a time. Unless commit() returned, nothing remains.
class atomic_file {
 public:
  /// @throws file_error where the folder does not take a new file, or the place is taken by something else than a file
  explicit atomic_file(const std::filesystem::path& path) : path_(path) {
    struct ::stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
      throw file_error(path.string(), std::nullopt, "cannot be replaced", "a file or nothing",
                       S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device");
    for (int attempt = 0; attempt < 100; ++attempt) {
      temporary_ = path;
      temporary_ += ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
      descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ >= 0) return;
      if (errno != EEXIST) break;
    }
    throw file_error(temporary_.string(), std::nullopt, "cannot create: " + std::generic_category().message(errno));
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!committed_) ::unlink(temporary_.c_str());
  }

  /// Bytes written so far.
  std::uint64_t size() const { return size_; }

  /// @throws file_error with the system's text (disk full, ...)
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail("cannot write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      size_ += static_cast<std::uint64_t>(count);
    }
  }

  /// Puts the file in its place. @throws file_error; then the place is as it was
  void commit() {
    if (::fsync(descriptor_) != 0) fail("cannot flush", errno);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("cannot close", errno);
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail("cannot rename to '" + printable(path_.filename().string()) + "'", errno);
    committed_ = true;
    // The rename is done; a folder that cannot be flushed only makes it less certain after a power failure.
    const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    if (const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
      ::fsync(opened);
      ::close(opened);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what, int number) const {
    throw file_error(temporary_.string(), size_, what + ": " + std::generic_category().message(number));
  }

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  bool committed_ = false;
};

}  // namespace intaglio::io
