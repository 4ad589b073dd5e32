// SPDX-License-Identifier: MIT
#include "intaglio/io/leased_mapping.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <numeric>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::file_error;
using intaglio::io::leased_mapping;
using intaglio::io::mapped_file;

namespace {

bytes pages(std::size_t size) {
  bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(1 + i % 251);
  return out;
}
std::size_t sum(std::span<const std::byte> of) {
  return std::accumulate(of.begin(), of.end(), std::size_t{0},
                         [](std::size_t all, std::byte each) { return all + std::to_integer<std::size_t>(each); });
}
std::shared_ptr<const leased_mapping> leased(const std::filesystem::path& path, std::uint64_t alignment = 4096) {
  std::string refusal;
  auto out = leased_mapping::of(mapped_file(path), alignment, refusal);
  INFO(refusal);
  REQUIRE(out != nullptr);
  return out;
}

/// Runs `body` in a child and gives its exit status.
template <class Body>
int child(Body&& body) {
  const ::pid_t id = ::fork();
  REQUIRE(id >= 0);
  if (id == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(id, &status, 0) == id);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("leased_mapping: the file's bytes at any alignment, and zeros after them", "[leased_mapping]") {
  const temporary_folder folder;
  const bytes content = pages(70'000);
  const auto path = write_bytes(folder / "file", content);
  for (const std::uint64_t alignment :
       {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{65'536}, std::uint64_t{1} << 21}) {
    const auto mapping = leased(path, alignment);
    CHECK(reinterpret_cast<std::uintptr_t>(mapping->bytes().data()) % alignment == 0);
    CHECK((mapping->bytes().size() >= content.size() && mapping->bytes().size() % alignment == 0));
    CHECK_NOTHROW(mapping->populate(5000, 65'000));
    CHECK(std::equal(content.begin(), content.end(), mapping->bytes().begin()));
    CHECK(sum(mapping->bytes().subspan(content.size())) == 0);
    CHECK_NOTHROW(mapping->expect_unchanged());
    CHECK_FALSE(mapping->copied());
  }
  std::string refusal;
  for (const std::uint64_t alignment : {0u, 3u, 12'288u})
    CHECK_THROWS_AS(leased_mapping::of(mapped_file(path), alignment, refusal), intaglio::argument_error);
}

TEST_CASE("leased_mapping: it outlives the file that it was made of, and its name", "[leased_mapping]") {
  const temporary_folder folder;
  const bytes content = pages(5000);
  const auto mapping = leased(write_bytes(folder / "file", content));
  std::filesystem::remove(folder / "file");
  CHECK(std::equal(content.begin(), content.end(), mapping->bytes().begin()));
  CHECK_NOTHROW(mapping->expect_unchanged());
}

TEST_CASE("leased_mapping: who cuts or writes the file waits for a copy, which replaces the mapping",
          "[leased_mapping]") {
  const temporary_folder folder;
  const bytes content = pages(200 * 4096 + 77);
  const auto path = write_bytes(folder / "file", content);
  const auto first = leased(path), second = leased(path);  // each has a lease of its own
  const std::byte* const before = first->bytes().data();
  SECTION("cut") { std::filesystem::resize_file(path, 10); }
  SECTION("cut by another program") {
    CHECK(child([&] { return ::truncate(path.c_str(), 10); }) == 0);
  }
  SECTION("opened for writing, which need not cut it") {
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(5000).write("other", 5);
  }
  SECTION("replaced in place") { write_text(path, "another file"); }
  for (const auto& each : {first, second}) {
    CHECK(each->copied());
    CHECK(std::equal(content.begin(), content.end(), each->bytes().begin()));
    CHECK(sum(each->bytes().subspan(content.size())) == 0);
    CHECK_NOTHROW(each->expect_unchanged());
    CHECK_NOTHROW(each->populate(0, content.size()));
  }
  CHECK(first->bytes().data() == before);
  CHECK(sum(read_bytes(path)) != sum(content));
}

TEST_CASE("leased_mapping: without memory for the copy there are zeros and an error, no signal", "[leased_mapping]") {
  const temporary_folder folder;
  const auto path = write_bytes(folder / "file", pages(std::size_t{64} << 20));
  CHECK(child([&] {
          std::string refusal;
          const auto mapping = leased_mapping::of(mapped_file(path), 4096, refusal);
          if (!mapping) return 1;
          std::size_t taken = 0;  // pages that are mapped
          std::ifstream("/proc/self/statm") >> taken;
          const ::rlim_t enough = (taken << 12) + (std::size_t{8} << 20);
          const ::rlimit little{enough, enough};
          ::setrlimit(RLIMIT_AS, &little);
          if (::truncate(path.c_str(), 10) != 0) return 2;
          if (mapping->bytes()[5000] != std::byte{0}) return 3;
          try {
            mapping->expect_unchanged();
          } catch (const file_error&) { return 0; }
          return 4;
        }) == 0);
}

TEST_CASE("leased_mapping: what cannot be leased is not mapped, and says why", "[leased_mapping]") {
  const temporary_folder folder;
  const auto path = write_bytes(folder / "file", pages(9000));
  std::string refusal;
  {
    const mapped_file file(path);
    const std::fstream writer(path, std::ios::in | std::ios::out | std::ios::binary);
    CHECK(leased_mapping::of(file, 4096, refusal) == nullptr);
    CHECK_THAT(refusal, ContainsSubstring("open for writing"));
  }
  CHECK(leased_mapping::of(mapped_file::from_memory(pages(10), "memory"), 4096, refusal) == nullptr);
  CHECK_THAT(refusal, ContainsSubstring("no file"));
  {
    const mapped_file file(path);
    std::filesystem::resize_file(path, 8999);
    CHECK_THROWS_MATCHES(leased_mapping::of(file, 4096, refusal), file_error,
                         MessageMatches(ContainsSubstring("the file changed while it was in use")));
  }
  // Read-only to all but its owner.
  if (::geteuid() == 0)
    CHECK(child([&] {
            const mapped_file file(path);
            if (::setuid(65'534) != 0) return 1;
            std::string why;
            try {
              return leased_mapping::of(file, 4096, why) == nullptr ? 0 : 2;
            } catch (const file_error&) {  // the folder's permissions came first
              return 0;
            }
          }) == 0);
}

TEST_CASE("leased_mapping: a child may end with it", "[leased_mapping]") {
  const temporary_folder folder;
  auto mapping = leased(write_bytes(folder / "file", pages(9000)));
  CHECK(child([&] {
          mapping.reset();
          return 0;
        }) == 0);
  CHECK(sum(mapping->bytes()) == sum(pages(9000)));
}
