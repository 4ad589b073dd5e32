// SPDX-License-Identifier: MIT
#include "intaglio/io/token_texts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <string_view>

using namespace intaglio::io;
using namespace std::string_view_literals;

static_assert(mix(1) != mix(2) && mix(1) != mix(std::uint64_t{1} << 32) && mix(1) != mix(std::uint64_t{1} << 63));

TEST_CASE("token texts: bytes by token, among them none and zeros", "[tokenizer]") {
  token_texts texts;
  CHECK(texts.size() == 0);
  for (const std::string_view text : {"ab"sv, ""sv, "\0\xFF"sv, "ab"sv}) texts.add(text);
  REQUIRE(texts.size() == 4);
  CHECK((texts[0] == "ab" && texts[1].empty() && texts[2] == "\0\xFF"sv && texts[3] == "ab"));
}

TEST_CASE("token texts: a hash is of every byte, of the length and of the seed", "[tokenizer]") {
  // Zeros of every length around the words of 8 bytes, and each with one bit set, each in turn.
  std::set<std::uint64_t> seen;
  std::size_t hashed = 0;
  for (std::size_t length = 0; length <= 25; ++length) {
    std::string bytes(length, '\0');
    seen.insert(hash_bytes(bytes, 1));
    ++hashed;
    for (char& each : bytes) {
      each = 1;
      seen.insert(hash_bytes(bytes, 1));
      ++hashed;
      each = 0;
    }
  }
  CHECK(seen.size() == hashed);
  CHECK(hash_bytes("token", 1) == hash_bytes("token", 1));
  CHECK(hash_bytes("token", 1) != hash_bytes("token", 2));
  CHECK(hash_seed() == hash_seed());
}

TEST_CASE("token index: the first token of equal bytes is found, and nothing else", "[tokenizer]") {
  token_texts texts;
  for (int i = 0; i < 500; ++i) texts.add("token " + std::to_string(i));
  texts.add("token 7");
  texts.add("");
  const auto count = static_cast<std::int32_t>(texts.size());
  token_index index(texts.size());
  CHECK(index.find(texts, "") == -1);
  CHECK(index.longest() == 0);
  for (std::int32_t id = 0; id < count; ++id) REQUIRE(index.insert(texts, id) == (id == 500 ? 7 : id));
  CHECK(index.longest() == 9);
  for (std::int32_t id = 0; id < count; ++id) REQUIRE(index.find(texts, texts[id]) == (id == 500 ? 7 : id));
  for (const std::string_view absent :
       {"token 500"sv, "token"sv, "token 7\0"sv, "a text that is longer than any token"sv})
    CHECK(index.find(texts, absent) == -1);
  CHECK(token_index().find(texts, "token 1") == -1);
}

TEST_CASE("merge index: a pair has an order and one merge", "[tokenizer]") {
  merge_index index(1'000);
  CHECK(index.find(0, 0).result == -1);
  for (std::int32_t i = 0; i < 1'000; ++i) REQUIRE(index.insert(i, i + 1, {static_cast<std::uint32_t>(i), i + 2}));
  CHECK_FALSE(index.insert(3, 4, {9, 9}));
  for (std::int32_t i = 0; i < 1'000; ++i) {
    const auto [rank, result] = index.find(i, i + 1);
    REQUIRE((rank == static_cast<std::uint32_t>(i) && result == i + 2));
    REQUIRE(index.find(i + 1, i).result == -1);
  }
  CHECK(merge_index().find(3, 4).result == -1);
}
