// SPDX-License-Identifier: MIT
#include "intaglio/io/vocabulary_check.hpp"

#include <functional>
#include <limits>

#include "intaglio/io/tokenizer.hpp"
#include "io/vocabularies.hpp"
#include "stopwatch.hpp"

using namespace intaglio;
using io::tokenizer;
using ids = std::vector<std::int32_t>;

namespace {

struct fault {
  const char* what;
  std::function<void(io::vocabulary&)> damage;
  const char* names;  ///< what the message has to contain
};

/// @return the message, "" when the vocabulary was accepted
std::string refusal(const io::vocabulary& file, std::optional<std::uint64_t> rows = std::nullopt) {
  try {
    const tokenizer accepted(file, rows);
    return "";
  } catch (const file_error& e) { return e.what(); }
}

void expect_refused(const io::vocabulary& sound, const std::vector<fault>& faults) {
  REQUIRE(refusal(sound).empty());
  for (const auto& [what, damage, names] : faults) {
    auto file = sound;
    damage(file);
    const intaglio::testing::stopwatch watch;
    const std::string message = refusal(file);
    INFO(what << ": " << message);
    CHECK(message.find("small.gguf: ") == 0);
    CHECK(message.find(names) != std::string::npos);
    CHECK(message.find("expected") != std::string::npos);
    CHECK(message.size() <= 400);
    CHECK(watch.seconds() < 1);
  }
}

const std::vector<fault> common_faults{
    {"empty", [](auto& v) { v.tokens.clear(), v.token_types.clear(), v.scores.clear(); },
     "tokenizer.ggml.tokens: expected at least one"},
    {"all alike",
     [](auto& v) {
       for (auto& t : v.tokens) t = "x";
     },
     "tokens that differ"},
    {"types too few", [](auto& v) { v.token_types.pop_back(); }, "tokenizer.ggml.token_type"},
    {"types too many", [](auto& v) { v.token_types.push_back(1); }, "tokenizer.ggml.token_type"},
    {"type 0", [](auto& v) { v.token_types[5] = 0; }, "tokenizer.ggml.token_type[5]: expected a type 1 .. 6, found 0"},
    {"type -1", [](auto& v) { v.token_types[5] = -1; }, "token_type[5]"},
    {"type 7", [](auto& v) { v.token_types[5] = 7; }, "token_type[5]"},
    {"scores too few", [](auto& v) { v.scores.assign(3, 0.0f); }, "tokenizer.ggml.scores"},
    {"score NaN",
     [](auto& v) { v.scores.assign(v.tokens.size(), 0.0f), v.scores[7] = std::numeric_limits<float>::quiet_NaN(); },
     "scores[7]: expected a finite number, found NaN"},
    {"score infinite",
     [](auto& v) { v.scores.assign(v.tokens.size(), 0.0f), v.scores[7] = std::numeric_limits<float>::infinity(); },
     "scores[7]"},
    {"a megabyte", [](auto& v) { v.tokens.back().assign(1 << 20, 'x'); }, "bytes, found 1048576"},
    {"not UTF-8", [](auto& v) { v.tokens.back() = "\xFF\x1b[31m"; }, "UTF-8 text, found '\\xff\\x1b[31m'"},
    {"bos out of range", [](auto& v) { v.bos_id = static_cast<std::int64_t>(v.tokens.size()); },
     "tokenizer.ggml.bos_token_id"},
    {"bos negative", [](auto& v) { v.bos_id = -1; }, "tokenizer.ggml.bos_token_id"},
    {"eos out of range", [](auto& v) { v.eos_id = 4294967295; }, "found 4294967295"},
    {"eot out of range", [](auto& v) { v.eot_id = 1 << 30; }, "tokenizer.ggml.eot_token_id"},
    {"unknown out of range", [](auto& v) { v.unknown_id = 1 << 30; }, "tokenizer.ggml.unknown_token_id"},
    {"bos wanted, absent", [](auto& v) { v.bos_id.reset(), v.add_bos = true; }, "add_bos_token"},
    {"eos wanted, absent", [](auto& v) { v.eos_id.reset(), v.add_eos = true; }, "add_eos_token"},
    {"model unknown", [](auto& v) { v.model = "plamo2"; },
     "tokenizer.ggml.model: expected gpt2, llama, bert or t5, found 'plamo2'"},
    {"model absent", [](auto& v) { v.model.clear(); }, "found none"},
    {"a normaliser we lack", [](auto& v) { v.remove_extra_whitespaces = true; }, "remove_extra_whitespaces"},
};

}  // namespace

TEST_CASE("every damage to a byte-level vocabulary is refused by name") {
  expect_refused(small_byte_level(), common_faults);
  expect_refused(
      small_byte_level(),
      {
          {"no merges", [](auto& v) { v.merges.clear(); },
           "tokenizer.ggml.merges: expected merges that make the 5 tokens of several bytes, found none"},
          {"byte token", [](auto& v) { v.token_types[70] = 6; }, "token_type[70]: expected no byte tokens"},
          {"merge without space", [](auto& v) { v.merges[2] = "llo"; },
           "tokenizer.ggml.merges[2]: expected two texts with a space between, found 'llo'"},
          {"merge empty", [](auto& v) { v.merges[2].clear(); }, "merges[2]"},
          {"merge of a space", [](auto& v) { v.merges[2] = " "; }, "merges[2]"},
          {"left part empty", [](auto& v) { v.merges[2] = " ll"; }, "merges[2]"},
          {"right part empty", [](auto& v) { v.merges[2] = "ll "; }, "merges[2]"},
          {"unknown part", [](auto& v) { v.merges[2] = "ll zz"; }, "merges[2]: expected two tokens of the vocabulary"},
          {"part out of the alphabet", [](auto& v) { v.merges[2] = "ll \xE2\x96\x81"; }, "merges[2]"},
          {"unknown whole", [](auto& v) { v.merges[2] = "l h"; }, "merges[2]: expected two tokens that make a token"},
          {"twice", [](auto& v) { v.merges.push_back(v.merges[1]); }, "merges[5]: expected each pair once"},
          {"pre-tokenizer unknown", [](auto& v) { v.pre_tokenizer = "\x1b]llama"; },
           "tokenizer.ggml.pre: expected one of llama-bpe"},
          {"pre-tokenizer empty", [](auto& v) { v.pre_tokenizer = ""; }, "tokenizer.ggml.pre"},
      });
  CHECK(refusal(small_byte_level(), 264).empty());
  CHECK(refusal(small_byte_level(), 263) ==
        "small.gguf: tokenizer.ggml.tokens: expected at most 263 tokens, the rows of token_embd.weight, found 264");
}

TEST_CASE("every damage to a SentencePiece vocabulary is refused by name") {
  expect_refused(small_sentencepiece(), common_faults);
  expect_refused(small_sentencepiece(),
                 {
                     {"byte negative", [](auto& v) { v.tokens[3] = "<0x-1>"; },
                      "tokens[3]: expected a byte token <0x00> .. <0xFF>, found '<0x-1>'"},
                     {"byte not hexadecimal", [](auto& v) { v.tokens[3] = "<0xZZ>"; }, "tokens[3]"},
                     {"byte 256", [](auto& v) { v.tokens[3] = "<0x100>"; }, "tokens[3]"},
                     {"byte in small letters", [](auto& v) { v.tokens[3 + 0xAB] = "<0xab>"; }, "'<0xab>'"},
                     {"byte twice", [](auto& v) { v.tokens[3] = "<0x01>"; }, "'<0x01>' again, first at 3"},
                     {"byte missing", [](auto& v) { v.token_types[3 + 0x41] = 1; }, "none for byte 0x41"},
                     {"unknown is a byte", [](auto& v) { v.token_types[0] = 6; },
                      "tokenizer.ggml.unknown_token_id: expected a token that is no byte token, found 0, '<unk>'"},
                     {"bos is a byte", [](auto& v) { v.bos_id = 7; },
                      "tokenizer.ggml.bos_token_id: expected a token that is no byte"},
                     {"no bytes",
                      [](auto& v) {
                        for (auto& t : v.token_types) t = t == 6 ? 1 : t;
                      },
                      "none for byte 0x0"},
                     {"no scores", [](auto& v) { v.scores.clear(); }, "tokenizer.ggml.scores"},
                     {"bad merges", [](auto& v) { v.merges = {"h e"}; }, "merges[0]"},
                 });
}

TEST_CASE("odd but harmless vocabularies load with a warning") {
  auto file = small_byte_level();
  file.padding_id = 1 << 20;
  CHECK(tokenizer(file).warnings() ==
        std::vector<std::string>{"tokenizer.ggml.padding_token_id 1048576 is not a token and is ignored"});
  CHECK_FALSE(tokenizer(file).padding());
  file.padding_id = -1;
  CHECK(tokenizer(file).warnings() ==
        std::vector<std::string>{"tokenizer.ggml.padding_token_id -1 is not a token and is ignored"});
  file.padding_id = 7;
  CHECK(tokenizer(file).padding() == 7);

  file = small_byte_level();
  file.tokens[258] =
      "\xE2\x96\x81"
      "x";  // not in the byte alphabet; its merges go
  file.merges = {"h e", "l l"};
  const tokenizer foreign(file);
  CHECK(foreign.warnings() ==
        std::vector<std::string>{"1 ordinary tokens are not in the byte alphabet and never come out of text"});
  CHECK(foreign.piece(258) ==
        "\xE2\x96\x81"
        "x");

  file = small_byte_level();
  file.tokens.push_back("hello"), file.token_types.push_back(1);
  const tokenizer twice(file);
  CHECK(twice.warnings() ==
        std::vector<std::string>{"1 tokens repeat the text of an earlier one; the first of each text encodes it"});
  CHECK(twice.encode("hello") == ids{259});
  CHECK(twice.piece(264) == "hello");

  auto sentences = small_sentencepiece();
  sentences.tokens.push_back("\xE2\x96\x81hello"), sentences.token_types.push_back(1), sentences.scores.push_back(9);
  CHECK(tokenizer(sentences).warnings().size() == 1);
  CHECK(tokenizer(sentences).encode("hello") == ids{263});

  file = small_byte_level();
  file.tokens.push_back(""), file.token_types.push_back(1);
  CHECK(tokenizer(file).piece(264).empty());
  CHECK(tokenizer(file).warnings() ==
        std::vector<std::string>{"1 token has no text (the first is 264): text never becomes one, and one that the "
                                 "model draws prints nothing"});

  file = small_byte_level();
  file.pre_tokenizer = "gpt-2", file.merges.resize(3);
  CHECK(tokenizer(file).warnings() ==
        std::vector<std::string>{
            "3 merges make fewer than the 5 tokens of several bytes: at least 2 never come out of text"});

  file = small_byte_level();
  file.tokens[0xC0] = "zz", file.tokens[0xFF] = "zzz";
  CHECK(tokenizer(file).warnings() ==
        std::vector<std::string>{"2 of the 256 bytes have no token: text loses them where no other token has them"});
  CHECK(tokenizer(file).encode("a\xFFz\xC0") == ids{'a', 'z'});

  for (auto typed : {small_byte_level(), small_sentencepiece()}) {
    const tokenizer known(typed);
    typed.token_types.clear();
    const tokenizer inferred(typed);
    REQUIRE(inferred.warnings().size() == 1);
    CHECK(inferred.warnings()[0].starts_with("tokenizer.ggml.token_type is missing"));
    for (const char* text : {"hello world", "\xC3\xA9 <0x0A>\n", "<|eot_id|></s>x<s>"})
      for (const bool special : {false, true})
        CHECK(inferred.encode(text, {.parse_special = special}) == known.encode(text, {.parse_special = special}));
    CHECK(inferred.decode(inferred.encode("\xC3\xA9\n")) == "\xC3\xA9\n");
  }

  file = small_byte_level();
  file.pre_tokenizer.reset();
  CHECK(tokenizer(file).pretokenizer_kind() == io::pretokenizer::unnamed);
  CHECK(tokenizer(file).warnings().size() == 1);
  file.pre_tokenizer = "default";
  CHECK(tokenizer(file).pretokenizer_kind() == io::pretokenizer::unnamed);
  CHECK(tokenizer(file).warnings().empty());
  for (const char* architecture : {"bitnet-b1.58", "bitnet-25"}) {
    file.architecture = architecture;
    for (const std::optional<std::string>& unsaid : {std::optional<std::string>{}, {"default"}}) {
      file.pre_tokenizer = unsaid;
      CHECK(tokenizer(file).pretokenizer_kind() == io::pretokenizer::llama_bpe);
      CHECK(tokenizer(file).warnings().empty());
    }
    file.pre_tokenizer = "gpt-2";
    CHECK(tokenizer(file).pretokenizer_kind() == io::pretokenizer::gpt2);
  }
}

TEST_CASE("tokens of the small vocabularies") {
  const tokenizer bytes(small_byte_level());
  CHECK(bytes.encode("hello wo") == ids{259, 260, 'o'});
  CHECK(bytes.encode("<|eot_id|>").size() == 10);
  CHECK(bytes.encode("a<|eot_id|>", {.parse_special = true, .add_bos = true, .add_eos = true}) ==
        ids{261, 'a', 263, 262});
  CHECK(bytes.special_id("<|eot_id|>") == 263);
  CHECK_FALSE(bytes.special_id("hello"));
  CHECK(bytes.end_of_generation_ids() == ids{262, 263});
  CHECK(bytes.is_end_of_generation(262));
  CHECK_FALSE(bytes.is_end_of_generation(0));
  CHECK_THROWS_AS(bytes.piece(264), argument_error);
  CHECK_THROWS_AS(bytes.piece(-1), argument_error);
  CHECK_THROWS_AS(bytes.decode(ids{1, 999}), argument_error);

  const tokenizer sentences(small_sentencepiece());
  CHECK(sentences.encode("hello") == ids{263});
  CHECK(sentences.encode("") == ids{});
  CHECK(sentences.encode("hello hel\xFF") == ids{263, 262, 3 + 0xFF});
  CHECK(sentences.decode(sentences.encode("  hello\n")) == "  hello\n");
  CHECK(sentences.encode("</s>hello", {.parse_special = true, .add_bos = true}) == ids{1, 2, 263});
  auto without = small_sentencepiece();
  without.bos_id.reset(), without.add_bos.reset();
  CHECK_FALSE(tokenizer(without).adds_bos());
  CHECK_THROWS_AS(tokenizer(without).encode("x", {.add_bos = true}), argument_error);
}

TEST_CASE("user-defined tokens are found without being asked for, also across spaces in SentencePiece vocabularies") {
  auto file = small_sentencepiece();
  const auto first = static_cast<std::int32_t>(file.tokens.size());
  for (const char* text : {"  ", "\n\n", "<tag>"})
    file.tokens.push_back(text), file.token_types.push_back(4), file.scores.push_back(0);
  file.add_space_prefix = false;
  const tokenizer tokens(file);
  CHECK(tokens.encode("   ") == ids{first, 264});
  CHECK(tokens.encode("h\n\n<tag>\xE2\x96\x81\xE2\x96\x81") == ids{265, first + 1, first + 2, first});
  CHECK(tokens.decode(ids{first}) == "  ");
}

TEST_CASE("time is linear for long texts that cannot be cut", "[speed]") {
  for (const bool sentences : {false, true}) {
    const tokenizer tokens(sentences ? small_sentencepiece() : small_byte_level());
    for (const std::string& unit :
         {std::string("hello"), std::string("h"), std::string(" "), std::string("\xCC\x81"), std::string("7")}) {
      std::string text;
      while (text.size() < (std::size_t{1} << 20)) text += unit;
      const intaglio::testing::stopwatch watch;
      const auto encoded = tokens.encode(text);
      const double seconds = watch.seconds();
      INFO("one MiB of '" << unit << "' took " << seconds << " s");
      CHECK(tokens.decode(encoded) == text);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
      CHECK(seconds < 1);
#endif
    }
  }
}
