// SPDX-License-Identifier: MIT
// tests/runtime/walked_model.test.cpp compares the logits of a folded folder with those of the walk.
#include "intaglio/io/fold_hf.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "files.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_index_build.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::argument_error;
using intaglio::dtype;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

constexpr std::size_t width = 8, features = 12;

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>((i * 7 + seed * 5) % 31) * .125f - 2;
  return out;
}

/// A Llama of two layers as a folder, f32, or bf16 in the FFNs.
void write_model(const std::filesystem::path& folder, dtype matrices) {
  std::filesystem::create_directory(folder);
  write_text(folder / "config.json",
             R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 8, "intermediate_size": 12, )"
             R"("num_hidden_layers": 2, "num_attention_heads": 2,
"num_key_value_heads": 1, "max_position_embeddings": 64, "vocab_size": 16, "rope_theta": 10000.0, )"
             R"("rms_norm_eps": 1e-05, "tie_word_embeddings": true, "note": "kept"})");
  write_text(folder / "generation_config.json", "{}");
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> tensors{{"model.embed_tokens.weight", {16, 8}},
                                                                          {"model.norm.weight", {8}}};
  for (const std::string layer : {"0", "1"})
    for (const auto& [name, shape] :
         std::vector<std::pair<std::string, std::vector<std::uint64_t>>>{{"input_layernorm", {8}},
                                                                         {"post_attention_layernorm", {8}},
                                                                         {"self_attn.q_proj", {8, 8}},
                                                                         {"self_attn.k_proj", {4, 8}},
                                                                         {"self_attn.v_proj", {4, 8}},
                                                                         {"self_attn.o_proj", {8, 8}},
                                                                         {"mlp.gate_proj", {12, 8}},
                                                                         {"mlp.up_proj", {12, 8}},
                                                                         {"mlp.down_proj", {8, 12}}})
      tensors.emplace_back("model.layers." + layer + "." + name + ".weight", shape);
  safetensors_writer out(folder / "model.safetensors");
  const auto type = [&](const std::string& name) {
    return name.find(".mlp.") == std::string::npos ? dtype::f32 : matrices;
  };
  for (const auto& [name, shape] : tensors) out.add_tensor(name, type(name), shape);
  out.begin();
  unsigned seed = 0;
  for (const auto& [name, shape] : tensors) {
    const auto values = numbers(shape.size() == 1 ? shape[0] : shape[0] * shape[1], ++seed);
    bytes row(values.size() * intaglio::info(type(name)).block_bytes);
    encode_row(type(name), values, row);
    out.write(row);
  }
  out.finish();
}

}  // namespace

TEST_CASE("fold_hf: changed layers are the walk's vectors in f32, the rest is as it was", "[feature_index]") {
  for (const dtype matrices : {dtype::f32, dtype::bf16}) {
    const temporary_folder folder;
    write_model(folder / "model", matrices);
    build_feature_index(folder / "model", folder / "index");
    const feature_index index = feature_index::open(folder / "index");
    feature_patch patch(index, folder / "index/patch.journal", true);
    const auto change = [](feature_edit edit, std::uint32_t layer, std::uint32_t feature, unsigned seed) {
      return feature_change{
          edit, layer, feature, {numbers(width, seed), numbers(width, seed + 1), numbers(width, seed + 2)}};
    };
    patch.apply(change(feature_edit::update, 1, 4, 50));
    fold_hf(folder / "model", patch, folder / "same");
    CHECK((read_bytes(folder / "same/config.json") == read_bytes(folder / "model/config.json")));
    if (matrices == dtype::f32) patch.apply(change(feature_edit::insert, 1, features, 60));
    patch.apply({feature_edit::remove, 1, 0, {}});
    const std::size_t grown = matrices == dtype::f32 ? 16 : 12;
    const fold_report report = fold_hf(folder / "model", patch, folder / "folded");
    CHECK(report.layers == std::vector<std::uint32_t>{1});
    CHECK(report.intermediate_size == grown);
    CHECK(
        (read_bytes(folder / "folded/generation_config.json") == read_bytes(folder / "model/generation_config.json")));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 4);  // no leftovers

    const checkpoint before = checkpoint::open(folder / "model"), after = checkpoint::open(folder / "folded");
    CHECK(after.config().intermediate_size == grown);
    CHECK(after.at("blk.0.ffn_up.weight").stored.type == matrices);
    CHECK(after.at("blk.1.ffn_up.weight").stored.type == dtype::f32);
    for (const std::string name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight",
                                   "blk.1.attn_k.weight", "blk.1.ffn_norm.weight"}) {
      const auto& tensor = before.at(name);
      std::vector<float> wanted(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns)),
          found(wanted.size());
      before.read_f32(tensor, 0, tensor.stored.rows, wanted);
      after.read_f32(after.at(name), 0, tensor.stored.rows, found);
      CHECK(found == wanted);
    }
    build_feature_index(folder / "folded", folder / "again");
    const feature_index again = feature_index::open(folder / "again");
    for (std::uint32_t layer = 0; layer < 2; ++layer)
      for (const feature_vector which : feature_vectors) {
        std::vector<float> wanted(grown * width), found(wanted.size());
        patch.read_f32(layer, which, 0, patch.features(layer), std::span(wanted).first(patch.features(layer) * width));
        again.read_f32(layer, which, 0, grown, found);
        INFO("layer " << layer << " " << name(which));
        CHECK(found == wanted);
      }
  }
}

TEST_CASE("fold_hf: what cannot be folded is refused, and nothing is left", "[feature_index]") {
  const temporary_folder folder;
  write_model(folder / "model", dtype::f32);
  build_feature_index(folder / "model", folder / "index");
  const feature_index index = feature_index::open(folder / "index");
  const feature_patch patch(index, folder / "index/patch.journal", false);
  std::filesystem::create_directory(folder / "there");
  CHECK_THROWS_MATCHES(fold_hf(folder / "model", patch, folder / "there"), file_error,
                       MessageMatches(ContainsSubstring("expected a name that is not in use")));
  CHECK_THROWS_MATCHES(fold_hf(folder / "model", patch, folder / "no/folder"), file_error,
                       MessageMatches(ContainsSubstring("cannot make the folder")));
  bytes weights = read_bytes(folder / "model/model.safetensors");
  weights.resize(weights.size() - 4);
  write_bytes(folder / "model/model.safetensors", weights);
  CHECK_THROWS_AS(fold_hf(folder / "model", patch, folder / "folded"), file_error);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 3);
}
