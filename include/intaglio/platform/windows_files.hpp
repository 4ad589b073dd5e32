// SPDX-License-Identifier: MIT
// platform/files.hpp on Windows. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/platform/windows_headers.hpp"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "intaglio/platform/file_types.hpp"

namespace intaglio::platform {

namespace detail {
/// Sets errno from GetLastError(). @return -1
inline int failed() {
  switch (::GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
      errno = ENOENT;
      break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
      errno = EACCES;
      break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      errno = EEXIST;
      break;
    case ERROR_LOCK_VIOLATION:
      errno = EWOULDBLOCK;
      break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      errno = ENOSPC;
      break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      errno = ENOMEM;
      break;
    default:
      errno = EIO;
  }
  return -1;
}
inline HANDLE handle_of(file_number file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }
inline file_number number_of(HANDLE opened, int flags) {
  if (opened == INVALID_HANDLE_VALUE) return failed();
  const int out = ::_open_osfhandle(reinterpret_cast<std::intptr_t>(opened), flags | _O_BINARY | _O_NOINHERIT);
  if (out < 0) ::CloseHandle(opened);
  return out;
}
inline std::int64_t joined(DWORD high, DWORD low) {
  return static_cast<std::int64_t>((std::uint64_t{high} << 32) | low);
}
inline OVERLAPPED overlapped_at(std::uint64_t offset) {
  OVERLAPPED out{};
  out.Offset = static_cast<DWORD>(offset);
  out.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return out;
}
/// The path in the form that CreateFileW takes at any length: absolute and behind \\?\. Devices (NUL, CON) are
/// unchanged.
inline std::wstring long_path(const std::filesystem::path& path) {
  std::wstring out(1024, L'\0');
  for (DWORD size = 0;; out.resize(size)) {
    size = ::GetFullPathNameW(path.c_str(), static_cast<DWORD>(out.size()), out.data(), nullptr);
    if (size == 0) return path.native();
    if (size >= out.size()) continue;
    out.resize(size);
    break;
  }
  if (out.starts_with(L"\\\\?\\") || out.starts_with(L"\\\\.\\")) return out;
  return out.starts_with(L"\\\\") ? L"\\\\?\\UNC" + out.substr(1) : L"\\\\?\\" + out;
}
inline DWORD at_once(std::size_t bytes) { return static_cast<DWORD>((std::min<std::size_t>)(bytes, 1u << 30)); }
}  // namespace detail

inline file_number open_file(const std::filesystem::path& path, file_access how) {
  const bool reads = how == file_access::read || how == file_access::stream,
             appends = how == file_access::append_private;
  const DWORD wanted = reads     ? GENERIC_READ
                       : appends ? FILE_APPEND_DATA
                                 : GENERIC_READ | GENERIC_WRITE,
              shared = FILE_SHARE_READ | FILE_SHARE_DELETE | (how == file_access::write_new ? 0 : FILE_SHARE_WRITE),
              makes = reads                           ? OPEN_EXISTING
                      : how == file_access::write_new ? CREATE_NEW
                                                      : OPEN_ALWAYS,
              // A folder opens only with this flag; status_of then says what it is.
      flags = reads ? FILE_FLAG_BACKUP_SEMANTICS : FILE_ATTRIBUTE_NORMAL;
  return detail::number_of(
      ::CreateFileW(detail::long_path(path).c_str(), wanted, shared, nullptr, makes, flags, nullptr),
      reads     ? _O_RDONLY
      : appends ? _O_WRONLY | _O_APPEND
                : _O_RDWR);
}
inline bool close_file(file_number file) { return ::_close(file) == 0; }
/// Opens an open file once more; nobody may write it while the new one is open.
inline file_number opened_again(file_number file) {
  return detail::number_of(::ReOpenFile(detail::handle_of(file), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, 0),
                           _O_RDONLY);
}

inline bool status_of(file_number file, file_status& out) {
  const HANDLE handle = detail::handle_of(file);
  const DWORD type = ::GetFileType(handle);
  if (type != FILE_TYPE_DISK) {
    out = {type == FILE_TYPE_PIPE ? file_kind::pipe : file_kind::device};
    return true;
  }
  BY_HANDLE_FILE_INFORMATION found;
  if (!::GetFileInformationByHandle(handle, &found)) return detail::failed() == 0;
  out = {(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? file_kind::folder : file_kind::regular,
         detail::joined(found.nFileSizeHigh, found.nFileSizeLow),
         detail::joined(found.ftLastWriteTime.dwHighDateTime, found.ftLastWriteTime.dwLowDateTime)};
  return true;
}
inline bool status_of(const std::filesystem::path& path, file_status& out) {
  const file_number file = open_file(path, file_access::read);
  if (file < 0) return false;
  const bool found = status_of(file, out);
  close_file(file);
  return found;
}

inline std::int64_t read_at(file_number file, std::uint64_t offset, std::span<std::byte> out) {
  OVERLAPPED from = detail::overlapped_at(offset);
  DWORD count = 0;
  if (::ReadFile(detail::handle_of(file), out.data(), detail::at_once(out.size()), &count, &from)) return count;
  return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : detail::failed();
}
inline std::int64_t write_at(file_number file, std::uint64_t offset, std::span<const std::byte> bytes) {
  OVERLAPPED to = detail::overlapped_at(offset);
  DWORD count = 0;
  if (::WriteFile(detail::handle_of(file), bytes.data(), detail::at_once(bytes.size()), &count, &to)) return count;
  return detail::failed();
}
inline std::int64_t read_some(file_number file, std::span<std::byte> out) {
  DWORD count = 0;
  if (::ReadFile(detail::handle_of(file), out.data(), detail::at_once(out.size()), &count, nullptr)) return count;
  return ::GetLastError() == ERROR_BROKEN_PIPE || ::GetLastError() == ERROR_HANDLE_EOF ? 0 : detail::failed();
}
inline std::int64_t write_some(file_number file, std::span<const std::byte> bytes) {
  DWORD count = 0;
  if (::WriteFile(detail::handle_of(file), bytes.data(), detail::at_once(bytes.size()), &count, nullptr)) return count;
  return detail::failed();
}
inline bool cut_file(file_number file, std::uint64_t size) {
  return ::_chsize_s(file, static_cast<std::int64_t>(size)) == 0;
}
inline bool flush_file(file_number file) {
  return ::FlushFileBuffers(detail::handle_of(file)) || detail::failed() == 0;
}
/// Does nothing: Windows flushes names itself.
inline void flush_folder(const std::filesystem::path&) {}
inline bool replace_file(const std::filesystem::path& from, const std::filesystem::path& over) {
  return ::MoveFileExW(detail::long_path(from).c_str(), detail::long_path(over).c_str(),
                       MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ||
         detail::failed() == 0;
}
inline bool remove_file(const std::filesystem::path& path) {
  return ::DeleteFileW(detail::long_path(path).c_str()) || detail::failed() == 0;
}

/// Locks a byte after the end of any file, so that others can read the locked file.
inline bool lock_file(file_number file, bool waits = false) {
  OVERLAPPED at = detail::overlapped_at(~std::uint64_t{0} >> 1);
  const DWORD how = LOCKFILE_EXCLUSIVE_LOCK | (waits ? 0 : LOCKFILE_FAIL_IMMEDIATELY);
  return ::LockFileEx(detail::handle_of(file), how, 0, 1, 0, &at) || detail::failed() == 0;
}
/// Locks a folder by a file in it that only one process can open and that is deleted with the process.
inline file_number lock_folder(const std::filesystem::path& path) {
  const file_number out =
      detail::number_of(::CreateFileW(detail::long_path(path / ".lock").c_str(), GENERIC_READ | GENERIC_WRITE, 0,
                                      nullptr, OPEN_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE | FILE_ATTRIBUTE_HIDDEN, nullptr),
                        _O_RDWR);
  if (out < 0 && errno == EACCES) errno = EWOULDBLOCK;
  return out;
}

/// Maps a file to memory. A mapped file cannot be cut on Windows.
inline const void* map_file(file_number file, std::size_t) {
  const HANDLE section = ::CreateFileMappingW(detail::handle_of(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (section == nullptr) return detail::failed(), nullptr;
  const void* const address = ::MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0);
  if (address == nullptr) detail::failed();
  ::CloseHandle(section);
  return address;
}
inline void unmap_file(const void* address, std::size_t) { ::UnmapViewOfFile(address); }

inline constexpr const char* home_variables = "LOCALAPPDATA";
/// The folder %LOCALAPPDATA%; empty without it.
inline std::string cache_home() {
  const wchar_t* const local = ::_wgetenv(L"LOCALAPPDATA");
  return local != nullptr ? utf8_of(local) : std::string{};
}
/// The folder of cache_home(): Windows does not separate caches from state.
inline std::string state_home() { return cache_home(); }
inline bool make_private_folders(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);  // folders in a user's profile are private to the user
  if (!failure) return true;
  errno = EACCES;
  return false;
}
inline file_number make_private_file(std::string& path) {
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    const std::string name = path + "." + std::to_string(::GetCurrentProcessId()) + "-" + std::to_string(attempt);
    const file_number out = open_file(wide_of(name), file_access::write_new);
    if (out < 0 && errno == EEXIST) continue;
    path = name;
    return out;
  }
  return -1;
}

inline bool make_private_folder(std::string& path) {
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    const std::string name = path + "." + std::to_string(::GetCurrentProcessId()) + "-" + std::to_string(attempt);
    if (!::CreateDirectoryW(detail::long_path(wide_of(name)).c_str(), nullptr)) {
      if (::GetLastError() == ERROR_ALREADY_EXISTS) continue;
      return detail::failed() == 0;
    }
    path = name;
    return true;
  }
  return false;
}

inline std::uint64_t page_size() {
  SYSTEM_INFO found;
  ::GetSystemInfo(&found);
  return found.dwPageSize;
}

}  // namespace intaglio::platform
