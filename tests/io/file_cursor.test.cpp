// SPDX-License-Identifier: MIT
#include "intaglio/io/file_cursor.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::file_error;
using intaglio::io::mapped_file;

TEST_CASE("file_cursor: reads fields through its window and names the one that does not fit", "[file_cursor]") {
  bytes data(200'000, std::byte{0});
  const std::uint32_t number = 0xDEADBEEF;
  std::memcpy(data.data() + 65'534, &number, 4);  // across the window's border
  const auto file = mapped_file::from_memory(data, "memory");
  intaglio::io::file_cursor cursor(file);
  cursor.skip(65'534, "start");
  CHECK(cursor.number<std::uint32_t>("number") == number);
  CHECK(cursor.text("text", 10).empty());
  cursor.skip(cursor.left() - 3, "middle");
  try {
    cursor.number<std::uint64_t>("last number");
    FAIL("read past the end");
  } catch (const file_error& problem) {
    CHECK(problem.offset() == 199'997);
    CHECK_THAT(problem.what(),
               ContainsSubstring("last number") && ContainsSubstring("8 bytes") && ContainsSubstring("found 3"));
  }
}
