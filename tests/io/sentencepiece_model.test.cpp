// SPDX-License-Identifier: MIT
#include "intaglio/io/sentencepiece_model.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "../conformance.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "torch_image.hpp"
#include "vocabularies.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using ids = std::vector<std::int32_t>;

namespace {

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}
std::string field(unsigned number, std::uint64_t value) { return varint(number << 3) + varint(value); }
std::string field(unsigned number, std::string_view text) {
  return varint(number << 3 | 2) + varint(text.size()) + std::string(text);
}
std::string piece(std::string_view text, unsigned type, float score) {
  return field(1, field(1, text) + varint(2 << 3 | 5) + packed(score) + field(3, type));
}
/// A model of BPE with byte fallback: two pieces, and fields of both specs after the usual ones.
std::string model_with(const std::string& trainer, const std::string& normalizer) {
  return piece("<unk>", 2, 0) + piece("a", 1, -1) + field(2, field(3, 2) + field(35, 1) + trainer) +
         field(3, field(1, "identity") + field(4, std::uint64_t{0}) + normalizer);
}
std::string refusal(const std::string& bytes) {
  try {
    io::vocabulary_from_sentencepiece(bytes, "tokenizer.model");
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}
const nlohmann::json& goldens() {
  static const nlohmann::json read = shared_json("conformance/tokenizers/goldens.json");
  return read;
}

}  // namespace

TEST_CASE("sentencepiece_model: tokenizer.model and GGUF agree with sentencepiece and tokenizers on every golden") {
  struct {
    const char *name, *folder, *gguf;
  } cases[]{{"mistral-tiny", "mistral-tiny", "gguf/mistral-tiny-q4_k_m.gguf"},
            {"gemma-tiny", "gemma3-tiny", "gguf/gemma3-tiny-q4_0.gguf"}};
  for (const auto& each : cases) {
    const auto& expected = goldens()["tokenizers"][each.name];
    const auto folder = conformance(each.folder);
    for (const auto& vocabulary :
         {io::vocabulary_from_sentencepiece_file(folder / "hf/tokenizer.model"), vocabulary_of(folder / each.gguf)}) {
      INFO(vocabulary.source);
      const io::tokenizer model(vocabulary);
      CHECK(model.adds_bos());
      for (std::size_t i = 0; i < 60; ++i) {
        const auto text = goldens()["strings"][i].get<std::string>();
        INFO("string " << i << ": " << text);
        CHECK(model.encode(text) == expected["sentencepiece"]["ids"][i].get<ids>());
        CHECK(model.encode(text, {.parse_special = true}) == expected["hf"]["parsed"][i].get<ids>());
        CHECK(model.decode(model.encode(text)) == io::unescape_spaces(text));
      }
    }
  }
}

TEST_CASE("sentencepiece_model: what a file says, and the defaults of the proto") {
  const auto got = io::vocabulary_from_sentencepiece(model_with("", ""), "tokenizer.model");
  CHECK((got.model == "llama" && got.source == "tokenizer.model" &&
         got.tokens == std::vector<std::string>{"<unk>", "a"}));
  CHECK((got.token_types == std::vector<std::int32_t>{2, 1} && got.scores == std::vector<float>{0.f, -1.f}));
  CHECK((got.unknown_id == 0 && got.bos_id == 1 && got.eos_id == 2 && !got.padding_id && got.add_bos == true &&
         got.add_space_prefix == true && got.remove_extra_whitespaces == false));
  const auto other = io::vocabulary_from_sentencepiece(
      model_with(field(40, 3) + field(41, ~std::uint64_t{0}) + field(42, 1) + field(43, std::uint64_t{0}),
                 field(3, std::uint64_t{0})) +
          field(4, "self test") + field(200, 1),
      "x");
  CHECK((other.unknown_id == 3 && !other.bos_id && other.eos_id == 1 && other.padding_id == 0 &&
         other.add_bos == false && other.add_space_prefix == false));
}

TEST_CASE("sentencepiece_model: other models and normalisers are refused by name") {
  CHECK_THAT(refusal(model_with(field(3, 1), "")),
             ContainsSubstring("trainer_spec.model_type: expected BPE, found UNIGRAM"));
  CHECK_THAT(refusal(piece("a", 1, 0)), ContainsSubstring("trainer_spec.model_type: expected BPE, found UNIGRAM"));
  CHECK_THAT(refusal(model_with(field(3, 9), "")), ContainsSubstring("expected BPE, found 9"));
  CHECK_THAT(refusal(model_with(field(35, std::uint64_t{0}), "")),
             ContainsSubstring("trainer_spec.byte_fallback: expected true, found false"));
  CHECK_THAT(refusal(model_with(field(24, 1), "")),
             ContainsSubstring("treat_whitespace_as_suffix: expected false, found true"));
  CHECK_THAT(refusal(model_with("", field(2, "map"))),
             ContainsSubstring("precompiled_charsmap: expected none (normaliser 'identity'), found 3 bytes"));
  // What decoded text would go through; many files have the message without a map.
  CHECK(refusal(model_with("", "") + field(5, field(1, "") + field(3, std::uint64_t{0}))) == "accepted");
  CHECK_THAT(
      refusal(model_with("", "") + field(5, field(2, "map"))),
      ContainsSubstring("denormalizer_spec.precompiled_charsmap: expected none (normaliser 'identity'), found 3"));
  CHECK_THAT(refusal(model_with("", field(5, std::uint64_t{0}))),
             ContainsSubstring("escape_whitespaces: expected true, found false"));
  // io::tokenizer refuses what the reader lets through.
  CHECK(io::vocabulary_from_sentencepiece(model_with("", field(4, 1)), "x").remove_extra_whitespaces == true);
}

TEST_CASE("sentencepiece_model: bytes that are no ModelProto are refused where they are wrong") {
  CHECK_THAT(refusal(piece("", 1, 0)), ContainsSubstring("piece 0: expected a text, found none"));
  CHECK_THAT(refusal(piece("a", 7, 0)), ContainsSubstring("piece 0: type: expected 1 to 6, found 7"));
  CHECK_THAT(refusal(field(1, 5)), ContainsSubstring("offset 0x0: field 1: expected a message, found a number"));
  CHECK_THAT(refusal(field(1, field(1, 5))), ContainsSubstring("piece: expected text, found a number"));
  CHECK_THAT(refusal(field(1, field(2, "x"))), ContainsSubstring("score of a piece: expected a number, found text"));
  CHECK_THAT(refusal(model_with("", field(3, 2))),
             ContainsSubstring("add_dummy_prefix: expected true or false, found 2"));
  CHECK_THAT(refusal(std::string("\0\0", 2)),
             ContainsSubstring("protobuf: field number: expected 1 to 536870911, found 0"));
  CHECK_THAT(refusal("\x0B"), ContainsSubstring("protobuf: wire type of field 1: expected 0, 1, 2 or 5, found 3"));
  CHECK_THAT(refusal("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"),
             ContainsSubstring("protobuf: length of field 1: expected at most 0, found 18446744073709551615"));
  CHECK_THAT(refusal("\x08" + std::string(10, '\xFF')),
             ContainsSubstring("protobuf: number: expected at most 64 bits, found more"));
  const std::string sound = model_with("", "");
  CHECK(refusal(sound) == "accepted");
  for (std::size_t size = 0; size < sound.size(); ++size) CHECK(refusal(sound.substr(0, size)) != "");
  CHECK_THAT(refusal(sound.substr(0, sound.size() - 1)), ContainsSubstring("protobuf: length of field 3"));
}
