// SPDX-License-Identifier: MIT
// A file that appears as a whole or not at all: it is written beside its destination, flushed to the disk, then
// renamed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/platform/files.hpp"
#include "intaglio/platform/path_text.hpp"
#include "intaglio/platform/process.hpp"

namespace intaglio::io {

/// Writes such a file. Not movable; one writer at a time. Unless commit() returned, nothing remains.
class atomic_file {
 public:
  /// @throws file_error where the folder accepts no new file, or something other than a file has the name
  explicit atomic_file(const std::filesystem::path& path) : path_(path) {
    if (!path.has_filename())
      throw file_error(path.string(), std::nullopt, "cannot be written", "the name of a file",
                       path.empty() ? "none" : "a folder's");
    platform::file_status there;
    if (platform::status_of(path, there) && there.kind != platform::file_kind::regular)
      throw file_error(path.string(), std::nullopt, "cannot be replaced", "a file or nothing",
                       there.kind == platform::file_kind::folder ? "a folder" : "a pipe or device");
    for (int attempt = 0; attempt < 100; ++attempt) {
      temporary_ = path;
      temporary_ +=
          platform::path_of(".partial-" + std::to_string(platform::process_id()) + "-" + std::to_string(attempt));
      descriptor_ = platform::open_file(temporary_, platform::file_access::write_new);
      if (descriptor_ >= 0) return;
      if (errno != EEXIST) break;
    }
    throw file_error(temporary_.string(), std::nullopt, "cannot create: " + platform::system_text(errno));
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() {
    if (descriptor_ >= 0) platform::close_file(descriptor_);
    if (!committed_) platform::remove_file(temporary_);
  }

  /// Bytes written so far.
  std::uint64_t size() const { return size_; }

  /// @throws file_error with the system's text (disk full, ...)
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::int64_t count = platform::write_some(descriptor_, bytes);
      if (count <= 0) fail("cannot write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      size_ += static_cast<std::uint64_t>(count);
    }
  }

  /// Puts the file at its destination. @throws file_error; then the destination is unchanged
  void commit() {
    if (!platform::flush_file(descriptor_)) fail("cannot flush", errno);
    const bool closed = platform::close_file(descriptor_);
    descriptor_ = -1;
    if (!closed) fail("cannot close", errno);
    if (!platform::replace_file(temporary_, path_))
      fail("cannot rename to '" + printable(path_.filename().string()) + "'", errno);
    committed_ = true;
    // The rename is done; a folder that cannot be flushed only makes it less certain after a power failure.
    platform::flush_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
  }

 private:
  [[noreturn]] void fail(const std::string& what, int number) const {
    throw file_error(temporary_.string(), size_, what + ": " + platform::system_text(number));
  }

  std::filesystem::path path_, temporary_;
  platform::file_number descriptor_ = -1;
  std::uint64_t size_ = 0;
  bool committed_ = false;
};

}  // namespace intaglio::io
