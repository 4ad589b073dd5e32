// SPDX-License-Identifier: MIT
#include "intaglio/io/bare_names.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;
using namespace intaglio::io;

TEST_CASE("a norm that GGUF names without an ending has one in the model") {
  const family &bare = family_of(architecture::falcon_h1), &other = family_of(architecture::llama);
  CHECK(name_with_ending(bare, "blk.12.ffn_norm") == "blk.12.ffn_norm.weight");
  CHECK(name_with_ending(bare, "blk.12.ffn_norm.weight") == "blk.12.ffn_norm.weight");
  CHECK(name_with_ending(other, "blk.12.ffn_norm") == "blk.12.ffn_norm");
  CHECK(name_in_gguf(bare, "blk.12.ffn_norm.weight") == "blk.12.ffn_norm");
  CHECK(name_in_gguf(bare, "blk.12.ffn_up.weight") == "blk.12.ffn_up.weight");
  CHECK(name_in_gguf(bare, "blk.12.ssm_a") == "blk.12.ssm_a");
  CHECK(name_in_gguf(other, "blk.12.ffn_norm.weight") == "blk.12.ffn_norm.weight");
}
