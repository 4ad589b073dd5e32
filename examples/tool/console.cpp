// SPDX-License-Identifier: MIT
#include "console.hpp"

#include <intaglio/platform/console.hpp>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace intaglio::tool {
namespace {

std::string pending_output;
std::vector<std::string> pending_notes;
std::mutex notes_mutex;  // a download has a thread of its own
bool quiet = false, says_all = false;
volatile std::sig_atomic_t received_signal = 0, graceful_depth = 0;

/// @return 0, or errno
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const std::int64_t count = platform::write_some(descriptor, std::as_bytes(std::span(text)));
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

void say(std::string_view sentence) {
  write_all(platform::standard_error, std::string(sentence) + "\n");
}  // without stderr there is no output

extern "C" void on_signal(int number) {
  if (graceful_depth == 0 || received_signal != 0) platform::end_process(128 + number);
  received_signal = number;
}

}  // namespace

void print(std::string_view text) {
  pending_output.append(text);
  if (pending_output.size() >= 1 << 16) flush_output();
}
void print_line(std::string_view text) {
  print(text);
  print("\n");
}
void flush_output() {
  const std::string text = std::exchange(pending_output, {});
  if (const int error = write_all(platform::standard_output, text); error != 0)
    throw input_error("standard output: cannot write: " + std::generic_category().message(error));
}

bool is_terminal(int descriptor) { return platform::is_terminal(descriptor); }

void set_quiet() { quiet = true; }
void note(std::string_view sentence) {
  if (quiet) return;
  const std::lock_guard lock(notes_mutex);
  if (is_terminal(platform::standard_error)) say(sentence);
  else pending_notes.emplace_back(sentence);
}
void warn(std::string_view sentence) { note("warning: " + std::string(sentence)); }
void show_notes() {
  const std::lock_guard lock(notes_mutex);
  for (const auto& each : std::exchange(pending_notes, {})) say(each);
}
void set_all() { says_all = true; }
std::string error_text(std::string_view sentence, std::span<const std::string> details) {
  std::string out(sentence);
  if (details.size() < 2) return out;
  if (!says_all) return out + " (--all shows all " + std::to_string(details.size()) + ")";
  for (const std::string& line : details) out += "\n  " + line;
  return out;
}
void show_error(std::string_view sentence) { say("intaglio: " + std::string(sentence)); }

void watch_signals() {
  platform::ignore_broken_pipes();
  platform::on_stop(&on_signal);
}

graceful_stop::graceful_stop() { graceful_depth = graceful_depth + 1; }
graceful_stop::~graceful_stop() { graceful_depth = graceful_depth - 1; }
int graceful_stop::received() { return received_signal; }
void graceful_stop::look() {
  if (received_signal != 0) throw interrupted(received_signal);
}
void graceful_stop::ask(int number) { received_signal = number; }
void graceful_stop::forget() { received_signal = 0; }

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return std::string(text, end.ec == std::errc{} ? end.ptr : text);
}

std::string padded(std::string text, std::size_t width) {
  text.append(text.size() < width ? width - text.size() : 1, ' ');
  return text;
}

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return fixed(bytes, unit == 0 ? 0 : 1) + " " + units[unit];
}

namespace {
std::function<void(std::string_view, double, std::string_view)> progress_watcher;
}  // namespace

void watch_progress(std::function<void(std::string_view, double, std::string_view)> to) {
  progress_watcher = std::move(to);
}

progress_bar::~progress_bar() { clear(); }

void progress_bar::show(double share, std::string_view detail) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  share = share < 0 ? 0 : share > 1 ? 1 : share;
  if (progress_watcher) progress_watcher(label_, share, detail);
  if (quiet || !is_terminal(platform::standard_error)) return;
  constexpr int width = 24;
  const int full = static_cast<int>(share * width);
  std::string line = "\r" + label_ + " [";
  for (int i = 0; i < width; ++i) line += i < full ? '#' : ' ';
  line += "] " + fixed(share * 100, 0) + " %";
  if (!detail.empty()) line += "  " + std::string(detail);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (share > 0.02 && seconds > 1) line += "  " + fixed(seconds / share * (1 - share), 0) + " s left";
  write_all(platform::standard_error, line + "\x1b[K");
  drawn_ = true;
}

void progress_bar::clear() {
  if (drawn_) write_all(platform::standard_error, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace intaglio::tool
