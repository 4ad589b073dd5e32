// SPDX-License-Identifier: MIT
// The file of a pipeline cache: its header, its checksum, and reading and replacing it whole. Nothing here calls
// Vulkan.
#pragma once

#include <intaglio/core/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace intaglio::gpu {

/// $XDG_CACHE_HOME/intaglio, else ~/.cache/intaglio; empty where neither variable holds an absolute path.
inline std::string default_cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/intaglio";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/intaglio";
  return {};
}

namespace detail {

inline constexpr std::array<char, 8> cache_magic{'I', 'N', 'T', 'G', 'P', 'I', 'P', 'E'};
inline constexpr std::uint32_t cache_version = 1;
inline constexpr std::uint64_t cache_limit_bytes = std::uint64_t{256} << 20U;

/// What a cache is bound to. Compared field by field, since a file may come from another machine.
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
static_assert(std::has_unique_object_representations_v<cache_header>, "written as it lies in memory: no padding");

/// FNV-1a over 64-bit words, the rest bytewise.
inline std::uint64_t checksum(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325U) {
  constexpr std::uint64_t prime = 0x100000001b3U;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 29U;  // the high bits of a word would else never reach the low ones
  }
  for (; i < bytes.size(); ++i) hash = (hash ^ static_cast<std::uint8_t>(bytes[i])) * prime;
  return hash;
}

inline std::uint64_t checksum(cache_header header, std::string_view body) {
  header.checksum = 0;
  return checksum(body, checksum(std::string_view(reinterpret_cast<const char*>(&header), sizeof header)));
}

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

/// Takes a file apart. @return what is wrong with it, or empty, and then `note` and `data` are set
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

/// A file descriptor that closes itself.
struct descriptor {
  int number = -1;
  explicit descriptor(int opened) : number(opened) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

inline std::string system_text(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

/// Reads a regular file up to the limit. @return what went wrong, or empty; a file that is not there is empty and no
/// fault
inline std::string read_whole_file(const std::string& path, std::string& content) {
  const descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));  // a pipe must not make us wait
  if (file.number < 0) return errno == ENOENT ? std::string{} : system_text("cannot be opened");
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return system_text("cannot be examined");
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (static_cast<std::uint64_t>(status.st_size) > cache_limit_bytes) return "it is larger than any cache of ours";
  if (status.st_size == 0) return "it is empty";
  content.resize(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < content.size();) {
    const ::ssize_t got = ::read(file.number, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_text("cannot be read");
    if (got == 0) return "it shrank while it was read";
    done += static_cast<std::size_t>(got);
  }
  return {};
}

/// Makes the folder and all above it. @return what went wrong, or empty
inline std::string make_folders(const std::string& folder) {
  for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR) {
      struct stat status {};  // EROFS or EACCES for what is already there is no fault
      if (::stat(part.c_str(), &status) != 0) return system_text("its folder cannot be made");
    }
    if (end == std::string::npos) return {};
  }
}

/// Replaces a file: a temporary beside it, flushed to the disk, takes its name. @return what went wrong, or empty
inline std::string write_whole_file(const std::string& folder, const std::string& path, std::string_view content) {
  if (std::string problem = make_folders(folder); !problem.empty()) return problem;
  std::string temporary = path + ".XXXXXX";
  std::string problem;
  {
    const descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (file.number < 0) return system_text("no file can be made in its folder");
    for (std::size_t done = 0; done < content.size() && problem.empty();) {
      const ::ssize_t put = ::write(file.number, content.data() + done, content.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) problem = system_text("cannot be written");
      else done += static_cast<std::size_t>(put);
    }
    if (problem.empty() && ::fsync(file.number) != 0) problem = system_text("cannot be written");
  }
  if (problem.empty() && ::rename(temporary.c_str(), path.c_str()) != 0) problem = system_text("cannot be replaced");
  if (!problem.empty()) ::unlink(temporary.c_str());
  return problem;
}

}  // namespace detail

}  // namespace intaglio::gpu
