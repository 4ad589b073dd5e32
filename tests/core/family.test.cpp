// SPDX-License-Identifier: MIT
#include "intaglio/core/family.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
constexpr bool rows_stand_in_order() {
  for (std::size_t i = 0; i < families_table.size(); ++i)
    if (families_table[i].type != static_cast<architecture>(i)) return false;
  return families_table.size() == static_cast<std::size_t>(last_architecture) + 1;
}
static_assert(rows_stand_in_order());
static_assert(family_named("mixtral")->type == architecture::llama);
static_assert(family_named("gemma3_text")->type == architecture::gemma3);
static_assert(family_named("qwen3")->head_norms && !family_named("qwen3")->norms_after);
static_assert(family_named("qwen2")->qkv_biases && !family_named("qwen2")->head_norms);
static_assert(family_named("qwen3_vl_text")->type == architecture::qwen3);
static_assert(family_with(&family::gguf_names, "qwen3vl")->type == architecture::qwen3);
static_assert(family_with(&family::gguf_names, "qwen3vlmoe")->type == architecture::qwen3moe);
static_assert(family_with(&family::gguf_names, "qwen2vl")->type == architecture::qwen2);
static_assert(family_named("mix") == nullptr && family_named("") == nullptr &&
              family_named("llama mistral") == nullptr);
}  // namespace

TEST_CASE("families are named in one line", "[core][family]") {
  CHECK(family_names().view().starts_with(
      "bitnet, llama, mistral, mixtral, internlm3, gemma3, qwen3, qwen3_vl, qwen3_moe"));
  CHECK(family_names().view().ends_with(" and others (docs/models.md)"));
  CHECK(family_names(&family::gguf_names).view().starts_with("bitnet, bitnet-b1.58, bitnet-25, llama, gemma3, qwen3"));
  CHECK(family_names().view().size() <= 180);  // of an error's 360 bytes
  for (const family& each : families_table) CHECK(family_with(&family::gguf_names, name(each.type)) == &each);
}
