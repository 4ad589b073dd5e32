// SPDX-License-Identifier: MIT
#include "intaglio/io/mapped_file.hpp"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::file_error;
using intaglio::io::mapped_file;

namespace {

std::string refusal(const std::filesystem::path& path) {
  try {
    const mapped_file file(path);
  } catch (const file_error& problem) {
    return problem.what();
  }
  return "opened";
}

}  // namespace

TEST_CASE("mapped_file: refuses what is no file, and says what it is", "[mapped_file]") {
  const temporary_folder folder;
  CHECK_THAT(refusal(folder / "nothing"), ContainsSubstring("no such file"));
  CHECK_THAT(refusal(folder.path()), ContainsSubstring("a folder"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(refusal(folder / "pipe"), ContainsSubstring("a pipe"));  // does not wait for a writer
  CHECK_THAT(refusal("/dev/null"), ContainsSubstring("a device"));
  CHECK_THAT(refusal(write_text(folder / "empty", "")), ContainsSubstring("empty"));
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THAT(refusal(folder / "loop"), ContainsSubstring("cannot open"));
  CHECK_THAT(refusal(folder / "a\nb"), ContainsSubstring("a\\x0ab"));
}

TEST_CASE("mapped_file: reads what is there and nothing else", "[mapped_file]") {
  const temporary_folder folder;
  mapped_file file(write_text(folder / "file", "0123456789"));
  CHECK(file.size() == 10);
  bytes out(4);
  file.read(3, out);
  CHECK(std::memcmp(out.data(), "3456", 4) == 0);
  CHECK(std::memcmp(file.mapping().data(), "0123456789", 10) == 0);
  CHECK_THROWS_AS(file.read(7, out), file_error);
  CHECK_THROWS_AS(file.read(~std::uint64_t{0}, out), file_error);
  const mapped_file moved = std::move(file);
  moved.read(6, out);
  CHECK(std::memcmp(out.data(), "6789", 4) == 0);

  const std::string_view text = "abcdef";
  const auto memory = mapped_file::from_memory(std::as_bytes(std::span(text)), "memory");
  memory.read(2, out);
  CHECK(std::memcmp(out.data(), "cdef", 4) == 0);
  CHECK_THROWS_AS(memory.read(3, out), file_error);
  CHECK_FALSE(memory.changed());
  CHECK_THROWS_AS(mapped_file::from_memory({}, "memory"), file_error);
}

TEST_CASE("mapped_file: a file that is cut or changed while open gives an error, a replaced one lives on", "[mapped_file]") {
  const temporary_folder folder;
  const auto path = write_text(folder / "file", std::string(100'000, 'x'));
  const mapped_file file(path);
  CHECK_FALSE(file.changed());
  bytes out(1000);

  std::filesystem::rename(path, folder / "other");
  write_text(path, "short");
  file.read(99'000, out);
  CHECK_FALSE(file.changed());

  std::filesystem::resize_file(folder / "other", 5000);
  CHECK(file.changed());
  CHECK_THROWS_AS(file.expect_unchanged(), file_error);
  file.read(4000, out);
  try {
    file.read(4500, out);
    FAIL("read past the cut");
  } catch (const file_error& problem) {
    CHECK(problem.offset() == 5000);
    CHECK_THAT(problem.what(), ContainsSubstring("cut while it was being read"));
  }
}
