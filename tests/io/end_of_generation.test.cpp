// SPDX-License-Identifier: MIT
#include "intaglio/io/end_of_generation.hpp"

#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "io/files.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using ids = std::vector<std::int32_t>;

namespace {

/// Ends of a vocabulary with these texts as control tokens, counted from the first of them.
ids ends(const std::vector<std::string>& texts, io::token_type type = io::token_type::control) {
  io::vocabulary file;
  file.tokens = texts;
  return io::end_of_generation_tokens(file, std::vector<io::token_type>(texts.size(), type));
}

}  // namespace

static_assert(io::is_markup_text("<|im_start|>") && io::is_markup_text("<start_of_turn>") &&
              io::is_markup_text("[EOT]"));
static_assert(!io::is_markup_text("<table>") && !io::is_markup_text("\n\n") && !io::is_markup_text("<|"));

TEST_CASE("end_of_generation: known texts, as llama.cpp knows them") {
  CHECK(ends({"<s>", "</s>", "<|im_end|>", "<|im_start|>"}) == ids{1, 2});
  CHECK(ends({"a", "</s>", "<|im_end|>"}, io::token_type::user_defined) == ids{2});
  CHECK(ends({"</s>", "<|im_end|>"}, io::token_type::normal).empty());
  // Harmony: <|end|> closes a message.
  CHECK(ends({"<|end|>", "<|return|>", "<|call|>"}) == ids{1, 2});
  CHECK(ends({"<|end|>", "<|flush|>", "<|calls|>"}) == ids{1, 2});
  CHECK(ends({"<|end|>", "<|return|>"}) == ids{0, 1});
}

TEST_CASE("end_of_generation: a file's ids count even where the text would not") {
  io::vocabulary file;
  file.tokens = {"<|end|>", "<|return|>", "<|call|>", "a", "b", "c"};
  std::vector<io::token_type> types(6, io::token_type::control);
  types[3] = types[4] = types[5] = io::token_type::normal;
  file.eos_id = 3, file.eot_id = 4, file.eom_id = 5;
  CHECK(io::end_of_generation_tokens(file, types) == ids{1, 2, 3, 4, 5});
  file.end_ids = {0, 3, -1, 6};
  CHECK(io::end_of_generation_tokens(file, types) == ids{0, 1, 2, 3, 4, 5});
}

TEST_CASE("end_of_generation: the union of tokenizer, config.json and generation_config.json") {
  const temporary_folder folder;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(shared("conformance/mistral-tiny/hf") / name, folder / name);
  const auto read = [&](const std::string& config, const std::string& generation) {
    write_text(folder / "config.json", config);
    write_text(folder / "generation_config.json", generation);
    return io::tokenizer(io::vocabulary_from_hf_directory(folder.path()));
  };
  CHECK(read("{}", "{}").end_of_generation_ids() == ids{2});
  CHECK(read(R"({"eos_token_id": 5})", R"({"eos_token_id": [2, 7]})").end_of_generation_ids() == ids{2, 5, 7});
  CHECK(read(R"({"text_config": {"eos_token_id": [9, 5]}})", R"({"eos_token_id": null})").end_of_generation_ids() ==
        ids{2, 5, 9});
  const auto odd = read(R"({"eos_token_id": -1})", R"({"eos_token_id": [100000]})");
  CHECK(odd.end_of_generation_ids() == ids{2});
  REQUIRE(odd.warnings().size() == 2);
  CHECK(odd.warnings()[1] == "eos_token_id 100000 is not a token and is ignored");
}
