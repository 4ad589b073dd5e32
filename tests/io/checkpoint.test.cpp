// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "../conformance.hpp"
#include "../temporary_folder.hpp"

using intaglio::activation;
using intaglio::architecture;
using intaglio::dtype;
using namespace intaglio::io;

namespace {

struct matrix {
  float scale;
  std::vector<std::int8_t> codes;
};
matrix read(const checkpoint& model, const std::string& name) {
  const auto& tensor = model.at(name);
  const auto source = model.ternary(tensor);
  matrix out{source.scale(),
             std::vector<std::int8_t>(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns))};
  source.rows(0, tensor.stored.rows, out.codes);
  return out;
}

/// Scales may differ by one unit in the last place: some forms went through a reciprocal.
void compare_all(const std::vector<std::filesystem::path>& forms, bool same_bits) {
  const auto first = checkpoint::open(forms[0]);
  std::size_t compared = 0;
  for (std::size_t i = 1; i < forms.size(); ++i) {
    INFO(forms[i]);
    const auto other = checkpoint::open(forms[i]);
    CHECK(other.config().num_hidden_layers == first.config().num_hidden_layers);
    for (const auto& tensor : first.tensors()) {
      INFO(tensor.stored.name);
      if (tensor.role == tensor_role::matrix) {
        const matrix a = read(first, tensor.stored.name), b = read(other, tensor.stored.name);
        REQUIRE((a.codes == b.codes));
        if (same_bits) CHECK(a.scale == b.scale);
        else CHECK((a.scale == b.scale || std::nextafter(a.scale, b.scale) == b.scale));
        ++compared;
      } else if (tensor.role == tensor_role::norm) {
        std::vector<float> a(static_cast<std::size_t>(tensor.stored.columns)), b(a.size());
        first.read_f32(tensor, 0, 1, a);
        other.read_f32(other.at(tensor.stored.name), 0, 1, b);
        CHECK((a == b));
      } else if (other.at(tensor.stored.name).stored.type != dtype::q6_k) {
        std::vector<float> a(static_cast<std::size_t>(tensor.stored.columns) * 7), b(a.size());
        first.read_f32(tensor, 100, 7, a);
        other.read_f32(other.at(tensor.stored.name), 100, 7, b);
        CHECK((a == b));
      }
    }
  }
  CHECK(compared == (forms.size() - 1) * 7 * first.config().num_hidden_layers);
}

}  // namespace

TEST_CASE("checkpoint: all forms of bitnet-tiny hold the same codes, scales and values", "[checkpoint]") {
  const auto folder = conformance("bitnet-tiny");
  std::vector<std::filesystem::path> forms{folder / "hf-bf16", folder / "hf-packed", folder / "hf-bitlinear"};
  for (const char* name : {"f32", "f16", "tq1_0", "tq2_0", "b158-f16", "b158-tq1_0", "b158-tq2_0", "b158-i2_s"})
    forms.push_back(folder / "gguf" / ("bitnet-tiny-" + std::string(name) + ".gguf"));
  compare_all(forms, false);
}

TEST_CASE("checkpoint: all forms of fable hold the same codes and scales, bit for bit", "[checkpoint]") {
  compare_all({shared("models/fable-bitnet-i2_s.gguf"), shared("models/fable-bitnet-tq2_0.gguf"),
               shared("models/fable-bitnet"), shared("models/fable-bitnet-packed")},
              true);
}

TEST_CASE("checkpoint: a folder with one GGUF file is opened as that file", "[checkpoint]") {
  const temporary_folder folder;
  std::filesystem::create_symlink(shared("models/fable-bitnet-tq2_0.gguf"), folder / "tales.gguf");
  CHECK(checkpoint::open(folder.path()).tensors().size() == 90);
  CHECK(std::filesystem::path(checkpoint::open(folder.path()).path()) == folder / "tales.gguf");
}

TEST_CASE("checkpoint: the config comes out of both forms alike", "[checkpoint]") {
  const intaglio::decoder_config fable{.hidden_size = 256,
                                       .intermediate_size = 1024,
                                       .num_hidden_layers = 8,
                                       .num_attention_heads = 4,
                                       .num_key_value_heads = 2,
                                       .head_dim = 64,
                                       .vocab_size = 4096,
                                       .max_position_embeddings = 512,
                                       .rope_theta = 500'000.f,
                                       .rms_norm_eps = 1e-5f};
  for (const char* name : {"models/fable-bitnet-i2_s.gguf", "models/fable-bitnet-tq2_0.gguf", "models/fable-bitnet",
                           "models/fable-bitnet-packed"}) {
    INFO(name);
    const auto model = checkpoint::open(shared(name));
    CHECK(model.config() == fable);
    CHECK(model.differences(fable).empty());
    CHECK(model.warnings().empty());
    REQUIRE(model.vocabulary());
    CHECK(model.vocabulary()->tokens.size() == 4096);
    CHECK(model.tensors().size() == 90);
  }
  auto other = fable;
  other.num_hidden_layers = 30;
  other.rope_theta = 10'000.f;
  other.hidden_act = activation::silu;
  CHECK(checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")).differences(other) ==
        std::vector<std::string>{"num_hidden_layers: engraved 30, file 8", "rope_theta: engraved 10000, file 500000",
                                 "hidden_act: engraved silu, file relu2"});
}

TEST_CASE("checkpoint: the config comes out of every form of llama, mistral and gemma3 alike", "[checkpoint]") {
  using namespace intaglio;
  const decoder_config llama{.model_type = architecture::llama,
                             .hidden_size = 256,
                             .intermediate_size = 768,
                             .num_hidden_layers = 3,
                             .num_attention_heads = 8,
                             .num_key_value_heads = 2,
                             .head_dim = 32,
                             .vocab_size = 1024,
                             .max_position_embeddings = 1024,
                             .rope_theta = 500'000.f,
                             .rms_norm_eps = 1e-5f,
                             .hidden_act = activation::silu,
                             .tie_word_embeddings = false};
  auto scaled = llama, mistral = llama;
  scaled.rope_scaling = {.type = rope_type::llama3, .factor = 8.f, .original_max_position_embeddings = 64};
  mistral.num_key_value_heads = 4, mistral.vocab_size = 1000, mistral.rope_theta = 10'000.f;
  auto windowed = mistral;
  windowed.sliding_window = 48;
  const decoder_config gemma{.model_type = architecture::gemma3,
                             .hidden_size = 256,
                             .intermediate_size = 512,
                             .num_hidden_layers = 7,
                             .num_attention_heads = 4,
                             .num_key_value_heads = 1,
                             .head_dim = 64,
                             .vocab_size = 1024,
                             .max_position_embeddings = 1024,
                             .rope_theta = 1e6f,
                             .rope_scaling = {.type = rope_type::linear, .factor = 8.f},
                             .rms_norm_eps = 1e-6f,
                             .hidden_act = activation::gelu_tanh,
                             .sliding_window = 32,
                             .sliding_window_pattern = 6,
                             .rope_local_base_freq = 10'000.f};
  auto otherwise = gemma;
  otherwise.query_pre_attn_scalar = 96;
  const auto all = [](const char* folder, std::initializer_list<const char*> forms, const decoder_config& expected) {
    for (const char* form : forms) {
      INFO(folder << "/" << form);
      const auto model = checkpoint::open(conformance(folder) / form);
      CHECK(model.differences(expected).empty());
      CHECK(model.config() == expected);
    }
  };
  all("llama-tiny", {"hf", "hf-sharded", "hf-v5", "gguf/llama-tiny-f32.gguf", "gguf/llama-tiny-q4_k_m.gguf"}, llama);
  all("llama-tiny", {"hf-rope31", "gguf/llama-tiny-rope31-f16.gguf"}, scaled);
  all("mistral-tiny",
      {"hf", "hf-v5", "hf-bin", "hf-bin/pytorch_model-00002-of-00002.bin", "gguf/mistral-tiny-f32.gguf",
       "gguf/mistral-tiny-q4_k_m.gguf"},
      mistral);
  all("mistral-tiny", {"hf-swa"}, windowed);
  mistral.max_position_embeddings = windowed.max_position_embeddings = 32'768;  // params.json does not say it
  all("mistral-tiny", {"orig", "orig/consolidated.00.pth"}, mistral);
  all("mistral-tiny", {"orig-swa"}, windowed);
  all("gemma3-tiny", {"hf", "hf-v5", "hf-mm", "gguf/gemma3-tiny-f32.gguf", "gguf/gemma3-tiny-q6_k.gguf"}, gemma);
  all("gemma3-tiny", {"hf-qpas"}, otherwise);
}

TEST_CASE("checkpoint: llama and gemma3 files are recognised with their tensors", "[checkpoint]") {
  const auto llama = conformance("llama-tiny");
  for (const char* name : {"hf", "hf-sharded", "hf-v5", "hf-rope31", "gguf/llama-tiny-f32.gguf",
                           "gguf/llama-tiny-q4_k_m.gguf", "gguf/llama-tiny-rope31-f16.gguf"}) {
    INFO(name);
    const auto model = checkpoint::open(llama / name);
    CHECK(model.config().model_type == architecture::llama);
    CHECK(model.config().num_key_value_heads == 2);
    CHECK(model.config().rope_theta == 500'000.f);
    CHECK_FALSE(model.config().tie_word_embeddings);
    CHECK(model.find("output.weight") != nullptr);
  }
  const auto gemma = conformance("gemma3-tiny");
  const auto reference = checkpoint::open(gemma / "gguf/gemma3-tiny-f32.gguf");
  std::vector<float> a(256), b(256);
  reference.read_f32(reference.at("blk.0.post_ffw_norm.weight"), 0, 1, a);
  for (const char* name : {"hf", "hf-v5", "hf-qpas", "hf-mm", "gguf/gemma3-tiny-q6_k.gguf"}) {
    INFO(name);
    const auto model = checkpoint::open(gemma / name);
    CHECK(model.config().model_type == architecture::gemma3);
    CHECK(model.config().hidden_act == activation::gelu_tanh);
    CHECK(model.config().rope_theta == 1'000'000.f);
    CHECK(model.config().head_dim == 64);
    CHECK(model.config().tie_word_embeddings);
    model.read_f32(model.at("blk.0.post_ffw_norm.weight"), 0, 1, b);
    CHECK((a == b));  // 1 + w from either form
  }
}

TEST_CASE("checkpoint: all unquantised forms of llama, mistral and gemma3 hold the same values, in the same order",
          "[checkpoint]") {
  const auto compare = [](const char* name, std::initializer_list<const char*> forms) {
    const auto folder = conformance(name);
    const auto first = checkpoint::open(folder / *forms.begin());
    for (const char* form : forms) {
      INFO(name << "/" << form);
      const auto other = checkpoint::open(folder / form);
      for (const auto& tensor : first.tensors()) {
        INFO(tensor.stored.name);
        std::vector<float> a(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns)), b(a.size());
        first.read_f32(tensor, 0, tensor.stored.rows, a);
        other.read_f32(other.at(tensor.stored.name), 0, tensor.stored.rows, b);
        REQUIRE((a == b));
      }
    }
  };
  compare("llama-tiny",
          {"hf", "hf-sharded", "hf-v5", "hf-rope31", "gguf/llama-tiny-f32.gguf", "gguf/llama-tiny-bf16.gguf"});
  compare("mistral-tiny", {"hf", "hf-swa", "hf-v5", "hf-bin", "orig", "orig-swa", "gguf/mistral-tiny-f16.gguf"});
  compare("gemma3-tiny", {"hf", "hf-v5", "hf-qpas", "hf-mm", "gguf/gemma3-tiny-f32.gguf", "gguf/gemma3-tiny-f16.gguf"});
}
