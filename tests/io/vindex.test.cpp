// SPDX-License-Identifier: MIT
#include "intaglio/io/vindex.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "../conformance.hpp"
#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::dtype;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

std::string text_of(const std::filesystem::path& path) {
  const bytes data = read_bytes(path);
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}
void expect_same_vectors(const feature_index& one, const feature_index& two) {
  REQUIRE(one.layers() == two.layers());
  std::vector<float> a(static_cast<std::size_t>(one.config().hidden_size) * one.config().intermediate_size),
      b(a.size());
  for (std::uint32_t layer = 0; layer < one.layers(); ++layer)
    for (const feature_vector which : feature_vectors) {
      INFO("layer " << layer << " " << name(which));
      one.read_f32(layer, which, 0, one.config().intermediate_size, a);
      two.read_f32(layer, which, 0, one.config().intermediate_size, b);
      CHECK((a == b));
    }
}

}  // namespace

TEST_CASE("vindex: there and back again", "[feature_index]") {
  const struct {
    std::filesystem::path model;
    const char *family, *gate;
  } cases[] = {{conformance("gemma3-tiny") / "gguf/gemma3-tiny-f16.gguf", "gemma3", "f16"},
               {conformance("llama-tiny") / "gguf/llama-tiny-q4_0.gguf", "llama", "f32"}};
  for (const auto& each : cases) {
    INFO(each.model);
    const temporary_folder folder;
    build_feature_index(each.model, folder / "own");
    const feature_index own = feature_index::open(folder / "own");
    file_progress last;
    export_vindex(own, folder / "larql", [&](const file_progress& progress) { last = progress; });
    CHECK(last.bytes == last.total_bytes);
    CHECK(is_vindex(folder / "larql"));
    CHECK_FALSE(is_vindex(folder / "own"));
    CHECK_FALSE(is_vindex(folder.path()));
    const auto manifest = nlohmann::json::parse(text_of(folder / "larql/index.json"));
    CHECK(manifest["version"] == 2);
    CHECK(manifest["family"] == each.family);
    CHECK(manifest["dtype"] == each.gate);
    CHECK(manifest["num_layers"] == own.layers());
    CHECK(manifest["model_config"]["num_q_heads"] == checkpoint::open(each.model).config().num_attention_heads);
    // Their address of a vector: 4 * hidden * (features of the layers before + feature).
    const std::uint64_t hidden = own.config().hidden_size, features = own.config().intermediate_size;
    std::vector<float> theirs(static_cast<std::size_t>(hidden)), ours(theirs.size());
    for (const auto which : {feature_vector::up, feature_vector::down}) {
      const mapped_file file(folder / "larql" / vindex_files[static_cast<std::size_t>(which)]);
      CHECK(file.size() == 4 * hidden * features * own.layers());
      file.read(4 * hidden * (features * 1 + 5), std::as_writable_bytes(std::span(theirs)));
      own.read_f32(1, which, 5, 1, ours);
      CHECK(theirs == ours);
    }
    const auto report = import_vindex(folder / "larql", folder / "again");
    CHECK(report.layers == own.layers());
    const feature_index again = feature_index::open(folder / "again");
    CHECK(again.config().model_type == own.config().model_type);
    CHECK(again.config().hidden_act == own.config().hidden_act);
    expect_same_vectors(own, again);
    CHECK(import_vindex(folder / "larql", folder / "again").kept == own.layers());
  }
}

TEST_CASE("vindex: what is not read is refused, with where it is", "[feature_index]") {
  const temporary_folder folder;
  build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), folder / "own");
  export_vindex(feature_index::open(folder / "own"), folder / "larql");
  const auto sound = nlohmann::json::parse(text_of(folder / "larql/index.json"));
  const auto refused = [&](const nlohmann::json& changed, const std::string& words) {
    INFO(words);
    write_text(folder / "larql/index.json", changed.dump());
    CHECK_THROWS_MATCHES(import_vindex(folder / "larql", folder / "new"), file_error,
                         MessageMatches(ContainsSubstring(words)));
    CHECK_FALSE(std::filesystem::exists(folder / "new"));
  };
  const auto with = [&](const char* pointer, const nlohmann::json& value) {
    auto out = sound;
    out[nlohmann::json::json_pointer(pointer)] = value;
    return out;
  };
  refused(with("/version", 3), "version: expected 2, found 3");
  refused(with("/family", "gpt2"), "family: expected one of: gemma3, llama, mistral");
  refused(with("/quant", "q4k"), "quant: expected 'none'");
  refused(with("/dtype", "bf16"), "dtype: expected 'f32' or 'f16'");
  refused(with("/hidden_size", 0), "hidden_size: expected at least 1");
  refused(with("/model_config/moe", nlohmann::json::object({{"num_experts", 8}})),
          "model_config.moe: expected no experts");
  refused(with("/layers/1/num_experts", 8), "layers[1].num_experts: expected no experts");
  refused(with("/layers/1/num_features", 171), "layers[1].num_features: expected intermediate_size 172");
  refused(with("/layers/1/layer", 0), "layers[1].layer: expected each layer under 5 once");
  refused(with("/layers/1/layer", 5), "layers[1].layer: expected each layer under 5 once");
  refused(with("/layers/1/length", 4), "layers[1].length: expected 44032");
  refused(with("/layers/1/offset", 44032 * 5), "layers[1].offset: expected vectors inside gate_vectors.bin");
  auto short_of_one = sound;
  short_of_one["layers"].erase(4);
  refused(short_of_one, "layers: expected an offset for layer 4");
  refused(with("/num_layers", 4), "layers[4].layer: expected each layer under 4 once");
  refused(with("/checksums/up_features.bin", "00"), "up_features.bin: SHA-256: expected 00, found");

  // In another order of layers the offsets count, not the order.
  auto turned = sound;
  std::reverse(turned["layers"].begin(), turned["layers"].end());
  write_text(folder / "larql/index.json", turned.dump());
  import_vindex(folder / "larql", folder / "turned");
  expect_same_vectors(feature_index::open(folder / "own"), feature_index::open(folder / "turned"));

  auto unsummed = sound;
  unsummed.erase("checksums");
  write_text(folder / "larql/index.json", unsummed.dump());
  bytes down = read_bytes(folder / "larql/down_features.bin");
  for (std::size_t i = 0; i < 4; ++i) down[44032 * 2 + 400 + i] = std::byte{0xFF};
  write_bytes(folder / "larql/down_features.bin", down);
  CHECK_THROWS_MATCHES(
      import_vindex(folder / "larql", folder / "bad"), file_error,
      MessageMatches(ContainsSubstring("down_features.bin: offset " + intaglio::hexadecimal(44032 * 2 + 400) +
                                       ": down vectors of layer 2: expected finite numbers, found NaN")));
  down.pop_back();
  write_bytes(folder / "larql/down_features.bin", down);
  CHECK_THROWS_MATCHES(
      import_vindex(folder / "larql", folder / "cut"), file_error,
      MessageMatches(ContainsSubstring("down_features.bin: size: expected 220160 bytes, found 220159")));
}
