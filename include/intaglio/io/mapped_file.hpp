// SPDX-License-Identifier: MIT
// A model file opened for reading. Readers copy with read(), which reports a file that was shortened meanwhile as an
// error. A mapping would raise SIGBUS there, so it is made only on request (leased_mapping.hpp).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/file_arrival.hpp"
#include "intaglio/platform/files.hpp"

namespace intaglio::io {

/// The bytes of a regular file, or of memory that the caller keeps alive; immutable. Movable; several threads may read.
class mapped_file {
 public:
  /// @throws file_error for a file that is missing, unreadable, empty or not regular; never waits on a pipe.
  /// @param arrival of a file that is still being written; reads wait for their bytes, and expect_unchanged() waits for
  /// all of them
  explicit mapped_file(const std::filesystem::path& path, std::shared_ptr<const file_arrival> arrival = nullptr)
      : path_(path.string()), arrival_(std::move(arrival)) {
    descriptor_ = platform::open_file(path, platform::file_access::read);
    if (descriptor_ < 0) refuse(errno == ENOENT ? "no such file" : "cannot open: " + platform::system_text(errno));
    if (!platform::status_of(descriptor_, opened_)) refuse("cannot read its status: " + platform::system_text(errno));
    if (opened_.kind != platform::file_kind::regular) refuse("not a regular file", "a file", kind(opened_.kind));
    size_ = arrival_ ? arrival_->size() : static_cast<std::uint64_t>(opened_.size);
    if (opened_.size < 0 || size_ == 0) refuse("the file is empty");
  }

  /// Makes a file called `name` from bytes in memory; `bytes` must outlive this object.
  static mapped_file from_memory(std::span<const std::byte> bytes, std::string name) {
    mapped_file out;
    out.path_ = std::move(name);
    out.memory_ = bytes.data();
    out.size_ = bytes.size();
    if (bytes.empty()) throw file_error(out.path_, std::nullopt, "the file is empty");
    return out;
  }

  mapped_file(mapped_file&& other) noexcept { swap(other); }
  mapped_file& operator=(mapped_file&& other) noexcept {
    mapped_file(std::move(other)).swap(*this);
    return *this;
  }
  ~mapped_file() { close(); }

  const std::string& path() const noexcept { return path_; }
  /// Bytes in the file when it was opened; for a file that is still arriving, of the complete file.
  std::uint64_t size() const noexcept { return size_; }

  /// True for bytes in memory.
  bool in_memory() const noexcept { return memory_ != nullptr; }
  /// The descriptor of the open file; -1 for bytes in memory.
  platform::file_number descriptor() const noexcept { return descriptor_; }
  /// Opens this file once more, for a user that outlives this object or locks the file. Not for bytes in memory.
  /// @throws file_error on failure (Linux needs /proc)
  mapped_file reopened() const {
    mapped_file out;
    out.path_ = path_;
    out.arrival_ = arrival_;
    out.size_ = size_;
    out.opened_ = opened_;
    out.descriptor_ = platform::opened_again(descriptor_);
    if (out.descriptor_ < 0) out.refuse("cannot open once more: " + platform::system_text(errno));
    return out;
  }

  /// Copies out.size() bytes from `offset`. @throws file_error where they are not all there (any more); as
  /// file_arrival::wait
  void read(std::uint64_t offset, std::span<std::byte> out) const {
    if (!range_inside(offset, out.size(), size_))
      throw file_error(path_, offset, "read past the end of the file", std::to_string(out.size()) + " bytes",
                       std::to_string(offset < size_ ? size_ - offset : 0));
    if (memory_ != nullptr) {
      if (!out.empty()) std::memcpy(out.data(), memory_ + offset, out.size());
      return;
    }
    if (arrival_) arrival_->wait(offset + out.size());
    for (std::size_t done = 0; done < out.size();) {
      const std::int64_t count = platform::read_at(descriptor_, offset + done, out.subspan(done));
      if (count < 0) throw file_error(path_, offset + done, "cannot read: " + platform::system_text(errno));
      if (count == 0 && arrival_) arrival_->finish();  // it knows the reason better
      if (count == 0)
        throw file_error(path_, offset + done, "the file was cut while it was being read",
                         std::to_string(size_) + " bytes", std::to_string(offset + done));
      done += static_cast<std::size_t>(count);
    }
  }

  /// Whether the open file's size or modification time changed after it was opened. A file that was replaced or deleted
  /// has not changed: the open one continues to exist.
  bool changed() const {
    if (memory_ != nullptr) return false;
    platform::file_status now;
    return !platform::status_of(descriptor_, now) || static_cast<std::uint64_t>(now.size) != size_ ||
           (!arrival_ && now.modified != opened_.modified);
  }
  /// @throws file_error where changed(); as file_arrival::finish
  void expect_unchanged() const {
    if (arrival_) arrival_->finish();
    if (changed())
      throw file_error(path_, std::nullopt, "the file changed while it was in use", "the bytes that were checked",
                       "others");
  }

  /// The whole file as memory, mapped at the first call (not by several threads at once). Touching a page after the
  /// end of a file that was shortened since raises SIGBUS; nothing in this library reads through it.
  std::span<const std::byte> mapping() {
    if (memory_ != nullptr) return {memory_, static_cast<std::size_t>(size_)};
    if (mapping_ == nullptr) {
      if (size_ > (std::numeric_limits<std::size_t>::max)()) refuse("too large to map");
      mapping_ = platform::map_file(descriptor_, static_cast<std::size_t>(size_));
      if (mapping_ == nullptr) refuse("cannot map: " + platform::system_text(errno));
    }
    return {static_cast<const std::byte*>(mapping_), static_cast<std::size_t>(size_)};
  }

 private:
  mapped_file() = default;

  static std::string kind(platform::file_kind of) {
    switch (of) {
      case platform::file_kind::folder:
        return "a folder";
      case platform::file_kind::pipe:
        return "a pipe";
      case platform::file_kind::socket:
        return "a socket";
      default:
        return "a device";
    }
  }
  // The destructor does not run for an object whose constructor throws.
  [[noreturn]] void refuse(std::string what, std::string expected = {}, std::string found = {}) {
    close();
    throw file_error(path_, std::nullopt, std::move(what), std::move(expected), std::move(found));
  }
  void close() noexcept {
    if (mapping_ != nullptr) platform::unmap_file(mapping_, static_cast<std::size_t>(size_));
    if (descriptor_ >= 0) platform::close_file(descriptor_);
    mapping_ = nullptr;
    descriptor_ = -1;
  }
  void swap(mapped_file& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(arrival_, other.arrival_);
    std::swap(memory_, other.memory_);
    std::swap(mapping_, other.mapping_);
    std::swap(size_, other.size_);
    std::swap(opened_, other.opened_);
    std::swap(descriptor_, other.descriptor_);
  }

  std::string path_;
  std::shared_ptr<const file_arrival> arrival_;
  const std::byte* memory_ = nullptr;
  const void* mapping_ = nullptr;
  std::uint64_t size_ = 0;
  platform::file_status opened_{};
  platform::file_number descriptor_ = -1;
};

/// Whether a file begins with these bytes. @throws file_error where it cannot be opened
inline bool begins_with(const std::filesystem::path& path, std::string_view text) {
  const mapped_file file(path);
  std::string begin(text.size(), '\0');
  if (file.size() >= begin.size()) file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin == text;
}

}  // namespace intaglio::io
