// SPDX-License-Identifier: MIT
#include "intaglio/io/inspect.hpp"

#include <catch2/catch_test_macros.hpp>

#include "../conformance.hpp"
#include "gguf_image.hpp"
#include "shared.hpp"

using namespace intaglio::io;

TEST_CASE("inspect: what of generation_config.json nobody follows is listed", "[inspect]") {
  const auto found = inspect(shared("models/fable-bitnet"));
  std::vector<std::string> keys;
  for (const auto& each : found.unused) keys.push_back(each.key + " " + each.text);
  std::sort(keys.begin(), keys.end());
  CHECK(keys ==
        std::vector<std::string>{"generation_config.json: bos_token_id 4093", "generation_config.json: do_sample true",
                                 "generation_config.json: max_length 512", "generation_config.json: temperature 0.8",
                                 "generation_config.json: top_k 40"});
}

TEST_CASE("inspect: what the tool prints", "[inspect]") {
  const auto file = inspect(shared("models/fable-bitnet-i2_s.gguf"));
  CHECK(file.form == "gguf");
  CHECK(file.version == 3);
  CHECK(file.architecture == "bitnet-b1.58");
  CHECK(file.parameters == 8'927'488);
  CHECK(file.tokens == 4096);
  CHECK(file.metadata.size() == 28);
  CHECK(file.types.at("i2_s").first == 56);
  CHECK(file.tensors.at(2).shape == std::vector<std::uint64_t>{256, 256});
  CHECK_FALSE(file.problem);
  const auto folder = inspect(shared("models/fable-bitnet-packed"));
  CHECK(folder.form == "safetensors");
  CHECK(folder.architecture == "bitnet");
  CHECK(folder.parameters == 8'927'488);
  CHECK(folder.types.at("u8").first == 56);
  CHECK(folder.config == file.config);
  CHECK_THROWS_AS(inspect(shared("models/README.md")), intaglio::file_error);
  CHECK_THROWS_AS(inspect(shared("conformance/chat")), intaglio::file_error);
  const auto head = inspect(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf"));
  CHECK(head.config.has_value());
}

TEST_CASE("inspect: values of every type, and a sound file that is no model", "[inspect]") {
  const temporary_folder folder;
  gguf_image image;
  image.version = 3;
  image.set<std::string>("general.architecture", "abacus");
  image.set("a.u8", std::uint8_t{200});
  image.set("a.i8", std::int8_t{-100});
  image.set("a.u16", std::uint16_t{60'000});
  image.set("a.i16", std::int16_t{-30'000});
  image.set("a.u64", ~std::uint64_t{0});
  image.set("a.i64", std::int64_t{-5});
  image.set("a.f64", 0.25);
  image.set("a.bool", true);
  const auto got = inspect(write_bytes(folder / "keys.gguf", image.build()));
  std::string texts;
  for (const auto& key : got.metadata) texts += key.text + " ";
  CHECK(texts == "abacus 200 -100 60000 -30000 18446744073709551615 -5 0.25 true ");
  CHECK(got.architecture == "abacus");
  CHECK_FALSE(got.config);
  REQUIRE(got.problem);
  CHECK(got.problem->find("expected one of: bitnet, bitnet-b1.58") != std::string::npos);
}

TEST_CASE("inspect: long arrays are cut, and an architecture that is no text is none", "[inspect]") {
  const temporary_folder folder;
  gguf_image image;
  image.set("general.architecture", std::uint32_t{7});
  for (const std::uint64_t count : {0u, 1u, 8u, 9u}) {
    bytes list = bytes_of(std::uint32_t{0});
    append(list, count);
    for (std::uint64_t i = 0; i < count; ++i) append(list, static_cast<std::uint8_t>(i));
    image.keys.push_back({"a." + std::to_string(count), 9, list});
  }
  bytes texts = bytes_of(std::uint32_t{8});
  append(texts, std::uint64_t{2});
  append_text(texts, "x"), append_text(texts, "");
  image.keys.push_back({"a.texts", 9, texts});
  bytes nested = bytes_of(std::uint32_t{9});  // ten lists of one number and one of none
  append(nested, std::uint64_t{11});
  for (std::uint8_t i = 0; i < 10; ++i)
    append(nested, std::uint32_t{0}), append(nested, std::uint64_t{1}), append(nested, i);
  append(nested, std::uint32_t{7}), append(nested, std::uint64_t{0});
  image.keys.push_back({"a.nested", 9, nested});
  const auto got = inspect(write_bytes(folder / "keys.gguf", image.build()));
  CHECK(got.architecture.empty());
  REQUIRE(got.metadata.size() == 7);
  CHECK(got.metadata[0].text == "7");
  CHECK(got.metadata[1].text == "[]");
  CHECK(got.metadata[2].text == "[0]");
  CHECK(got.metadata[3].text == "[0, 1, 2, 3, 4, 5, 6, 7]");
  CHECK((got.metadata[4].text == "[0, 1, 2, 3, 4, 5, 6, 7, ...]" && got.metadata[4].count == 9 &&
         got.metadata[4].type == "array of u8"));
  CHECK(got.metadata[5].text == "[x, ]");
  CHECK((got.metadata[6].text == "[[0], [1], [2], [3], [4], [5], [6], [7], ...]" && got.metadata[6].count == 11 &&
         got.metadata[6].type == "array of array"));
}

TEST_CASE("inspect: a folder that is sound but no model", "[inspect]") {
  const temporary_folder folder;
  const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]}})";
  bytes file = bytes_of(static_cast<std::uint64_t>(header.size()));
  const auto view = std::as_bytes(std::span(header));
  file.insert(file.end(), view.begin(), view.end());
  file.resize(file.size() + 4);
  write_bytes(folder / "model.safetensors", file);
  write_text(folder / "config.json", R"({"model_type":7,"list":[1,2,3],"text":"x"})");
  const auto got = inspect(folder.path());
  CHECK(got.architecture.empty());
  REQUIRE(got.tensors.size() == 1);
  CHECK(got.tensors[0].type == "F8_E4M3");
  CHECK(got.problem);
  REQUIRE(got.metadata.size() == 3);
  CHECK((got.metadata[0].key == "list" && got.metadata[0].text == "[1,2,3]" && got.metadata[0].count == 3));
  write_text(folder / "config.json", "[]");
  CHECK_THROWS_AS(inspect(folder.path()), intaglio::file_error);
}

TEST_CASE("inspect: PyTorch's files, with a config of either form", "[inspect]") {
  for (const auto& [form, files] :
       {std::pair<const char*, std::size_t>{"orig", 1}, {"orig/consolidated.00.pth", 1}, {"hf-bin", 2}}) {
    INFO(form);
    const inspection found = inspect(conformance("mistral-tiny") / form);
    CHECK(found.form == "pytorch");
    CHECK(found.files.size() == files);
    CHECK(found.tensors.size() == 30);
    CHECK(found.tensors.back().file == files - 1);
    CHECK(found.types.at("bf16").first == 30);
    CHECK(found.parameters == 2'873'088);
    CHECK_FALSE(found.metadata.empty());
    CHECK(found.config);
    CHECK_FALSE(found.problem);
  }
}
