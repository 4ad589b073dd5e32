// SPDX-License-Identifier: MIT
#include "intaglio/io/tokenizer.hpp"

#include <sys/mman.h>

#include <sstream>

#include "conformance.hpp"
#include "intaglio/io/detokenizer.hpp"
#include "intaglio/io/hf_tokenizer.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using io::tokenizer;
using ids = std::vector<std::int32_t>;
using nlohmann::json;

namespace {

const json& goldens() {
  static const json read = shared_json("conformance/tokenizers/goldens.json");
  return read;
}

/// The text that SentencePiece-style decoding gives: a literal U+2581 comes back as a space.
std::string without_lower_blocks(std::string text) { return io::unescape_spaces(text); }

void expect_goldens(const tokenizer& model, const json& expected, bool parse_special) {
  const auto& strings = goldens()["strings"];
  REQUIRE(strings.size() == 60);
  REQUIRE(expected.size() == 60);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    INFO("string " << i << ": " << strings[i]);
    CHECK(model.encode(strings[i].get<std::string>(), {.parse_special = parse_special}) == expected[i].get<ids>());
  }
}

void expect_round_trips(const tokenizer& model, bool sentences) {
  for (const auto& entry : goldens()["strings"]) {
    const auto text = entry.get<std::string>();
    const auto encoded = model.encode(text);
    CHECK(model.decode(encoded) == (sentences ? without_lower_blocks(text) : text));
    io::detokenizer stream(model, {.text_start = true});
    std::string streamed;
    for (const auto id : encoded) {
      const auto part = stream.feed(id);
      CHECK(io::is_utf8(part));
      streamed += part;
    }
    streamed += stream.flush();
    CHECK(streamed == (sentences ? without_lower_blocks(text) : text));
  }
}

}  // namespace

TEST_CASE("a Llama 3 style Hugging Face tokenizer agrees with tokenizers on every golden") {
  const auto& expected = goldens()["tokenizers"]["llama-tiny"]["hf"];
  const tokenizer model(io::vocabulary_from_hf_directory(shared("conformance/llama-tiny/hf")), 1024);
  expect_goldens(model, expected["raw"], false);
  expect_goldens(model, expected["parsed"], true);
  for (std::size_t i = 0; i < 60; ++i)
    CHECK(model.decode(expected["parsed"][i].get<ids>()) == expected["decoded"][i].get<std::string>());
  expect_round_trips(model, false);
  CHECK(model.adds_bos());
  CHECK(model.pretokenizer_kind() == io::pretokenizer::llama_bpe);
  CHECK(model.bos() == 1000);
  CHECK(model.eos() == 1009);
  CHECK(model.is_end_of_generation(1001));
  CHECK(model.warnings().empty());
}

TEST_CASE("the same tokenizer out of a GGUF file gives the same tokens") {
  const auto& expected = goldens()["tokenizers"]["llama-tiny"]["hf"];
  const tokenizer model(vocabulary_of(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf")), 1024);
  expect_goldens(model, expected["raw"], false);
  expect_goldens(model, expected["parsed"], true);
  CHECK(model.adds_bos());
}

TEST_CASE("a BitNet b1.58 file without a pre-tokenizer name is cut as Llama 3 cuts") {
  const auto file = vocabulary_of(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"));
  REQUIRE_FALSE(file.pre_tokenizer);
  const tokenizer model(file, 1024);
  CHECK(model.pretokenizer_kind() == io::pretokenizer::llama_bpe);
  CHECK(model.is_end_of_generation(1009));
  CHECK(model.adds_bos());
  expect_goldens(model, goldens()["tokenizers"]["llama-tiny"]["hf"]["raw"], false);
  const tokenizer published(io::vocabulary_from_hf_directory(shared("conformance/bitnet-tiny/hf-bf16")));
  expect_goldens(published, goldens()["tokenizers"]["llama-tiny"]["hf"]["parsed"], true);
}

TEST_CASE("SentencePiece tokenizers of Hugging Face directories agree on every golden") {
  for (const auto& [name, directory] : {std::pair{"mistral-tiny", "conformance/mistral-tiny/hf"},
                                        std::pair{"gemma-tiny", "conformance/gemma3-tiny/hf"}}) {
    INFO(name);
    const auto& expected = goldens()["tokenizers"][name]["hf"];
    const tokenizer model(io::vocabulary_from_hf_directory(shared(directory)));
    expect_goldens(model, expected["raw"], false);
    expect_goldens(model, expected["parsed"], true);
    for (std::size_t i = 0; i < 60; ++i)
      CHECK(model.decode(expected["parsed"][i].get<ids>()) == expected["decoded"][i].get<std::string>());
    expect_round_trips(model, true);
    CHECK(model.adds_bos());
    CHECK_FALSE(model.adds_eos());
  }
}

TEST_CASE("Qwen 2's tokenizer agrees with tokenizers on every golden, marks composed") {
  const json read = shared_json("conformance2/tokenizers/goldens.json");
  const json& expected = read["qwen2"];
  REQUIRE(read["strings"] == goldens()["strings"]);
  const tokenizer model(io::vocabulary_from_hf_directory(shared("conformance2/tokenizers/qwen2")));
  expect_goldens(model, expected["raw"], false);
  expect_goldens(model, expected["parsed"], true);
  for (std::size_t i = 0; i < 60; ++i)
    CHECK(model.decode(expected["parsed"][i].get<ids>()) == expected["decoded"][i].get<std::string>());
  CHECK_FALSE(model.adds_bos());
  CHECK(model.pretokenizer_kind() == io::pretokenizer::qwen2);
  CHECK(model.end_of_generation_ids() == ids{1008, 1010});
}

TEST_CASE("the production vocabulary llama-bpe agrees with tiktoken") {
  const auto& expected = goldens()["tokenizers"]["llama-bpe"];
  const tokenizer model(production_vocabulary("llama-bpe"), 128256);
  expect_goldens(model, expected["tiktoken"]["raw"], false);
  expect_goldens(model, expected["tiktoken"]["parsed"], true);
  expect_round_trips(model, false);
  CHECK(model.end_of_generation_ids() == ids{128001, 128009});
}

TEST_CASE("bytes that are not UTF-8 are kept, as tiktoken keeps them") {
  const tokenizer model(production_vocabulary("llama-bpe"));
  for (const auto& entry : goldens()["tokenizers"]["llama-bpe"]["invalid_utf8"]) {
    const auto digits = entry["hex"].get<std::string>();
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    INFO(digits);
    const auto encoded = model.encode(bytes);
    CHECK(encoded == entry["tiktoken_bytes"].get<ids>());
    CHECK(model.decode(encoded) == bytes);
  }
}

TEST_CASE("the production vocabulary llama-spm agrees with sentencepiece") {
  const auto& expected = goldens()["tokenizers"]["llama-spm"]["sentencepiece"];
  const tokenizer model(production_vocabulary("llama-spm"), 32000);
  expect_goldens(model, expected["ids"], false);
  for (std::size_t i = 0; i < 60; ++i)
    CHECK(model.decode(expected["ids"][i].get<ids>()) == expected["decoded"][i].get<std::string>());
  expect_round_trips(model, true);
  CHECK(model.adds_bos());
}

TEST_CASE("llama.cpp's test vectors of the production vocabularies are reproduced") {
  for (const std::string name : {"llama-bpe", "llama-spm"}) {
    const tokenizer model(production_vocabulary(name));
    const std::string in = file_text(shared("conformance/vocab/ggml-vocab-" + name + ".gguf.inp"));
    std::istringstream out(file_text(shared("conformance/vocab/ggml-vocab-" + name + ".gguf.out")));
    const std::string separator = "\n__ggml_vocab_test__\n";
    std::size_t cases = 0;
    for (std::size_t begin = 0; begin <= in.size(); ++cases) {
      const std::size_t end = std::min(in.find(separator, begin), in.size());
      const std::string text = in.substr(begin, end - begin);
      begin = end + separator.size();
      std::string line;
      if (!std::getline(out, line))
        REQUIRE((text.empty() && cases == 46));  // the last case is the empty text without a line
      std::istringstream numbers(line);
      ids expected;
      for (std::int32_t id; numbers >> id;) expected.push_back(id);
      INFO(name << " case " << cases << ": " << text);
      const auto encoded = model.encode(text);
      CHECK(encoded == expected);
      CHECK(model.decode(encoded) == text);
    }
    CHECK(cases == 47);
  }
}

TEST_CASE("what cannot be encoded is an argument error before any work") {
  auto file = small_byte_level();
  file.unknown_id = 263;
  CHECK(tokenizer(file).unknown() == 263);
  CHECK_FALSE(tokenizer(small_byte_level()).unknown());
  const tokenizer model(file);
  // A GiB and a byte that must not be read.
  void* const untouchable =
      ::mmap(nullptr, io::longest_text_bytes + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(untouchable != MAP_FAILED);
  CHECK_THROWS_AS(model.encode({static_cast<const char*>(untouchable), io::longest_text_bytes + 1}), argument_error);
  ::munmap(untouchable, io::longest_text_bytes + 1);
  file.eos_id.reset();
  CHECK_THROWS_AS(tokenizer(file).encode("x", {.add_eos = true}), argument_error);
  CHECK(tokenizer(file).encode("x") == ids{'x'});
}

TEST_CASE("a user cannot type markup that a file calls user-defined") {
  auto file = small_byte_level();
  for (const char* text : {"<|im_start|>", "<tag>"}) file.tokens.push_back(text), file.token_types.push_back(4);
  file.added = {{.id = 264, .normalized = true}};
  const tokenizer model(file);
  CHECK(model.encode("<|im_start|><tag>") == ids{264, 265});
  const io::text_range all{0, 17};
  const auto typed = model.encode("<|im_start|><tag>", {.parse_special = true, .plain = {&all, 1}});
  CHECK(std::count(typed.begin(), typed.end(), 264) == 0);
  CHECK(typed.back() == 265);
}

TEST_CASE("rows of the embedding after the last token are ids without a text") {
  const tokenizer model(small_byte_level(), 270);
  CHECK(model.size() == 264);
  for (const std::int32_t id : {264, 269}) {
    CHECK(model.type(id) == io::token_type::unused);
    CHECK(model.piece(id).empty());
    CHECK(model.decode(ids{104, id, 105}) == "hi");
    CHECK(io::detokenizer(model).feed(id).empty());
  }
  CHECK_THROWS_AS(model.piece(270), argument_error);
  CHECK_THROWS_AS(model.type(-1), argument_error);
}

TEST_CASE("ends of a generation are known by their texts") {
  auto file = small_byte_level();
  file.eos_id.reset(), file.eot_id.reset();
  const auto ends = [&](const char* text) {
    file.tokens.back() = text;
    return tokenizer(file).end_of_generation_ids();
  };
  // <|end_of_text|> is token 262.
  for (const auto text : io::end_of_generation_texts) CHECK(ends(std::string(text).c_str()) == ids{262, 263});
  CHECK(ends("<|other|>") == ids{262});
  file.add_eos = true;
  CHECK_THROWS_AS(tokenizer(file), file_error);
  file.eos_id = 262;
  CHECK(tokenizer(file).adds_eos());
}

TEST_CASE("a GGUF vocabulary of model gemma4 is merged in its order, as tokenizer.json's") {
  const std::filesystem::path folder = conformance("gemma4d-tiny", "conformance2", "confgen2.py");
  const tokenizer hf(io::vocabulary_from_hf_directory(folder / "hf")),
      gguf(vocabulary_of(folder / "gguf/gemma4d-tiny-bf16.gguf"));
  CHECK(gguf.adds_bos());
  for (const auto& entry : goldens()["strings"]) {
    const auto text = entry.get<std::string>();
    INFO(text);
    CHECK(gguf.encode(text) == hf.encode(text));
  }
}
