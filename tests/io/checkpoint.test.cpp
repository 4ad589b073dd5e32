// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "../conformance.hpp"
#include "bad_safetensors_files.hpp"
#include "files.hpp"
#include "gguf_image.hpp"

using Catch::Matchers::ContainsSubstring;
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
  matrix out{source.scale(), std::vector<std::int8_t>(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns))};
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
  for (const char* name : {"f32", "f16", "tq1_0", "tq2_0", "b158-f16", "b158-tq1_0", "b158-tq2_0", "b158-i2_s"}) forms.push_back(folder / "gguf" / ("bitnet-tiny-" + std::string(name) + ".gguf"));
  compare_all(forms, false);
}

TEST_CASE("checkpoint: all forms of fable hold the same codes and scales, bit for bit", "[checkpoint]") {
  compare_all({shared("models/fable-bitnet-i2_s.gguf"), shared("models/fable-bitnet-tq2_0.gguf"), shared("models/fable-bitnet"), shared("models/fable-bitnet-packed")}, true);
}

TEST_CASE("checkpoint: the config comes out of both forms alike", "[checkpoint]") {
  const intaglio::decoder_config fable{.hidden_size = 256, .intermediate_size = 1024, .num_hidden_layers = 8, .num_attention_heads = 4, .num_key_value_heads = 2, .head_dim = 64,
                                       .vocab_size = 4096, .max_position_embeddings = 512, .rope_theta = 500'000.f, .rms_norm_eps = 1e-5f};
  for (const char* name : {"models/fable-bitnet-i2_s.gguf", "models/fable-bitnet-tq2_0.gguf", "models/fable-bitnet", "models/fable-bitnet-packed"}) {
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
        std::vector<std::string>{"num_hidden_layers: engraved 30, file 8", "rope_theta: engraved 10000, file 500000", "hidden_act: engraved silu, file relu2"});
}

TEST_CASE("checkpoint: the architecture string decides activation and its type", "[checkpoint]") {
  const auto folder = conformance("bitnet-tiny");
  const auto old = checkpoint::open(folder / "gguf/bitnet-tiny-f16.gguf"), current = checkpoint::open(folder / "gguf/bitnet-tiny-b158-f16.gguf");
  CHECK(old.stated_architecture() == "bitnet");
  CHECK(old.config().hidden_act == activation::silu);
  CHECK(old.config().activation_type == dtype::f32);
  CHECK(current.stated_architecture() == "bitnet-b1.58");
  CHECK(current.config().hidden_act == activation::relu_squared);
  CHECK(current.config().activation_type == dtype::i8);
  CHECK(checkpoint::open(folder / "hf-packed").config() == current.config());
}

TEST_CASE("checkpoint: a second table is the head, unless it is the embedding again", "[checkpoint]") {
  const temporary_folder made;
  const gguf_image tied = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-f16.gguf");
  const auto with_head = [&](const std::string& architecture, auto&& edit) {
    gguf_image image = tied;
    auto head = image.tensor_at("token_embd.weight");
    head.name = "output.weight";
    edit(head);
    image.tensors.push_back(head);
    for (auto& key : image.keys)
      if (key.name.starts_with("bitnet-b1.58.")) key.name = architecture + key.name.substr(12);
    image.set<std::string>("general.architecture", architecture);
    return checkpoint::open(write_bytes(made / "model.gguf", image.build()));
  };
  const auto same = [](auto&) {};
  const auto other = [](auto& head) { head.data.back() ^= std::byte{1}; };
  const auto in_f32 = [](auto& head) {
    std::vector<float> values(head.data.size() / 2);
    decode_row(dtype::f16, head.data, values);
    const auto view = std::as_bytes(std::span(values));
    head.type = 0;
    head.data.assign(view.begin(), view.end());
  };
  const std::vector<std::string> ignored{"output.weight is ignored: the model's head is its embedding"};
  for (const auto& copied : {with_head("bitnet-b1.58", same), with_head("bitnet", same), with_head("bitnet-25", same), with_head("bitnet-25", other)}) {
    CAPTURE(copied.stated_architecture());
    CHECK(copied.config().tie_word_embeddings);
    CHECK(copied.find("output.weight") == nullptr);
    CHECK(copied.warnings() == ignored);
  }
  for (const auto& untied : {with_head("bitnet-b1.58", other), with_head("bitnet", other), with_head("bitnet-b1.58", in_f32)}) {
    CAPTURE(untied.stated_architecture());
    CHECK_FALSE(untied.config().tie_word_embeddings);
    CHECK(untied.find("output.weight") != nullptr);
    CHECK(untied.warnings().empty());
  }
}

TEST_CASE("checkpoint: a factor beside a ternary matrix multiplies its scale", "[checkpoint]") {
  const temporary_folder made;
  gguf_image image = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-tq2_0.gguf");
  const auto plain = checkpoint::open(write_bytes(made / "plain.gguf", image.build()));
  image.tensors.push_back({"blk.1.ffn_up.scale", {1}, 0, bytes_of(0.25f)});
  const auto scaled = checkpoint::open(write_bytes(made / "scaled.gguf", image.build()));
  CHECK(scaled.tensors().size() == plain.tensors().size());
  for (const char* name : {"blk.1.ffn_up.weight", "blk.0.ffn_up.weight", "blk.1.ffn_gate.weight"}) {
    CAPTURE(name);
    const float factor = std::string_view(name) == "blk.1.ffn_up.weight" ? 0.25f : 1.f;
    CHECK(scaled.ternary(scaled.at(name)).scale() == plain.ternary(plain.at(name)).scale() * factor);
  }
}

TEST_CASE("checkpoint: keys and values of heads have one width", "[checkpoint]") {
  const temporary_folder made;
  gguf_image image = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf");
  image.set("bitnet-b1.58.attention.key_length", std::uint32_t{64});
  CHECK(checkpoint::open(write_bytes(made / "model.gguf", image.build())).config().head_dim == 64);
  image.set("bitnet-b1.58.attention.value_length", std::uint32_t{32});
  CHECK_THROWS_WITH(checkpoint::open(write_bytes(made / "model.gguf", image.build())),
                    ContainsSubstring("attention.value_length") && ContainsSubstring("expected 64 as attention.key_length, found 32"));
}

TEST_CASE("checkpoint: one tensor under two names is refused with both", "[checkpoint]") {
  const temporary_folder made;
  const auto in = conformance("bitnet-tiny") / "hf-packed";
  std::filesystem::copy_file(in / "config.json", made / "config.json");
  auto image = safetensors_image::of(in / "model.safetensors");
  const std::uint64_t at = image.data.size();
  image.header["language_model.model.norm.weight"] = {{"dtype", "F32"}, {"shape", {256}}, {"data_offsets", {at, at + 1024}}};
  image.data.resize(image.data.size() + 1024);
  write_bytes(made / "model.safetensors", image.build());
  CHECK_THROWS_WITH(checkpoint::open(made.path()), ContainsSubstring("'output_norm.weight' is there twice"));
}

TEST_CASE("checkpoint: llama and gemma3 files are recognised with their tensors", "[checkpoint]") {
  const auto llama = conformance("llama-tiny");
  for (const char* name : {"hf", "hf-sharded", "hf-v5", "hf-rope31", "gguf/llama-tiny-f32.gguf", "gguf/llama-tiny-q4_k_m.gguf", "gguf/llama-tiny-rope31-f16.gguf"}) {
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
    CHECK_FALSE(model.warnings().empty());
    model.read_f32(model.at("blk.0.post_ffw_norm.weight"), 0, 1, b);
    CHECK((a == b));  // 1 + w from either form
  }
  const auto mistral = checkpoint::open(conformance("mistral-tiny") / "hf-swa");
  CHECK(mistral.config().rope_theta == 10'000.f);
  CHECK_FALSE(mistral.warnings().empty());
}

TEST_CASE("checkpoint: rows are read by the range that was asked for", "[checkpoint]") {
  const auto model = checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const auto& embedding = model.at("token_embd.weight");
  std::vector<float> all(4096 * 256), some(3 * 256);
  model.read_f32(embedding, 0, 4096, all);
  model.read_f32(embedding, 4093, 3, some);
  CHECK(std::equal(some.begin(), some.end(), all.end() - 3 * 256));
  CHECK_THROWS_AS(model.read_f32(embedding, 4094, 3, some), intaglio::argument_error);
  CHECK_THROWS_AS(model.read_f32(embedding, 0, 2, some), intaglio::argument_error);
  CHECK_THROWS_AS(model.at("no.such.tensor"), intaglio::argument_error);
  const auto& matrix = model.at("blk.0.attn_k.weight");
  const auto source = model.ternary(matrix);
  std::vector<std::int8_t> codes(2 * 256);
  source.rows(50, 2, codes);
  std::vector<float> values(2 * 256);
  model.read_f32(matrix, 50, 2, values);
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == static_cast<float>(codes[i]) * source.scale());
}
