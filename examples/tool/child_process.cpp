// SPDX-License-Identifier: MIT
#include "child_process.hpp"

#include "console.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace intaglio::tool {
namespace {

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const std::function<void(const std::string&)>& each_line) {
  std::vector<char*> words;
  std::vector<std::string> copies = arguments;
  for (auto& each : copies) words.push_back(each.data());
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw input_error("pipe: " + std::generic_category().message(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const graceful_stop guard;
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failure != 0) {
    ::close(ends[0]);
    throw input_error(arguments.front() + ": cannot run it: " + std::generic_category().message(failure));
  }
  std::string line;
  std::array<char, 4096> piece;
  for (;;) {
    ::pollfd waiting{ends[0], POLLIN, 0};
    const int ready = ::poll(&waiting, 1, 200);
    if (graceful_stop::received() != 0) {
      ::kill(child, SIGTERM);
      ::close(ends[0]);
      wait_for(child);
      throw interrupted(graceful_stop::received());
    }
    if (ready <= 0) continue;
    const ssize_t count = ::read(ends[0], piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const char c : std::string_view(piece.data(), static_cast<std::size_t>(count))) {
      if (c != '\n') {
        line += c;
        continue;
      }
      each_line(line);
      line.clear();
    }
  }
  if (!line.empty()) each_line(line);
  ::close(ends[0]);
  return wait_for(child);
}

bool program_exists(const std::string& name) {
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

}  // namespace intaglio::tool
