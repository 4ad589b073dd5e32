// SPDX-License-Identifier: MIT
#include "intaglio/platform/process.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>

using namespace intaglio::platform;

namespace {

/// What went wrong with the work.
template <class Work>
std::string failure(const process_limits& limits, Work&& work) {
  const limited_result out = run_limited(limits, work);
  CHECK_FALSE(out.done);
  return out.text;
}
std::ptrdiff_t open_files() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }
bool has_children() {
  errno = 0;
  return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD;
}

constexpr process_limits generous{.seconds = 60};

}  // namespace

TEST_CASE("limited process: the text comes back whole, whatever it holds", "[process]") {
  // None, a zero, and more than a pipe takes at once.
  for (const std::string& text : {std::string(), std::string("a\0-", 3), std::string(300'000, 'x')}) {
    const auto out = run_limited(generous, [&] { return text; });
    CHECK(out.done);
    CHECK((out.text == text));
  }
}

TEST_CASE("limited process: the work is done elsewhere and leaves nothing here", "[process]") {
  const auto files = open_files();
  int touched = 0;
  const ::pid_t here = ::getpid();
  const auto out = run_limited(generous, [&] { return ++touched, std::to_string(::getppid()); });
  CHECK((out.done && out.text == std::to_string(here)));
  CHECK(touched == 0);
  CHECK(failure(generous, []() -> std::string { throw std::runtime_error("no"); }) == "no");
  CHECK(failure({.seconds = 0}, []() -> std::string {
          for (;;) ::pause();
        }) == "more than 0 s");
  CHECK(open_files() == files);
  CHECK_FALSE(has_children());
}

TEST_CASE("limited process: what is thrown there is reported here", "[process]") {
  CHECK(failure(generous, []() -> std::string { throw std::runtime_error("+line 3"); }) == "+line 3");
  CHECK(failure(generous, []() -> std::string { throw std::runtime_error(""); }).empty());
  CHECK(failure(generous, []() -> std::string { throw 7; }) == "an unknown failure");
}

TEST_CASE("limited process: a process that ends by itself gives the reason there is", "[process]") {
  const auto dies_of = [](int signal) {
    return failure({.seconds = 60}, [=] {
      ::raise(signal);
      return std::string("alive");
    });
  };
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT})
    CHECK(dies_of(signal) == "more nesting or memory than is allowed");
  for (const int signal : {SIGXCPU, SIGKILL}) CHECK(dies_of(signal) == "more than 60 s");
  CHECK(failure(generous, []() -> std::string { ::_exit(0); }) == "nothing");
}

TEST_CASE("limited process: as many bytes as are allowed, and no more", "[process]") {
  for (const std::size_t most : {0u, 10u, 4'095u, 4'096u, 100'000u}) {
    INFO(most);
    const process_limits limits{.seconds = 60, .output_bytes = most};
    CHECK(run_limited(limits, [&] { return std::string(most, 'x'); }).text.size() == most);
    CHECK(failure(limits, [&] { return std::string(most + 1, 'x'); }) ==
          "more than " + std::to_string(most) + " bytes");
    CHECK(failure(limits, [&]() -> std::string { throw std::runtime_error(std::string(most + 1, 'x')); }) ==
          "more than " + std::to_string(most) + " bytes");
  }
  // What would go on writing is ended.
  CHECK(failure({.seconds = 60, .output_bytes = 10}, [] { return std::string(10 << 20, 'x'); }) ==
        "more than 10 bytes");
}

TEST_CASE("limited process: the system holds it to its limits, and this process to none of them", "[process]") {
  const auto limit = [](auto what) {
    ::rlimit out{};
    ::getrlimit(what, &out);
    return std::to_string(out.rlim_cur) + "/" + std::to_string(out.rlim_max) + " ";
  };
  const auto all = [&] { return limit(RLIMIT_CORE) + limit(RLIMIT_CPU) + limit(RLIMIT_DATA); };
  const std::string before = all();
  const auto there = run_limited({.seconds = 60, .memory_bytes = std::uint64_t{1} << 30}, all);
  REQUIRE(there.done);
  CHECK(there.text.starts_with("0/0 60/60 "));
  // The limit of data is what the process had, plus the allowance.
  const auto data = std::stoull(there.text.substr(10));
  CHECK((data > std::uint64_t{1} << 30 && there.text.ends_with("/" + std::to_string(data) + " ")));
  CHECK(all() == before);
}

// The sanitizers' allocators report and end the process instead of throwing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INTAGLIO_TEST_ALLOCATOR_ENDS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define INTAGLIO_TEST_ALLOCATOR_ENDS
#endif
#endif

TEST_CASE("limited process: memory beyond the allowance is refused, and within it given", "[process]") {
  // More than an earlier case of this program can have left to the heap, which is no new memory.
  constexpr std::size_t wanted = std::size_t{512} << 20;
  const auto work = [] { return std::to_string(std::string(wanted, 'x').size()); };
  const auto given = run_limited({.seconds = 60, .memory_bytes = 2 * wanted}, work);
  CHECK((given.done && given.text == std::to_string(wanted)));
#ifndef INTAGLIO_TEST_ALLOCATOR_ENDS
  CHECK(failure({.seconds = 60, .memory_bytes = wanted / 2}, work) == "more memory than is allowed");
  // The error names the limit, not a library's own message.
  CHECK(failure({.seconds = 60, .memory_bytes = wanted / 2}, [&]() -> std::string {
          try {
            return work();
          } catch (const std::bad_alloc&) { throw std::runtime_error("cannot parse"); }
        }) == "more memory than is allowed");
#endif
}

TEST_CASE("limited process: without a pipe there is no process", "[process]") {
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const ::rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto out = run_limited(generous, [] { return std::string("done"); });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK((!out.done && out.text == "cannot make a pipe"));
}
