// SPDX-License-Identifier: MIT
#include "intaglio/io/wordpiece.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/tokenizer.hpp"

using namespace intaglio;
using io::tokenizer;

namespace {

/// A tokenizer.json as sentence-transformers publishes them.
nlohmann::json file_of(const std::vector<std::string>& words) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (std::size_t i = 0; i < words.size(); ++i) vocabulary[words[i]] = i;
  return {
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", nullptr},
        {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"added_tokens",
       {{{"id", 2}, {"content", "[CLS]"}, {"special", true}}, {{"id", 3}, {"content", "[SEP]"}, {"special", true}}}},
      {"post_processor", {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", vocabulary}}}};
}
tokenizer tokenizer_of(const nlohmann::json& file) {
  return tokenizer(io::vocabulary_from_tokenizer_json(file.dump(), "tokenizer.json"));
}

const std::vector<std::string> words{"[PAD]",
                                     "[UNK]",
                                     "[CLS]",
                                     "[SEP]",
                                     "[MASK]",
                                     "un",
                                     "##aff",
                                     "##able",
                                     "##s",
                                     "cafe",
                                     "naive",
                                     "Caf\303\251",
                                     "a",
                                     "b",
                                     "ab",
                                     "##b",
                                     "'",
                                     ",",
                                     "-",
                                     "$",
                                     "<",
                                     ">",
                                     "\344\270\255",
                                     "\345\233\275",
                                     "##\345\233\275",
                                     "i",
                                     "\303\237",
                                     "\317\203",
                                     "##\317\203",
                                     "##\317\202",
                                     "\304\261",
                                     "##\314\207",
                                     "\330\247",
                                     "\355\225\234",
                                     "##\352\265\255",
                                     "\341\204\222",
                                     "##\341\205\241",
                                     "##\341\206\253",
                                     "5",
                                     "x",
                                     "##x",
                                     "\360\237\230\200",
                                     "\340\244\250",
                                     "##\340\244\256",
                                     "##\340\244\277"};

using ids = std::vector<std::int32_t>;
/// What tokenizers 0.23 makes of a text: in lower case, in its own, and in lower case with its accents.
struct vector_of_text {
  std::string text;
  ids lower, cased, accented;
};
const std::vector<vector_of_text> vectors{
    {"unaffable", {5, 6, 7}, {5, 6, 7}, {5, 6, 7}},
    {"unaffables unaff", {5, 6, 7, 8, 5, 6}, {5, 6, 7, 8, 5, 6}, {5, 6, 7, 8, 5, 6}},
    {"Caf\303\251 na\303\257ve CAFE\314\201", {9, 10, 9}, {11, 1, 1}, {1, 1, 1}},
    {"a-b,ab'b $<>",
     {12, 18, 13, 17, 14, 16, 13, 19, 20, 21},
     {12, 18, 13, 17, 14, 16, 13, 19, 20, 21},
     {12, 18, 13, 17, 14, 16, 13, 19, 20, 21}},
    {"\344\270\255\345\233\275a\344\270\255", {22, 23, 12, 22}, {22, 23, 12, 22}, {22, 23, 12, 22}},
    {"\304\260 \304\261 I", {25, 30, 25}, {1, 30, 1}, {25, 31, 30, 25}},
    {"\303\237 \341\272\236", {26, 26}, {26, 1}, {26, 26}},
    {"\316\243 \316\243\317\203\317\202", {27, 27, 28, 29}, {1, 1}, {27, 27, 28, 29}},
    {"a\342\200\213b a\007b a\011b\302\240ab\343\200\200a",
     {14, 14, 12, 13, 14, 12},
     {14, 14, 12, 13, 14, 12},
     {14, 14, 12, 13, 14, 12}},
    {std::string("\0a\357\277\275b", 6), {14}, {14}, {14}},
    {"\355\225\234\352\265\255", {1}, {33, 34}, {33, 34}},
    {"\340\244\250\340\244\256\340\244\277", {42, 43, 44}, {42, 43, 44}, {42, 43, 44}},
    {"\360\237\230\200a \360\237\230\200 \360\237\230\200x", {1, 41, 41, 40}, {1, 41, 41, 40}, {1, 41, 41, 40}},
    {"ab\314\201b", {14, 15}, {1}, {1}},
    {"\356\200\200a\315\270", {1}, {1}, {1}},
    {"\302\277a? 5 \342\200\250b", {1, 12, 1, 38, 13}, {1, 12, 1, 38, 13}, {1, 12, 1, 38, 13}},
    {"  ", {}, {}, {}},
    {"a\377b", {14}, {14}, {14}},  // a byte of no character
};

}  // namespace

TEST_CASE("WordPiece gives the tokens of tokenizers, with lower case, without, and with accents", "[io]") {
  nlohmann::json file = file_of(words);
  const tokenizer lower = tokenizer_of(file);
  file["normalizer"]["lowercase"] = false;
  const tokenizer cased = tokenizer_of(file);
  file["normalizer"]["lowercase"] = true, file["normalizer"]["strip_accents"] = false;
  const tokenizer accented = tokenizer_of(file);
  for (const auto& each : vectors) {
    INFO(each.text);
    CHECK(lower.encode(each.text) == each.lower);
    CHECK(cased.encode(each.text) == each.cased);
    CHECK(accented.encode(each.text) == each.accented);
  }
  ids longest(100, 40);
  longest.front() = 39;
  CHECK(lower.encode(std::string(100, 'x')) == longest);
  CHECK(lower.encode(std::string(101, 'x')) == ids{1});
  CHECK((lower.adds_bos() && lower.adds_eos()));
  CHECK(lower.encode("a", {.add_bos = true, .add_eos = true}) == ids{2, 12, 3});
  CHECK(lower.encode("[CLS]") == ids{1, 1, 1});
  CHECK(lower.encode("[CLS]", {.parse_special = true}) == ids{2});
  CHECK(lower.decode(ids{5, 6, 7, 12, 17}) == "unaffable a ,");
}

TEST_CASE("WordPiece gives the published tokens of bert-base-uncased", "[io]") {
  // transformers' documentation, "Preprocess".
  std::vector<std::string> published(30'522);
  for (std::size_t i = 0; i < published.size(); ++i) published[i] = "[unused" + std::to_string(i) + "]";
  published[1] = "[UNK]", published[2] = "[CLS]", published[3] = "[SEP]";
  for (const auto& [id, text] : std::vector<std::pair<int, const char*>>{{2079, "do"},
                                                                         {2025, "not"},
                                                                         {19960, "med"},
                                                                         {10362, "##dle"},
                                                                         {1999, "in"},
                                                                         {1996, "the"},
                                                                         {3821, "affairs"},
                                                                         {1997, "of"},
                                                                         {16657, "wizards"},
                                                                         {1010, ","},
                                                                         {2005, "for"},
                                                                         {2027, "they"},
                                                                         {2024, "are"},
                                                                         {11259, "subtle"},
                                                                         {1998, "and"},
                                                                         {4248, "quick"},
                                                                         {2000, "to"},
                                                                         {4963, "anger"},
                                                                         {1012, "."}})
    published[static_cast<std::size_t>(id)] = text;
  CHECK(tokenizer_of(file_of(published))
            .encode("Do not meddle in the affairs of wizards, for they are subtle and quick to anger.") ==
        ids{2079, 2025, 19960, 10362, 1999, 1996, 3821, 1997, 16657, 1010, 2005, 2027, 2024, 11259, 1998, 4248, 2000,
            4963, 1012});
}

TEST_CASE("GGUF's WordPiece marks where words begin, and has normalisers of its own", "[io]") {
  io::vocabulary file;
  file.source = "model.gguf", file.model = "bert";
  file.tokens = {"[UNK]", "[CLS]", "[SEP]", "\342\226\201un", "able", "\342\226\201able", "\342\226\201Un"};
  file.token_types = {2, 3, 3, 1, 1, 1, 1};
  file.unknown_id = 0, file.bos_id = 1, file.eos_id = 2, file.add_bos = true, file.add_eos = true;
  CHECK(tokenizer(file).encode("Unable able UN") == ids{3, 4, 5, 3});
  file.lowercase = false;
  CHECK(tokenizer(file).encode("Unable able UN") == ids{6, 4, 5, 0});
  file.unknown_id.reset();
  CHECK_THROWS_MATCHES(
      tokenizer(file), file_error,
      Catch::Matchers::Message("model.gguf: tokenizer.ggml.unknown_token_id: expected a token for words without "
                               "pieces, found none"));
}

TEST_CASE("WordPiece of another kind is refused by name", "[io]") {
  const auto expect = [](auto&& change, const std::string& line) {
    nlohmann::json file = file_of(words);
    change(file);
    CHECK_THROWS_MATCHES(tokenizer_of(file), file_error, Catch::Matchers::Message("tokenizer.json: " + line));
  };
  expect([](auto& f) { f["model"]["continuing_subword_prefix"] = "@@"; },
         "model.continuing_subword_prefix: expected ##, found \"@@\"");
  expect([](auto& f) { f["model"]["max_input_chars_per_word"] = 50; },
         "model.max_input_chars_per_word: expected 100, found 50");
  expect([](auto& f) { f["normalizer"]["type"] = "Lowercase"; },
         "normalizer.type: expected BertNormalizer, found \"Lowercase\"");
  expect([](auto& f) { f["normalizer"]["handle_chinese_chars"] = false; },
         "normalizer.handle_chinese_chars: expected true, found false");
  expect([](auto& f) { f["pre_tokenizer"]["type"] = "Whitespace"; },
         "pre_tokenizer.type: expected BertPreTokenizer, found \"Whitespace\"");
}
