// SPDX-License-Identifier: MIT
#include "intaglio/platform/console.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <span>
#include <string>

using namespace intaglio::platform;

namespace {
volatile std::sig_atomic_t came = 0;
extern "C" void on_signal(int number) { came = number; }

/// Replaces standard input by a pipe while it exists.
class typed {
 public:
  typed() {
    REQUIRE(::pipe(ends_) == 0);
    kept_ = ::dup(standard_input);
    ::dup2(ends_[0], standard_input);
  }
  ~typed() {
    ::dup2(kept_, standard_input);
    for (const int each : {ends_[0], kept_}) ::close(each);
    end();
  }
  void type(const std::string& text) const {
    REQUIRE(write_some(ends_[1], std::as_bytes(std::span(text))) == static_cast<std::int64_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1}, kept_ = -1;
};
}  // namespace

TEST_CASE("console: input is waited for, and its end is reported", "[console]") {
  typed input;
  CHECK_FALSE(input_comes(10));
  input.type("ab");
  CHECK(input_comes(1000));
  std::string found(8, ' ');
  CHECK(read_input(std::as_writable_bytes(std::span(found))) == 2);
  CHECK(found.starts_with("ab"));
  CHECK_FALSE(is_terminal(standard_input));
  input.end();
  CHECK(input_comes(1000));
  CHECK(read_input(std::as_writable_bytes(std::span(found))) == 0);
}

TEST_CASE("console: the wish to stop comes to the handler, but where it is ignored", "[console]") {
  struct sigaction interrupt {
  }, terminate{};
  ::sigaction(SIGINT, nullptr, &interrupt);
  ::sigaction(SIGTERM, nullptr, &terminate);
  std::signal(SIGINT, SIG_IGN);
  on_stop(&on_signal);
  std::raise(SIGINT);
  CHECK(came == 0);
  ask_to_stop();
  CHECK(came == SIGTERM);
  ::sigaction(SIGINT, &interrupt, nullptr);
  ::sigaction(SIGTERM, &terminate, nullptr);
}
