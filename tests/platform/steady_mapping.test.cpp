// SPDX-License-Identifier: MIT
// Leases are tested as io/leased_mapping.hpp has them (tests/io/leased_mapping.test.cpp).
#include "intaglio/platform/steady_mapping.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <string_view>

#include "intaglio/platform/library.hpp"
#include "temporary_folder.hpp"

using namespace intaglio::platform;

TEST_CASE("steady mapping: the file begins at the alignment, and zeros fill up its end", "[steady_mapping]") {
  const temporary_folder folder;
  const file_number file = open_file(folder / "file", file_access::journal);
  REQUIRE(write_at(file, 0, std::as_bytes(std::span(std::string_view("abc")))) == 3);
  steady_mapping mapping(file, 3, [](std::span<std::byte>) { return true; });
  const std::uint64_t alignment = 4 * page_size();
  REQUIRE(mapping.map(alignment) == 0);
  CHECK(mapping.bytes().size() == alignment);
  CHECK(reinterpret_cast<std::uintptr_t>(mapping.bytes().data()) % alignment == 0);
  CHECK(std::string_view(reinterpret_cast<const char*>(mapping.bytes().data()), 5) == std::string_view("abc\0\0", 5));
  CHECK(mapping.populate(0, 3));
  CHECK_FALSE(mapping.copied());
  CHECK_FALSE(mapping.lost());
  close_file(file);
}

TEST_CASE("library: a function, a name that it has not, and a library that is not there", "[library]") {
  std::string problem;
  CHECK(library_function("libc.so.6", "strlen", problem) != nullptr);
  CHECK(library_function("libc.so.6", "no such function", problem) == nullptr);
  CHECK(problem.empty());
  CHECK(library_function("no such library", "f", problem) == nullptr);
  CHECK_FALSE(problem.empty());
}
