// SPDX-License-Identifier: MIT
#include "intaglio/io/piece_trie.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace intaglio;

TEST_CASE("a trie finds the tokens that a text starts with", "[io]") {
  std::mt19937 random(3);
  const auto text = [&](std::size_t longest) {
    std::string out(1 + random() % longest, ' ');
    for (char& c : out) c = "ab\377"[random() % 3];
    return out;
  };
  for (int round = 0; round < 50; ++round) {
    io::token_texts texts;
    std::vector<std::string> all;
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < round; ++id) {
      all.push_back(text(6));
      texts.add(all.back());
      ids.push_back(id);
    }
    const io::piece_trie trie(texts, ids);
    for (int i = 0; i < 50; ++i) {
      const std::string whole = text(12);
      const std::size_t at = random() % whole.size();
      std::vector<std::pair<std::size_t, std::int32_t>> found, expected;
      trie.each_start(whole, at, [&](std::size_t bytes, std::int32_t id) { found.emplace_back(bytes, id); });
      for (std::size_t bytes = 1; at + bytes <= whole.size(); ++bytes)
        for (std::size_t id = 0; id < all.size(); ++id)
          if (all[id] == whole.substr(at, bytes)) {
            expected.emplace_back(bytes, static_cast<std::int32_t>(id));
            break;
          }
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a trie without tokens finds none", "[io]") {
  std::size_t found = 0;
  const auto count = [&](std::size_t, std::int32_t) { ++found; };
  io::piece_trie().each_start("a", 0, count);
  io::piece_trie(io::token_texts{}, {}).each_start("a", 0, count);
  CHECK(found == 0);
}
