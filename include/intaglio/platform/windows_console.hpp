// SPDX-License-Identifier: MIT
// platform/console.hpp on Windows. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/platform/windows_headers.hpp"

#include <shellapi.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "intaglio/platform/files.hpp"

namespace intaglio::platform {

inline constexpr file_number standard_input = 0, standard_output = 1, standard_error = 2;

inline bool is_terminal(file_number file) {
  DWORD mode = 0;
  return ::GetConsoleMode(detail::handle_of(file), &mode) != 0;
}

/// The console, as on POSIX. Its destructor restores the code page.
class console {
 public:
  console(int, char**) : code_page_(::GetConsoleOutputCP()) {
    ::SetConsoleOutputCP(CP_UTF8);
    for (const file_number file : {standard_output, standard_error}) {
      DWORD mode = 0;
      if (::GetConsoleMode(detail::handle_of(file), &mode))
        ::SetConsoleMode(detail::handle_of(file), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
    int count = 0;
    if (wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &count)) {
      for (int i = 0; i < count; ++i) texts_.push_back(utf8_of(words[i]));
      ::LocalFree(words);
    }
    for (std::string& each : texts_) words_.push_back(each.data());
    words_.push_back(nullptr);
  }
  console(const console&) = delete;
  console& operator=(const console&) = delete;
  ~console() {
    if (code_page_ != 0) ::SetConsoleOutputCP(code_page_);
  }
  int count() const { return static_cast<int>(texts_.size()); }
  char** words() { return words_.data(); }

 private:
  UINT code_page_;
  std::vector<std::string> texts_;
  std::vector<char*> words_;
};

/// Waits until input comes or the time is over. A terminal has input at each key; it is then read up to the end of the
/// line.
inline bool input_comes(unsigned milliseconds) {
  const HANDLE input = detail::handle_of(standard_input);
  if (::GetFileType(input) != FILE_TYPE_PIPE) return ::WaitForSingleObject(input, milliseconds) == WAIT_OBJECT_0;
  for (unsigned waited = 0;; waited += 10) {
    DWORD there = 0;
    if (!::PeekNamedPipe(input, nullptr, 0, nullptr, &there, nullptr) || there != 0) return true;
    if (waited >= milliseconds) return false;
    ::Sleep(10);
  }
}
/// Reads standard input. Lines of a terminal end in a line feed, and a line that begins with Ctrl-Z is the end. For one
/// thread.
inline std::int64_t read_input(std::span<std::byte> out) {
  if (!is_terminal(standard_input)) return read_some(standard_input, out);
  static std::string typed;
  if (typed.empty()) {
    wchar_t line[512];
    DWORD count = 0;
    if (!::ReadConsoleW(detail::handle_of(standard_input), line, 512, &count, nullptr)) return detail::failed();
    typed = utf8_of({line, count});
    std::erase(typed, '\r');
    if (typed.empty()) {
      errno = EINTR;  // Ctrl-C
      return -1;
    }
    if (typed.front() == '\x1a') {
      typed.clear();
      return 0;
    }
  }
  const std::size_t count = (std::min)(typed.size(), out.size());
  std::transform(typed.begin(), typed.begin() + static_cast<std::ptrdiff_t>(count), out.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  typed.erase(0, count);
  return static_cast<std::int64_t>(count);
}

namespace detail {
inline void (*stop_handler)(int) = nullptr;
inline BOOL WINAPI on_console_event(DWORD event) {
  const bool asked = event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
  stop_handler(asked ? SIGINT : SIGTERM);
  // The window is being closed: Windows ends the process when this function returns, and after 5 s in any case.
  if (!asked) ::Sleep(4500);
  return TRUE;
}
}  // namespace detail

/// Does nothing: Windows has no signal for broken pipes.
inline void ignore_broken_pipes() {}
/// Calls `handler` at Ctrl-C, Ctrl-Break and when the window is closed, on a thread of its own.
inline void on_stop(void (*handler)(int)) {
  detail::stop_handler = handler;
  ::SetConsoleCtrlHandler(&detail::on_console_event, TRUE);
  std::signal(SIGTERM, handler);
}
/// Raises SIGTERM in this process.
inline void ask_to_stop() { std::raise(SIGTERM); }
[[noreturn]] inline void end_process(int status) {
  ::TerminateProcess(::GetCurrentProcess(), static_cast<UINT>(status));
  for (;;) ::Sleep(INFINITE);
}

}  // namespace intaglio::platform
