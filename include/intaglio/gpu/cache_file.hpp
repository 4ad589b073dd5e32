// SPDX-License-Identifier: MIT
// The file of a pipeline cache: its header, its checksum, and functions that read it and replace it as a whole. Nothing
// here calls Vulkan.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace intaglio::gpu {

/// The folder `intaglio` where the system keeps a user's caches (platform::cache_home); empty where it names none.
inline std::string default_cache_folder() {
  const std::string home = platform::cache_home();
  return home.empty() ? home : home + "/intaglio";
}

namespace detail {

/// The first bytes of a file of pipelines.
inline constexpr std::array<char, 8> cache_magic{'I', 'N', 'T', 'G', 'P', 'I', 'P', 'E'};
/// Version of the layout of a file of pipelines.
inline constexpr std::uint32_t cache_version = 1;
/// A larger file of pipelines is not read.
inline constexpr std::uint64_t cache_limit_bytes = std::uint64_t{256} << 20U;

/// What a cache file is bound to. The fields are compared one by one, since a file may come from another machine.
struct cache_key {
  std::array<std::uint8_t, 16> device{}, driver{};
  std::uint32_t vendor_id = 0, device_id = 0, driver_version = 0, api_version = 0;
  std::uint64_t plan = 0;
  friend bool operator==(const cache_key&, const cache_key&) = default;
};

/// The beginning of the file, followed by the note and the driver's data.
struct cache_header {
  std::array<char, 8> magic = cache_magic;
  std::uint32_t version = cache_version;
  std::uint32_t header_bytes = sizeof(cache_header);
  cache_key key;
  std::uint64_t note_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t checksum = 0;  ///< of the whole file with this field zero
};
static_assert(std::has_unique_object_representations_v<cache_header>, "written as it is in memory: no padding");

/// FNV-1a over 64-bit words, the rest bytewise.
inline std::uint64_t checksum(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325U) {
  constexpr std::uint64_t prime = 0x100000001b3U;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 29U;  // without this the high bits of a word would not reach the low ones
  }
  for (; i < bytes.size(); ++i) hash = (hash ^ static_cast<std::uint8_t>(bytes[i])) * prime;
  return hash;
}

/// Checksum of a header, whose own field counts as 0, and of the bytes that follow it.
inline std::uint64_t checksum(cache_header header, std::string_view body) {
  header.checksum = 0;
  return checksum(body, checksum(std::string_view(reinterpret_cast<const char*>(&header), sizeof header)));
}

/// The bytes of a file: header, note and the driver's data.
inline std::string frame_cache(const cache_key& key, std::string_view note, std::string_view data) {
  cache_header header;
  header.key = key;
  header.note_bytes = note.size();
  header.data_bytes = data.size();
  std::string body(note);
  body += data;
  header.checksum = checksum(header, body);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

/// Splits a file into its parts. @return the problem, or empty where `note` and `data` are set
inline std::string unframe_cache(const cache_key& key, std::string_view file, std::string& note, std::string& data) {
  cache_header header;
  if (file.size() < sizeof header)
    return "expected a header of " + std::to_string(sizeof header) + " bytes, found " + std::to_string(file.size());
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != cache_magic) return "offset 0x0: not a pipeline cache of intaglio";
  if (header.version != cache_version || header.header_bytes != sizeof header)
    return "offset 0x8: expected version " + std::to_string(cache_version) + ", found " +
           std::to_string(header.version);
  const std::uint64_t body = file.size() - sizeof header;
  if (header.note_bytes > body || header.data_bytes != body - header.note_bytes)
    return "expected " + std::to_string(header.note_bytes) + " and " + std::to_string(header.data_bytes) +
           " bytes after the header, found " + std::to_string(body);
  if (header.checksum != checksum(header, file.substr(sizeof header))) return "its checksum does not hold";
  if (!(header.key == key)) return "it belongs to another driver, device or plan";
  note = file.substr(sizeof header, static_cast<std::size_t>(header.note_bytes));
  data = file.substr(sizeof header + static_cast<std::size_t>(header.note_bytes));
  return {};
}

/// An open file that closes itself.
struct opened_file {
  platform::file_number number = -1;
  explicit opened_file(platform::file_number opened) : number(opened) {}
  opened_file(const opened_file&) = delete;
  opened_file& operator=(const opened_file&) = delete;
  ~opened_file() {
    if (number >= 0) platform::close_file(number);
  }
};

inline std::string system_text(const char* what) { return std::string(what) + ": " + platform::system_text(errno); }

/// Reads a regular file up to the limit. @return the problem, or empty. A missing file gives no content and is no
/// problem
inline std::string read_whole_file(const std::string& path, std::string& content) {
  const opened_file file(platform::open_file(platform::path_of(path), platform::file_access::read));
  if (file.number < 0) return errno == ENOENT ? std::string{} : system_text("cannot be opened");
  platform::file_status status;
  if (!platform::status_of(file.number, status)) return system_text("cannot be examined");
  if (status.kind != platform::file_kind::regular) return "it is no regular file";
  if (static_cast<std::uint64_t>(status.size) > cache_limit_bytes) return "it is larger than any cache of ours";
  if (status.size == 0) return "it is empty";
  content.resize(static_cast<std::size_t>(status.size));
  for (std::size_t done = 0; done < content.size();) {
    const std::int64_t got =
        platform::read_at(file.number, done, std::as_writable_bytes(std::span(content).subspan(done)));
    if (got < 0) return system_text("cannot be read");
    if (got == 0) return "it shrank while it was read";
    done += static_cast<std::size_t>(got);
  }
  return {};
}

/// Replaces a file: a temporary file beside it is flushed to the disk and renamed. @return the problem, or empty
inline std::string write_whole_file(const std::string& folder, const std::string& path, std::string_view content) {
  if (!platform::make_private_folders(platform::path_of(folder))) return system_text("its folder cannot be made");
  std::string temporary = path;
  std::string problem;
  {
    const opened_file file(platform::make_private_file(temporary));
    if (file.number < 0) return system_text("no file can be made in its folder");
    for (std::size_t done = 0; done < content.size() && problem.empty();) {
      const std::int64_t put = platform::write_some(file.number, std::as_bytes(std::span(content).subspan(done)));
      if (put <= 0) problem = system_text("cannot be written");
      else done += static_cast<std::size_t>(put);
    }
    if (problem.empty() && !platform::flush_file(file.number)) problem = system_text("cannot be written");
  }
  if (problem.empty() && !platform::replace_file(platform::path_of(temporary), platform::path_of(path)))
    problem = system_text("cannot be replaced");
  if (!problem.empty()) platform::remove_file(platform::path_of(temporary));
  return problem;
}

}  // namespace detail

}  // namespace intaglio::gpu
