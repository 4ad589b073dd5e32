// SPDX-License-Identifier: MIT
// Runs the built tool as a script would: arguments in; stdout, stderr and exit code out.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.hpp"
#include "temporary_folder.hpp"

namespace tool_test {

namespace fs = std::filesystem;

struct outcome {
  int code = -1;  ///< exit status; 1000 + n where signal n ended it
  std::string out, err;
  /// The first line of stderr.
  std::string first_error() const { return err.substr(0, err.find('\n')); }
  nlohmann::json json() const {
    INFO("stdout: " << out);
    auto parsed = nlohmann::json::parse(out, nullptr, false);
    REQUIRE_FALSE(parsed.is_discarded());
    return parsed;
  }
};

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

struct call_options {
  std::vector<std::pair<std::string, std::string>> environment;
  std::string input;        ///< stdin
  std::string stdout_path;  ///< instead of being read, e.g. /dev/full
  int signal = 0;           ///< sent when the first byte of stdout is there
  std::string program = paths::tool;
};

/// Starts the tool and waits for its end.
inline outcome call(std::vector<std::string> arguments, const call_options& options = {}) {
  const temporary_folder folder;
  const std::string out_path = options.stdout_path.empty() ? (folder / "out").string() : options.stdout_path,
                    err_path = folder / "err", in_path = folder / "in";
  write(in_path, options.input);
  arguments.insert(arguments.begin(), options.program);
  std::vector<char*> words;
  for (auto& each : arguments) words.push_back(each.data());
  words.push_back(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
    const int in = ::open(in_path.c_str(), O_RDONLY), out = ::open(out_path.c_str(), O_WRONLY | O_CREAT, 0600),
              err = ::open(err_path.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  if (options.signal != 0) {
    for (int i = 0; i < 6000 && content(out_path).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(child, options.signal);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  outcome result;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  if (options.stdout_path.empty()) result.out = content(out_path);
  result.err = content(err_path);
  return result;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace tool_test
