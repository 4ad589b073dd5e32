// SPDX-License-Identifier: MIT
#include "intaglio/io/packed_image.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>
#include <vector>

using Catch::Matchers::Equals;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using intaglio::file_error;
using namespace intaglio::io;

static_assert(packed_layout::chunks(0) == 0 && packed_layout::chunks(1) == 1 && packed_layout::chunks(65'536) == 1 &&
              packed_layout::chunks(65'537) == 2);
static_assert(packed_layout::chunks(~std::uint64_t{0}) == std::uint64_t{1} << 48);

namespace {

constexpr std::uint64_t chunk = packed_layout::chunk_bytes;

/// Two weights in memory: a small one, and one of two copies, each of two chunks and a rest.
struct example {
  packed_weight small{.layout = "small", .copies = 1, .bytes = 100, .offset = 4096, .first_sum = 0};
  packed_weight large{.layout = "large", .copies = 2, .bytes = 2 * chunk + 5, .offset = 4096 + 256, .first_sum = 1};
  std::vector<std::byte> bytes = std::vector<std::byte>(static_cast<std::size_t>(large.offset + 2 * large.step()));
  mapped_file file = mapped_file::from_memory(bytes, "model.packed");
  packed_image image;

  example() {
    std::mt19937 random(3);
    for (const packed_weight* each : {&small, &large})
      for (std::uint32_t copy = 0; copy < each->copies; ++copy)
        for (std::uint64_t i = 0; i < each->bytes; ++i)
          bytes[offset(*each, copy, i)] = static_cast<std::byte>(random());
    image.file = &file;
    image.weights = {small, large};
    for (const packed_weight* each : {&small, &large})
      for (std::uint32_t copy = 0; copy < each->copies; ++copy)
        for (std::uint64_t at = 0; at < each->bytes; at += chunk)
          image.sums.push_back(checksum(std::span(bytes).subspan(
              offset(*each, copy, at), static_cast<std::size_t>(std::min(chunk, each->bytes - at)))));
  }
  example(const example&) = delete;

  static std::size_t offset(const packed_weight& of, std::uint32_t copy, std::uint64_t at) {
    return static_cast<std::size_t>(of.offset + copy * of.step() + at);
  }
  void damage(std::size_t at) { bytes[at] ^= std::byte{1}; }
  std::vector<std::byte> read(const packed_weight& from, std::uint32_t copy, std::uint64_t begin,
                              std::size_t count) const {
    std::vector<std::byte> out(count);
    image.read(from, copy, begin, out);
    return out;
  }
  bool reads_right(const packed_weight& from, std::uint32_t copy, std::uint64_t begin, std::size_t count) const {
    const auto got = read(from, copy, begin, count);
    return std::equal(got.begin(), got.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset(from, copy, begin)));
  }
};

}  // namespace

TEST_CASE("packed image: copies lie at multiples of the alignment", "[packed]") {
  const auto step = [](std::uint64_t bytes) { return packed_weight{.layout = "", .bytes = bytes}.step(); };
  CHECK((step(0) == 0 && step(1) == 256 && step(255) == 256 && step(256) == 256 && step(257) == 512));
}

TEST_CASE("packed image: weights by their layouts", "[packed]") {
  const example made;
  CHECK(made.image.find("large") == &made.image.weights[1]);
  CHECK(made.image.find("larg") == nullptr);
  CHECK(packed_image().find("") == nullptr);
}

TEST_CASE("packed image: any range of any copy", "[packed]") {
  const example made;
  CHECK(made.reads_right(made.small, 0, 0, 100));
  CHECK(made.reads_right(made.small, 0, 99, 1));
  for (const std::uint32_t copy : {0u, 1u})
    for (const std::uint64_t begin :
         {std::uint64_t{0}, std::uint64_t{1}, chunk - 1, chunk, chunk + 1, 2 * chunk - 1, 2 * chunk, 2 * chunk + 4})
      for (const std::uint64_t end : {begin + 1, chunk, chunk + 1, 2 * chunk, 2 * chunk + 1, 2 * chunk + 5}) {
        if (end <= begin) continue;
        INFO(copy << ": [" << begin << ", " << end << ")");
        CHECK(made.reads_right(made.large, copy, begin, static_cast<std::size_t>(end - begin)));
      }
}

TEST_CASE("packed image: damage is found where its chunk is read, and nowhere else", "[packed]") {
  example made;
  const std::size_t second = example::offset(made.large, 1, chunk);
  const std::string right = intaglio::hexadecimal(made.image.sums[5]);
  made.damage(second + 9);
  const std::string wrong = intaglio::hexadecimal(checksum(std::span(made.bytes).subspan(second, chunk)));
  const std::string text = "model.packed: offset " + intaglio::hexadecimal(second) +
                           ": checksum of 65536 bytes of 'large': expected " + right + ", found " + wrong;
  // Bytes beside the damaged one are no more to be trusted.
  for (const std::uint64_t begin : {chunk, chunk + 9, 2 * chunk - 1})
    CHECK_THROWS_MATCHES(made.read(made.large, 1, begin, 1), file_error, MessageMatches(Equals(text)));
  CHECK_THROWS_MATCHES(made.read(made.large, 1, chunk - 1, 2), file_error, MessageMatches(Equals(text)));
  CHECK_THROWS_MATCHES(made.read(made.large, 1, 0, 2 * chunk + 5), file_error, MessageMatches(Equals(text)));
  CHECK(made.reads_right(made.large, 1, 0, chunk));
  CHECK(made.reads_right(made.large, 1, 2 * chunk, 5));
  CHECK(made.reads_right(made.large, 0, chunk, chunk));
  CHECK(made.read(made.large, 1, chunk, 0).empty());
}

TEST_CASE("packed image: chunks are checked in place from where they begin", "[packed]") {
  example made;
  const auto expect = [&](std::uint64_t begin, std::uint64_t end) {
    made.image.expect(made.large, 1, begin, end, made.bytes);
  };
  expect(0, made.large.bytes);
  made.damage(example::offset(made.large, 1, 2 * chunk + 4));
  const auto fault = MessageMatches(StartsWith("model.packed: offset " +
                                               intaglio::hexadecimal(example::offset(made.large, 1, 2 * chunk)) +
                                               ": checksum of 5 bytes of 'large': expected "));
  CHECK_THROWS_MATCHES(expect(0, made.large.bytes), file_error, fault);
  CHECK_THROWS_MATCHES(expect(2 * chunk, 2 * chunk + 1), file_error, fault);
  CHECK_THROWS_MATCHES(expect(chunk + 1, ~std::uint64_t{0}), file_error, fault);
  // The range with a chunk's first byte checks the chunk, so that adjacent ranges check each chunk once.
  CHECK_NOTHROW(expect(0, 2 * chunk));
  CHECK_NOTHROW(expect(2 * chunk + 1, made.large.bytes));
  CHECK_NOTHROW(made.image.expect(made.large, 0, 0, made.large.bytes, made.bytes));
}

TEST_CASE("packed image: what is after a copy is zeros", "[packed]") {
  example made;
  CHECK_NOTHROW(made.image.expect_padding(made.small, 0));
  CHECK_NOTHROW(made.image.expect_padding(made.large, 1));
  const std::size_t last = example::offset(made.large, 1, made.large.step() - 1);
  made.bytes[last] = std::byte{200};
  CHECK_THROWS_MATCHES(made.image.expect_padding(made.large, 1), file_error,
                       MessageMatches(Equals("model.packed: offset " + intaglio::hexadecimal(last) +
                                             ": padding: expected 0, found 200")));
  CHECK_NOTHROW(made.image.expect_padding(made.large, 0));
  const packed_weight whole{.layout = "whole", .bytes = 256, .offset = last - 255};
  CHECK_NOTHROW(made.image.expect_padding(whole, 0));
}

TEST_CASE("packed image: a file that ends too early", "[packed]") {
  example made;
  const auto cut =
      mapped_file::from_memory(std::span(made.bytes).first(example::offset(made.large, 1, 0) + chunk), "cut.packed");
  made.image.file = &cut;
  CHECK(made.reads_right(made.large, 1, 0, chunk));
  CHECK_THROWS_MATCHES(made.read(made.large, 1, chunk, 1), file_error,
                       MessageMatches(StartsWith("cut.packed: offset ")));
  CHECK_THROWS_AS(made.image.expect_padding(made.large, 1), file_error);
}
