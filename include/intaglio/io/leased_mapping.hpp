// SPDX-License-Identifier: MIT
// A file mapped to memory that a device may read in place for long. platform/steady_mapping.hpp says how each system
// keeps the bytes unchanged.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "intaglio/core/error.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/platform/steady_mapping.hpp"

namespace intaglio::io {

/// A mapping whose bytes do not change. Several threads may read.
class leased_mapping {
 public:
  /// Maps a file.
  /// @param alignment of the first byte and of the size, a power of two; zeros fill the end
  /// @param refusal gets the reason where the result is null
  /// @return null where the system gives no lease: the file is open for writing, is another user's, or its file system
  /// or the system has no leases
  /// @error argument_error: no power of two; file_error: the file was replaced or changed after it was opened, or
  /// cannot be mapped
  static std::shared_ptr<const leased_mapping> of(const mapped_file& file, std::uint64_t alignment,
                                                  std::string& refusal) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
      throw argument_error("alignment of a mapping", "a power of two", std::to_string(alignment));
    if (file.in_memory()) {
      refusal = "it is no file";
      return nullptr;
    }
    std::shared_ptr<leased_mapping> out(new leased_mapping(file.reopened()));
    if (const int problem = out->mapping_.lease(); problem != 0) {
      refusal = problem == EAGAIN   ? "another program has it open for writing"
                : problem == EACCES ? "it belongs to another user, so it cannot be leased"
                                    : "it cannot be leased: " + platform::system_text(problem);
      return nullptr;
    }
    out->file_.expect_unchanged();
    if (const int problem = out->mapping_.map(alignment); problem != 0)
      throw file_error(out->file_.path(), std::nullopt, "cannot map: " + platform::system_text(problem));
    return out;
  }

  leased_mapping(const leased_mapping&) = delete;
  leased_mapping& operator=(const leased_mapping&) = delete;

  const mapped_file& file() const noexcept { return file_; }
  /// The file's bytes, and zeros up to a multiple of the alignment.
  std::span<const std::byte> bytes() const noexcept { return mapping_.bytes(); }
  /// True once somebody opened the file for writing: the bytes are now a copy in memory of the process.
  bool copied() const noexcept { return mapping_.copied(); }

  /// Reads a range into memory and maps its pages.
  /// @error file_error: the system cannot read it
  void populate(std::uint64_t from, std::uint64_t count) const {
    if (!mapping_.populate(from, count))
      throw file_error(file_.path(), from, "cannot read", std::to_string(count) + " bytes", "an error of the system");
  }

  /// @error file_error: the bytes could not be copied before they changed; zeros may replace them
  void expect_unchanged() const {
    if (mapping_.lost())
      throw file_error(file_.path(), std::nullopt,
                       "the file was cut or written to while it was read in place, faster than it could be copied",
                       "the bytes that were checked", "others");
  }

 private:
  explicit leased_mapping(mapped_file file)
      : file_(std::move(file)), mapping_(file_.descriptor(), file_.size(), [this](std::span<std::byte> out) {
          file_.read(0, out);
          return !file_.changed();
        }) {}

  mapped_file file_;
  platform::steady_mapping mapping_;
};

}  // namespace intaglio::io
