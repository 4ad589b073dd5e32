// SPDX-License-Identifier: MIT
#include "intaglio/families/file_types.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>

#include "conformance.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/pack.hpp"
#include "intaglio/runtime/packed_weights.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

families::weight_types types_in(const char* model, const char* path) {
  const auto file = io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / path);
  return families::types_of(file).types;
}

dtype type_of(const families::weight_types& of, std::uint32_t layer, std::string_view name) {
  const std::uint8_t set = of.sets.empty() ? std::uint8_t{0} : of.sets.at(layer);
  for (const families::matrix_type& each : of.matrices)
    if (each.set == set && each.name == name) return each.type;
  return of.layers;
}

}  // namespace

TEST_CASE("a file's types are those of its tensors, layer by layer", "[families]") {
  const auto file =
      io::checkpoint::open(conformance("qwen3-tiny", "conformance2", "confgen2.py") / "gguf/qwen3-tiny-q4_k_m.gguf");
  const families::file_types found = families::types_of(file);
  CHECK_FALSE(found.recoded);
  std::size_t layers = 0;
  bool several = false;
  for (const auto& each : file.tensors()) {
    if (each.role != io::tensor_role::matrix || !each.stored.name.starts_with("blk.")) continue;
    ++layers;
    const auto layer = static_cast<std::uint32_t>(each.stored.name[4] - '0');
    CHECK(type_of(found.types, layer, std::string_view(each.stored.name).substr(6)) == each.stored.type);
    several = several || each.stored.type != found.types.layers;
  }
  CHECK(layers == 3 * 7);
  CHECK(several);
  CHECK(found.types.embedding == file.at("token_embd.weight").stored.type);
  CHECK(found.types.head == found.types.embedding);
}

TEST_CASE("a file of one type has no list of matrices", "[families]") {
  const families::weight_types types = types_in("qwen3-tiny", "gguf/qwen3-tiny-bf16.gguf");
  CHECK(types == families::weight_types{dtype::bf16, dtype::bf16, dtype::bf16});
}

TEST_CASE("the words of a packed file's weights say each tensor's type and layers", "[families]") {
  io::packed_image image;
  image.weights = {
      {.layout = "token_embd.weight 512: row_groups plain q6_k [512, 256]"},
      {.layout = "blk.*.attn_norm.weight 1: vector_f32 plain [1, 256]"},
      {.layout = "blk.0-1,3.attn_q.weight 256 + blk.0-1,3.attn_k.weight 64: row_groups plain q4_k [320, 256]"},
      {.layout = "blk.2.attn_q.weight 256: row_groups plain q6_k [256, 256]"},
      {.layout = "rope_turns 64 theta 500000"}};
  const auto found = families::packed_tensors(image);
  REQUIRE(found.size() == 4);
  CHECK((found[0].layers.empty() && found[0].name == "token_embd.weight" && found[0].type == dtype::q6_k));
  CHECK((found[1].layers == "0-1,3" && found[1].name == "attn_q.weight" && found[1].type == dtype::q4_k));
  CHECK((found[2].layers == "0-1,3" && found[2].name == "attn_k.weight" && found[2].type == dtype::q4_k));
  CHECK((found[3].layers == "2" && found[3].name == "attn_q.weight" && found[3].type == dtype::q6_k));
  CHECK((families::lists_layer("*", 7) && families::lists_layer("0-1,3", 1) && families::lists_layer("0-1,3", 3) &&
         !families::lists_layer("0-1,3", 2) && !families::lists_layer("2", 20)));
}

TEST_CASE("a packed file is planned in the types that it was packed in, each in its layers", "[families][packed]") {
  const temporary_folder folder;
  const auto file =
      io::checkpoint::open(conformance("qwen3-tiny", "conformance2", "confgen2.py") / "gguf/qwen3-tiny-bf16.gguf");
  families::weight_types types{dtype::bf16, dtype::bf16, dtype::bf16};
  for (std::uint8_t set = 0; set < 2; ++set)
    for (const auto name : {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight", "ffn_gate.weight",
                            "ffn_up.weight", "ffn_down.weight"})
      types.matrices.push_back(
          {name, set == 1 || name == std::string_view("ffn_down.weight") ? dtype::q8_0 : dtype::bf16, set});
  types.sets = {0, 1, 0};
  const auto planned = [&](const families::weight_types& in, const plan::profile& target) {
    return families::planned_of(file.config(), in, "x", target, 64);
  };
  const plan::planned cpu = planned(types, plan::profiles::cpu), portable = planned(types, plan::profiles::portable);
  const std::array<const plan::table*, 2> tables{&cpu.table(), &portable.table()};
  pack(file, tables, folder / "packed");
  const auto packed = io::checkpoint::open(folder / "packed");
  const families::weight_types found = families::types_of(packed).types;
  CHECK(found.sets == types.sets);
  CHECK(planned(found, plan::profiles::cpu).table().hash == cpu.table().hash);
  CHECK(planned(found, plan::profiles::portable).table().hash == portable.table().hash);
  // Every copy is where the layer that has it finds it.
  for (const plan::table* each : tables) {
    runtime::weight_image image(file, *each);
    const runtime::packed_weights copies(*packed.packed(), *each);
    for (std::uint32_t slot = 0; slot < each->weights.size(); ++slot)
      for (std::uint32_t layer = 0; layer < (each->weights[slot].per_layer ? 3u : 1u); ++layer) {
        if (!each->has(each->weights[slot], layer)) continue;
        std::vector<std::byte> expected(static_cast<std::size_t>(each->weights[slot].bytes)), bytes = expected;
        image.fill(slot, layer, 0, expected);
        copies.fill(slot, layer, 0, bytes);
        CHECK(bytes == expected);
      }
  }
}
