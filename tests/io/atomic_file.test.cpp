// SPDX-License-Identifier: MIT
#include "intaglio/io/atomic_file.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "files.hpp"

using intaglio::file_error;

TEST_CASE("atomic_file: the place holds the old file or the new one", "[atomic_file]") {
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
  // A folder that is gone when the file should take its place.
  std::filesystem::create_directory(folder / "gone");
  intaglio::io::atomic_file late(folder / "gone/file");
  std::filesystem::remove_all(folder / "gone");
  CHECK_THROWS_AS(late.commit(), file_error);
}
