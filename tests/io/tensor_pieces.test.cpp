// SPDX-License-Identifier: MIT
#include "intaglio/io/tensor_pieces.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <string>
#include <vector>

using namespace intaglio::io;

namespace {

/// 16-bit numbers 0, 1, 2, ... as a file; a view of it gives away which element it read.
struct counted {
  std::vector<std::uint16_t> values;
  mapped_file file;
  explicit counted(std::size_t size)
      : values(size), file((std::iota(values.begin(), values.end(), std::uint16_t{0}),
                            mapped_file::from_memory(std::as_bytes(std::span(values)), "memory"))) {}

  std::vector<std::uint16_t> rows(const std::vector<tensor_piece>& pieces, std::uint64_t columns, std::uint64_t row0,
                                  std::uint64_t count) const {
    std::vector<std::uint16_t> out(static_cast<std::size_t>(count * columns), 0xFFFF);
    read_pieces(pieces, 2, columns, row0, count, std::as_writable_bytes(std::span(out)));
    return out;
  }
};

}  // namespace

TEST_CASE("tensor_pieces: every element of a view is the one that its strides say") {
  const counted of(20'000);
  for (const auto& [row_stride, column_stride] :
       {std::pair<std::uint64_t, std::uint64_t>{13, 1}, {40, 1}, {1, 17}, {64, 3}, {0, 1}, {5, 0}, {0, 0}, {3, 700}}) {
    CAPTURE(row_stride, column_stride);
    const tensor_piece view{.file = &of.file,
                            .offset = 2 * 7,
                            .rows = 17,
                            .columns = 13,
                            .row_stride = row_stride,
                            .column_stride = column_stride};
    for (const auto& [row0, count] : {std::pair<std::uint64_t, std::uint64_t>{0, 17}, {3, 5}, {16, 1}}) {
      const auto got = of.rows({view}, 13, row0, count);
      for (std::uint64_t r = 0; r < count; ++r)
        for (std::uint64_t c = 0; c < 13; ++c)
          REQUIRE(got[static_cast<std::size_t>(r * 13 + c)] == 7 + (row0 + r) * row_stride + c * column_stride);
    }
    CHECK(view.offset_of(2, 3, 2) == 2 * (7 + 2 * row_stride + 3 * column_stride));
  }
  CHECK_FALSE(tensor_piece{.row0 = 2, .rows = 3, .column0 = 4, .columns = 5}.holds(1, 4));
  CHECK(tensor_piece{.row0 = 2, .rows = 3, .column0 = 4, .columns = 5}.holds(4, 8));
}

TEST_CASE("tensor_pieces: parts above one another and side by side") {
  const counted of(1000);
  const auto part = [&](std::uint64_t offset, std::uint64_t row0, std::uint64_t rows, std::uint64_t column0,
                        std::uint64_t columns) {
    return tensor_piece{&of.file, 2 * offset, row0, rows, column0, columns, columns, 1};
  };
  const auto stacked = of.rows({part(0, 0, 2, 0, 3), part(100, 2, 2, 0, 3)}, 3, 1, 2);
  CHECK(stacked == std::vector<std::uint16_t>{3, 4, 5, 100, 101, 102});
  const auto beside = of.rows({part(0, 0, 2, 0, 2), part(100, 0, 2, 2, 3)}, 5, 0, 2);
  CHECK(beside == std::vector<std::uint16_t>{0, 1, 100, 101, 102, 2, 3, 103, 104, 105});
}
