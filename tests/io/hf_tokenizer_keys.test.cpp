// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_tokenizer_keys.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "intaglio/io/hf_tokenizer.hpp"
#include "io/files.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using lines = std::vector<std::string>;

namespace {

/// The warnings of a folder whose two files were changed.
lines warnings(const char* from, const std::function<void(json& tokenizer, json& config)>& change) {
  const temporary_folder folder;
  const std::string path = "conformance/" + std::string(from) + "/hf/";
  json tokenizer = shared_json(path + "tokenizer.json"), config = shared_json(path + "tokenizer_config.json");
  change(tokenizer, config);
  write_text(folder / "tokenizer.json", tokenizer.dump());
  write_text(folder / "tokenizer_config.json", config.dump());
  return io::vocabulary_from_hf_directory(folder.path()).warnings;
}
void expect_one(const lines& found, const char* part) {
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0], ContainsSubstring(part));
}

}  // namespace

TEST_CASE("hf_tokenizer_keys: sound folders have no warning", "[tokenizer]") {
  for (const char* each : {"llama-tiny", "gemma3-tiny", "mistral-tiny"})
    CHECK(warnings(each, [](json&, json&) {}) == lines{});
}

TEST_CASE("hf_tokenizer_keys: no key of a tokenizer is passed over", "[tokenizer]") {
  const auto config = [](const char* key, const json& value) {
    return warnings("llama-tiny", [&](json&, json& to) { to[key] = value; });
  };
  expect_one(config("split_special_tokens", true), "key 'split_special_tokens' is not used by the tokenizer");
  expect_one(config("spiral", 1), "tokenizer_config.json: key 'spiral' is unknown and not read");
  CHECK(config("split_special_tokens", false) == lines{});
  CHECK(config("clean_up_tokenization_spaces", true) == lines{});
  CHECK(config("image_token", "<image>") == lines{});
  const auto file = [](const char* pointer, const json& value) {
    return warnings("llama-tiny", [&](json& to, json&) { to[json::json_pointer(pointer)] = value; });
  };
  expect_one(file("/spiral", 1), "key 'spiral' is unknown and not read");
  expect_one(file("/model/spiral", 1), "key 'model.spiral' is unknown and not read");
  CHECK(file("/truncation", {{"max_length", 128}}) == lines{});
}

TEST_CASE("hf_tokenizer_keys: two files that differ are named", "[tokenizer]") {
  const auto with = [](const char* from, const char* key, bool value) {
    return warnings(from, [&](json&, json& to) { to[key] = value; });
  };
  expect_one(with("llama-tiny", "add_bos_token", false),
             "key 'add_bos_token': expected true as tokenizer.json has it, found false: tokenizer.json is used");
  expect_one(with("llama-tiny", "add_eos_token", true), "key 'add_eos_token': expected false");
  expect_one(with("llama-tiny", "add_prefix_space", true), "key 'add_prefix_space': expected false");
  expect_one(with("mistral-tiny", "add_prefix_space", false), "key 'add_prefix_space': expected true");
  expect_one(with("llama-tiny", "do_lower_case", true), "key 'do_lower_case': expected false");
  CHECK(with("llama-tiny", "add_bos_token", true) == lines{});
  CHECK(with("mistral-tiny", "add_prefix_space", true) == lines{});
  CHECK(with("llama-tiny", "tokenize_chinese_chars", false) == lines{});  // a key of BERT's
  try {
    (void)with("llama-tiny", "add_bos_token", true);
    (void)warnings("llama-tiny", [](json&, json& to) { to["add_bos_token"] = "yes"; });
    FAIL("accepted");
  } catch (const file_error& problem) {
    CHECK_THAT(problem.what(), ContainsSubstring("add_bos_token: expected true or false"));
  }
}

TEST_CASE("hf_tokenizer_keys: a decoder that would make other texts is named", "[tokenizer]") {
  const auto with = [](const char* from, const json& decoder) {
    return warnings(from, [&](json& to, json&) { to["decoder"] = decoder; });
  };
  const json fuse{{"type", "Fuse"}}, strip{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  CHECK(with("llama-tiny", nullptr) == lines{});
  CHECK(with("mistral-tiny", {{"type", "Sequence"}, {"decoders", {fuse, strip}}}) == lines{});
  expect_one(with("llama-tiny", {{"type", "Metaspace"}}), "'decoder' Metaspace is not used");
  json upper = strip, more = strip;
  upper["content"] = "A", more["stop"] = 2;
  for (const json& each : {upper, more, json{{"type", "CTC"}},
                           json{{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "b"}}})
    expect_one(with("mistral-tiny", {{"type", "Sequence"}, {"decoders", {fuse, each}}}), "'decoder.decoders[1]'");
}

TEST_CASE("hf_tokenizer_keys: a template's tokens stand for themselves", "[tokenizer]") {
  const auto with = [](const char* pointer, const json& value) {
    return warnings("mistral-tiny",
                    [&](json& to, json&) { to[json::json_pointer("/post_processor" + std::string(pointer))] = value; });
  };
  CHECK(with("/special_tokens/<s>/ids", {1}) == lines{});
  expect_one(with("/single/1/Sequence/type_id", 1), "'post_processor.single[1].Sequence.type_id' is not used");
  for (const json& ids : {json{2}, json{1, 1}, json::array()}) try {
      (void)with("/special_tokens/<s>/ids", ids);
      FAIL("accepted");
    } catch (const file_error& problem) {
      CHECK_THAT(problem.what(), ContainsSubstring("ids: expected 1 alone, the id of '<s>'"));
    }
}
