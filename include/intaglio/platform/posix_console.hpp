// SPDX-License-Identifier: MIT
// platform/console.hpp where the system is a POSIX one. Included by that header alone.
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

inline constexpr file_number standard_input = STDIN_FILENO, standard_output = STDOUT_FILENO,
                             standard_error = STDERR_FILENO;

inline bool is_terminal(file_number file) { return ::isatty(file) == 1; }

/// What main() was given, in UTF-8, and a terminal that takes UTF-8 and escape sequences. Before anything is printed.
class console {
 public:
  console(int count, char** words) : count_(count), words_(words) {}
  int count() const { return count_; }
  char** words() const { return words_; }

 private:
  int count_;
  char** words_;
};

/// Whether standard input has something to read, or is at its end; waits for it. A signal ends the wait.
inline bool input_comes(unsigned milliseconds) {
  ::pollfd input{standard_input, POLLIN, 0};
  return ::poll(&input, 1, static_cast<int>(milliseconds)) > 0;
}
/// @return bytes of standard input, 0 at its end, -1
inline std::int64_t read_input(std::span<std::byte> out) { return read_some(standard_input, out); }

/// A pipe that nobody reads is an error of the write from here on.
inline void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }
/// SIGINT and SIGTERM call `handler`, which may do what a signal's handler may; where they are ignored, as by nohup,
/// they stay so.
inline void on_stop(void (*handler)(int)) {
  struct sigaction stop {};
  stop.sa_handler = handler;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &stop, nullptr);
  }
}
/// Ends this process as SIGTERM from outside does.
inline void ask_to_stop() { ::kill(::getpid(), SIGTERM); }
/// Ends the process at once. A signal's handler may call it.
[[noreturn]] inline void end_process(int status) { ::_exit(status); }

}  // namespace intaglio::platform
