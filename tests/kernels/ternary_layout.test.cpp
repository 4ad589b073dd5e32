// SPDX-License-Identifier: MIT
#include "intaglio/kernels/ternary_layout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

namespace {

using namespace intaglio;
using namespace intaglio::kernels;

// The catalogue's words: bits 2f+1..2f of byte b hold column 4f + b.
static_assert(tile_shift(0) == 0 && tile_shift(1) == 8 && tile_shift(3) == 24 && tile_shift(4) == 2 &&
              tile_shift(15) == 30);
constexpr std::int8_t one_row[16] = {1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
static_assert(tile_row(one_row) == ((0x55555555u | 2u) ^ 1u ^ (1u << 16) ^ (3u << 30)));
static_assert(tile_word(0, 0, 32) == 0 && tile_word(1, 0, 32) == 1 && tile_word(0, 16, 32) == 4 &&
              tile_word(4, 0, 32) == 8);
static_assert(tile_words(2560, 6912) == 2560u * 6912u / 16);

static_assert(row_order::plain(8)(5) == source_row{0, 5});
static_assert(row_order::gate_up(4)(0) == source_row{0, 0} && row_order::gate_up(4)(1) == source_row{1, 0} &&
              row_order::gate_up(4)(6) == source_row{0, 3});
constexpr auto pairs = row_order::rope_pairs(8, 16, 8);  // two heads of q, one of k, one of v
static_assert(pairs.rows() == 32 && pairs.tensors() == 3);
static_assert(pairs(0) == source_row{0, 0} && pairs(1) == source_row{0, 4} && pairs(2) == source_row{0, 1} &&
              pairs(7) == source_row{0, 7});
static_assert(pairs(8) == source_row{0, 8} && pairs(9) == source_row{0, 12});
static_assert(pairs(16) == source_row{1, 0} && pairs(23) == source_row{1, 7} && pairs(24) == source_row{2, 0} &&
              pairs(25) == source_row{2, 4});

std::vector<std::int8_t> random_codes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int8_t> codes(count);
  for (auto& code : codes) code = static_cast<std::int8_t>(static_cast<int>(random() % 3) - 1);
  return codes;
}

TEST_CASE("the fast row agrees with the definition") {
  const auto codes = random_codes(16 * 500, 1);
  for (std::size_t i = 0; i < codes.size(); i += 16) {
    std::uint32_t word = 0;
    for (std::uint32_t c = 0; c < 16; ++c) word |= static_cast<std::uint32_t>(codes[i + c] + 1) << tile_shift(c);
    CHECK(tile_row(codes.data() + i) == word);
  }
}

TEST_CASE("every order is a permutation and every code is where the layout says", "[law]") {
  constexpr std::uint32_t columns = 48;
  for (const auto& order : {row_order::plain(12), row_order::gate_up(10), row_order::rope_pairs(4, 12, 8)}) {
    std::vector<std::vector<std::int8_t>> tensors;
    for (std::uint32_t t = 0; t < order.tensors(); ++t)
      tensors.push_back(random_codes(std::size_t{order.tensor_rows[t]} * columns, t + 1));
    const std::vector<std::span<const std::int8_t>> sources(tensors.begin(), tensors.end());
    std::vector<std::uint32_t> whole(tile_words(order.rows(), columns)), parts(whole.size());
    repack_ternary(order, sources, columns, 0, whole);
    for (std::uint64_t group = 0; group < order.rows() / 4; ++group)
      repack_ternary(order, sources, columns, group, std::span(parts).subspan(group * columns / 4, columns / 4));
    CHECK(parts == whole);
    std::vector<std::vector<int>> seen(3, std::vector<int>(64));
    for (std::uint32_t position = 0; position < order.rows(); ++position) {
      const auto from = order(position);
      ++seen[from.tensor][from.row];
      for (std::uint32_t c = 0; c < columns; ++c)
        CHECK(tile_code(whole, position, c, columns) ==
              static_cast<std::uint32_t>(tensors[from.tensor][from.row * columns + c] + 1));
    }
    for (std::uint32_t t = 0; t < order.tensors(); ++t)
      for (std::uint32_t row = 0; row < order.tensor_rows[t]; ++row) CHECK(seen[t][row] == 1);
  }
}

TEST_CASE("a window of a tensor gives the same groups") {
  constexpr std::uint32_t columns = 16, rows = 16;
  const auto order = row_order::gate_up(rows);
  const auto gate = random_codes(rows * columns, 1), up = random_codes(rows * columns, 2);
  std::vector<std::uint32_t> whole(tile_words(2 * rows, columns)), window(columns / 4);
  const std::array<std::span<const std::int8_t>, 2> both{gate, up};
  repack_ternary(order, both, columns, 0, whole);
  // Group 5 holds gate and up rows 10 and 11.
  const std::array<std::span<const std::int8_t>, 2> parts{both[0].subspan(10 * columns, 2 * columns),
                                                          both[1].subspan(10 * columns, 2 * columns)};
  repack_ternary(order, parts, columns, 5, window, {10, 10, 0});
  CHECK(std::equal(window.begin(), window.end(), whole.begin() + 5 * columns / 4));
  CHECK_THROWS_AS(repack_ternary(order, parts, columns, 6, window, {10, 10, 0}), argument_error);
  CHECK_THROWS_AS(repack_ternary(order, parts, columns, 4, window, {10, 10, 0}), argument_error);
}

TEST_CASE("what does not fit is refused with both numbers") {
  const auto codes = random_codes(64, 1);
  const std::array<std::span<const std::int8_t>, 1> source{codes};
  std::vector<std::uint32_t> words(4);
  CHECK_THROWS_AS(repack_ternary(row_order::plain(4), source, 15, 0, words), argument_error);
  CHECK_THROWS_AS(repack_ternary(row_order::plain(3), source, 16, 0, words), argument_error);
  CHECK_THROWS_AS(repack_ternary(row_order::plain(4), source, 16, 1, words), argument_error);
  CHECK_THROWS_AS(repack_ternary(row_order::plain(4), source, 16, 0, std::span(words).first(3)), argument_error);
  CHECK_THROWS_AS(repack_ternary(row_order::gate_up(4), source, 16, 0, words), argument_error);
  repack_ternary(row_order::plain(4), source, 16, 0, words);
}

}  // namespace
