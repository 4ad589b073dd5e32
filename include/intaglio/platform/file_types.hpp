// SPDX-License-Identifier: MIT
// What platform/files.hpp speaks of.
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

/// An open file; none is negative.
using file_number = int;

enum class file_access : std::uint8_t {
  read,             ///< what is there; others may write it meanwhile. Never waits on a pipe
  stream,           ///< the same, and waits on a pipe
  write_new,        ///< EEXIST where the name is taken
  journal,          ///< read and write, made where there is none
  journal_no_link,  ///< the same; a symbolic link is refused where the system can
  append_private    ///< write at the end, whatever others write; made for this user alone. No symbolic link, likewise
};
enum class file_kind : std::uint8_t { regular, folder, pipe, socket, device };

struct file_status {
  file_kind kind = file_kind::regular;
  std::int64_t size = 0;      ///< bytes
  std::int64_t modified = 0;  ///< in the system's finest unit
  friend bool operator==(const file_status&, const file_status&) = default;
};

/// The system's words for a number that errno had.
inline std::string system_text(int number) { return std::generic_category().message(number); }
/// Whether that number says that there is no more room, on the disk or for the user.
inline bool is_full(int number) {
#if defined(EDQUOT)
  if (number == EDQUOT) return true;
#endif
  return number == ENOSPC;
}

/// Reads a whole file into memory. @return whether it is still what it was when it was opened
using whole_reader = std::function<bool(std::span<std::byte>)>;

}  // namespace intaglio::platform
