// SPDX-License-Identifier: MIT
// platform/program.hpp on POSIX systems. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <crt_externs.h>
#include <mach-o/dyld.h>
#endif

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "intaglio/platform/files.hpp"
#include "intaglio/platform/process_limits.hpp"

namespace intaglio::platform {

namespace detail {
inline char** environment_of_process() {
#if defined(__APPLE__)
  return *::_NSGetEnviron();
#else
  return ::environ;
#endif
}
}  // namespace detail

/// A child process. Its output, on stdout and stderr, is read here.
class child_program {
 public:
  child_program() = default;
  child_program(const child_program&) = delete;
  child_program& operator=(const child_program&) = delete;
  ~child_program() {
    if (output_ >= 0) ::close(output_);
    if (child_ > 0) wait();
  }

  /// Starts the program, once. @param words the program's name, which is looked for on the PATH, and its arguments
  /// @param input the program's standard input, from its start; null: an empty one
  /// @return whether it runs; errno has the reason where it does not
  bool start(const std::vector<std::string>& words, std::FILE* input = nullptr) {
    std::vector<std::string> copies = words;
    std::vector<char*> pointers;
    for (std::string& each : copies) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return false;
    for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    if (input != nullptr) {
      std::rewind(input);
      ::posix_spawn_file_actions_adddup2(&actions, ::fileno(input), STDIN_FILENO);
    } else {
      ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);  // sockets, for one
#endif
    const int failure =
        ::posix_spawnp(&child_, pointers[0], &actions, nullptr, pointers.data(), detail::environment_of_process());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    if (failure == 0) return true;
    child_ = -1;
    errno = failure;
    return false;
  }
  /// Reads the program's output. @return bytes, 0 at the end, -1 where nothing came in time; a signal ends the wait
  std::int64_t read(std::span<std::byte> out, unsigned milliseconds) {
    ::pollfd waiting{output_, POLLIN, 0};
    return ::poll(&waiting, 1, static_cast<int>(milliseconds)) > 0 ? read_some(output_, out) : -1;
  }
  /// Limits the running program's memory and CPU time; on macOS nothing.
  void limit(const process_limits& limits) {
#if defined(__linux__)
    const auto set = [&](auto what, std::uint64_t value) {
      const ::rlimit both{value, value};
      ::prlimit(child_, what, &both, nullptr);
    };
    set(RLIMIT_CORE, 0);
    set(RLIMIT_CPU, limits.seconds);
    set(RLIMIT_DATA, limits.memory_bytes);
#else
    static_cast<void>(limits);
#endif
  }
  /// Asks the program to end.
  void end() { ::kill(child_, SIGTERM); }
  /// Ends the program at once.
  void kill() { ::kill(child_, SIGKILL); }
  /// Waits for the program's end. @return its status, 128 + n where signal n ended it
  int wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {}
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  ::pid_t child_ = -1;
  int output_ = -1;
};

/// Whether a program of that name is on the PATH.
inline bool program_exists(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return true;
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  }
  return false;
}

/// The path of the running program; empty where the system does not report it.
inline std::filesystem::path own_program() {
  std::error_code failure;
#if defined(__APPLE__)
  std::array<char, 4096> found{};
  std::uint32_t size = found.size();
  if (::_NSGetExecutablePath(found.data(), &size) != 0) return {};
  return std::filesystem::canonical(found.data(), failure);
#else
  return std::filesystem::read_symlink("/proc/self/exe", failure);
#endif
}

/// Replaces this process by another program. It returns only on failure.
/// @param words the program's name, the arguments, and null
inline void become_program(const std::filesystem::path& program, char** words) { ::execv(program.c_str(), words); }
/// Replaces this process by a program that is searched for on the PATH.
inline void become_program_named(const char* name, char** words) { ::execvp(name, words); }
/// Sets an environment variable of this process.
inline void set_environment(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

}  // namespace intaglio::platform
