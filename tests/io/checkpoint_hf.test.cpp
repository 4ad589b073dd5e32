// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint_hf.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "bad_safetensors_files.hpp"
#include "intaglio/core/float16.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "shared.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using nlohmann::json;
using namespace intaglio::io;

namespace {

const std::string q = "model.layers.0.self_attn.q_proj.weight", q_scale = q + "_scale";

/// A folder of the packed tiny model, to be changed.
struct hf_folder {
  temporary_folder made;
  json config;
  safetensors_image image;

  hf_folder() {
    const auto in = shared("conformance/bitnet-tiny/hf-packed");
    const bytes text = read_bytes(in / "config.json");
    config = json::parse(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
    image = safetensors_image::of(in / "model.safetensors");
  }
  /// A tensor after the others, or instead of one of that name.
  void put(const std::string& name, const char* type, std::vector<std::uint64_t> shape, const bytes& data) {
    const std::size_t at = image.data.size();
    image.data.insert(image.data.end(), data.begin(), data.end());
    image.header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {at, at + data.size()}}};
  }
  void remove(const std::string& name) {
    // Its bytes stay, as those of a tensor that is no part of the model.
    image.header["vision_tower." + name] = image.header[name];
    image.header.erase(name);
  }
  checkpoint open() const {
    write_text(made / "config.json", config.dump());
    write_bytes(made / "model.safetensors", image.build());
    return checkpoint::open_hf(made.path());
  }
  std::string refusal() const {
    try {
      open();
    } catch (const intaglio::file_error& problem) { return whole_text(problem); }
    return "accepted";
  }
};
/// The refusal of a folder in which a tensor is another one.
std::string replaced(const std::string& name, const char* type, std::vector<std::uint64_t> shape, const bytes& data) {
  hf_folder folder;
  folder.remove(name);
  folder.put(name, type, std::move(shape), data);
  return folder.refusal();
}

}  // namespace

TEST_CASE("checkpoint_hf: a folder's config, tensors and warnings", "[checkpoint]") {
  const hf_folder folder;
  const auto model = folder.open();
  CHECK(model.path() == folder.made.path().string());
  CHECK(model.stated_architecture() == "bitnet");
  CHECK(model.config().hidden_size == 256);
  CHECK(model.config().tie_word_embeddings);
  CHECK_FALSE(model.vocabulary());
  CHECK(model.warnings() ==
        std::vector<std::string>{model.path() + ": neither tokenizer.json nor tokenizer.model in this folder"});
  // Rows of the matrix, four of which share a row of bytes.
  const auto& packed = model.at("blk.0.attn_q.weight");
  CHECK((packed.stored.type == dtype::u8 && packed.stored.rows == 256 && packed.stored.columns == 256 &&
         packed.stored.bytes == 64 * 256));
  CHECK(packed.stored_name == q);
  REQUIRE(packed.packed_scale);
  CHECK(model.at("blk.0.attn_norm.weight").dimensions == 1);
  CHECK_THROWS_AS(checkpoint::open_hf("/nowhere"), intaglio::file_error);
}

TEST_CASE("checkpoint_hf: a head in the folder is one where the config does not say", "[checkpoint]") {
  hf_folder folder;
  folder.config.erase("tie_word_embeddings");
  CHECK(folder.open().config().tie_word_embeddings);
  const auto embedding = folder.image.header["model.embed_tokens.weight"];
  const auto begin = folder.image.data.begin();
  const bytes rows(begin + embedding["data_offsets"][0].get<std::ptrdiff_t>(),
                   begin + embedding["data_offsets"][1].get<std::ptrdiff_t>());
  folder.put("lm_head.weight", embedding["dtype"].get<std::string>().c_str(),
             embedding["shape"].get<std::vector<std::uint64_t>>(), rows);
  CHECK_FALSE(folder.open().config().tie_word_embeddings);
  CHECK(folder.open().find("output.weight") != nullptr);
  folder.config["tie_word_embeddings"] = true;
  CHECK(folder.open().config().tie_word_embeddings);
  CHECK(folder.open().find("output.weight") == nullptr);
  const std::string ignored =
      folder.made.path().string() + ": output.weight is ignored: the model's head is its embedding";
  CHECK(folder.open().warnings().back() == ignored);
  bytes others = rows;
  for (std::byte& each : others) each ^= std::byte{1};
  folder.remove("lm_head.weight");
  folder.put("lm_head.weight", embedding["dtype"].get<std::string>().c_str(),
             embedding["shape"].get<std::vector<std::uint64_t>>(), others);
  CHECK(folder.open().warnings().back() == ignored + ", which has other values");
}

TEST_CASE("checkpoint_hf: an adapter beside the model is named", "[checkpoint]") {
  const hf_folder folder;
  write_text(folder.made / "adapter_config.json", "{}");
  CHECK_THAT(folder.open().warnings().front(),
             ContainsSubstring("the adapter beside the model, of adapter_config.json, is not applied"));
}

TEST_CASE("checkpoint_hf: files about codecs beside the model are named", "[checkpoint]") {
  for (const char* name : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    const hf_folder folder;
    write_text(folder.made / name, R"({"quantization": {"quant_algo": "FP8"}})");
    CHECK_THAT(folder.open().warnings().front(),
               ContainsSubstring(std::string(name) + " is not read: weights are computed as they are stored"));
  }
}

TEST_CASE("checkpoint_hf: SmolVLM's text model", "[checkpoint]") {
  hf_folder folder;
  const auto plain = folder.open();
  folder.config = {{"model_type", "smolvlm"}, {"text_config", folder.config}, {"vision_config", json::object()}};
  if (folder.config["text_config"].contains("quantization_config"))
    folder.config["quantization_config"] = folder.config["text_config"]["quantization_config"];
  safetensors_image::json renamed = json::object();
  for (const auto& [name, tensor] : folder.image.header.items())
    renamed[name.starts_with("model.") ? "model.text_model." + name.substr(6) : name] = tensor;
  folder.image.header = renamed;
  folder.put("model.vision_model.embeddings.patch_embedding.weight", "F32", {32}, bytes(128));
  folder.put("model.connector.modality_projection.proj.weight", "F32", {32}, bytes(128));
  const auto model = folder.open();
  CHECK(model.config() == plain.config());
  CHECK_THAT(model.warnings().back(), ContainsSubstring("2 tensors of the vision model are not read"));
}

TEST_CASE("checkpoint_hf: a model without a head, whose names begin with nothing", "[checkpoint]") {
  hf_folder folder;
  folder.config["tie_word_embeddings"] = false;
  safetensors_image::json bare = json::object();
  for (const auto& [name, tensor] : folder.image.header.items())
    bare[name.starts_with("model.") ? name.substr(6) : name] = tensor;
  folder.image.header = bare;
  const auto model = folder.open();
  CHECK(model.config().tie_word_embeddings);
  CHECK_THAT(model.warnings().back(), ContainsSubstring("the model has no head"));
}

TEST_CASE("checkpoint_hf: sentence-transformers' way of pooling", "[checkpoint]") {
  const hf_folder folder;
  using intaglio::pooling;
  CHECK_FALSE(folder.open().pooling());
  std::filesystem::create_directory(folder.made / "1_Pooling");
  const auto with = [&](const json& config) {
    write_text(folder.made / "1_Pooling" / "config.json", config.dump());
    return folder.open();
  };
  CHECK(with({{"pooling_mode_lasttoken", true}, {"pooling_mode_mean_tokens", false}}).pooling() == pooling::last);
  CHECK(with({{"word_embedding_dimension", 256}, {"pooling_mode_mean_tokens", true}}).pooling() == pooling::mean);
  CHECK(with({{"pooling_mode_cls_token", true}}).pooling() == pooling::first);
  CHECK(with({{"pooling_mode", "mean"}}).pooling() == pooling::mean);
  for (const json& other : {json{{"pooling_mode_max_tokens", true}}, json::object(),
                            json{{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}}}) {
    const auto model = with(other);
    CHECK_FALSE(model.pooling());
    CHECK_THAT(model.warnings().front(), ContainsSubstring("expected one of lasttoken, mean_tokens and cls_token"));
  }
  CHECK_THROWS_AS(with({{"pooling_mode_lasttoken", 1}}), intaglio::file_error);
}

TEST_CASE("checkpoint_hf: a scale multiplies or divides, in any float", "[checkpoint]") {
  need_shared();
  const auto scale = [](const json& quantization, const char* type, std::vector<std::uint64_t> shape,
                        const bytes& value) {
    hf_folder folder;
    folder.config["quantization_config"] = quantization;
    folder.remove(q_scale);
    folder.put(q_scale, type, std::move(shape), value);
    return folder.open().at("blk.0.attn_q.weight").packed_scale;
  };
  const json multiplies{{"linear_class", "autobitlinear"}}, divides{{"linear_class", "bitlinear"}};
  CHECK(scale(multiplies, "F32", {1}, bytes_of(0.25f)) == 0.25f);
  CHECK(scale(divides, "F32", {1}, bytes_of(0.25f)) == 4.f);
  CHECK(scale(multiplies, "F32", {}, bytes_of(0.25f)) == 0.25f);
  CHECK(scale(multiplies, "F16", {1}, bytes_of(intaglio::f16_from_f32(0.25f))) == 0.25f);
  CHECK(scale(divides, "BF16", {1}, bytes_of(intaglio::bf16_from_f32(0.25f))) == 4.f);
  // The largest divisor leaves a multiplier that is still above 0.
  CHECK(scale(divides, "F32", {1}, bytes_of(std::numeric_limits<float>::max())) ==
        1.f / std::numeric_limits<float>::max());
  const auto refused = [&](const char* linear, float value) {
    hf_folder folder;
    folder.config["quantization_config"] = {{"linear_class", linear}};
    folder.remove(q_scale);
    folder.put(q_scale, "F32", {1}, bytes_of(value));
    return folder.refusal();
  };
  for (const char* linear : {"autobitlinear", "bitlinear"})
    for (const float value :
         {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      CHECK_THAT(refused(linear, value),
                 ContainsSubstring("tensor '" + q_scale + "': expected a finite number above 0, found "));
  CHECK(refused("autobitlinear", std::numeric_limits<float>::denorm_min()) == "accepted");
  CHECK_THAT(refused("bitlinear", std::numeric_limits<float>::denorm_min()),
             ContainsSubstring("expected a finite number above 0, found "));  // its inverse is infinite
}

TEST_CASE("checkpoint_hf: scales and packed matrices belong together", "[checkpoint]") {
  need_shared();
  const std::string one_of = "scale " + q_scale + ": expected one f32, f16 or bf16, found ";
  CHECK_THAT(replaced(q_scale, "F32", {2}, bytes(8)), ContainsSubstring(one_of + "F32 [2]"));
  CHECK_THAT(replaced(q_scale, "F32", {1, 1}, bytes(4)), ContainsSubstring(one_of + "F32 [1, 1]"));
  CHECK_THAT(replaced(q_scale, "F32", {0}, {}), ContainsSubstring(one_of + "F32 [0]"));
  CHECK_THAT(replaced(q_scale, "I32", {1}, bytes(4)), ContainsSubstring(one_of + "I32 [1]"));
  hf_folder unscaled, unpacked;
  unscaled.remove(q_scale);
  CHECK_THAT(unscaled.refusal(), ContainsSubstring("1 difference)") && ContainsSubstring("missing: " + q + "_scale"));
  unpacked.remove(q);
  CHECK_THAT(unpacked.refusal(), ContainsSubstring("a scale without its packed matrix: " + q_scale) &&
                                     ContainsSubstring("missing: blk.0.attn_q.weight [256, 256]"));
  CHECK_THAT(replaced(q, "BF16", {256, 256}, bytes(2 * 256 * 256)),
             ContainsSubstring("1 difference)") && ContainsSubstring("a scale without its packed matrix: " + q_scale));
}

TEST_CASE("checkpoint_hf: tensors that are no part of the model, or cannot be read, are listed", "[checkpoint]") {
  need_shared();
  CHECK_THAT(replaced(q, "F8_E4M3", {256, 256}, bytes(256 * 256)),
             ContainsSubstring("type of " + q + ": found F8_E4M3, which is not read"));
  CHECK_THAT(replaced(q, "U8", {}, bytes(1)),
             ContainsSubstring("shape of " + q + ": expected 1 or 2 dimensions above 0, found []"));
  CHECK_THAT(replaced(q, "U8", {4, 4, 4}, bytes(64)),
             ContainsSubstring("expected 1 or 2 dimensions above 0, found [4, 4, 4]"));
  CHECK_THAT(replaced(q, "U8", {0, 256}, {}), ContainsSubstring("expected 1 or 2 dimensions above 0, found [0, 256]"));
  CHECK_THAT(replaced(q, "U8", {256}, bytes(256)),
             ContainsSubstring("shape of " + q + ": expected [256, 256], found [256]"));
  hf_folder surplus, seeing, llama;
  surplus.put("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {32}, bytes(128));
  CHECK_THAT(surplus.refusal(),
             ContainsSubstring("1 difference)") &&
                 ContainsSubstring("not part of the model: model.layers.0.self_attn.rotary_emb.inv_freq"));
  seeing.put("vision_tower.patch", "F32", {32}, bytes(128));
  CHECK_THAT(seeing.open().warnings().back(), ContainsSubstring(": 1 tensors of the vision model are not read"));
  // Bytes are packed codes in BitNet only.
  llama.config["model_type"] = "llama";
  llama.config["hidden_act"] = "silu";
  llama.config.erase("quantization_config");
  CHECK_THAT(llama.refusal(), ContainsSubstring("shape of " + q + ": expected [256, 256], found [64, 256]") &&
                                  ContainsSubstring("type of " + q + ": expected f32 "));
}

TEST_CASE("checkpoint_hf: one tensor under two names is refused with both", "[checkpoint]") {
  const temporary_folder made;
  const auto in = shared("conformance/bitnet-tiny/hf-packed");
  std::filesystem::copy_file(in / "config.json", made / "config.json");
  auto image = safetensors_image::of(in / "model.safetensors");
  const std::uint64_t at = image.data.size();
  image.header["language_model.model.norm.weight"] = {
      {"dtype", "F32"}, {"shape", {256}}, {"data_offsets", {at, at + 1024}}};
  image.data.resize(image.data.size() + 1024);
  write_bytes(made / "model.safetensors", image.build());
  CHECK_THROWS_WITH(checkpoint::open_hf(made.path()), ContainsSubstring("'output_norm.weight' is there twice"));
}

TEST_CASE("checkpoint_hf: a vocabulary may not be larger than the embedding", "[checkpoint]") {
  const hf_folder folder;
  std::filesystem::copy_file(shared("conformance/bitnet-tiny/hf-bf16/tokenizer.json"), folder.made / "tokenizer.json");
  CHECK(folder.open().vocabulary()->tokens.size() == 1024);
  CHECK_FALSE(std::filesystem::exists(folder.made / "tokenizer_config.json"));
  std::filesystem::remove(folder.made / "tokenizer.json");
  std::filesystem::copy_file(shared("models/fable-bitnet/tokenizer.json"), folder.made / "tokenizer.json");
  CHECK_THAT(
      folder.refusal(),
      ContainsSubstring("tokenizer.json: more tokens than the embedding has rows: expected at most 1024, found 4096"));
}

TEST_CASE("checkpoint_hf: biases of zeros are left out, with or without a word in the config", "[checkpoint]") {
  const auto with = [](float value, bool stated) {
    hf_folder folder;
    std::vector<float> values(256);
    values[3] = value;
    const auto view = std::as_bytes(std::span(values));
    folder.put("model.layers.0.self_attn.q_proj.bias", "F32", {256}, bytes(view.begin(), view.end()));
    folder.config["attention_bias"] = stated;
    return folder.refusal();
  };
  CHECK(with(0.f, true) == "accepted");
  CHECK(with(0.f, false) == "accepted");
  CHECK_THAT(with(1.f, true), ContainsSubstring("bias model.layers.0.self_attn.q_proj.bias: expected none, or zeros"));
  hf_folder without;
  without.config["attention_bias"] = true;
  CHECK_THAT(without.refusal(), ContainsSubstring("the config states biases, of which the files have none"));
}

TEST_CASE("checkpoint_hf: a file of weights stands for its folder, or is the folder's weights", "[checkpoint]") {
  const hf_folder folder;
  folder.open();
  const auto& made = folder.made;
  CHECK(checkpoint::open(made / "model.safetensors").find("blk.0.attn_q.weight") != nullptr);
  std::filesystem::rename(made / "model.safetensors", made / "tuned.safetensors");
  CHECK(checkpoint::open(made / "tuned.safetensors").find("blk.0.attn_q.weight") != nullptr);
  std::filesystem::rename(made / "tuned.safetensors", made / "without an ending");
  CHECK(checkpoint::open(made / "without an ending").find("blk.0.attn_q.weight") != nullptr);
  std::filesystem::remove(made / "config.json");
  CHECK_THROWS_WITH(checkpoint::open(made / "without an ending"),
                    ContainsSubstring("without an ending: weights without a config: expected config.json"));
}
