// SPDX-License-Identifier: MIT
// platform/files.hpp on POSIX systems. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "intaglio/platform/file_types.hpp"

namespace intaglio::platform {

namespace detail {
/// Repeats a call that a signal ended early. @return its result
template <class Call>
auto repeated(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}
inline file_status status_from(const struct ::stat& from) {
  const file_kind kind = S_ISREG(from.st_mode)    ? file_kind::regular
                         : S_ISDIR(from.st_mode)  ? file_kind::folder
                         : S_ISFIFO(from.st_mode) ? file_kind::pipe
                         : S_ISSOCK(from.st_mode) ? file_kind::socket
                                                  : file_kind::device;
#if defined(__APPLE__)
  const ::timespec& when = from.st_mtimespec;
#else
  const ::timespec& when = from.st_mtim;
#endif
  return {kind, static_cast<std::int64_t>(from.st_size),
          static_cast<std::int64_t>(when.tv_sec) * 1'000'000'000 + static_cast<std::int64_t>(when.tv_nsec)};
}
}  // namespace detail
/// Opens a file. @return negative on failure: errno says why
inline file_number open_file(const std::filesystem::path& path, file_access how) {
  constexpr int flags[] = {O_RDONLY | O_NONBLOCK | O_NOCTTY, O_RDONLY | O_NOCTTY,
                           O_WRONLY | O_CREAT | O_EXCL,      O_RDWR | O_CREAT,
                           O_RDWR | O_CREAT | O_NOFOLLOW,    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW};
  const ::mode_t rights = how == file_access::append_private ? 0600 : 0666;
  return detail::repeated(
      [&] { return ::open(path.c_str(), flags[static_cast<std::size_t>(how)] | O_CLOEXEC, rights); });
}
/// Closes a file. @return whether everything that was written has arrived
inline bool close_file(file_number file) { return ::close(file) == 0; }
/// Opens an open file once more, with its own lock and lease. It needs /proc.
inline file_number opened_again(file_number file) {
  return open_file("/proc/self/fd/" + std::to_string(file), file_access::read);
}
/// The kind, size and modification time of an open file or of a path. @return false: errno says why
inline bool status_of(file_number file, file_status& out) {
  struct ::stat status {};
  if (::fstat(file, &status) != 0) return false;
  out = detail::status_from(status);
  return true;
}
inline bool status_of(const std::filesystem::path& path, file_status& out) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  out = detail::status_from(status);
  return true;
}

/// Reads at an offset. @return bytes, 0 at the end of the file, -1 on failure
inline std::int64_t read_at(file_number file, std::uint64_t offset, std::span<std::byte> out) {
  return detail::repeated([&] { return ::pread(file, out.data(), out.size(), static_cast<::off_t>(offset)); });
}
inline std::int64_t write_at(file_number file, std::uint64_t offset, std::span<const std::byte> bytes) {
  return detail::repeated([&] { return ::pwrite(file, bytes.data(), bytes.size(), static_cast<::off_t>(offset)); });
}  ///< writes at an offset. @return bytes, -1 on failure
/// Reads at the current position of a pipe, terminal or file. @return bytes, 0 at the end, -1 on failure
inline std::int64_t read_some(file_number file, std::span<std::byte> out) {
  return detail::repeated([&] { return ::read(file, out.data(), out.size()); });
}
/// Writes after the bytes that were written before.
inline std::int64_t write_some(file_number file, std::span<const std::byte> bytes) {
  return detail::repeated([&] { return ::write(file, bytes.data(), bytes.size()); });
}
inline bool cut_file(file_number file, std::uint64_t size) {  ///< cuts or extends a file to `size` bytes
  return ::ftruncate(file, static_cast<::off_t>(size)) == 0;
}
/// Waits until the disk has what was written.
inline bool flush_file(file_number file) { return ::fsync(file) == 0; }
/// Flushes the names in a folder to the disk, where the system can do that.
inline void flush_folder(const std::filesystem::path& folder) {
  const file_number opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  ::fsync(opened);
  ::close(opened);
}
/// Renames a file and replaces the one that has the new name.
inline bool replace_file(const std::filesystem::path& from, const std::filesystem::path& over) {
  return std::rename(from.c_str(), over.c_str()) == 0;
}
inline bool remove_file(const std::filesystem::path& path) { return ::unlink(path.c_str()) == 0; }  ///< removes a file

/// Locks a file against other processes that lock it, until it is closed.
/// @param waits whether it waits for another process that has the lock
/// @return false: errno is EWOULDBLOCK where another process has it
inline bool lock_file(file_number file, bool waits = false) {
  return detail::repeated([&] { return ::flock(file, waits ? LOCK_EX : LOCK_EX | LOCK_NB); }) == 0;
}
/// Locks a folder like a file. @return negative where lock_file fails or the folder cannot be opened
inline file_number lock_folder(const std::filesystem::path& path) {
  const file_number opened = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0 || lock_file(opened)) return opened;
  const int number = errno;
  ::close(opened);
  errno = number;
  return -1;
}
/// @{
/// Maps the whole file to memory for reading, until unmap_file. Reading a page past the end of a file that was
/// shortened since raises SIGBUS.
/// @return null on failure
inline const void* map_file(file_number file, std::size_t size) {
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  return address == MAP_FAILED ? nullptr : address;
}
inline void unmap_file(const void* address, std::size_t size) { ::munmap(const_cast<void*>(address), size); }
/// @}
namespace detail {
inline std::string home_of(const char* variable, const char* below_home) {
  const char* const chosen = std::getenv(variable);
  if (chosen != nullptr && chosen[0] == '/') return chosen;
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + below_home;
  return {};
}
}  // namespace detail
/// The variables that cache_home() and state_home() read, for messages.
inline constexpr const char* home_variables = "XDG_CACHE_HOME or HOME";
/// The folder $XDG_CACHE_HOME, else ~/.cache; empty where neither variable holds an absolute path.
inline std::string cache_home() { return detail::home_of("XDG_CACHE_HOME", "/.cache"); }
/// The folder $XDG_STATE_HOME, else ~/.local/state; empty where neither variable holds an absolute path.
inline std::string state_home() { return detail::home_of("XDG_STATE_HOME", "/.local/state"); }
/// Makes the folder and all above it, for this user only. @return whether the folder exists
inline bool make_private_folders(const std::filesystem::path& folder) {
  const std::string whole = folder.string();
  for (std::size_t end = whole.find('/', 1);; end = whole.find('/', end + 1)) {
    const std::string part = whole.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST && errno != EISDIR) {
      const int number = errno;
      struct ::stat status {};  // EROFS or EACCES is no error for a folder that already exists
      if (::stat(part.c_str(), &status) != 0) {
        errno = number;
        return false;
      }
    }
    if (end == std::string::npos) return true;
  }
}
/// Makes a new file that only this user may read, named `path` and some letters. @param path gets these letters
inline file_number make_private_file(std::string& path) {
  path += ".XXXXXX";
  return ::mkostemp(path.data(), O_CLOEXEC);
}

/// Makes a new folder that only this user may read, named `path` and some letters. @param path gets these letters
inline bool make_private_folder(std::string& path) {
  path += ".XXXXXX";
  return ::mkdtemp(path.data()) != nullptr;
}
/// Bytes of a page of memory.
inline std::uint64_t page_size() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace intaglio::platform
