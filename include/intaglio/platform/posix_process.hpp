// SPDX-License-Identifier: MIT
// platform/process.hpp on POSIX systems. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "intaglio/platform/process_limits.hpp"

namespace intaglio::platform {

namespace detail {
inline bool memory_ran_out = false;  // set only in a fork

/// Limits what a fork may use.
inline void limit_fork(const process_limits& limits) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGXCPU, SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  const auto limit = [](auto what, std::uint64_t value) {
    const ::rlimit both{value, value};
    ::setrlimit(what, &both);
  };
  std::uint64_t pages = 0;  // pages of data that the process already has
  if (std::FILE* const status = std::fopen("/proc/self/statm", "r")) {
    unsigned long data = 0;
    if (std::fscanf(status, "%*u %*u %*u %*u %*u %lu", &data) == 1) pages = data;
    std::fclose(status);
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, limits.seconds);
  limit(RLIMIT_DATA, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + limits.memory_bytes);
  // Libraries may turn a bad_alloc into a failure of their own, so it is noted here.
  std::set_new_handler([] {
    memory_ran_out = true;
    throw std::bad_alloc();
  });
}
/// Does the work of a fork and writes "+" and its text, or "-" and why there is none. It does not return.
template <class Work>
[[noreturn]] void run_fork(const process_limits& limits, int end, Work&& work) {
  limit_fork(limits);
  std::string out;
  try {
    out = "+" + std::forward<Work>(work)();
  } catch (const std::exception& problem) {
    out = memory_ran_out ? "-more memory than is allowed" : std::string("-") + problem.what();
  } catch (...) { out = "-an unknown failure"; }
  for (std::size_t at = 0; at < out.size();) {
    const ::ssize_t count = ::write(end, out.data() + at, out.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    at += static_cast<std::size_t>(count);
  }
  ::_exit(0);
}
/// Reads what a fork writes, until it ends. @return the limit that it passed, or nothing
inline std::string read_fork(const process_limits& limits, int end, std::string& text) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + std::chrono::seconds(limits.seconds);
  for (char piece[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    ::pollfd waiting{end, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return "more than " + std::to_string(limits.seconds) + " s";
    const ::ssize_t count = ::read(end, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    text.append(piece, static_cast<std::size_t>(count));
    if (text.size() > limits.output_bytes + 1) return "more than " + std::to_string(limits.output_bytes) + " bytes";
  }
}
}  // namespace detail

/// Runs `work`, which gives a text and may throw, in a fork of this process. It should only compute: a lock that
/// another thread holds now stays locked in the fork, and work that waits for it is ended by the time limit.
template <class Work>
limited_result run_limited(const process_limits& limits, Work&& work) {
  int ends[2];
#if defined(__APPLE__)
  if (::pipe(ends) != 0 || ::fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0 || ::fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0)
#else
  if (::pipe2(ends, O_CLOEXEC) != 0)
#endif
    return {false, "cannot make a pipe"};
  const ::pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return {false, "cannot make a process"};
  }
  if (child == 0) detail::run_fork(limits, ends[1], std::forward<Work>(work));
  ::close(ends[1]);
  std::string text;
  const std::string failure = detail::read_fork(limits, ends[0], text);
  ::close(ends[0]);
  if (!failure.empty()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!failure.empty()) return {false, failure};
  if (WIFSIGNALED(status))
    return {false, WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL
                       ? "more than " + std::to_string(limits.seconds) + " s"
                       : "more nesting or memory than is allowed"};
  if (text.empty()) return {false, "nothing"};
  return {text[0] == '+', text.substr(1)};
}

/// The number of a process; a fork has another one.
using process_number = ::pid_t;
inline process_number process_id() { return ::getpid(); }  ///< this process's number

}  // namespace intaglio::platform
