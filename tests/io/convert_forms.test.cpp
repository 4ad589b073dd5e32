// SPDX-License-Identifier: MIT
// Conversions of whole files and folders from one form to another.
#include "intaglio/io/convert.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "../conformance.hpp"
#include "bad_safetensors_files.hpp"
#include "compared_files.hpp"
#include "files.hpp"
#include "intaglio/io/check.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using namespace intaglio::io;
using namespace compared_files;

TEST_CASE("convert: a folder's name is the model's, where it is text", "[convert]") {
  const temporary_folder folder;
  const auto in = shared("conformance/bitnet-tiny/hf-packed");
  const auto named = [&](const std::string& name, const std::string& tail) {
    std::filesystem::create_directory(folder / name);
    for (const char* file : {"model.safetensors", "config.json"})
      std::filesystem::copy_file(in / file, folder.path() / name / file);
    convert(folder.path() / (name + tail), folder / "out.gguf");
    return gguf::open(folder / "out.gguf").value<std::string>("general.name");
  };
  CHECK(named("plain", "") == "plain");
  CHECK(named("slash", "/") == "slash");
  CHECK(named("not \xFF text", "") == "model");
}

TEST_CASE("convert: a folder with another kind of tokenizer keeps it", "[convert]") {
  const temporary_folder folder;
  const auto in = shared("conformance/bitnet-tiny/hf-packed"), tokens = shared("conformance/mistral-tiny/hf");
  std::filesystem::create_directory(folder / "in");
  for (const char* file : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(in / file, folder / "in" / file);
  std::filesystem::copy_file(tokens / "tokenizer.json", folder / "in/tokenizer.json");
  convert(folder / "in", folder / "out.gguf");
  const auto from = checkpoint::open(folder / "in"), to = checkpoint::open(folder / "out.gguf");
  const vocabulary &before = from.vocabulary().value(), &after = to.vocabulary().value();
  CHECK(after.model == "llama");
  CHECK_FALSE(after.pre_tokenizer);
  CHECK((after.tokens == before.tokens && after.token_types == before.token_types && after.merges == before.merges));
  CHECK((after.bos_id == before.bos_id && after.unknown_id == before.unknown_id && after.add_bos == before.add_bos &&
         after.add_space_prefix == before.add_space_prefix));
  CHECK_FALSE(after.chat_template);
}

TEST_CASE("convert: a split model becomes whole, at the usual alignment", "[convert]") {
  const temporary_folder folder;
  auto image = gguf_image::of(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"));
  image.alignment = 64;
  image.set("general.alignment", std::uint32_t{64});
  image.set("split.no", std::uint16_t{0});
  image.set("split.count", std::uint16_t{1});
  convert(write_bytes(folder / "in.gguf", image.build()), folder / "out.gguf");
  const auto out = gguf::open(folder / "out.gguf");
  for (const char* key : {"general.alignment", "split.no", "split.count"}) CHECK(out.first().find(key) == nullptr);
  expect_same(folder / "in.gguf", folder / "out.gguf");
}

TEST_CASE("convert: a folder becomes the very tensors that llama.cpp makes of it", "[convert]") {
  const temporary_folder folder;
  for (const std::string model : {"llama-tiny", "gemma3-tiny"})
    for (const dtype codec : {dtype::f32, dtype::bf16, dtype::q8_0, dtype::q4_k, dtype::q6_k}) {
      INFO(model << " " << intaglio::name(codec));
      const auto report = convert(conformance(model) / "hf", folder / "out.gguf", {.codec = codec, .threads = 3});
      CHECK(report.warnings.empty());
      const auto ours = gguf::open(folder / "out.gguf"),
                 theirs = gguf::open(conformance(model) / "gguf" /
                                     (model + "-" + std::string(intaglio::name(codec)) + ".gguf"));
      CHECK(ours.tensors().size() == theirs.tensors().size());
      std::size_t same_type = 0;
      for (const auto& tensor : theirs.tensors()) {
        INFO(tensor.name);
        const auto* other = ours.find_tensor(tensor.name);
        REQUIRE(other != nullptr);
        if (other->type != tensor.type) continue;  // llama-quantize keeps some of the embeddings in q6_k or q8_0
        CHECK((data_of(theirs, tensor) == data_of(ours, *other)));
        ++same_type;
      }
      CHECK(same_type + 2 >= theirs.tensors().size());
      CHECK(checkpoint::open(folder / "out.gguf").config() == checkpoint::open(conformance(model) / "hf").config());
      CHECK(check(folder / "out.gguf").ok());
      // The same bytes on one thread.
      convert(conformance(model) / "hf", folder / "one.gguf", {.codec = codec, .threads = 1});
      CHECK((read_bytes(folder / "out.gguf") == read_bytes(folder / "one.gguf")));
    }
}

TEST_CASE("convert: Llama 3.1's scaling becomes the tensor of factors", "[convert]") {
  const temporary_folder folder;
  const auto in = conformance("llama-tiny") / "hf-rope31";
  convert(in, folder / "out.gguf", {.codec = dtype::f16});
  const auto ours = gguf::open(folder / "out.gguf"),
             theirs = gguf::open(conformance("llama-tiny") / "gguf/llama-tiny-rope31-f16.gguf");
  CHECK(ours.tensors().size() == theirs.tensors().size());
  const bytes one = data_of(ours, "rope_freqs.weight"), other = data_of(theirs, "rope_freqs.weight");
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); i += 4) {
    float x, y;
    std::memcpy(&x, one.data() + i, 4);
    std::memcpy(&y, other.data() + i, 4);
    CHECK(std::fabs(x - y) <= 1e-5f * y);
  }
  CHECK(checkpoint::open(folder / "out.gguf").config() == checkpoint::open(in).config());
  convert(folder / "out.gguf", folder / "again.gguf", {.codec = dtype::f16});
  CHECK((data_of(gguf::open(folder / "again.gguf"), "rope_freqs.weight") == one));
}

TEST_CASE("convert: a GGUF file becomes the safetensors that it came from", "[convert]") {
  const temporary_folder folder;
  for (const std::string model : {"llama-tiny", "gemma3-tiny", "mistral-tiny"}) {
    INFO(model);
    const auto in = conformance(model) / "gguf" / (model + "-f32.gguf");
    convert(in, folder / "model.safetensors", {.codec = dtype::bf16});
    std::filesystem::copy_file(conformance(model) / "hf/config.json", folder / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    expect_same(conformance(model) / "hf", folder.path());
    const auto ours = safetensors_model::open(folder.path()),
               theirs = safetensors_model::open(conformance(model) / "hf");
    CHECK(ours.tensors().size() == theirs.tensors().size());
    // The norms are f32 here, all else has the folder's bytes.
    for (const auto& tensor : theirs.tensors()) {
      INFO(tensor.name);
      const auto other = std::find_if(ours.tensors().begin(), ours.tensors().end(),
                                      [&](const auto& each) { return each.name == tensor.name; });
      REQUIRE(other != ours.tensors().end());
      CHECK(other->shape == tensor.shape);
      if (tensor.shape.size() == 1) continue;
      bytes x(static_cast<std::size_t>(tensor.bytes)), y(static_cast<std::size_t>(other->bytes));
      theirs.files()[tensor.file].file().read(tensor.offset, x);
      ours.files()[other->file].file().read(other->offset, y);
      CHECK((x == y));
    }
  }
  // Ternary codes as floats, under the folder's names.
  convert(shared("models/fable-bitnet-i2_s.gguf"), folder / "model.safetensors", {.codec = dtype::f32});
  std::filesystem::copy_file(shared("models/fable-bitnet/config.json"), folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  const auto floats = checkpoint::open(folder.path()),
             source = checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  std::vector<float> x(256 * 8), y(256 * 8);
  floats.read_f32(floats.at("blk.2.attn_output.weight"), 3, 8, x);
  source.read_f32(source.at("blk.2.attn_output.weight"), 3, 8, y);
  CHECK((x == y));
}

TEST_CASE("convert: PyTorch's files become what the folder of the same model becomes", "[convert]") {
  const temporary_folder folder;
  convert(conformance("mistral-tiny") / "hf", folder / "folder.gguf", {.codec = dtype::q4_k});
  const auto expected = gguf::open(folder / "folder.gguf");
  for (const char* form : {"orig", "hf-bin"}) {
    INFO(form);
    convert(conformance("mistral-tiny") / form, folder / "out.gguf", {.codec = dtype::q4_k});
    const auto ours = gguf::open(folder / "out.gguf");
    REQUIRE(ours.tensors().size() == expected.tensors().size());
    for (const auto& tensor : expected.tensors()) {
      INFO(tensor.name);
      CHECK((data_of(ours, tensor.name) == data_of(expected, tensor)));
    }
  }
  // One of the files names its folder.
  convert(conformance("mistral-tiny") / "orig/consolidated.00.pth", folder / "out.gguf", {.codec = dtype::q4_k});
  CHECK((data_of(gguf::open(folder / "out.gguf"), "blk.1.attn_q.weight") == data_of(expected, "blk.1.attn_q.weight")));
}
