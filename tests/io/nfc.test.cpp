// SPDX-License-Identifier: MIT
#include "intaglio/io/nfc.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

#include "stopwatch.hpp"

using namespace intaglio::io;

namespace {

std::string text_of(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) append_utf8(out, c);
  return out;
}
std::string nfc_of(std::u32string_view characters) { return to_nfc(text_of(characters)); }

}  // namespace

TEST_CASE("nfc: characters compose, and marks come in the order of their classes") {
  CHECK(nfc_of(U"e\u0301") == text_of(U"\u00E9"));
  CHECK(nfc_of(U"\u00E9") == text_of(U"\u00E9"));
  CHECK(nfc_of(U"A\u030A") == text_of(U"\u00C5"));
  CHECK(nfc_of(U"\u212B") == text_of(U"\u00C5"));              // ANGSTROM SIGN is a singleton
  CHECK(nfc_of(U"\u1E0B\u0323") == text_of(U"\u1E0D\u0307"));  // dot above, dot below
  CHECK(nfc_of(U"q\u0307\u0323") == text_of(U"q\u0323\u0307"));
  CHECK(nfc_of(U"\u0958") == text_of(U"\u0915\u093C"));  // excluded from composing
  CHECK(nfc_of(U"\u0301e") == text_of(U"\u0301e"));
  CHECK(nfc_of(U"a\u0315\u0300\u05AE\u0300\u0062") == text_of(U"\u00E0\u05AE\u0300\u0315\u0062"));
}

TEST_CASE("nfc: Hangul is arithmetic") {
  CHECK(nfc_of(U"\u1112\u1161\u11AB") == text_of(U"\uD55C"));
  CHECK(nfc_of(U"\uD558\u11AB") == text_of(U"\uD55C"));
  CHECK(nfc_of(U"\uD55C\u11AB") == text_of(U"\uD55C\u11AB"));
  CHECK(nfc_of(U"\u1112\u11AB") == text_of(U"\u1112\u11AB"));
  for (std::uint32_t c = nfc::syllable; c < nfc::syllable + nfc::syllables; ++c) {
    std::vector<std::uint32_t> apart;
    nfc::decompose(c, apart);
    REQUIRE(apart.size() >= 2);
    nfc::compose_all(apart);
    REQUIRE(apart == std::vector<std::uint32_t>{c});
  }
}

TEST_CASE("nfc: bytes that are not UTF-8 stay where they are") {
  CHECK(to_nfc("e\xFF\xCC\x81") == "e\xFF\xCC\x81");
  CHECK(to_nfc("\xCC"
               "e\xCC\x81\xCC") == "\xCC\xC3\xA9\xCC");
}

TEST_CASE("nfc: doing it twice changes nothing, and long runs of marks take no long time") {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::u32string text;
    for (std::size_t i = random() % 9; i > 0; --i) {
      text += static_cast<char32_t>(random() % 3 == 0 ? U'a' + random() % 26 : random() % 0x3100);
    }
    const std::string once = nfc_of(text);
    REQUIRE(to_nfc(once) == once);
  }
  std::u32string marks(1, U'a');
  for (int i = 0; i < 200'000; ++i) marks += i % 2 ? U'\u0301' : U'\u0323';
  const intaglio::testing::stopwatch watch;
  CHECK(nfc_of(marks).size() > 100'000);
  CHECK(watch.seconds() < 5);
}
