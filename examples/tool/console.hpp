// SPDX-License-Identifier: MIT
// The tool's outside: data on stdout, words for people on stderr, signals. Nothing here knows a model.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace intaglio::tool {

/// Exit codes that scripts rely on. Signals end with 128 + their number.
enum class exit_code : int { done = 0, bad_input = 1, usage = 2, device = 3 };

/// Input that the library does not judge, such as a prompt longer than the context; exit code 1.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A signal asked the tool to stop; carries its number.
class interrupted : public std::runtime_error {
 public:
  explicit interrupted(int number) : std::runtime_error("interrupted"), signal(number) {}
  int signal;
};

/// Writes data to stdout, buffered until flush_output().
/// @throws input_error: stdout is full or closed
void print(std::string_view text);
void print_line(std::string_view text);
void flush_output();

/// True where the stream is a terminal.
bool is_terminal(int descriptor);

/// No notes, warnings and progress from here on; errors always come.
void set_quiet();
/// A sentence for people, on stderr. Where stderr is no terminal it is kept until show_notes(), so that an error's line
/// comes first.
void note(std::string_view sentence);
void warn(std::string_view sentence);
void show_notes();
/// The error's own words, one line first.
void show_error(std::string_view sentence);
/// From here on errors say all that is wrong, a line each, not the first alone.
void set_all();
/// One line for an error with the number of further ones, or, after set_all(), a line each.
/// @param details all of it, a line each, where `sentence` has room for the first alone; else empty
std::string error_text(std::string_view sentence, std::span<const std::string> details);

/// From here on SIGINT and SIGTERM end the process at once with 128 + number, and a closed pipe is an error of the
/// write.
void watch_signals();

/// While one of these lives, the first signal is only noted, so that the work can be ended well; a second one ends the
/// process.
class graceful_stop {
 public:
  graceful_stop();
  ~graceful_stop();
  graceful_stop(const graceful_stop&) = delete;
  graceful_stop& operator=(const graceful_stop&) = delete;
  /// Number of the signal that came, 0: none.
  static int received();
  /// @throws interrupted: a signal came, or somebody asked for the end
  static void look();
  /// Does what a signal with this number does.
  static void ask(int number);
  static void forget();
};

/// Bytes as people read them: "4.1 MB".
std::string bytes_text(double bytes);
/// A number with `digits` digits after the point, alike in every locale.
std::string fixed(double value, int digits);
/// The text and spaces after it up to the width, one at least.
std::string padded(std::string text, std::size_t width);

/// Sets a callback that receives progress besides the terminal, on the working thread; empty: none. Do not call it
/// during work.
void watch_progress(std::function<void(std::string_view label, double share, std::string_view detail)> to);

/// A bar on stderr, drawn only on a terminal and not more often than ten times a second.
class progress_bar {
 public:
  explicit progress_bar(std::string label) : label_(std::move(label)) {}
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  /// @param detail after the bar, e.g. "1.2 of 2.5 GB"
  void show(double share, std::string_view detail);
  void clear();

 private:
  std::string label_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_{};
  bool drawn_ = false;
};

}  // namespace intaglio::tool
