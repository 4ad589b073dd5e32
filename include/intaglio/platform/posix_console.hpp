// SPDX-License-Identifier: MIT
// platform/console.hpp on POSIX systems. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/platform/files.hpp"

namespace intaglio::platform {
/// The standard streams.
inline constexpr file_number standard_input = STDIN_FILENO, standard_output = STDOUT_FILENO,
                             standard_error = STDERR_FILENO;
/// Whether a file is a terminal.
inline bool is_terminal(file_number file) { return ::isatty(file) == 1; }

/// The arguments of main() in UTF-8, and a terminal that accepts UTF-8 and escape sequences. To be made before anything
/// is printed.
class console {
 public:
  console(int count, char** words) : count_(count), words_(words) {}
  int count() const { return count_; }
  char** words() const { return words_; }

 private:
  int count_;
  char** words_;
};

/// Waits until standard input has data or is at its end. A signal ends the wait. @return whether it has
inline bool input_comes(unsigned milliseconds) {
  ::pollfd input{standard_input, POLLIN, 0};
  return ::poll(&input, 1, static_cast<int>(milliseconds)) > 0;
}
/// Reads standard input. @return bytes, 0 at its end, -1 on failure
inline std::int64_t read_input(std::span<std::byte> out) { return read_some(standard_input, out); }

/// From here on writing to a pipe without a reader is an error of the write, not a signal.
inline void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }
/// Calls `handler` at SIGINT and SIGTERM; it may do only what signal handlers may do. Signals that are ignored, as
/// under nohup, stay ignored.
inline void on_stop(void (*handler)(int)) {
  struct sigaction stop {};
  stop.sa_handler = handler;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &stop, nullptr);
  }
}
/// Ends this process as a SIGTERM from outside does.
inline void ask_to_stop() { ::kill(::getpid(), SIGTERM); }
/// Ends the process at once. A signal's handler may call it.
[[noreturn]] inline void end_process(int status) { ::_exit(status); }

}  // namespace intaglio::platform
