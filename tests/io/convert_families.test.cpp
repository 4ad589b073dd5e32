// SPDX-License-Identifier: MIT
// A folder of each family, converted, against the GGUF that llama.cpp's converter made of it (shared/conformance2).
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fstream>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/check.hpp"
#include "intaglio/io/convert.hpp"

using intaglio::dtype;
using namespace intaglio::io;

TEST_CASE("convert: a family's folder becomes the tensors of llama.cpp's converter", "[unsanitized][convert]") {
  const std::string model = GENERATE("qwen3-tiny", "qwen3u-tiny", "qwen3moe-tiny", "qwen2-tiny", "smollm3-tiny",
                                     "granite-tiny", "phi3-tiny", "olmo2-tiny", "lfm2-tiny", "gemma2-tiny",
                                     "gemma4-tiny", "gemma4d-tiny", "qwen35-tiny", "qwen3next-tiny", "gptoss-tiny");
  INFO(model);
  const std::filesystem::path from = conformance(model, "conformance2", "confgen2.py");
  const temporary_folder folder;
  const auto out = folder / "out.gguf";
  convert_options options;
  options.codec = dtype::f32;
  // gpt-oss has a folder whose YaRN is GGUF's, and a file whose experts are decoded.
  const bool coded = model == "gptoss-tiny";
  const std::filesystem::path folder_of = from / (coded ? "hf-trunc" : "hf");
  convert(folder_of, out, options);
  CHECK(check(out).ok());

  const gguf mine = gguf::open(out),
             theirs = gguf::open(from / ("gguf/" + model + (coded ? "-deq-f32.gguf" : "-f32.gguf")));
  CHECK(mine.tensors().size() == theirs.tensors().size());
  for (const gguf_tensor& tensor : theirs.tensors()) {
    INFO(tensor.name);
    const gguf_tensor* const found = mine.find_tensor(tensor.name);
    REQUIRE(found != nullptr);
    CHECK((found->shape == tensor.shape && found->dimensions == tensor.dimensions));
    REQUIRE((found->type == tensor.type && found->bytes == tensor.bytes));
    bytes a(static_cast<std::size_t>(tensor.bytes)), b(a.size());
    mine.first().file().read(found->offset, a);
    theirs.first().file().read(tensor.offset, b);
    CHECK((a == b));
  }
  const auto again = checkpoint::open(out), published = checkpoint::open(folder_of);
  intaglio::decoder_config expected = published.config();
  expected.delta_net.in_turn = model == "qwen35-tiny";  // how its value heads are
  for (const std::string& line : again.differences(expected)) CHECK(line == "none");
  CHECK(again.warnings().empty());
}

TEST_CASE("a Granite whose gate and up are one matrix is the one that has them apart", "[unsanitized]") {
  const std::filesystem::path from = conformance("granite-tiny", "conformance2", "confgen2.py") / "hf";
  const auto apart = checkpoint::open(from);
  const temporary_folder folder;
  std::ofstream(folder / "config.json")
      << R"({"model_type":"granitemoehybrid","hidden_size":256,"intermediate_size":768,"num_local_experts":0,)"
      << R"("shared_intermediate_size":768,)"
      << R"("num_hidden_layers":3,"num_attention_heads":8,"num_key_value_heads":2,"vocab_size":1024,)"
      << R"("max_position_embeddings":1024,"rms_norm_eps":1e-5,"embedding_multiplier":6,"attention_multiplier":0.05,)"
      << R"("residual_multiplier":0.4,"logits_scaling":2,"tie_word_embeddings":true,"position_embedding_type":"rope",)"
      << R"("layer_types":["attention","attention","attention"],"rope_theta":10000})";
  safetensors_writer out(folder / "model.safetensors");
  std::vector<const checkpoint_tensor*> order;
  for (const auto& tensor : apart.tensors()) {
    std::string name = hf_name(tensor.stored.name, apart.config().model_type);
    std::vector<std::uint64_t> shape{tensor.stored.rows, tensor.stored.columns};
    if (tensor.dimensions == 1) shape.erase(shape.begin());
    order.push_back(&tensor);
    if (name.find("up_proj") != name.npos) continue;  // its rows are after those of gate_proj
    if (const auto at = name.find("mlp.gate_proj"); at != name.npos)
      name.replace(at, 13, "shared_mlp.input_linear"), shape[0] *= 2;
    if (const auto at = name.find("mlp.down_proj"); at != name.npos) name.replace(at, 13, "shared_mlp.output_linear");
    out.add_tensor(name, dtype::f32, shape);
  }
  out.begin();
  for (const checkpoint_tensor* tensor : order) {
    std::vector<float> values(static_cast<std::size_t>(tensor->stored.rows * tensor->stored.columns));
    apart.read_f32(*tensor, 0, tensor->stored.rows, values);
    out.write(std::as_bytes(std::span(values)));
  }
  out.finish();
  const auto fused = checkpoint::open(folder.path());
  for (const std::string& line : fused.differences(apart.config())) CHECK(line == "none");
  for (const auto& tensor : apart.tensors()) {
    INFO(tensor.stored.name);
    const auto size = static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns);
    std::vector<float> a(size), b(size);
    apart.read_f32(tensor, 0, tensor.stored.rows, a);
    fused.read_f32(fused.at(tensor.stored.name), 0, tensor.stored.rows, b);
    CHECK((a == b));
  }
}

TEST_CASE("convert: a Llama with ternary layers keeps codes and scales", "[unsanitized][convert]") {
  const std::filesystem::path from = conformance("llamabit-tiny", "conformance2", "confgen2.py");
  const temporary_folder folder;
  const auto published = checkpoint::open(from / "gguf/llamabit-tiny-i2_s.gguf");
  CHECK((published.config().ternary && published.config().activation_type == dtype::i8));
  for (const dtype codec : {dtype::tq2_0, dtype::bf16})
    for (const char* in : {"hf-packed", "gguf/llamabit-tiny-tq1_0.gguf"}) {
      INFO(in);
      convert_options options;
      options.codec = codec;
      convert(from / in, folder / "other.gguf", options);
      CHECK(checkpoint::open(folder / "other.gguf").config() == checkpoint::open(from / in).config());
    }
  for (const char* in : {"hf-packed", "hf-bitlinear", "gguf/llamabit-tiny-i2_s.gguf"}) {
    INFO(in);
    convert_options options;
    options.codec = dtype::i2_s;
    convert(from / in, folder / "out.gguf", options);
    const auto made = checkpoint::open(folder / "out.gguf");
    CHECK(check(folder / "out.gguf").ok());
    CHECK((made.config().ternary && made.config().activation_type == dtype::i8));
    for (const auto& tensor : published.tensors()) {
      if (tensor.role != tensor_role::matrix) continue;
      INFO(tensor.stored.name);
      const auto size = static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns);
      std::vector<std::int8_t> a(size), b(size);
      const auto theirs = published.ternary(tensor), mine = made.ternary(made.at(tensor.stored.name));
      theirs.rows(0, tensor.stored.rows, a);
      mine.rows(0, tensor.stored.rows, b);
      CHECK((a == b));
      CHECK(std::abs(theirs.scale() - mine.scale()) <= 1e-6f * theirs.scale());
    }
  }
}
