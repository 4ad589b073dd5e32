// SPDX-License-Identifier: MIT
#include "child_process.hpp"

#include "console.hpp"

#include <intaglio/platform/program.hpp>

#include <array>
#include <cerrno>
#include <span>
#include <string_view>

namespace intaglio::tool {

int run_program(const std::vector<std::string>& arguments, const std::function<void(const std::string&)>& each_line) {
  const graceful_stop guard;
  platform::child_program child;
  if (!child.start(arguments))
    throw input_error(arguments.front() + ": cannot run it: " + platform::system_text(errno));
  std::string line;
  std::array<char, 4096> piece;
  for (;;) {
    const std::int64_t count = child.read(std::as_writable_bytes(std::span(piece)), 200);
    if (graceful_stop::received() != 0) {
      child.end();
      child.wait();
      throw interrupted(graceful_stop::received());
    }
    if (count < 0) continue;
    if (count == 0) break;
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
  return child.wait();
}

}  // namespace intaglio::tool
