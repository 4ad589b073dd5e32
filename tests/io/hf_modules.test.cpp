// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_modules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::architecture;
using nlohmann::json;
using namespace intaglio::io;

namespace {

/// A folder with modules and their configs.
struct module_folder {
  temporary_folder made;
  std::vector<std::string> warnings;

  void write(const std::string& name, const json& what) const {
    std::filesystem::create_directories((made / name).parent_path());
    write_text(made / name, what.dump());
  }
  /// Dense modules under the names 2_Dense, 3_Dense, ...
  void write_dense(const std::vector<json>& each) const {
    json modules = json::array();
    for (const char* name : {"Transformer", "Pooling"})
      modules.push_back({{"path", ""}, {"type", "sentence_transformers.models." + std::string(name)}});
    for (std::size_t i = 0; i < each.size(); ++i) {
      const std::string path = std::to_string(i + 2) + "_Dense";
      modules.push_back({{"path", path}, {"type", "sentence_transformers.models.Dense"}});
      write(path + "/config.json", each[i]);
    }
    modules.push_back({{"path", "9_Normalize"}, {"type", "sentence_transformers.models.Normalize"}});
    write("modules.json", modules);
  }
  std::vector<dense_module> read(intaglio::decoder_config& c) { return read_modules(made.path(), c, warnings); }
  std::string refusal(architecture type = architecture::gemma_embedding) {
    intaglio::decoder_config c{.model_type = type, .hidden_size = 64};
    try {
      read(c);
    } catch (const intaglio::file_error& problem) { return problem.what(); }
    return "accepted";
  }
};

json dense(int in, int out) {
  return {{"in_features", in},
          {"out_features", out},
          {"bias", false},
          {"activation_function", "torch.nn.modules.linear.Identity"}};
}

}  // namespace

TEST_CASE("hf_modules: two products of a folder, or none", "[checkpoint]") {
  module_folder folder;
  intaglio::decoder_config c{.model_type = architecture::gemma_embedding, .hidden_size = 64};
  CHECK((folder.read(c).empty() && c.dense_features == 0));
  folder.write_dense({dense(64, 160), dense(160, 64)});
  const std::vector<dense_module> found = folder.read(c);
  CHECK((found.size() == 2 && c.dense_features == 160 && folder.warnings.empty()));
  CHECK((found[1].folder.filename() == "3_Dense" && found[1].in == 160 && found[1].out == 64));
  folder.write_dense({});
  c.dense_features = 0;
  CHECK((folder.read(c).empty() && c.dense_features == 0));
}

TEST_CASE("hf_modules: what is not computed is refused or named", "[checkpoint]") {
  module_folder folder;
  folder.write_dense({dense(64, 160)});
  CHECK_THAT(folder.refusal(), ContainsSubstring("Dense modules: expected none or 2, found 1"));
  CHECK_THAT(folder.refusal(architecture::bert), ContainsSubstring("no Dense module after this family"));
  folder.write_dense({dense(64, 160), dense(160, 32)});
  CHECK_THAT(folder.refusal(), ContainsSubstring("found 64 to 160 and 160 to 32"));
  json biased = dense(64, 160), curved = dense(64, 160);
  biased["bias"] = true, curved["activation_function"] = "torch.nn.modules.activation.Tanh";
  folder.write_dense({biased, dense(160, 64)});
  CHECK_THAT(folder.refusal(), ContainsSubstring("bias: expected false, found true"));
  folder.write_dense({curved, dense(160, 64)});
  CHECK_THAT(folder.refusal(), ContainsSubstring("activation_function: expected Identity"));
  folder.write("modules.json", json::array({{{"path", "../other"}, {"type", "sentence_transformers.models.Dense"}}}));
  CHECK_THAT(folder.refusal(), ContainsSubstring("path: expected the name of a folder"));
  folder.write("modules.json", json::array({{{"path", "2_CNN"}, {"type", "sentence_transformers.models.CNN"}}}));
  CHECK(folder.refusal() == "accepted");
  REQUIRE(folder.warnings.size() == 1);
  CHECK_THAT(folder.warnings.front(), ContainsSubstring("models.CNN' is not computed"));
}

TEST_CASE("hf_modules: the folder of the pooling is the one that is named", "[checkpoint]") {
  module_folder folder;
  CHECK(pooling_folder(folder.made.path()).filename() == "1_Pooling");
  const auto named = [&](const char* path) {
    folder.write("modules.json", json::array({{{"path", path}, {"type", "sentence_transformers.models.Pooling"}}}));
    return pooling_folder(folder.made.path()).filename().string();
  };
  CHECK(named("2_Pooling") == "2_Pooling");
  for (const char* outside : {"../x", "", "/etc"}) CHECK(named(outside) == "1_Pooling");
}

TEST_CASE("hf_modules: what is done to texts elsewhere is named", "[checkpoint]") {
  module_folder folder;
  const intaglio::decoder_config c{.model_type = architecture::bert, .max_position_embeddings = 512};
  const auto found = [&](const char* name, const json& what) {
    std::vector<std::string> out;
    folder.write(name, what);
    judge_sentence_keys(folder.made.path(), c, out);
    std::filesystem::remove(folder.made / name);
    return out;
  };
  const auto expect_one = [](const std::vector<std::string>& lines, const char* part) {
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], ContainsSubstring(part));
  };
  const char* const sentence = "sentence_bert_config.json";
  CHECK(found(sentence, {{"max_seq_length", 512}, {"do_lower_case", false}}).empty());
  expect_one(found(sentence, {{"max_seq_length", 256}}),
             "sentence_bert_config.json: max_seq_length 256 is not used: texts are not cut, and may have 512 tokens");
  expect_one(found(sentence, {{"do_lower_case", true}}), "key 'do_lower_case' is not used by embeddings");
  expect_one(found(sentence, {{"spiral", 1}}), "key 'spiral' is unknown");
  const char* const prompts = "config_sentence_transformers.json";
  const json two{{"query", "query: "}, {"document", ""}};
  CHECK(found(prompts, {{"prompts", two}, {"default_prompt_name", nullptr}, {"similarity_fn_name", "cosine"}}).empty());
  CHECK(found(prompts, {{"prompts", two}, {"default_prompt_name", "document"}}).empty());
  expect_one(found(prompts, {{"prompts", two}, {"default_prompt_name", "query"}}),
             "default_prompt_name 'query' is not used: the caller puts 'query: ' in front of a text");
}
