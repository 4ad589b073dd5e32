// SPDX-License-Identifier: MIT
#include "intaglio/io/pretokenizer_names.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

using namespace intaglio::io;

static_assert(find_pretokenizer("gpt-4o")->kind == pretokenizer::gpt4o && find_pretokenizer("gpt4o") == nullptr);
static_assert(find_pretokenizer("tekken")->ignore_merges && find_pretokenizer("tekken")->adds_bos);
static_assert(!find_pretokenizer("qwen2")->ignore_merges && !find_pretokenizer("qwen2")->adds_bos);
static_assert(name_of(pretokenizer::llama_bpe, true).name == "llama-bpe");
static_assert(name_of(pretokenizer::llama_bpe, false).name == "smaug-bpe");
static_assert(name_of(pretokenizer::qwen2, true).name == "qwen2");

TEST_CASE("pretokenizer_names: each name once, a name for each kind, expressions once") {
  std::set<std::string_view> names;
  for (const auto& row : pretokenizer_names) CHECK(names.insert(row.name).second);
  for (std::size_t kind = 0; kind < pretokenizer_stages.size(); ++kind)
    CHECK(name_of(static_cast<pretokenizer>(kind)).kind == static_cast<pretokenizer>(kind));
  std::set<std::vector<std::string>> expressions;
  for (const auto& each : hf::known_splits()) CHECK(expressions.insert(each.steps).second);
}
