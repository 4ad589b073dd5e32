// SPDX-License-Identifier: MIT
#include "intaglio/io/atomic_file.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <cstring>
#include <memory>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::file_error;

TEST_CASE("atomic_file: the path has the old file or the new one", "[atomic_file]") {
  const temporary_folder folder;
  const auto path = write_text(folder / "file", "old");
  const std::string_view text = "new";
  {
    intaglio::io::atomic_file file(path);
    file.write(std::as_bytes(std::span(text)));
    CHECK(read_bytes(path).size() == 3);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
  }
  CHECK(std::memcmp(read_bytes(path).data(), "old", 3) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  {
    intaglio::io::atomic_file file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  CHECK(std::memcmp(read_bytes(path).data(), "new", 3) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_AS(intaglio::io::atomic_file(folder.path()), file_error);
  CHECK_THROWS_AS(intaglio::io::atomic_file(folder / "no" / "folder"), file_error);
  // The path's folder is gone when the file should be renamed to it.
  std::filesystem::create_directory(folder / "gone");
  intaglio::io::atomic_file late(folder / "gone/file");
  std::filesystem::remove_all(folder / "gone");
  CHECK_THROWS_AS(late.commit(), file_error);
}

TEST_CASE("atomic_file: a path without a file's name is refused before anything is written", "[atomic_file]") {
  const temporary_folder folder;
  const auto refusal = [](const std::filesystem::path& path) -> std::string {
    try {
      intaglio::io::atomic_file file(path);
    } catch (const intaglio::file_error& problem) { return problem.what(); }
    return "accepted";
  };
  CHECK(refusal("").find("cannot be written: expected the name of a file, found none") != std::string::npos);
  CHECK(refusal(folder.path() / "").find("the name of a file, found a folder's") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("atomic_file: two writers of one path do not share a file", "[atomic_file]") {
  const temporary_folder folder;
  const std::string_view one = "one", two = "two";
  intaglio::io::atomic_file first(folder / "file"), second(folder / "file");
  first.write(std::as_bytes(std::span(one)));
  second.write(std::as_bytes(std::span(two)));
  first.commit();
  CHECK(std::memcmp(read_bytes(folder / "file").data(), "one", 3) == 0);
  second.commit();
  CHECK(std::memcmp(read_bytes(folder / "file").data(), "two", 3) == 0);
  // Names for a hundred of them.
  std::vector<std::unique_ptr<intaglio::io::atomic_file>> many;
  for (int i = 0; i < 100; ++i) many.push_back(std::make_unique<intaglio::io::atomic_file>(folder / "file"));
  CHECK_THROWS_WITH(intaglio::io::atomic_file(folder / "file"), ContainsSubstring("cannot create: File exists"));
}

TEST_CASE("atomic_file: a full disk is an error with the offset, and leaves nothing", "[atomic_file]") {
  const temporary_folder folder;
  // A limit of the process replaces a full disk: both refuse the write with an error code.
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  {
    intaglio::io::atomic_file file(folder / "file");
    const bytes data(10'000);
    ::rlimit small = before;
    small.rlim_cur = 4096;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::string text = "written";
    try {
      file.write(data);
    } catch (const file_error& problem) { text = problem.what(); }
    ::setrlimit(RLIMIT_FSIZE, &before);
    CHECK_THAT(text, ContainsSubstring("offset 0x1000: cannot write: File too large"));
    CHECK(file.size() == 4096);
  }
  std::signal(SIGXFSZ, handler);
  CHECK(std::filesystem::is_empty(folder.path()));
}
