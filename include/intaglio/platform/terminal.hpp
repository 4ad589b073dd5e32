// SPDX-License-Identifier: MIT
// The size of a terminal, and the number of columns of a character.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_headers.hpp"
#else
#include <sys/ioctl.h>
#include <unistd.h>
#include <clocale>
#include <cwchar>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

#include <cstddef>

namespace intaglio::platform {
/// Columns and rows of a terminal.
struct terminal_size {
  std::size_t columns = 80, rows = 24;
};

/// The size of the terminal of stdout; 80 by 24 where the system does not report it.
inline terminal_size size_of_terminal() {
  terminal_size out;
#if defined(_WIN32)
  CONSOLE_SCREEN_BUFFER_INFO info{};
  if (!::GetConsoleScreenBufferInfo(::GetStdHandle(STD_OUTPUT_HANDLE), &info)) return out;
  const auto columns = static_cast<std::size_t>(info.srWindow.Right - info.srWindow.Left + 1);
  const auto rows = static_cast<std::size_t>(info.srWindow.Bottom - info.srWindow.Top + 1);
#else
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return out;
  const std::size_t columns = size.ws_col, rows = size.ws_row;
#endif
  if (columns > 0) out.columns = columns;
  if (rows > 0) out.rows = rows;
  return out;
}

/// Columns of a character: 0 for combining marks, 2 for wide characters, else 1. They come from the C library's table;
/// 1 where there is none.
inline std::size_t columns_of_character(char32_t character) {
  if (character < 0x7f) return 1;
#if defined(_WIN32)
  return 1;
#else
  static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (unicode == nullptr) return 1;
  const locale_t before = ::uselocale(unicode);
  const int columns = ::wcwidth(static_cast<wchar_t>(character));
  ::uselocale(before);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
#endif
}

}  // namespace intaglio::platform
