// SPDX-License-Identifier: MIT
#include "intaglio/io/unigram.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/prompt.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "io/charsmaps.hpp"

using namespace intaglio;
using io::tokenizer;
using ids = std::vector<std::int32_t>;

namespace {

/// Pieces and scores that sentencepiece 0.2.3 learned from seven sentences, with the map of charsmaps.hpp.
const std::vector<std::pair<std::string, float>> pieces{
    {"<unk>", 0.f},
    {"<s>", 0.f},
    {"</s>", 0.f},
    {"<pad>", 0.f},
    {"\342\226\201", -1.8080552816390991f},
    {"t", -2.0034031867980957f},
    {"he", -2.151127338409424f},
    {"\342\226\201o", -2.8727993965148926f},
    {"s", -3.152193307876587f},
    {"f", -3.1675617694854736f},
    {"n", -3.5881266593933105f},
    {",", -3.602085590362549f},
    {"\342\226\201hat", -3.602085590362549f},
    {"\342\226\201hello", -3.602085590362549f},
    {"\342\226\201mat", -3.602085590362549f},
    {"\342\226\201world", -3.602085590362549f},
    {"\342\226\201fin", -3.616241216659546f},
    {"\342\226\201cats", -3.6262714862823486f},
    {"\342\226\2011", -3.704291343688965f},
    {"1", -4.1932573318481445f},
    {"\342\226\201ca", -4.238512992858887f},
    {"a", -4.258918762207031f},
    {"\342\226\201fi", -4.3552565574646f},
    {"d", -4.385418891906738f},
    {"e", -4.385418891906738f},
    {"\303\251", -4.385418891906738f},
    {"\343\202\253", -4.385418891906738f},
    {"\343\202\254", -4.385418891906738f},
    {"\342\226\201cat", -4.497459888458252f},
    {"w", -4.529316425323486f},
    {"r", -4.529416561126709f},
    {"m", -4.529516220092773f},
    {"i", -4.529616355895996f},
    {"c", -4.529716491699219f},
    {"l", -4.529816627502441f},
    {"o", -4.529916286468506f},
    {"at", -4.5300164222717285f},
    {"h", -4.5300164222717285f},
};

io::vocabulary vocabulary_of_pieces() {
  io::vocabulary out;
  out.source = "m", out.model = "t5";
  for (const auto& [text, score] : pieces) out.tokens.push_back(text), out.scores.push_back(score);
  out.token_types = std::vector<std::int32_t>(pieces.size(), 1);
  out.token_types[0] = 2, out.token_types[1] = out.token_types[2] = out.token_types[3] = 3;
  out.unknown_id = 0, out.bos_id = 1, out.eos_id = 2, out.padding_id = 3;
  out.charsmap = test::published_charsmap();
  out.add_space_prefix = true, out.remove_extra_whitespaces = true;
  out.add_bos = true, out.add_eos = true, out.doubles_separator = true;
  return out;
}

/// What sentencepiece makes of a text with these pieces.
const std::vector<std::pair<std::string, ids>> vectors{
    {"", {}},
    {"  ", {}},
    {"the cat", {4, 5, 6, 28}},
    {"  the  cats  ", {4, 5, 6, 17}},
    {"a \357\254\201ne hat\342\200\246", {4, 21, 16, 24, 12, 0}},
    {"\342\221\240\342\221\240 \tcats\343\200\200of\342\200\213the", {18, 19, 17, 7, 9, 5, 6}},
    {"\357\275\266\357\276\236\357\275\266", {4, 27, 26}},
    {"cafe\314\201 caf\357\275\266\357\276\236", {20, 9, 25, 20, 9, 27}},
    {"xyz the qq", {4, 0, 4, 5, 6, 4, 0}},
    {"zz", {4, 0}},
    {"the\342\226\201cat", {4, 5, 6, 28}},
    {"\342\231\245 \342\231\245\342\231\245 a\342\231\245", {4, 0, 4, 0, 4, 21, 0}},
    {"\303\251", {4, 25}},
};

const nlohmann::json precompiled() {
  return {{"type", "Precompiled"}, {"precompiled_charsmap", "AAQAAAAEAAAAAIQAAAA="}};
}
const nlohmann::json metaspace{{"type", "Metaspace"}, {"replacement", "\342\226\201"}, {"prepend_scheme", "always"}};
const nlohmann::json strip{{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}};
nlohmann::json runs_become(const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", content}};
}

/// A tokenizer.json as transformers converts them; the map is put in afterwards.
nlohmann::json file_of(const nlohmann::json& normalizers, const nlohmann::json& pre_tokenizer) {
  nlohmann::json vocabulary = nlohmann::json::array(), added = nlohmann::json::array();
  for (const auto& [text, score] : pieces) vocabulary.push_back({text, score});
  for (const int id : {0, 1, 2, 3})
    added.push_back({{"id", id}, {"content", pieces[static_cast<std::size_t>(id)].first}, {"special", true}});
  added.push_back({{"id", pieces.size()}, {"content", "<mask>"}, {"special", true}, {"lstrip", true}});
  return {
      {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
      {"pre_tokenizer", pre_tokenizer},
      {"added_tokens", added},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}, {{"SpecialToken", {{"id", "</s>"}}}}}},
        {"pair",
         {{{"SpecialToken", {{"id", "<s>"}}}},
          {{"Sequence", {{"id", "A"}}}},
          {{"SpecialToken", {{"id", "</s>"}}}},
          {{"SpecialToken", {{"id", "</s>"}}}},
          {{"Sequence", {{"id", "B"}}}},
          {{"SpecialToken", {{"id", "</s>"}}}}}}}},
      {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}, {"byte_fallback", false}}}};
}
io::vocabulary read(const nlohmann::json& file) {
  io::vocabulary out = io::vocabulary_from_tokenizer_json(file.dump(), "tokenizer.json");
  return out;
}
tokenizer with_map(const nlohmann::json& file) {
  io::vocabulary out = read(file);
  out.charsmap = test::published_charsmap();
  return tokenizer(out);
}
nlohmann::json split_at_space() {
  return {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}};
}

}  // namespace

TEST_CASE("Unigram gives the tokens of sentencepiece", "[io]") {
  const tokenizer model(vocabulary_of_pieces());
  CHECK(model.warnings().empty());
  for (const auto& [text, expected] : vectors) {
    INFO(text);
    CHECK(model.encode(text) == expected);
  }
  CHECK(model.encode("the cat", {.add_bos = true, .add_eos = true}) == ids{1, 4, 5, 6, 28, 2});
  CHECK(model.encode("</s>the") == ids{4, 0, 8, 0, 5, 6});
  CHECK(model.encode("</s>the", {.parse_special = true}) == ids{2, 4, 5, 6});
  CHECK(model.encode("a\377b") == ids{4, 21, 0});
  CHECK(model.decode(ids{4, 5, 6, 28}) == "the cat");
  CHECK((model.adds_bos() && model.adds_eos() && model.doubles_separator()));
  const io::text_pair both = io::encode_pair(model, "the", "cat");
  CHECK((both.ids == ids{1, 4, 5, 6, 2, 2, 28, 2} && both.second == 6));
}

TEST_CASE("Unigram files of transformers give the tokens of tokenizers", "[io]") {
  const tokenizer split = with_map(file_of(nlohmann::json::array(), split_at_space())),
                  stripped = with_map(file_of(nlohmann::json::array({strip, runs_become("\342\226\201")}), metaspace)),
                  merged = with_map(file_of(nlohmann::json::array({runs_become(" ")}), metaspace));
  for (const tokenizer* each : {&split, &stripped, &merged}) {
    for (const auto& [text, expected] : vectors) {
      INFO(text);
      const bool open = each == &merged && text.ends_with(' ');
      ids all = expected;
      if (open) all.push_back(4);  // a run at the end is a space there
      CHECK(each->encode(text) == all);
    }
    CHECK(each->encode("the <mask> cat", {.parse_special = true}) == ids{4, 5, 6, 38, 28});
    CHECK(each->decode(each->encode("the cat")) == "the cat");
    CHECK((each->adds_bos() && each->adds_eos() && each->doubles_separator()));
  }
}

TEST_CASE("Unigram finds the best of all ways to write a text", "[io]") {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    io::vocabulary file;
    file.source = "m", file.model = "t5", file.unknown_id = 0;
    file.tokens = {"<unk>", "a", "b", "c"}, file.token_types = {2, 1, 1, 1};
    for (int i = 0; i < 12; ++i) {
      std::string& text = file.tokens.emplace_back();
      for (std::size_t left = 2 + random() % 3; left != 0; --left) text.push_back("abc"[random() % 3]);
      file.token_types.push_back(1);
    }
    for (std::size_t i = 0; i < file.tokens.size(); ++i) file.scores.push_back(-static_cast<float>(random() % 16) / 4);
    const tokenizer model(file);
    const auto score_of = [&](std::string_view token) {
      const auto at = std::find(file.tokens.begin(), file.tokens.end(), token);
      return at == file.tokens.end() ? -1e9f : file.scores[static_cast<std::size_t>(at - file.tokens.begin())];
    };
    for (int i = 0; i < 20; ++i) {
      std::string text, again;
      for (std::size_t left = 1 + random() % 8; left != 0; --left) text.push_back("abc"[random() % 3]);
      float best = -1e9f, found = 0;
      for (std::uint32_t cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {  // bit i: a token ends after byte i
        float sum = 0;
        for (std::size_t begin = 0, end = 1; end <= text.size(); ++end) {
          if (end < text.size() && (cuts >> (end - 1) & 1) == 0) continue;
          sum += score_of(std::string_view(text).substr(begin, end - begin));
          begin = end;
        }
        best = (std::max)(best, sum);
      }
      for (const std::int32_t id : model.encode(text)) {
        again += file.tokens[static_cast<std::size_t>(id)];
        found += score_of(file.tokens[static_cast<std::size_t>(id)]);
      }
      CHECK((again == text && found == best));
    }
  }
}

TEST_CASE("Unigram writes text without tokens as bytes, where all bytes are tokens", "[io]") {
  io::vocabulary file = vocabulary_of_pieces();
  const auto add = [&](const char* text) {
    file.tokens.emplace_back(text), file.scores.push_back(0), file.token_types.push_back(6);
  };
  for (const char* each : {"<0x78>", "<0xE2>", "<0x99>"}) add(each);
  CHECK(tokenizer(file).encode("x\342\231\245 x") == ids{4, 0, 4, 38});
  add("<0xA5>");
  const tokenizer model(file);
  CHECK(model.encode("x\342\231\245 x") == ids{4, 38, 39, 40, 41, 4, 38});
  CHECK(model.decode(ids{4, 38, 39, 40, 41}) == "x\342\231\245");
  add("<0xA5>");
  CHECK_THROWS_MATCHES(tokenizer(file), file_error,
                       Catch::Matchers::Message("m: tokenizer.ggml.tokens[42]: expected each byte token once, found "
                                                "'<0xA5>' again, first at 41"));
}

TEST_CASE("Unigram's tokens over words are found, unless the file keeps words apart", "[io]") {
  io::vocabulary file = vocabulary_of_pieces();
  file.tokens.emplace_back("he\342\226\201cat"), file.scores.push_back(-1), file.token_types.push_back(1);
  CHECK(tokenizer(file).encode("the cat") == ids{4, 5, 38});
  file.spaces.words = true;
  CHECK(tokenizer(file).encode("the cat") == ids{4, 5, 6, 28});
}

TEST_CASE("a Unigram vocabulary at odds with itself is refused", "[io]") {
  const auto expect = [](auto&& change, const std::string& line) {
    io::vocabulary file = vocabulary_of_pieces();
    change(file);
    CHECK_THROWS_MATCHES(tokenizer(file), file_error, Catch::Matchers::Message("m: " + line));
  };
  expect([](auto& f) { f.unknown_id.reset(); },
         "tokenizer.ggml.unknown_token_id: expected a token for characters without pieces, found none");
  expect([](auto& f) { f.scores.clear(); }, "tokenizer.ggml.scores: expected a score for each token, found none");
  expect([](auto& f) { f.token_types.assign(f.tokens.size(), 3); },
         "tokenizer.ggml.tokens: expected tokens that text may become, found none");
  expect([](auto& f) { f.charsmap.resize(100); },
         "tokenizer.ggml.precompiled_charsmap: expected a trie in blocks of 1024 bytes, at most 96, found 1024");
}

TEST_CASE("Unigram of another kind is refused by name", "[io]") {
  const auto expect = [](auto&& change, const std::string& line) {
    nlohmann::json file = file_of(nlohmann::json::array({strip}), metaspace);
    change(file);
    CHECK_THROWS_MATCHES(tokenizer(read(file)), file_error, Catch::Matchers::Message("tokenizer.json: " + line));
  };
  expect([](auto& f) { f["model"]["unk_id"] = nullptr; }, "model.unk_id: expected a natural number, found nothing");
  expect([](auto& f) { f["model"]["unk_id"] = 38; }, "model.unk_id: expected an id below 38, of a token, found 38");
  expect([](auto& f) { f["model"]["vocab"][5] = {"t"}; },
         "model.vocab: expected pairs of a text and a score, found another kind of value at entry 6");
  expect(
      [](auto& f) {
        f["model"]["vocab"][5] = {"t", "u"};
      },
      "model.vocab: expected pairs of a text and a score, found another kind of value at entry 6");
  expect(
      [](auto& f) {
        f["model"]["vocab"][5] = {"t", 1e300};
      },
      "model.vocab: expected scores in the range of float, found another at entry 6");
  expect(
      [](auto& f) {
        f["model"]["vocab"] = {{"t", 1}};
      },
      "model.vocab: expected pairs of a text and a score, found an object");
  expect([](auto& f) { f["model"]["type"] = "BPE"; },
         "model.vocab: expected texts with natural numbers, found pairs of a text and a score");
  expect([](auto& f) { f["model"]["type"] = "WordLevel"; },
         "model.type: expected BPE, WordPiece or Unigram, found \"WordLevel\"");
  expect([](auto& f) { f["pre_tokenizer"] = nullptr; }, "pre_tokenizer: expected Metaspace, found nothing");
  expect([](auto& f) { f["pre_tokenizer"]["replacement"] = "_"; },
         "pre_tokenizer.replacement: expected U+2581, found \"_\"");
  expect(
      [](auto& f) {
        f["pre_tokenizer"] = {{"type", "Whitespace"}};
      },
      "pre_tokenizer: expected WhitespaceSplit, then Metaspace, found {\"type\":\"Whitespace\"}");
  const std::string order = "expected Precompiled, Strip at the right, or Replace of runs of spaces, in this order, ";
  expect(
      [](auto& f) {
        f["normalizer"]["normalizers"][0] = {{"type", "NFKC"}};
      },
      "normalizer.normalizers[0]: " + order + "found {\"type\":\"NFKC\"}");
  expect([](auto& f) { f["normalizer"]["normalizers"].push_back(precompiled()); },
         "normalizer.normalizers[1]: " + order +
             "found {\"precompiled_charsmap\":\"AAQAAAAEAAAAAIQAAAA=\",\"type\":\"Precompiled\"}");
  expect(
      [](auto& f) {
        f["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}};
      },
      "normalizer.precompiled_charsmap: expected base64, found another text");
}
