// SPDX-License-Identifier: MIT
#include "intaglio/platform/program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace intaglio::platform;

namespace {

/// All that it prints, up to its end.
std::string output_of(child_program& child) {
  std::string out, piece(100, ' ');
  for (;;) {
    const auto count = child.read(std::as_writable_bytes(std::span(piece)), 5000);
    if (count <= 0) return count < 0 ? out + "<nothing came>" : out;
    out.append(piece, 0, static_cast<std::size_t>(count));
  }
}

}  // namespace

TEST_CASE("program: what it prints and its status come back", "[program]") {
  child_program child;
  REQUIRE(child.start({"sh", "-c", "echo \"$1\"; echo other >&2; cat; exit 7", "sh", "a \"word\" and \\"}));
  CHECK(output_of(child) == "a \"word\" and \\\nother\n");
  CHECK(child.wait() == 7);
}

TEST_CASE("program: it is asked to end, and one that is not there does not start", "[program]") {
  child_program child;
  REQUIRE(child.start({"sleep", "60"}));
  std::string piece(10, ' ');
  CHECK(child.read(std::as_writable_bytes(std::span(piece)), 20) == -1);
  child.end();
  CHECK(child.wait() == 128 + 15);

  child_program none;
  CHECK_FALSE(none.start({"no such program"}));
  CHECK(errno == ENOENT);
}

TEST_CASE("program: what is on the PATH, and this one", "[program]") {
  CHECK(program_exists("sh"));
  CHECK_FALSE(program_exists("no such program"));
  CHECK(std::filesystem::is_regular_file(own_program()));
  set_environment("INTAGLIO_TEST_VARIABLE", "a b");
  child_program child;
  REQUIRE(child.start({"sh", "-c", "echo \"$INTAGLIO_TEST_VARIABLE\""}));
  CHECK(output_of(child) == "a b\n");
}

TEST_CASE("program: a limited one reads its input, and is ended at its limits", "[program]") {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::tmpfile(), &std::fclose);
  REQUIRE(input);
  std::fputs("from a file\n", input.get());
  REQUIRE(std::fflush(input.get()) == 0);
  const auto run = [&](const char* script, const process_limits& limits) {
    return run_limited(limits, {"sh", "-c", script}, input.get());
  };
  const process_limits usual{.seconds = 60};
  for (int twice = 0; twice < 2; ++twice) {
    const limited_result found = run("cat; ls /proc/self/fd | wc -l", usual);
    CHECK(found.done);
    CHECK(found.text == "from a file\n4\n");  // three streams, and the folder that is listed
  }
  CHECK(run("exit 3", usual).text == "status 3");
  CHECK(run("exec sleep 60", {.seconds = 1}).text == "more than 1 s");
  CHECK(run("while :; do echo y; done", {.seconds = 60, .output_bytes = 1000}).text == "more than 1000 bytes");
#if defined(__linux__)
  CHECK(run("x=y; while :; do x=$x$x; done", {.seconds = 60, .memory_bytes = 50 << 20}).text == "status 2");
#endif
  CHECK_FALSE(run_limited(usual, {"no such program"}, input.get()).done);
}
