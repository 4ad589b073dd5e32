// SPDX-License-Identifier: MIT
// Mixtures of experts in files: one tensor for all experts of a kind (GGUF) or one an expert (Hugging Face).
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#include <fstream>

#include "conformance.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/convert.hpp"
#include "io/vocabularies.hpp"
#include "mixtral_model.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

const testing::mixtral_model& model() {
  static const testing::mixtral_model made(testing::mixtral_tiny, 3);
  return made;
}
std::vector<float> values_of(const io::checkpoint& file, std::string_view name) {
  const auto& tensor = file.at(name);
  std::vector<float> out(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns));
  file.read_f32(tensor, 0, tensor.stored.rows, out);
  return out;
}
std::string refusal(const std::filesystem::path& folder, const std::string& from, const std::string& to) {
  const auto path = folder / "model.safetensors";
  std::string bytes = file_text(path);
  const std::string before = bytes;
  const auto at = bytes.find(from);
  REQUIRE(at != bytes.npos);
  bytes.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << bytes;
  std::string out = "accepted";
  try {
    io::checkpoint::open(folder);
  } catch (const error& problem) {
    out = problem.what();
    for (const std::string& line : problem.details()) out += "\n" + line;
  }
  std::ofstream(path, std::ios::binary) << before;
  return out;
}

}  // namespace

TEST_CASE("experts: both forms of a file hold the same model") {
  const temporary_folder folder;
  model().write_gguf(folder / "tiny.gguf", small_sentencepiece());
  model().write_hf(folder.path());
  const auto merged = io::checkpoint::open(folder / "tiny.gguf"), apart = io::checkpoint::open(folder.path());
  CHECK(merged.config() == testing::mixtral_tiny);
  CHECK(apart.config() == testing::mixtral_tiny);
  REQUIRE(merged.tensors().size() == apart.tensors().size());
  for (const auto& tensor : merged.tensors()) {
    INFO(tensor.stored.name);
    CHECK(values_of(merged, tensor.stored.name) == values_of(apart, tensor.stored.name));
  }
  CHECK(apart.at("blk.1.ffn_down_exps.weight").stored.rows == 6 * 64);
}

TEST_CASE("experts: names") {
  const auto seven = io::expert_of("model.layers.3.block_sparse_moe.experts.7.w1.weight");
  REQUIRE(seven);
  CHECK(seven->gguf == "blk.3.ffn_gate_exps.weight");
  CHECK(seven->number == 7);
  CHECK(io::expert_of("model.layers.0.block_sparse_moe.experts.10.w2.weight")->gguf == "blk.0.ffn_down_exps.weight");
  CHECK(io::expert_of("model.layers.0.block_sparse_moe.experts.0.w3.weight")->gguf == "blk.0.ffn_up_exps.weight");
  for (const char* name :
       {"model.layers.3.block_sparse_moe.experts.07.w1.weight", "model.layers.3.block_sparse_moe.experts.7.w4.weight",
        "model.layers..block_sparse_moe.experts.7.w1.weight", "model.layers.3.block_sparse_moe.experts.7.weight",
        "model.layers.3.block_sparse_moe.experts.7.w1.bias", "layers.3.block_sparse_moe.experts.7.w1.weight",
        "model.layers.3.block_sparse_moe.experts.1234567.w1.weight"})
    CHECK_FALSE(io::expert_of(name));
}

TEST_CASE("experts: what is missing, too many or of another shape is named") {
  const temporary_folder folder;
  model().write_hf(folder.path());
  const std::string name = "block_sparse_moe.experts.4.w1.weight";
  CHECK_THAT(refusal(folder.path(), name, "block_sparse_moe.experts.9.w1.weight"),
             ContainsSubstring("not part of the model: model.layers.0.block_sparse_moe.experts.9.w1.weight") &&
                 ContainsSubstring("experts of blk.0.ffn_gate_exps.weight: expected 6, found 5"));
  CHECK_THAT(refusal(folder.path(), name, "block_sparse_moe.experts.4.w2.weight"),
             ContainsSubstring("'model.layers.0.block_sparse_moe.experts.4.w2.weight' occurs twice"));
  CHECK_THAT(refusal(folder.path(), "\"shape\":[96,64]", "\"shape\":[64,96]"),
             ContainsSubstring("block_sparse_moe.experts.0.w1.weight: expected [96, 64], found [64, 96]"));
  CHECK_THAT(refusal(folder.path(), name, "block_sparse_moe.experts.4.w7.weight"),
             ContainsSubstring("not part of the model: model.layers.0.block_sparse_moe.experts.4.w7.weight"));
}

TEST_CASE("experts: converted to another codec the router stays f32 and experts stay in three dimensions") {
  const temporary_folder folder;
  model().write_gguf(folder / "tiny.gguf", small_sentencepiece());
  io::convert(folder / "tiny.gguf", folder / "q8.gguf", {.codec = dtype::q8_0});
  const auto file = io::checkpoint::open(folder / "q8.gguf");
  CHECK(file.config() == testing::mixtral_tiny);
  CHECK(file.at("blk.0.ffn_gate_inp.weight").stored.type == dtype::f32);
  CHECK(file.at("blk.0.ffn_up_exps.weight").stored.type == dtype::q8_0);
  CHECK(file.at("blk.0.ffn_up_exps.weight").dimensions == 3);
  CHECK_THROWS_WITH(io::convert(folder / "tiny.gguf", folder / "out.safetensors", {.codec = dtype::f16}),
                    ContainsSubstring("a .gguf for a mixture of experts"));
}

// Scales apart from codes, rows of gate and up by turns; transposed matrices of bf16; stacked blocks: one model.
TEST_CASE("experts of a gpt-oss are the same in MXFP4 of a folder, in plain matrices and in GGUF", "[unsanitized]") {
  const std::filesystem::path model = conformance("gptoss-tiny", "conformance2", "confgen2.py");
  const auto split = io::checkpoint::open(model / "hf"), plain = io::checkpoint::open(model / "hf-deq"),
             stacked = io::checkpoint::open(model / "gguf/gptoss-tiny-f32.gguf");
  CHECK((!split.config().rope_scaling.truncate && stacked.config().rope_scaling.truncate));
  for (const char* name : {"blk.0.ffn_gate_exps", "blk.1.ffn_up_exps", "blk.3.ffn_down_exps"}) {
    INFO(name);
    const std::string weight = name + std::string(".weight"), bias = name + std::string(".bias");
    CHECK(values_of(split, weight) == values_of(stacked, weight));
    CHECK(values_of(plain, weight) == values_of(stacked, weight));
    CHECK(values_of(split, bias) == values_of(stacked, bias));
    const auto rows = [&](const io::checkpoint& from) {
      const io::checkpoint_tensor& tensor = from.at(weight);
      REQUIRE(tensor.stored.type == dtype::mxfp4);
      std::vector<std::byte> out(static_cast<std::size_t>(3 * io::row_bytes(dtype::mxfp4, tensor.stored.columns)));
      from.read_rows(tensor, 500, 3, out);
      return out;
    };
    CHECK(rows(split) == rows(stacked));
  }
  const temporary_folder folder;
  std::filesystem::copy(model / "hf/config.json", folder / "config.json");
  std::ifstream in(model / "hf/model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string scales = "layers.2.mlp.experts.down_proj_scales";
  bytes[bytes.find(scales) + scales.size() - 1] = 'x';
  std::ofstream(folder / "model.safetensors", std::ios::binary) << bytes;
  CHECK_THROWS_WITH(io::checkpoint::open(folder.path()),
                    ContainsSubstring("not part of the model: model.layers.2.mlp.experts.down_proj_scalex"));
}
