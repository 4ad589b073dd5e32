// SPDX-License-Identifier: MIT
#include "intaglio/platform/files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "temporary_folder.hpp"

using namespace intaglio::platform;

namespace {

auto bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string read_back(file_number file, std::uint64_t offset, std::size_t count) {
  std::string out(count, '.');
  const auto got = read_at(file, offset, std::as_writable_bytes(std::span(out)));
  return got < 0 ? "failed" : out.substr(0, static_cast<std::size_t>(got));
}

}  // namespace

TEST_CASE("files: a new file is new, and a journal is made or opened", "[files]") {
  const temporary_folder folder;
  const auto path = folder / "file";
  CHECK(open_file(path, file_access::read) < 0);
  CHECK(errno == ENOENT);
  const file_number made = open_file(path, file_access::write_new);
  REQUIRE(made >= 0);
  CHECK(write_some(made, bytes_of("abc")) == 3);
  CHECK(write_some(made, bytes_of("def")) == 3);
  CHECK(flush_file(made));
  CHECK(close_file(made));
  CHECK(open_file(path, file_access::write_new) < 0);
  CHECK(errno == EEXIST);
  const file_number journal = open_file(path, file_access::journal);
  REQUIRE(journal >= 0);
  CHECK(write_at(journal, 4, bytes_of("XY")) == 2);
  CHECK(read_back(journal, 2, 100) == "cdXY");
  CHECK(read_back(journal, 6, 100).empty());
  CHECK(cut_file(journal, 2));
  CHECK(read_back(journal, 0, 100) == "ab");
  close_file(journal);
}

TEST_CASE("files: what something is, how long, and when it was written", "[files]") {
  const temporary_folder folder;
  const auto path = folder / "file";
  file_status status;
  CHECK_FALSE(status_of(path, status));
  CHECK(errno == ENOENT);
  REQUIRE(status_of(folder.path(), status));
  CHECK(status.kind == file_kind::folder);
  const file_number file = open_file(path, file_access::journal);
  REQUIRE(status_of(file, status));
  CHECK(status == file_status{file_kind::regular, 0, status.modified});
  const auto before = status.modified;
  REQUIRE(write_at(file, 0, bytes_of("abc")) == 3);
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::hours(1));
  REQUIRE(status_of(path, status));
  CHECK(status.size == 3);
  CHECK(status.modified > before);
  close_file(file);
}

TEST_CASE("files: a lock is one opening's until it is closed", "[files]") {
  const temporary_folder folder;
  const auto path = folder / "file";
  const file_number one = open_file(path, file_access::journal), other = open_file(path, file_access::journal);
  CHECK(lock_file(one));
  CHECK_FALSE(lock_file(other));
  CHECK(errno == EWOULDBLOCK);
  close_file(one);
  CHECK(lock_file(other));
  close_file(other);
  const file_number held = lock_folder(folder.path());
  REQUIRE(held >= 0);
  CHECK(lock_folder(folder.path()) < 0);
  CHECK(errno == EWOULDBLOCK);
  close_file(held);
  const file_number again = lock_folder(folder.path());
  CHECK(again >= 0);
  close_file(again);
  CHECK(lock_folder(folder / "none") < 0);
  CHECK(errno == ENOENT);
}

TEST_CASE("files: an open file is opened again, mapped, and replaced", "[files]") {
  const temporary_folder folder;
  const auto path = folder / "file", other = folder / "new";
  for (const auto& [where, text] : {std::pair{path, "old"}, std::pair{other, "new"}}) {
    const file_number file = open_file(where, file_access::write_new);
    REQUIRE(write_some(file, bytes_of(text)) == 3);
    close_file(file);
  }
  const file_number first = open_file(path, file_access::read), second = opened_again(first);
  REQUIRE(second >= 0);
  CHECK(second != first);
  const void* const mapped = map_file(first, 3);
  REQUIRE(mapped != nullptr);
  CHECK(std::string_view(static_cast<const char*>(mapped), 3) == "old");
  unmap_file(mapped, 3);
  CHECK(replace_file(other, path));
  flush_folder(folder.path());
  CHECK_FALSE(std::filesystem::exists(other));
  CHECK(read_back(second, 0, 3) == "old");
  close_file(first);
  close_file(second);
  const file_number now = open_file(path, file_access::read);
  CHECK(read_back(now, 0, 3) == "new");
  close_file(now);
  CHECK(remove_file(path));
  CHECK_FALSE(remove_file(path));
}

TEST_CASE("files: folders and files of one user alone", "[files]") {
  const temporary_folder folder;
  const auto deep = folder / "a" / "b" / "c";
  CHECK(make_private_folders(deep));
  CHECK(make_private_folders(deep));
  CHECK((std::filesystem::status(deep).permissions() & std::filesystem::perms::all) ==
        std::filesystem::perms::owner_all);
  std::string name = (deep / "file").string();
  const std::string begins = name;
  const file_number file = make_private_file(name);
  REQUIRE(file >= 0);
  CHECK(name.starts_with(begins + "."));
  CHECK(std::filesystem::exists(name));
  CHECK_FALSE(make_private_folders(std::filesystem::path(name) / "below a file"));
  close_file(file);
}

TEST_CASE("files: what is added comes to the end, and links are not followed", "[files]") {
  const temporary_folder folder;
  const auto path = folder / "file";
  const file_number one = open_file(path, file_access::append_private),
                    other = open_file(path, file_access::append_private);
  REQUIRE((one >= 0 && other >= 0));
  CHECK(write_some(one, bytes_of("ab")) == 2);
  CHECK(write_some(other, bytes_of("c")) == 1);
  CHECK(write_some(one, bytes_of("d")) == 1);
  close_file(one);
  close_file(other);
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::others_read) ==
        std::filesystem::perms::none);
  const file_number stream = open_file(path, file_access::stream);
  std::string found(3, '.');
  CHECK(read_some(stream, std::as_writable_bytes(std::span(found))) == 3);
  CHECK(found == "abc");
  CHECK(read_some(stream, std::as_writable_bytes(std::span(found))) == 1);
  CHECK(read_some(stream, std::as_writable_bytes(std::span(found))) == 0);
  close_file(stream);
  std::filesystem::create_symlink(path, folder / "link");
  for (const file_access how : {file_access::append_private, file_access::journal_no_link}) {
    CHECK(open_file(folder / "link", how) < 0);
    CHECK(errno == ELOOP);
    const file_number plain = open_file(path, how);
    CHECK(plain >= 0);
    close_file(plain);
  }
}

TEST_CASE("files: a lock is waited for, and a new folder is one user's", "[files]") {
  const temporary_folder folder;
  const file_number one = open_file(folder / "file", file_access::journal),
                    other = open_file(folder / "file", file_access::journal);
  REQUIRE(lock_file(one));
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    close_file(one);
  });
  CHECK(lock_file(other, true));
  ending.join();
  close_file(other);
  std::string first = (folder / "made").string(), second = first;
  CHECK((make_private_folder(first) && make_private_folder(second)));
  CHECK(first != second);
  CHECK((std::filesystem::status(first).permissions() & std::filesystem::perms::all) ==
        std::filesystem::perms::owner_all);
  CHECK((is_full(ENOSPC) && !is_full(EACCES)));
}
