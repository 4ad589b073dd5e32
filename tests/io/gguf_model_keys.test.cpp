// SPDX-License-Identifier: MIT
#include "intaglio/io/gguf_model_keys.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/checkpoint.hpp"

using namespace intaglio::io;

TEST_CASE("gguf_model_keys: a folder's config comes back out of the keys, and what GGUF cannot say is reported",
          "[convert]") {
  const temporary_folder folder;
  const auto in = [](const char* model, const char* form) { return conformance(model) / form; };
  struct expectation {
    std::filesystem::path from;
    std::string architecture, warning;
  };
  for (const auto& [from, architecture, warning] :
       {expectation{in("llama-tiny", "hf"), "llama", ""},
        {in("llama-tiny", "hf-v5"), "llama", ""},
        {in("mistral-tiny", "hf-swa"), "llama", "programs that know no sliding window"},
        {in("gemma3-tiny", "hf"), "gemma3", ""},
        {in("gemma3-tiny", "hf-qpas"), "gemma3", "GGUF has no query_pre_attn_scalar; the model's is 96"},
        {in("bitnet-tiny", "hf-packed"), "bitnet-b1.58", ""}}) {
    INFO(from.string());
    const auto model = checkpoint::open(from);
    CHECK(gguf_architecture(model.config()) == architecture);
    std::vector<std::string> warnings;
    gguf_writer out(folder / "keys.gguf");
    write_model_keys(out, model, warnings);
    CHECK(warnings.size() == (warning.empty() ? 0u : 1u));
    if (!warning.empty() && !warnings.empty()) CHECK(warnings[0].starts_with(warning));
    out.begin();
    out.finish();
    const auto file = gguf::open(folder / "keys.gguf");
    CHECK(file.value<std::string>("general.architecture") == architecture);
    CHECK(file.value<std::string>("general.name") == from.filename().string());
    auto expected = model.config();
    expected.tie_word_embeddings = true;  // said by the tensors alone
    expected.query_pre_attn_scalar = 0;
    CHECK(gguf_config(file).config() == expected);
    REQUIRE(model.vocabulary().has_value() == (file.first().find("tokenizer.ggml.tokens") != nullptr));
    if (!model.vocabulary()) continue;
    const vocabulary read = gguf_vocabulary(file), &own = *model.vocabulary();
    CHECK((read.model == own.model && read.tokens == own.tokens && read.token_types == own.token_types &&
           read.merges == own.merges && read.scores == own.scores));
    CHECK((read.bos_id == own.bos_id && read.eos_id == own.eos_id && read.add_bos == own.add_bos &&
           read.chat_template == own.chat_template));
  }
}

TEST_CASE("gguf_model_keys: what GGUF cannot say of a tokenizer is reported", "[convert]") {
  const temporary_folder folder;
  const auto warnings_of = [&](const std::function<void(vocabulary&)>& change) {
    vocabulary words = *checkpoint::open(conformance("llama-tiny") / "hf").vocabulary();
    change(words);
    std::vector<std::string> warnings;
    gguf_writer out(folder / "keys.gguf");
    write_vocabulary_keys(out, words, warnings);
    std::string all;
    for (const auto& line : warnings) all += line;
    return all;
  };
  CHECK(warnings_of([](auto&) {}).empty());
  CHECK(
      warnings_of([](auto& v) { v.added = {{.id = 1, .rstrip = true}}; }).starts_with("GGUF has no key for the rules"));
  CHECK(warnings_of([](auto& v) { v.nfc = true; }).starts_with("GGUF has no key for Unicode's normalization"));
  CHECK(warnings_of([](auto& v) { v.ignore_merges = false; }).starts_with("tokenizer.ggml.pre llama-bpe says"));
}

TEST_CASE("gguf_model_keys: every end of a generation comes back, llama.cpp's three keys first", "[convert]") {
  const temporary_folder folder;
  const auto written = [&](std::vector<std::int64_t> ends, std::vector<std::string>& warnings) {
    vocabulary words = *checkpoint::open(conformance("mistral-tiny") / "hf").vocabulary();
    words.end_ids = std::move(ends);
    gguf_writer out(folder / "keys.gguf");
    out.set("general.architecture", "llama");
    write_vocabulary_keys(out, words, warnings);
    out.begin();
    out.finish();
    const auto types = checked_token_types(words);
    auto file = gguf::open(folder / "keys.gguf");
    CHECK(end_of_generation_tokens(gguf_vocabulary(file), types) == end_of_generation_tokens(words, types));
    return file;
  };
  std::vector<std::string> warnings;
  CHECK(written({2}, warnings).first().find("tokenizer.ggml.eot_token_id") == nullptr);
  const auto two = written({2, 337, 338}, warnings);
  CHECK(two.value<std::uint32_t>("tokenizer.ggml.eos_token_id") == 2u);
  CHECK(two.value<std::uint32_t>("tokenizer.ggml.eot_token_id") == 337u);
  CHECK(two.value<std::uint32_t>("tokenizer.ggml.eom_token_id") == 338u);
  CHECK(two.first().find(end_ids_key) == nullptr);
  CHECK(warnings.empty());
  CHECK(written({337, 338, 339}, warnings).first().find(end_ids_key) != nullptr);
  CHECK(warnings.size() == 1);
}
