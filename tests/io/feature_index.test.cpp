// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_index.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/feature_index_build.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::dtype;
using intaglio::file_error;
using intaglio::mismatch_error;
using namespace intaglio::io;

namespace {

std::string text_of(const std::filesystem::path& path) {
  const bytes data = read_bytes(path);
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}
void replace(const std::filesystem::path& path, const std::string& what, const std::string& with) {
  std::string text = text_of(path);
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  write_text(path, text.replace(at, what.size(), with));
}
void expect_refusal(const std::filesystem::path& folder, const std::string& words) {
  CHECK_THROWS_MATCHES(feature_index::open(folder), file_error, MessageMatches(ContainsSubstring(words)));
}
/// A fresh copy of an index, to be damaged.
struct copied {
  explicit copied(const std::filesystem::path& from) {
    std::filesystem::copy(from, folder.path(), std::filesystem::copy_options::recursive);
  }
  std::filesystem::path operator/(std::string_view name) const { return folder / name; }
  temporary_folder folder;
};

}  // namespace

TEST_CASE("feature index: damage is found on opening, by its offset", "[feature_index]") {
  const auto model = conformance("llama-tiny") / "gguf/llama-tiny-f16.gguf";
  const temporary_folder sound;
  build_feature_index(model, sound.path());
  const feature_index good = feature_index::open(sound.path());
  CHECK(good.layers() == 3);
  CHECK(good.layer(0)[feature_vector::gate].type == dtype::f16);
  CHECK(good.bytes() == std::uint64_t{3} * 3 * 768 * 256 * 2);
  const std::string file = "layer-0001.bin";
  const auto up = good.layer(1)[feature_vector::up].offset;
  CHECK(up % feature_block_alignment == 0);

  SECTION("a bit") {
    const copied c(sound.path());
    bytes data = read_bytes(c / file);
    data[up + 1000] ^= std::byte{1};
    write_bytes(c / file, data);
    expect_refusal(c.folder.path(), file + ": offset " + intaglio::hexadecimal(up) +
                                        ": checksum of the up vectors of layer 1: expected ");
    // A caller that asks for no contents gets none checked.
    CHECK_NOTHROW(feature_index::open(c.folder.path(), {.contents = false}));
  }
  SECTION("cut") {
    const copied c(sound.path());
    bytes data = read_bytes(c / file);
    data.pop_back();
    write_bytes(c / file, data);
    expect_refusal(c.folder.path(), file + ": size: expected " + std::to_string(data.size() + 1) + " bytes, found " +
                                        std::to_string(data.size()));
  }
  SECTION("gone") {
    const copied c(sound.path());
    std::filesystem::remove(c / file);
    expect_refusal(c.folder.path(), file + ": no such file");
  }
  SECTION("swapped") {
    const copied c(sound.path());
    std::filesystem::rename(c / file, c / "x");
    std::filesystem::rename(c / "layer-0002.bin", c / file);
    std::filesystem::rename(c / "x", c / "layer-0002.bin");
    expect_refusal(c.folder.path(), "layer-0001.bin: offset 0x0: checksum of the gate vectors of layer 1");
  }
  SECTION("NaN and infinity that the checksum vouches for") {
    const copied c(sound.path());
    bytes data = read_bytes(c / file);
    const auto& block = good.layer(1)[feature_vector::up];
    data[up + 20] = std::byte{0x01}, data[up + 21] = std::byte{0x7E};
    const auto sum =
        crc32(std::span(data).subspan(static_cast<std::size_t>(up), static_cast<std::size_t>(block.bytes)));
    write_bytes(c / file, data);
    replace(c / "index.json", feature_json::hex8(block.crc32), feature_json::hex8(sum));
    expect_refusal(c.folder.path(), file + ": offset " + intaglio::hexadecimal(up + 20) +
                                        ": up vectors of layer 1: expected finite numbers, found NaN");
  }
  SECTION("not finished") {
    const copied c(sound.path());
    feature_manifest manifest = read_feature_manifest(c.folder.path());
    manifest.layers.pop_back();
    write_feature_manifest(c.folder.path(), manifest);
    expect_refusal(c.folder.path(),
                   "the index is not finished; the same command goes on with it: expected 3 layers, found 2");
  }
  SECTION("arguments") {
    std::vector<float> room(256);
    CHECK_THROWS_MATCHES(good.layer(3), intaglio::argument_error,
                         MessageMatches(ContainsSubstring("layer: expected a layer of 3, found 3")));
    CHECK_THROWS_AS(good.read_f32(0, feature_vector::gate, 768, 1, room), intaglio::argument_error);
    CHECK_THROWS_AS(good.read_f32(0, feature_vector::gate, 0, 2, room), intaglio::argument_error);
    std::vector<std::int8_t> codes(256);
    CHECK_THROWS_MATCHES(good.read_codes(0, feature_vector::gate, 0, 1, codes), intaglio::argument_error,
                         MessageMatches(ContainsSubstring("found f16")));
  }
}

TEST_CASE("feature index: a manifest that contradicts itself is refused", "[feature_index]") {
  const temporary_folder sound;
  build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), sound.path());
  const struct {
    const char *what, *with, *words;
  } cases[] = {
      {"intaglio feature index", "another", "format: expected 'intaglio feature index'"},
      {"\"version\": 1", "\"version\": 2", "version: expected 1, found 2"},
      {"\"model_type\": \"llama\"", "\"model_type\": \"lama\"",
       "config.model_type: expected one of: bitnet, llama, gemma3, qwen3"},
      {"\"hidden_act\": \"silu\"", "\"hidden_act\": 3", "config.hidden_act: expected a string, found 3"},
      {"\"hidden_size\": 64", "\"hidden_size\": 0", "config.hidden_size: expected at least 1"},
      {"\"hidden_size\": 64", "\"hidden_size\": 99999999", "config.hidden_size: expected at most 1048576"},
      {"\"intermediate_size\": 172", "\"intermediate_size\": -1",
       "config.intermediate_size: expected a natural number"},
      {"\"intermediate_size\": 172", "\"intermediate_size\": 171",
       "layers[0].features: expected intermediate_size 171"},
      {"\"num_hidden_layers\": 5", "\"num_hidden_layers\": 4", "layers: expected at most num_hidden_layers 4"},
      {"\"num_hidden_layers\": 5", "\"num_hidden_layers\": 0", "config.num_hidden_layers: expected at least 1"},
      {"\"intermediate_size\": 172", "\"intermediate_size\": 0", "config.intermediate_size: expected at least 1"},
      {"layer-0000.bin", "../layer-0000.bin", "layers[0].file: expected 'layer-0000.bin'"},
      {"\"type\": \"f32\"", "\"type\": \"i2_s\"", "layers[0].gate.type: expected the type of an index's vectors"},
      {"\"type\": \"f32\"", "\"type\": \"q4_k\"",
       "layers[0].gate.type: expected a type whose blocks divide hidden_size 64"},
      {"\"type\": \"f32\"", "\"type\": \"f16\"",
       "layers[0].gate.bytes: expected 22016 for 172 vectors of 64, found 44032"},
      {"\"type\": \"f32\"", "\"type\": \"ternary\"", "layers[0].gate.scale: expected a number, found nothing"},
      {"\"type\": \"f32\"", "\"type\": \"ternary\", \"scale\": 0.0", "layers[0].gate.scale: expected a number above 0"},
      {"\"offset\": 45056", "\"offset\": 45060", "layers[0].up.offset: expected 45056"},
      {"\"crc32\": \"", "\"crc32\": \"0", "layers[0].gate.crc32: expected 8 hexadecimal digits"},
      {"\"crc32\": \"", "\"crc32\": \"x", "layers[0].gate.crc32: expected 8 hexadecimal digits"},
      {"\"layers\": [", "\"layers\": 7, \"x\": [", "layers: expected an array"},
  };
  for (const auto& each : cases) {
    INFO(each.what << " -> " << each.with);
    const copied c(sound.path());
    replace(c / "index.json", each.what, each.with);
    expect_refusal(c.folder.path(), each.words);
  }
  const copied c(sound.path());
  write_text(c / "index.json", "{");
  expect_refusal(c.folder.path(), "index.json: offset");
  CHECK_THROWS_AS(feature_index::open(c / "nothing"), file_error);
}

TEST_CASE("feature index: only its own model's", "[feature_index]") {
  const auto tiny = conformance("llama-tiny") / "gguf";
  const temporary_folder folder;
  build_feature_index(tiny / "llama-tiny-f16.gguf", folder.path());
  const feature_index index = feature_index::open(folder.path());
  CHECK_NOTHROW(expect_index_of(index, tiny / "llama-tiny-f16.gguf"));
  // The same weights in another type of file are the same vectors only as far as the type holds them.
  CHECK_THROWS_AS(expect_index_of(index, tiny / "llama-tiny-q4_0.gguf"), mismatch_error);
  try {
    expect_index_of(index, shared("models/stories260k/stories260K-f32.gguf"));
    FAIL("expected another model's index to be refused");
  } catch (const mismatch_error& refused) {
    const std::vector<std::string>& all = refused.differences();
    CHECK(std::ranges::count(all, "hidden_size: engraved 64, file 256") == 1);
    CHECK(std::ranges::count(all, "num_hidden_layers: engraved 5, file 3") == 1);
  }
  intaglio::decoder_config engraved = index.config();
  engraved.max_position_embeddings = 77;  // says nothing about features
  CHECK(index.differences(engraved).empty());
  engraved.intermediate_size = 1024;
  CHECK(index.differences(engraved).size() == 1);

  // One vector of the model is another: found where it is sampled, here feature 0 of every kind.
  for (const feature_vector which : feature_vectors) {
    INFO(name(which));
    const copied c(folder.path());
    feature_manifest manifest = read_feature_manifest(c.folder.path());
    feature_block& block = manifest.layers[2][which];
    bytes data = read_bytes(c / "layer-0002.bin");
    for (std::size_t i = 0; i < 256; ++i) data[static_cast<std::size_t>(block.offset) + 2 * i] ^= std::byte{1};
    write_bytes(c / "layer-0002.bin", data);
    block.crc32 =
        crc32(std::span(data).subspan(static_cast<std::size_t>(block.offset), static_cast<std::size_t>(block.bytes)));
    write_feature_manifest(c.folder.path(), manifest);
    CHECK_THROWS_MATCHES(expect_index_of(feature_index::open(c.folder.path()), tiny / "llama-tiny-f16.gguf"),
                         mismatch_error,
                         MessageMatches(ContainsSubstring(std::string(name(which)) +
                                                          " vector of feature 0 of layer 2: unlike that of")));
  }
}
