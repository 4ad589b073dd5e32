// SPDX-License-Identifier: MIT
// Types and constants of platform/files.hpp.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <system_error>

namespace intaglio::platform {

/// An open file; negative where there is none.
using file_number = int;
/// How a file is opened.
enum class file_access : std::uint8_t {
  read,             ///< reads an existing file; others may write it meanwhile. Never waits on a pipe
  stream,           ///< as read, but waits on a pipe
  write_new,        ///< EEXIST where the name is taken
  journal,          ///< read and write; the file is created where there is none
  journal_no_link,  ///< as journal; a symbolic link is refused where the system can do that
  append_private    ///< writes at the end, even if others write too; created for this user only; a symbolic link is
                    ///< refused where possible
};
enum class file_kind : std::uint8_t { regular, folder, pipe, socket, device };  ///< what a name in a folder is
/// Facts about a file.
struct file_status {
  file_kind kind = file_kind::regular;
  std::int64_t size = 0;      ///< bytes
  std::int64_t modified = 0;  ///< modification time in the system's finest unit
  friend bool operator==(const file_status&, const file_status&) = default;
};

/// The system's text for a value of errno.
inline std::string system_text(int number) { return std::generic_category().message(number); }
/// Whether an errno means that there is no more space, on the disk or for the user.
inline bool is_full(int number) {
#if defined(EDQUOT)
  if (number == EDQUOT) return true;
#endif
  return number == ENOSPC;
}

/// Reads a whole file into memory. @return whether it is still what it was when it was opened
using whole_reader = std::function<bool(std::span<std::byte>)>;

}  // namespace intaglio::platform
