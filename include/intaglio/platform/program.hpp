// SPDX-License-Identifier: MIT
// Other programs: to find them, to run them beside this one, or to replace this process by one.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_program.hpp"
#else
#include "intaglio/platform/posix_program.hpp"
#endif

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/platform/process_limits.hpp"

namespace intaglio::platform {

/// Runs another program to its end, within limits. Memory and CPU time are limited on Linux only, and count from zero.
/// @param words the program's name, which is looked for on the PATH, and its arguments
/// @param input its standard input, from the start of this file
/// @return what it writes to stdout and stderr; where its status is not 0, "status N"
inline limited_result run_limited(const process_limits& limits, const std::vector<std::string>& words,
                                  std::FILE* input) {
  using clock = std::chrono::steady_clock;
  child_program program;
  if (!program.start(words, input)) return {false, std::strerror(errno)};
  program.limit(limits);
  const auto deadline = clock::now() + std::chrono::seconds(limits.seconds);
  std::string text, failure;
  for (std::vector<std::byte> piece(65536); failure.empty();) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0) {
      failure = "more than " + std::to_string(limits.seconds) + " s";
      break;
    }
    const std::int64_t count = program.read(piece, static_cast<unsigned>(left));
    if (count == 0) break;
    if (count < 0) continue;
    text.append(reinterpret_cast<const char*>(piece.data()), static_cast<std::size_t>(count));
    if (text.size() > limits.output_bytes) failure = "more than " + std::to_string(limits.output_bytes) + " bytes";
  }
  if (!failure.empty()) program.kill();
  const int status = program.wait();
  if (!failure.empty()) return {false, failure};
  if (status != 0) return {false, "status " + std::to_string(status)};
  return {true, std::move(text)};
}

}  // namespace intaglio::platform
