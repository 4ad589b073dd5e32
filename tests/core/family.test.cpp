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
static_assert(family_named("qwen3")->head_norms && !family_named("qwen3")->norms_behind);
static_assert(family_named("mix") == nullptr && family_named("") == nullptr &&
              family_named("llama mistral") == nullptr);
}  // namespace

TEST_CASE("families are named in one line", "[core][family]") {
  CHECK(family_names().view() == "bitnet, llama, mistral, mixtral, gemma3, gemma3_text, qwen3");
  for (std::size_t i = 0; i < families_table.size(); ++i)
    CHECK(name(static_cast<architecture>(i)) ==
          family_names().view().substr(family_names().view().find(name(static_cast<architecture>(i))),
                                       name(static_cast<architecture>(i)).size()));
}
