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
  } catch (const file_error& e) { return e.what(); }
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

TEST_CASE("a chat template is in the config, in a list of named ones, or in a file of its own") {
  const temporary_folder folder;
  for (const char* name : {"config.json", "tokenizer.json"})
    std::filesystem::copy_file(shared("models/fable-bitnet") / name, folder / name);
  const auto read = [&](const json& config) {
    write_text(folder / "tokenizer_config.json", config.dump());
    return io::vocabulary_from_hf_directory(folder.path());
  };
  json config = shared_json("models/fable-bitnet/tokenizer_config.json");
  config.erase("chat_template");
  CHECK_FALSE(read(config).chat_template);
  write_text(folder / "chat_template.jinja", "from a file");
  CHECK(read(config).chat_template == "from a file");
  config["chat_template"] = "of the config";
  CHECK(read(config).chat_template == "from a file");
  std::filesystem::remove(folder / "chat_template.jinja");
  write_text(folder / "chat_template.json", R"({"chat_template": "of a processor"})");
  CHECK(read(config).chat_template == "of the config");
  config["chat_template"] =
      json::array({{{"name", "tools"}, {"template", "of tools"}}, {{"name", "default"}, {"template", "by default"}}});
  CHECK(read(config).chat_template == "by default");
  config["chat_template"] = json::array({{{"name", "tools"}, {"template", "of tools"}}});
  CHECK(read(config).chat_template == "of a processor");
  config["chat_template"] = 7;
  CHECK_THROWS_AS(read(config), file_error);
  config.erase("chat_template");
  CHECK(read(config).chat_template == "of a processor");
  write_text(folder / "chat_template.jinja", std::string((1 << 20) + 1, 'x'));
  CHECK_THROWS_AS(read(config), file_error);
}

TEST_CASE("the config says whether BOS goes in front where tokenizer.json does not") {
  const temporary_folder folder;
  std::filesystem::copy_file(shared("models/fable-bitnet/config.json"), folder / "config.json");
  json document = shared_json("models/fable-bitnet/tokenizer.json"),
       config = shared_json("models/fable-bitnet/tokenizer_config.json");
  document["post_processor"] = nullptr;
  write_text(folder / "tokenizer.json", document.dump());
  for (const bool wanted : {true, false}) {
    config["add_bos_token"] = wanted;
    write_text(folder / "tokenizer_config.json", config.dump());
    CHECK(io::vocabulary_from_hf_directory(folder.path()).add_bos == wanted);
  }
}

TEST_CASE("a template may end a text with another token than the config's eos, which then ends a turn") {
  const temporary_folder folder;
  std::filesystem::copy_file(shared("models/fable-bitnet/config.json"), folder / "config.json");
  std::filesystem::copy_file(shared("models/fable-bitnet/tokenizer_config.json"), folder / "tokenizer_config.json");
  json document = shared_json("models/fable-bitnet/tokenizer.json");
  auto& single = document["post_processor"]["processors"][1]["single"];
  single.push_back(single[0]);  // the token in front of a text after it too
  write_text(folder / "tokenizer.json", document.dump());
  const auto found = io::vocabulary_from_hf_directory(folder.path());
  CHECK(found.add_eos == true);
  CHECK(found.eos_id == found.bos_id);
  CHECK(found.eot_id == 4094);
}

TEST_CASE("a missing directory or file is named") {
  CHECK_THROWS_AS(io::vocabulary_from_hf_directory("/nowhere"), file_error);
  try {
    io::vocabulary_from_hf_directory("/nowhere");
  } catch (const file_error& e) { CHECK(std::string(e.what()).find("/nowhere/tokenizer.json: ") == 0); }
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
  expect(with([](json& j) { j["model"]["vocab"]["!"] = true; }), "model.vocab");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 1ull << 40; }), "expected ids below");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 18446744073709551615ull; }), "expected ids below");
  expect(with([](json& j) { j["model"]["vocab"]["!"] = 1; }), "expected each id once");
  expect(with([](json& j) { j["model"]["vocab"] = json::array(); }), "model.vocab");
  expect(with([](json& j) { j["model"]["merges"] = json::object(); }), "merges");
  expect(with([](json& j) { j["model"]["merges"][3] = 1; }),
         "model.merges: expected texts or pairs of texts, found another kind of value at entry 3");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a", "b", "c"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a", 1}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"", "a"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"a b", "c"}); }), "model.merges");
  expect(with([](json& j) { j["model"]["merges"][3] = json::array({"q", "zzzz"}); }), "tokenizer.ggml.merges[3]");
  expect(with([](json& j) { j["added_tokens"][0]["id"] = 3; }), "added_tokens[0].content");
  expect(with([](json& j) { j["added_tokens"][0]["id"] = -3; }),
         "added_tokens[0].id: expected a natural number, found -3");
  expect(with([](json& j) { j["added_tokens"][1]["id"] = 1000; }), "expected each id once");
  expect(with([](json& j) { j["added_tokens"][0]["content"] = ""; }), "added_tokens[0].content");
  expect(with([](json& j) { j["added_tokens"][0]["lstrip"] = 1; }), "added_tokens[0].lstrip");
  expect(with([](json& j) { j["added_tokens"] = "x"; }), "added_tokens: expected an array");
}

TEST_CASE("components that we do not have are refused by name") {
  const auto expression = [](json& j) -> json& { return j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]; };
  expect(with([&](json& j) { expression(j) = "\\w+"; }),
         "pre_tokenizer.pretokenizers[0].pattern.Regex: expected the expression of a known pre-tokenizer (llama-bpe, "
         "qwen2, ...), found \"\\\\w+\"");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }), "Isolated");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }),
         "add_prefix_space false");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }),
         "expected the steps of a known pre-tokenizer (llama-bpe, qwen2, ...) before it");
  expect(with([](json& j) { j["pre_tokenizer"]["pretokenizers"].erase(1); }), "a ByteLevel step");
  const auto steps = [](json& j) -> json& { return j["pre_tokenizer"]["pretokenizers"]; };
  const json digits{{"type", "Digits"}, {"individual_digits", true}},
      bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  expect(with([&](json& j) { steps(j).insert(steps(j).begin(), steps(j)[0]); }),
         "pre_tokenizer.pretokenizers[1].pattern.Regex: expected the expression of a known pre-tokenizer");
  expect(with([&](json& j) { steps(j)[0]["invert"] = true; }), "expected behavior Isolated, not inverted");
  expect(with([&](json& j) { steps(j).insert(steps(j).begin() + 1, digits); }),
         "expected the steps of a known pre-tokenizer (llama-bpe, qwen2, ...) before it");
  expect(with([&](json& j) {
           steps(j) = json::array({digits, digits, bytes});
         }),
         "expected the steps of a known pre-tokenizer (llama-bpe, qwen2, ...) before it");
  expect(with([&](json& j) {
           steps(j) = json::array({digits, {{"type", "Whitespace"}}});
         }),
         "pretokenizers[1].type: expected Split by expression");
  expect(with([&](json& j) {
           steps(j) = json::array({{{"type", "Whitespace"}}, bytes});
         }),
         "pretokenizers[0].type: expected Split by expression");
  expect(with([&](json& j) {
           steps(j) = json::array({{{"type", "Digits"}, {"individual_digits", false}}, bytes});
         }),
         "pretokenizers[0]: expected individual_digits true");
  expect(with([&](json& j) {
           steps(j) = json::array({digits, bytes}), steps(j)[1]["use_regex"] = false;
         }),
         "expected the steps of a known pre-tokenizer (llama-bpe, qwen2, ...) before it");
  expect(with([&](json& j) { steps(j) = json::array({bytes}), steps(j)[0]["use_regex"] = false; }),
         "expected the steps of a known pre-tokenizer (llama-bpe, qwen2, ...) before it");
  expect(with([](json& j) { j["model"]["byte_fallback"] = true; }),
         "model.byte_fallback: expected false with a byte-level pre-tokenizer");
  expect(with([](json& j) {
           j["post_processor"]["processors"][1]["single"].insert(j["post_processor"]["processors"][1]["single"].begin(),
                                                                 j["post_processor"]["processors"][1]["single"][0]);
         }),
         "expected one special token on each side of the text");
  expect(with([](json& j) { j["pre_tokenizer"] = {{"type", "Whitespace"}}; }), "byte_fallback");
  expect(with([](json& j) { j["pre_tokenizer"] = 7; }), "pre_tokenizer: expected an object");
  expect(with([](json& j) { j["normalizer"] = {{"type", "NFKC"}}; }), "normalizer: expected none, or NFC");
  expect(with([](json& j) { j["model"]["type"] = "WordLevel"; }),
         "model.type: expected BPE, WordPiece or Unigram, found \"WordLevel\"");
  expect(with([](json& j) { j["model"]["dropout"] = 0.1; }), "model.dropout");
  expect(with([](json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }), "model.end_of_word_suffix");
  expect(with([](json& j) { j["post_processor"] = {{"type", "StripProcessing"}}; }), "post_processor.type");
  expect(with([](json& j) {
           j["post_processor"] = {{"type", "BertProcessing"}};
         }),
         "post_processor.cls: expected a token and its id, found nothing");
  expect(with([](json& j) { j["post_processor"]["processors"][1]["single"][0]["SpecialToken"]["id"] = "<none>"; }),
         "post_processor: expected the text of a token");
}

TEST_CASE("the other accepted forms") {
  json document = sound();
  document["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  CHECK(parse(document.dump()).pre_tokenizer == "gpt-2");
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}}, {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}};
  CHECK(parse(document.dump()).pre_tokenizer == "starcoder");
  document["pre_tokenizer"]["pretokenizers"] = {
      {{"type", "Punctuation"}, {"behavior", "Contiguous"}},
      {{"type", "ByteLevel"}, {"add_prefix_space", false}},
      {{"type", "Digits"}, {"individual_digits", false}},
      {{"type", "Split"}, {"pattern", {{"Regex", "[0-9][0-9][0-9]"}}}, {"behavior", "Isolated"}, {"invert", false}}};
  CHECK(parse(document.dump()).pre_tokenizer == "falcon");
  const auto expressed = [&](std::string_view expression) {
    json other = sound();
    other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression;
    return parse(other.dump()).pre_tokenizer;
  };
  CHECK(expressed(io::hf::llama3_expression(R"(\p{N}{1,3})")) == "llama-bpe");
  CHECK(expressed(io::hf::llama3_expression(R"(\p{N})")) == "qwen2");
  CHECK(expressed(io::hf::gpt2_expression) == "gpt-2");
  // Removing what an expression does not match is the same where it matches everything.
  json removing = sound();
  removing["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";
  removing["pre_tokenizer"]["pretokenizers"][0]["invert"] = true;
  CHECK(parse(removing.dump()).pre_tokenizer == "llama-bpe");
  // Without ignore_merges the name is one that does not say it.
  json merging = sound();
  merging["model"]["ignore_merges"] = false;
  CHECK(parse(merging.dump()).pre_tokenizer == "smaug-bpe");
  json undropped = sound();
  undropped["model"]["dropout"] = 0.0;
  CHECK(parse(undropped.dump()).tokens.size() == parse(sound().dump()).tokens.size());
  // Merges as texts, as older files have them.
  json older = sound();
  for (auto& merge : older["model"]["merges"])
    if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  CHECK(parse(older.dump()).merges == parse(sound().dump()).merges);
  json pairs = sound();
  for (auto& merge : pairs["model"]["merges"])
    if (merge.is_string()) {
      const auto text = merge.get<std::string>();
      merge = json::array({text.substr(0, text.find(' ', 1)), text.substr(text.find(' ', 1) + 1)});
    }
  CHECK(parse(pairs.dump()).merges == parse(sound().dump()).merges);
  // EOS after the text.
  json ended = sound();
  auto& single = ended["post_processor"]["processors"][1]["single"];
  single.push_back(single[0]);
  CHECK(parse(ended.dump()).add_eos == true);
  CHECK(parse(ended.dump()).eos_id == parse(ended.dump()).bos_id);
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
  mistral["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", "first"}, {"split", false}};
  const io::tokenizer once(parse(mistral.dump()));
  CHECK(once.encode("Hello world") == always.encode("Hello world"));
  CHECK(once.encode(" Hello") == always.encode("Hello"));
  mistral["pre_tokenizer"]["prepend_scheme"] = "never";
  CHECK(io::tokenizer(parse(mistral.dump())).encode(" Hello") == always.encode("Hello"));
  mistral["pre_tokenizer"]["prepend_scheme"] = "always";
  const io::tokenizer each(parse(mistral.dump()));
  CHECK(each.encode(" Hello") == always.encode("Hello"));
  CHECK(each.encode("<s>Hello", {.parse_special = true}) == always.encode("<s>Hello", {.parse_special = true}));
  CHECK(once.encode("<s>Hello", {.parse_special = true}) != each.encode("<s>Hello", {.parse_special = true}));
}

TEST_CASE("the space rules of SentencePiece-style files that we have, and others by name") {
  const json sound = shared_json("conformance/mistral-tiny/hf/tokenizer.json");
  const std::string block = "\xE2\x96\x81";
  const json prepend{{"type", "Prepend"}, {"prepend", block}},
      replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", block}};
  const json metaspace{{"type", "Metaspace"}, {"replacement", block}, {"prepend_scheme", "first"}, {"split", false}},
      split{{"type", "Split"}, {"pattern", {{"String", " "}}}};
  const auto rules = [&](const json& normalizer, const json& pre_tokenizer) {
    json document = sound;
    document["normalizer"] = normalizer;
    document["pre_tokenizer"] = pre_tokenizer;
    return document.dump();
  };
  const auto sequence = [](const std::vector<json>& steps) {
    return json{{"type", "Sequence"}, {"normalizers", steps}};
  };
  const auto changed = [](json value, const char* key, const json& other) { return value[key] = other, value; };
  CHECK(parse(rules(sequence({prepend, replace}), nullptr)).add_space_prefix == true);
  CHECK(parse(rules(replace, nullptr)).add_space_prefix == false);
  CHECK(parse(rules(replace, split)).add_space_prefix == false);
  CHECK(parse(rules(nullptr, metaspace)).space_prefix_once == true);
  CHECK(refusal(rules(nullptr, json{{"type", "Metaspace"}, {"prepend_scheme", "never"}, {"split", false}})).empty());

  const char* const step = "expected Prepend U+2581, or Replace of a space by U+2581";
  expect(refusal(rules(changed(prepend, "prepend", "_"), nullptr)), step);
  expect(refusal(rules(sequence({replace, prepend}), nullptr)), step);
  expect(refusal(rules(changed(replace, "pattern", {{"String", "x"}}), nullptr)), step);
  expect(refusal(rules(changed(replace, "pattern", {{"Regex", " "}}), nullptr)), step);
  expect(refusal(rules(changed(replace, "content", "_"), nullptr)), step);
  expect(refusal(rules(sequence({json{{"type", "NFKC"}}, replace}), nullptr)), step);
  const char* const pre =
      "pre_tokenizer: expected none, Metaspace without split, or a Split at spaces, of which none are left";
  expect(refusal(rules(replace, metaspace)), pre);
  expect(refusal(rules(prepend, metaspace)), pre);
  expect(refusal(rules(nullptr, changed(metaspace, "split", true))), pre);
  expect(refusal(rules(nullptr, split)), pre);
  expect(refusal(rules(replace, changed(split, "pattern", {{"String", "x"}}))), pre);
  expect(refusal(rules(replace, json{{"type", "Whitespace"}})), pre);
  expect(refusal(rules(nullptr, changed(metaspace, "replacement", "_"))), "expected replacement U+2581");
  expect(refusal(rules(nullptr, changed(metaspace, "prepend_scheme", "seldom"))),
         "pre_tokenizer.prepend_scheme: expected first, always or never");
  expect(refusal(rules(nullptr, nullptr)), "normalizer: expected a Replace of spaces by U+2581, found nothing");
  expect(refusal(rules(prepend, nullptr)), "normalizer: expected a Replace of spaces by U+2581");

  const auto model = [&](const char* key, const json& value) {
    json document = sound;
    document["model"][key] = value;
    return refusal(document.dump());
  };
  expect(model("ignore_merges", true), "model.ignore_merges: expected false");
  expect(model("merges", json::array()), "model.merges: expected merges, found none");
  expect(model("byte_fallback", false), "model.byte_fallback: expected true, or a byte-level pre-tokenizer");
  expect(model("unk_token", "<none>"), "model.unk_token: expected the text of a token, found '<none>'");
}

TEST_CASE("special tokens of a config are texts or objects, and padding need not be a token") {
  const temporary_folder folder;
  std::filesystem::copy_file(shared("models/fable-bitnet/tokenizer.json"), folder / "tokenizer.json");
  const auto read = [&](const json& config) {
    write_text(folder / "tokenizer_config.json", config.dump());
    return io::vocabulary_from_hf_directory(folder.path());
  };
  // Without a config the tokenizer.json says all.
  const auto alone = io::vocabulary_from_hf_directory(folder.path());
  CHECK(alone.architecture.empty());
  CHECK(alone.bos_id == 4093);
  CHECK_FALSE(alone.chat_template);
  const auto text = [&](std::int64_t id) { return alone.tokens[static_cast<std::size_t>(id)]; };
  CHECK(read({{"eos_token", text(4094)}}).eos_id == 4094);
  CHECK(read({{"eos_token", {{"content", text(4095)}, {"special", true}}}}).eos_id == 4095);
  CHECK(read({{"pad_token", text(4095)}}).padding_id == 4095);
  CHECK_FALSE(read({{"pad_token", "<pad>"}}).padding_id);
  CHECK_FALSE(read({{"pad_token", nullptr}}).padding_id);
  CHECK_THROWS_AS(read({{"eos_token", "<none>"}}), file_error);
  CHECK_THROWS_AS(read({{"eos_token", 7}}), file_error);
  CHECK_THROWS_AS(read(json::array()), file_error);
}

TEST_CASE("a tokenizer.json that is too large is not read") {
  const temporary_folder folder;
  std::filesystem::resize_file(write_text(folder / "tokenizer.json", "{}"), io::largest_json_bytes + 1);
  try {
    io::vocabulary_from_hf_directory(folder.path());
    FAIL("read");
  } catch (const file_error& e) {
    CHECK(std::string(e.what()).ends_with("tokenizer.json: JSON: expected at most 268435456 bytes, found 268435457"));
  }
}
