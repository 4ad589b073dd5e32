// SPDX-License-Identifier: MIT
#include "intaglio/io/special_tokens.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace intaglio::io;

namespace {
const auto any = [](std::size_t, std::size_t, std::int32_t) { return true; };
}

TEST_CASE("the leftmost, then the longest, then the lowest token is found") {
  const special_tokens tokens({{"<s>", 1}, {"<s>s", 2}, {"s>", 3}, {"<", 4}, {"<s>", 0}});
  const auto found = tokens.find("a<s>s", 0, any);
  CHECK(found.begin == 1);
  CHECK(found.bytes == 4);
  CHECK(found.id == 2);
  CHECK(tokens.find("a<s>", 0, any).id == 0);
  CHECK(tokens.find("a<s>", 2, any).id == 3);
  CHECK(tokens.find("abc", 0, any).id == -1);
  CHECK(tokens.find("<s>s", 0, [](std::size_t, std::size_t bytes, std::int32_t) { return bytes < 4; }).bytes == 3);
  CHECK(special_tokens{}.find("<s>", 0, any).id == -1);
}

TEST_CASE("the search equals trying every token at every offset") {
  std::mt19937 random(3);
  const auto word = [&](std::size_t longest) {
    std::string out;
    for (std::size_t i = 1 + random() % longest; i > 0; --i) out.push_back("ab\xFF"[random() % 3]);
    return out;
  };
  for (int round = 0; round < 3'000; ++round) {
    std::vector<std::string> texts;
    for (std::size_t i = random() % 8; i > 0; --i) texts.push_back(word(4));
    std::vector<std::pair<std::string_view, std::int32_t>> entries;
    for (std::size_t i = 0; i < texts.size(); ++i) entries.emplace_back(texts[i], static_cast<std::int32_t>(i));
    const special_tokens tokens(entries);
    const std::string text = word(12);
    special_match expected;
    for (std::size_t at = 0; at < text.size() && expected.id < 0; ++at)
      for (const auto& [candidate, id] : entries)
        if (text.compare(at, candidate.size(), candidate) == 0 && candidate.size() > expected.bytes)
          expected = {at, candidate.size(), id};
    const auto found = tokens.find(text, 0, any);
    REQUIRE(found.id == expected.id);
    REQUIRE((found.id < 0 || (found.begin == expected.begin && found.bytes == expected.bytes)));
  }
}
