// SPDX-License-Identifier: MIT
// What is expected of tokens here is what transformers 5.24 gives for the same folder.
#include "intaglio/io/hf_tokenizer_config.hpp"

#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "io/files.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using ids = std::vector<std::int32_t>;
using nlohmann::json;

namespace {

/// A folder with a tokenizer.model of 1000 pieces.
struct model_folder {
  temporary_folder made;
  json config{{"add_bos_token", true}, {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};

  model_folder() {
    std::filesystem::copy_file(shared("conformance/mistral-tiny/hf/tokenizer.model"), made / "tokenizer.model");
  }
  void write(const char* name, const json& content) const { write_text(made / name, content.dump()); }
  io::vocabulary read() const {
    write("tokenizer_config.json", config);
    auto out = io::vocabulary_from_sentencepiece_file(made / "tokenizer.model");
    io::hf::read_config(made.path(), io::hf::vocabulary_form::model, out);
    return out;
  }
  std::vector<ids> encoded() const {
    const io::tokenizer tokens(read());
    std::vector<ids> out;
    for (const char* text : {"<|im_start|>user", "hi <|im_end|> there", "Hello"})
      out.push_back(tokens.encode(text, {.parse_special = true}));
    return out;
  }
  std::string refusal() const {
    try {
      read();
    } catch (const file_error& problem) { return problem.what(); }
    return "accepted";
  }
};

json token(const char* content, const json& rules = json::object()) {
  json out{{"content", content}, {"special", true}, {"normalized", false}};
  out.update(rules);
  return out;
}

const json list{{"<|im_start|>", 1000}, {"<|im_end|>", 1001}};

}  // namespace

TEST_CASE("hf_tokenizer_config: added_tokens.json counts beside tokenizer.model") {
  model_folder folder;
  folder.write("added_tokens.json", list);
  CHECK(folder.encoded() == std::vector<ids>{{1000, 300, 268}, {296, 731, 725, 1001, 692}, {707, 726, 295, 728}});
  CHECK(io::tokenizer(folder.read()).type(1000) == io::token_type::user_defined);
  // A token that is named as special is one.
  folder.write("special_tokens_map.json", {{"additional_special_tokens", {"<|im_start|>"}}});
  CHECK(io::tokenizer(folder.read()).type(1000) == io::token_type::control);
  folder.config["legacy"] = true;
  CHECK(folder.encoded() == std::vector<ids>{{1000, 384, 268}, {296, 731, 725, 1001, 692}, {707, 726, 295, 728}});
  folder.config.erase("legacy");
  folder.config["add_prefix_space"] = false;
  CHECK(folder.encoded() == std::vector<ids>{{1000, 300, 268}, {734, 731, 725, 1001, 692}, {895, 726, 295, 728}});
}

TEST_CASE("hf_tokenizer_config: added_tokens_decoder counts, with its rules, before added_tokens.json") {
  model_folder folder;
  folder.write("added_tokens.json", json{{"<|im_start|>", 1001}, {"<|im_end|>", 1000}});
  folder.config["added_tokens_decoder"] = {{"1000", token("<|im_start|>")},
                                           {"1001", token("<|im_end|>", {{"lstrip", true}, {"rstrip", true}})}};
  CHECK(folder.encoded() == std::vector<ids>{{1000, 300, 268}, {296, 731, 1001, 727, 262, 264}, {707, 726, 295, 728}});
  const io::tokenizer tokens(folder.read());
  CHECK(tokens.type(1000) == io::token_type::control);
  CHECK(tokens.special_id("<|im_end|>") == 1001);
}

TEST_CASE("hf_tokenizer_config: BOS, EOS and gaps beside tokenizer.model") {
  model_folder folder;
  CHECK(io::tokenizer(folder.read()).adds_bos());
  folder.config["add_bos_token"] = false, folder.config["add_eos_token"] = true;
  CHECK_FALSE(io::tokenizer(folder.read()).adds_bos());
  CHECK(io::tokenizer(folder.read()).adds_eos());
  folder.config.erase("add_bos_token");
  CHECK(io::tokenizer(folder.read()).adds_bos());
  folder.write("added_tokens.json", {{"<x>", 1003}});
  const auto gaps = folder.read();
  CHECK(gaps.tokens.size() == 1004);
  CHECK(gaps.tokens[1002] == "[PAD1002]");
  CHECK(gaps.token_types[1002] == static_cast<int>(io::token_type::unused));
  CHECK(gaps.scores.size() == 1004);
  folder.config["eos_token"] = "<x>";
  CHECK(io::tokenizer(folder.read()).eos() == 1003);
  folder.config["eos_token"] = "<y>";
  CHECK(folder.refusal().find("eos_token: expected the text of a token, found '<y>'") != std::string::npos);
}

TEST_CASE("hf_tokenizer_config: lists of tokens that contradict the vocabulary are refused") {
  model_folder folder;
  const auto with_decoder = [&](const json& decoder) {
    folder.config["added_tokens_decoder"] = decoder;
    return folder.refusal();
  };
  CHECK(with_decoder({{"1", token("<s>")}}) == "accepted");
  CHECK(with_decoder({{"1", token("<x>")}}).find("content: expected '<s>', the text of token 1 in tokenizer.model") !=
        std::string::npos);
  CHECK(with_decoder({{"one", token("<x>")}}).find("expected a token's id as its key") != std::string::npos);
  CHECK(with_decoder({{"99999999", token("<x>")}}).find("expected an id below") != std::string::npos);
  CHECK(with_decoder({{"1000", token("")}}).find("expected a text") != std::string::npos);
  CHECK(with_decoder({{"1000", {{"special", true}}}}).find("expected a string") != std::string::npos);
  CHECK(with_decoder({{"1000", token("<x>", {{"lstrip", 1}})}}).find("expected true or false") != std::string::npos);
  CHECK(with_decoder(json::array()).find("expected an object") != std::string::npos);
  folder.config.erase("added_tokens_decoder");
  for (const json& wrong : {json{{"<x>", -1}}, json{{"<x>", "1000"}}, json::array({"<x>"}), json{{"<x>", 5}}}) {
    folder.write("added_tokens.json", wrong);
    INFO(wrong.dump());
    CHECK(folder.refusal().find("added_tokens.json: ") != std::string::npos);
  }
}

TEST_CASE("hf_tokenizer_config: a list beside tokenizer.json adds to it, and what is ignored is said") {
  const temporary_folder folder;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(shared("conformance/llama-tiny/hf") / name, folder / name);
  const auto before = io::vocabulary_from_hf_directory(folder.path());
  write_text(folder / "added_tokens.json", json{{"<|y|>", before.tokens.size()}}.dump());
  const auto ignored = io::vocabulary_from_hf_directory(folder.path());
  CHECK(ignored.tokens == before.tokens);
  json config = shared_json("conformance/llama-tiny/hf/tokenizer_config.json");
  if (!config.contains("added_tokens_decoder")) {
    REQUIRE(ignored.warnings.size() == 1);
    CHECK(ignored.warnings[0].find("added_tokens.json: 1 tokens are not in tokenizer.json") != std::string::npos);
  }
  config["added_tokens_decoder"][std::to_string(before.tokens.size())] = token("<|x|>");
  config["additional_special_tokens"] = {"<|x|>", "<|nowhere|>"};
  write_text(folder / "tokenizer_config.json", config.dump());
  const auto more = io::vocabulary_from_hf_directory(folder.path());
  CHECK(more.tokens.size() == before.tokens.size() + 1);
  REQUIRE_FALSE(more.warnings.empty());
  CHECK(more.warnings.back().find("special token '<|nowhere|>' is not in the vocabulary and is ignored") !=
        std::string::npos);
  const io::tokenizer tokens(more);
  CHECK(tokens.encode("<|x|>", {.parse_special = true}) == ids{static_cast<std::int32_t>(before.tokens.size())});
  CHECK(tokens.encode("<|x|>").size() > 1);
}
