// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_tokenizer.hpp"

#include <functional>

#include "intaglio/io/tokenizer.hpp"
#include "io/files.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using ids = std::vector<std::int32_t>;
using nlohmann::json;

namespace {

json sound() {
  static const json read = shared_json("conformance/llama-tiny/hf/tokenizer.json");
  return read;
}

io::vocabulary parse(const std::string& text) { return io::vocabulary_from_tokenizer_json(text, "tokenizer.json"); }

/// @return the message of vocabulary or tokenizer, "" when both accept
std::string refusal(const std::string& text) {
  try {
    const io::tokenizer accepted(parse(text));
    return "";
  } catch (const file_error& e) {
    return e.what();
  }
}

std::string with(const std::function<void(json&)>& change) {
  json document = sound();
  change(document);
  return refusal(document.dump());
}

void expect(const std::string& message, std::string_view part) {
  INFO(message);
  CHECK(message.find("tokenizer.json: ") == 0);
  CHECK(message.find(part) != std::string::npos);
  CHECK(message.size() <= 400);
}

}  // namespace

TEST_CASE("a directory gives the vocabulary that its files describe") {
  const auto fable = io::vocabulary_from_hf_directory(shared("models/fable-bitnet"));
  CHECK(fable.architecture == "bitnet");
  CHECK(fable.model == "gpt2");
  CHECK(fable.pre_tokenizer == "llama-bpe");
  CHECK(fable.tokens.size() == 4096);
  CHECK(fable.merges.size() == 3837);
  CHECK(fable.bos_id == 4093);
  CHECK(fable.eos_id == 4094);
  CHECK(fable.add_bos == true);
  CHECK(fable.ignore_merges == true);
  CHECK(fable.chat_template.has_value());
  const auto gguf = vocabulary_of(shared("models/fable-bitnet-i2_s.gguf"));
  CHECK(fable.tokens == gguf.tokens);
  CHECK(fable.merges == gguf.merges);
  CHECK(fable.token_types == gguf.token_types);

  const auto mistral = io::vocabulary_from_hf_directory(shared("conformance/mistral-tiny/hf"));
  CHECK(mistral.model == "llama");
  CHECK(mistral.unknown_id == 0);
  CHECK(mistral.add_space_prefix == true);
  CHECK(mistral.token_types[0] == 2);
  CHECK(mistral.token_types[3] == 6);
  const auto gemma = io::vocabulary_from_hf_directory(shared("conformance/gemma3-tiny/hf"));
  CHECK(gemma.add_space_prefix == false);
  CHECK(gemma.padding_id == 0);
  CHECK(gemma.token_types[7] == 4);
}

TEST_CASE("a chat template stands in the config, in a list of named ones, or in a file of its own") {
  const temporary_folder folder;
  for (const char* name : {"config.json", "tokenizer.json"}) std::filesystem::copy_file(shared("models/fable-bitnet") / name, folder / name);
  const auto read = [&](const json& config) {
    write_text(folder / "tokenizer_config.json", config.dump());
    return io::vocabulary_from_hf_directory(folder.path());
  };
  json config = shared_json("models/fable-bitnet/tokenizer_config.json");
  config.erase("chat_template");
  CHECK_FALSE(read(config).chat_template);
  write_text(folder / "chat_template.jinja", "from a file");
  CHECK(read(config).chat_template == "from a file");
  config["chat_template"] = json::array({{{"name", "tools"}, {"template", "of tools"}}, {{"name", "default"}, {"template", "by default"}}});
  CHECK(read(config).chat_template == "by default");
  config["chat_template"] = "of the config";
  CHECK(read(config).chat_template == "of the config");
  config["chat_template"] = 7;
  CHECK_THROWS_AS(read(config), file_error);
  config.erase("chat_template");
  write_text(folder / "chat_template.jinja", std::string((1 << 20) + 1, 'x'));
  CHECK_THROWS_AS(read(config), file_error);
}

TEST_CASE("the config says whether BOS goes in front where tokenizer.json does not") {
  const temporary_folder folder;
  std::filesystem::copy_file(shared("models/fable-bitnet/config.json"), folder / "config.json");
  json document = shared_json("models/fable-bitnet/tokenizer.json"), config = shared_json("models/fable-bitnet/tokenizer_config.json");
  document["post_processor"] = nullptr;
  write_text(folder / "tokenizer.json", document.dump());
  for (const bool wanted : {true, false}) {
    config["add_bos_token"] = wanted;
    write_text(folder / "tokenizer_config.json", config.dump());
    CHECK(io::vocabulary_from_hf_directory(folder.path()).add_bos == wanted);
  }
}

TEST_CASE("a missing directory or file is named") {
  CHECK_THROWS_AS(io::vocabulary_from_hf_directory("/nowhere"), file_error);
  try {
    io::vocabulary_from_hf_directory("/nowhere");
  } catch (const file_error& e) {
    CHECK(std::string(e.what()).find("/nowhere/tokenizer.json: ") == 0);
  }
}

TEST_CASE("hostile JSON is refused") {
  expect(refusal(""), "JSON");
  expect(refusal("[]"), "expected an object");
  expect(refusal("{}"), "model: expected an object");
  expect(refusal("{\"model\":{}}"), "model.vocab: expected tokens");
  expect(refusal("{\"model\""), "well-formed document");
  expect(refusal("{\"a\":\"\xFF\"}"), "well-formed document");
  expect(refusal("{\"a\":1e999}"), "well-formed document");
  expect(refusal("{\"a\":1,\"\\u0061\":2}"), "JSON key 'a': expected each key once");
  expect(refusal(std::string(1'000'000, '[')), "nesting of at most 32");
  expect(refusal("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"), "nesting of at most 32");
  std::string wide = "[0";
  for (int i = 0; i < 2'000'001; ++i) wide += ",0";
  expect(refusal(wide + "]"), "at most 2000000 values");
  const std::string text = sound().dump();
  for (std::size_t cut = 1; cut < text.size(); cut += 997) {
    INFO("cut at " << cut);
    CHECK_FALSE(refusal(text.substr(0, cut)).empty());
  }
}

TEST_CASE("wrong vocabularies and merges are refused") {
  expect(with([](json& j) { j["model"]["vocab"]["!"] = -1; }), "model.vocab: expected texts with natural numbers");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 0.5; }), "model.vocab");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = "0"; }), "model.vocab");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = json::object(); }), "model.vocab");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = json::array(); }), "model.vocab");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = nullptr; }), "model.vocab");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 1ull << 40; }), "expected ids below");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 18446744073709551615ull; }), "expected ids below");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 1; }), "expected each id once");
  expect(with([](json& j) { j["model"]["vocab"] = json::array(); }), "model.vocab");
  expect(with([](json& j) { j["model"]["merges"] = json::object(); }), "merges");
  expect(with([](json& j) { j["model"]["merges"][3] = 1; }), "model.merges: expected texts or pairs of texts, found another kind of value at entry 3");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a", "b", "c"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a", 1}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"", "a"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a b", "c"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"q", "zzzz"}); }), "tokenizer.ggml.merges[3]");
  expect(with([](json& j) { j["added_tokens"][0]["id"] = 3; }), "added_tokens[0].content");
  expect(with([](json& j) { j["added_tokens"][0]["id"] = -3; }), "added_tokens[0].id: expected a natural number, found -3");
  expect(with([](json& j) { j["added_tokens"][1]["id"] = 1000; }), "expected each id once");
  expect(with([](json& j) { j["added_tokens"][0]["content"] = ""; }), "added_tokens[0].content");
  expect(with([](json& j) { j["added_tokens"][0]["lstrip"] = true; }), "added_tokens[0].lstrip");
  expect(with([](json& j) { j["added_tokens"] = "x"; }), "added_tokens: expected an array");
}

TEST_CASE("components that we do not have are refused by name") {
  const auto expression = [](json& j) -> json& { return j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]; };
  expect(with([&](json& j) { expression(j) = "\\w+"; }), "pre_tokenizer.pretokenizers[0].pattern.Regex: expected the expression of Llama 3, Qwen 2 or GPT-2, found \"\\\\w+\"");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }), "Isolated");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }), "add_prefix_space false");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }), "use_regex false");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"].erase(1); }), "a ByteLevel step");
  expect(with([](json& j) { j["pre_tokenizer"] = {{"type", "Whitespace"}}; }), "byte_fallback");
  expect(with([](json& j) { j["pre_tokenizer"] = 7; }), "pre_tokenizer: expected an object");
  expect(with([](json& j) { j["normalizer"] = {{"type", "NFC"}}; }), "normalizer");
  expect(with([](json& j) { j["model"]["type"] = "Unigram"; }), "model.type: expected BPE, found \"Unigram\"");
  expect(with([](json& j) { j["model"]["dropout"] = 0.1; }), "model.dropout");
  expect(with([](json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }), "model.end_of_word_suffix");
  expect(with([](json& j) { j["post_processor"] = {{"type", "BertProcessing"}}; }), "post_processor.type");
  expect(with([](json& j) { j["post_processor"]["processors"][1]["single"][0]["SpecialToken"]["id"] = "<none>"; }), "post_processor: expected the text of a token");
}

TEST_CASE("the other accepted forms") {
  json document = sound();
  document["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  CHECK(parse(document.dump()).pre_tokenizer == "gpt-2");
  document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}};
  CHECK(parse(document.dump()).pre_tokenizer == "starcoder");
  document["post_processor"] = nullptr;
  CHECK(parse(document.dump()).add_bos == false);
  document["added_tokens"][2]["id"] = 1030;
  const auto gaps = parse(document.dump());
  CHECK(gaps.tokens.size() == 1031);
  CHECK(gaps.tokens[1002] == "[PAD1002]");
  CHECK(gaps.token_types[1002] == 5);

  json mistral = shared_json("conformance/mistral-tiny/hf/tokenizer.json");
  const io::tokenizer always(parse(mistral.dump()));
  mistral["normalizer"] = nullptr;
  mistral["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", "first"}, {"split", false}};
  const io::tokenizer once(parse(mistral.dump()));
  CHECK(once.encode("Hello world") == always.encode("Hello world"));
  CHECK(once.encode(" Hello") == always.encode("Hello"));
  mistral["pre_tokenizer"]["prepend_scheme"] = "never";
  CHECK(io::tokenizer(parse(mistral.dump())).encode(" Hello") == always.encode("Hello"));
  mistral["pre_tokenizer"]["prepend_scheme"] = "always";
  CHECK_THROWS_AS(parse(mistral.dump()), file_error);
}
