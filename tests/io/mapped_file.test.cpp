// SPDX-License-Identifier: MIT
#include "intaglio/io/mapped_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "files.hpp"
#include "temporary_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::file_error;
using intaglio::io::mapped_file;

namespace {

std::string refusal(const std::filesystem::path& path) {
  try {
    const mapped_file file(path);
  } catch (const file_error& problem) { return problem.what(); }
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
  CHECK(file.mapping().data() == file.mapping().data());
  mapped_file moved = std::move(file);
  moved.read(6, out);
  CHECK(std::memcmp(out.data(), "6789", 4) == 0);
  moved = mapped_file(write_text(folder / "second", "abcd"));
  moved.read(0, out);
  CHECK((std::memcmp(out.data(), "abcd", 4) == 0 && moved.path() == (folder / "second").string()));

  const std::string_view text = "abcdef";
  auto memory = mapped_file::from_memory(std::as_bytes(std::span(text)), "memory");
  memory.read(2, out);
  CHECK(std::memcmp(out.data(), "cdef", 4) == 0);
  CHECK_THROWS_AS(memory.read(3, out), file_error);
  CHECK_NOTHROW(memory.read(6, {}));
  CHECK((memory.mapping().size() == 6 && static_cast<const void*>(memory.mapping().data()) == text.data()));
  CHECK_FALSE(memory.changed());
  CHECK_THROWS_AS(mapped_file::from_memory({}, "memory"), file_error);
}

TEST_CASE("mapped_file: a file that is cut or changed while open gives an error, a replaced one lives on",
          "[mapped_file]") {
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

TEST_CASE("mapped_file: another time of modification is a change as well", "[mapped_file]") {
  using namespace std::chrono_literals;
  const temporary_folder folder;
  const auto path = write_text(folder / "file", "0123456789");
  const auto noon = std::chrono::floor<std::chrono::hours>(std::filesystem::last_write_time(path));
  for (const auto later :
       {std::filesystem::file_time_type::duration(1ms), std::filesystem::file_time_type::duration(5s)}) {
    std::filesystem::last_write_time(path, noon);
    const mapped_file file(path);
    CHECK_FALSE(file.changed());
    std::filesystem::last_write_time(path, noon + later);
    CHECK(file.changed());
    std::filesystem::last_write_time(path, noon);
    CHECK_NOTHROW(file.expect_unchanged());
  }
}

TEST_CASE("mapped_file: what the system refuses later is reported in its words", "[mapped_file]") {
  const temporary_folder folder;
  const auto path = write_text(folder / "file", "0123456789");
  mapped_file file(path);
  // Other code overwrites the descriptor, which then cannot be read from.
  int descriptor = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == std::filesystem::canonical(path))
      descriptor = std::stoi(entry.path().filename().string());
  }
  REQUIRE(descriptor >= 0);
  const int other = ::open((folder / "other").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::dup2(other, descriptor) == descriptor);
  ::close(other);
  bytes out(4);
  CHECK(file.changed());
  CHECK_THROWS_WITH(file.read(3, out), ContainsSubstring("offset 0x3: cannot read: "));
  CHECK_THROWS_WITH(file.mapping(), ContainsSubstring("cannot map: "));
}

TEST_CASE("mapped_file: opened once more it is the same file, whatever its name has come to mean", "[mapped_file]") {
  const temporary_folder folder;
  auto file = std::make_unique<mapped_file>(write_text(folder / "file", "0123456789"));
  std::filesystem::remove(folder / "file");
  write_text(folder / "file", "another!!!");
  const mapped_file again = file->reopened();
  CHECK(again.descriptor() != file->descriptor());
  file.reset();
  bytes out(4);
  again.read(3, out);
  CHECK(std::memcmp(out.data(), "3456", 4) == 0);
  CHECK_NOTHROW(again.expect_unchanged());
  CHECK_FALSE(again.in_memory());
  CHECK(mapped_file::from_memory(out, "memory").in_memory());
}

TEST_CASE("mapped_file: of a file that still arrives, reads wait for their bytes, and what ends it is reported",
          "[mapped_file]") {
  struct arrival : intaglio::io::file_arrival {
    std::filesystem::path path;
    mutable std::uint64_t waited = 0, finished = 0;
    bool broken = false, waits = true;
    std::uint64_t size() const override { return 8; }
    void wait(std::uint64_t end) const override {
      if (broken) throw std::runtime_error("the net is gone");
      if (!waits) return;
      waited = std::max(waited, end);
      std::ofstream(path, std::ios::binary) << std::string("abcdefgh").substr(0, static_cast<std::size_t>(waited));
    }
    void finish() const override {
      ++finished;
      wait(8);
      if (!waits) throw std::runtime_error("another file");
    }
  };
  const temporary_folder folder;
  const auto coming = std::make_shared<arrival>();
  coming->path = folder / "file";
  std::ofstream(coming->path).flush();
  const mapped_file file(coming->path, coming);
  CHECK(file.size() == 8);
  std::array<char, 2> two{};
  file.read(3, std::as_writable_bytes(std::span(two)));
  CHECK(std::string_view(two.data(), 2) == "de");
  CHECK(coming->waited == 5);
  CHECK_THROWS_AS(file.read(7, std::as_writable_bytes(std::span(two))), file_error);
  CHECK(coming->waited == 5);
  file.expect_unchanged();
  CHECK(coming->finished == 1);
  std::filesystem::resize_file(coming->path, 0);  // the file was cut, as a writer may do
  coming->waits = false;
  CHECK_THROWS_WITH(file.read(0, std::as_writable_bytes(std::span(two))), "another file");
  coming->broken = true;
  CHECK_THROWS_WITH(file.read(0, std::as_writable_bytes(std::span(two))), "the net is gone");
  CHECK_THROWS_WITH(mapped_file(file.reopened()).expect_unchanged(), "the net is gone");
}
