// SPDX-License-Identifier: MIT
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

TEST_CASE("convert: every ternary codec from every form keeps codes, scales and values", "[unsanitized][convert]") {
  const temporary_folder folder;
  const auto out = folder / "out.gguf";
  for (const char* in : {"models/fable-bitnet", "models/fable-bitnet-packed", "models/fable-bitnet-i2_s.gguf",
                         "models/fable-bitnet-tq2_0.gguf"})
    for (const dtype codec : {dtype::i2_s, dtype::tq1_0, dtype::tq2_0, dtype::f32, dtype::f16, dtype::bf16}) {
      INFO(in << " to " << intaglio::name(codec));
      convert_options options;
      options.codec = codec;
      std::size_t calls = 0;
      file_progress last;
      options.progress = [&](const file_progress& progress) {
        CHECK(progress.bytes >= last.bytes);
        CHECK(progress.bytes <= progress.total_bytes);
        last = progress;
        ++calls;
      };
      const auto report = convert(shared(in), out, options);
      CHECK(report.warnings.empty());
      CHECK(last.bytes == last.total_bytes);
      CHECK(last.tensors == 90);
      CHECK(calls > 90);
      expect_same(shared(in), out);
      const auto checked = check(out);
      for (const auto& finding : checked.errors) FAIL_CHECK(finding.text);
      CHECK(checked.warnings.empty());
      CHECK(gguf::open(out).warnings().empty());
      const auto written = checkpoint::open(out);
      CHECK(written.config() == checkpoint::open(shared(in)).config());
      CHECK(written.at("blk.3.ffn_up.weight").stored.type == codec);
      REQUIRE(written.vocabulary());
      const auto source = checkpoint::open(shared(in));
      CHECK(written.vocabulary()->tokens == source.vocabulary()->tokens);
      CHECK(written.vocabulary()->merges == source.vocabulary()->merges);
      CHECK(written.vocabulary()->eos_id == source.vocabulary()->eos_id);
      CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
    }
}

TEST_CASE("convert: the tensors of fable come out as the published files have them", "[convert]") {
  const temporary_folder folder;
  for (const auto& [codec, name] :
       {std::pair{dtype::i2_s, "models/fable-bitnet-i2_s.gguf"}, {dtype::tq2_0, "models/fable-bitnet-tq2_0.gguf"}}) {
    convert_options options;
    options.codec = codec;
    convert(shared("models/fable-bitnet"), folder / "out.gguf", options);
    const auto ours = gguf::open(folder / "out.gguf"), theirs = gguf::open(shared(name));
    for (const auto& tensor : theirs.tensors()) {
      INFO(tensor.name);
      const auto* other = ours.find_tensor(tensor.name);
      REQUIRE(other != nullptr);
      REQUIRE(other->type == tensor.type);
      bytes a(static_cast<std::size_t>(tensor.bytes)), b(static_cast<std::size_t>(other->bytes));
      theirs.first().file().read(tensor.offset, a);
      ours.first().file().read(other->offset, b);
      CHECK((a == b));
    }
  }
}

TEST_CASE("convert: a folder with SiLU becomes the architecture that means SiLU", "[convert]") {
  const temporary_folder folder;
  std::filesystem::create_directory(folder / "silu");
  const auto in = conformance("bitnet-tiny") / "hf-packed";
  std::filesystem::copy_file(in / "model.safetensors", folder / "silu/model.safetensors");
  const bytes config = read_bytes(in / "config.json");
  std::string text(reinterpret_cast<const char*>(config.data()), config.size());
  const std::size_t at = text.find("\"relu2\"");
  REQUIRE(at != std::string::npos);
  write_text(folder / "silu/config.json", text.replace(at, 7, "\"silu\""));
  convert_options options;
  options.codec = dtype::i2_s;
  const auto report = convert(folder / "silu", folder / "out.gguf", options);
  const std::string silu = (folder / "silu").string();
  CHECK(report.warnings ==
        std::vector<std::string>{
            silu + ": neither tokenizer.json nor tokenizer.model in this folder",
            silu + ": GGUF has SiLU only with f32 activations (architecture bitnet); the folder's are i8"});
  const auto written = checkpoint::open(folder / "out.gguf");
  CHECK(written.stated_architecture() == "bitnet");
  auto expected = checkpoint::open(folder / "silu").config();
  CHECK(expected.hidden_act == intaglio::activation::silu);
  expected.activation_type = dtype::f32;
  CHECK(written.differences(expected).empty());
  expect_same(folder / "silu", folder / "out.gguf");
}

TEST_CASE("convert: a llama file takes the Q codecs", "[convert]") {
  const temporary_folder folder;
  const auto in = shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf");
  for (const dtype codec : {dtype::f32, dtype::q8_0, dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k}) {
    convert_options options;
    options.codec = codec;
    convert(in, folder / "out.gguf", options);
    CHECK(check(folder / "out.gguf").ok());
    CHECK(checkpoint::open(folder / "out.gguf").at("blk.1.ffn_up.weight").stored.type == codec);
  }
  convert_options options;
  options.codec = dtype::f32;
  convert(in, folder / "out.gguf", options);
  expect_same(in, folder / "out.gguf");
}

TEST_CASE("convert: numbers that the codec cannot hold are refused by name", "[convert]") {
  const temporary_folder folder;
  convert_options options;
  options.codec = dtype::f16;
  gguf_image image = gguf_image::of(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf");
  const float large = 1e6f;
  std::memcpy(image.tensor_at("blk.1.ffn_up.weight").data.data() + 400, &large, 4);
  CHECK_THROWS_WITH(convert(write_bytes(folder / "in.gguf", image.build()), folder / "out.gguf", options),
                    ContainsSubstring("blk.1.ffn_up.weight") && ContainsSubstring("expected values that f16 can hold"));
  // Neither do blocks whose scale is beyond f16, wherever the work is done, and no number is never one.
  for (const auto& [value, codecs, what] :
       {std::tuple{1e10f, std::vector{dtype::q8_0, dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k, dtype::bcml1},
                   "values that "},
        {std::nanf(""), std::vector{dtype::f32, dtype::q8_0, dtype::bcml1}, "expected a finite number, found NaN"},
        {-INFINITY, std::vector{dtype::f32, dtype::q4_k}, "expected a finite number, found infinity"}}) {
    auto broken = gguf_image::of(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf");
    std::memcpy(broken.tensor_at("blk.1.ffn_up.weight").data.data() + 400, &value, 4);
    write_bytes(folder / "broken.gguf", broken.build());
    for (const dtype codec : codecs)
      CHECK_THROWS_WITH(convert(folder / "broken.gguf", folder / "out.gguf", {.codec = codec, .threads = 2}),
                        ContainsSubstring("blk.1.ffn_up.weight") && ContainsSubstring(what));
  }
  image = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf");
  bytes& data = image.tensor_at("blk.1.ffn_up.weight").data;
  const float tiny = 1e-12f;
  std::memcpy(data.data() + data.size() - 32, &tiny, 4);
  options.codec = dtype::tq2_0;
  CHECK_THROWS_WITH(convert(write_bytes(folder / "in.gguf", image.build()), folder / "out.gguf", options),
                    ContainsSubstring("blk.1.ffn_up.weight") &&
                        ContainsSubstring("scale: expected one that tq2_0 can hold, found 1e-12"));
  options.codec = dtype::bf16;
  CHECK(convert(folder / "in.gguf", folder / "out.gguf", options).warnings.size() == 1);
  for (const dtype embedding : {dtype::tq1_0, dtype::tq2_0, dtype::i2_s}) {
    options.embedding = embedding;
    CHECK_THROWS_WITH(convert(folder / "in.gguf", folder / "out.gguf", options),
                      ContainsSubstring("embedding: expected f32 f16 bf16 q8_0 q4_0 q4_1 q4_k q6_k q5_0 q5_1 q2_k q3_k "
                                        "q5_k iq4_nl mxfp4, found " +
                                        std::string(intaglio::name(embedding))));
  }
  options.embedding = dtype::q8_0;
  convert(folder / "in.gguf", folder / "out.gguf", options);
  CHECK(checkpoint::open(folder / "out.gguf").at("token_embd.weight").stored.type == dtype::q8_0);
  const float huge = 1e6f;
  std::memcpy(data.data() + data.size() - 32, &huge, 4);
  options = {};
  options.codec = dtype::tq1_0;
  CHECK_THROWS_WITH(convert(write_bytes(folder / "in.gguf", image.build()), folder / "out.gguf", options),
                    ContainsSubstring("scale: expected one that tq1_0 can hold, found 1000000"));
}

TEST_CASE("convert: a folder whose heads do not add up to the model's width", "[convert]") {
  const temporary_folder folder;
  std::filesystem::create_directory(folder / "narrow");
  // Half of the heads: the first rows of q, k, v, packed four to a byte, and the first columns of o.
  const auto source = safetensors_image::of(conformance("bitnet-tiny") / "hf-packed/model.safetensors");
  safetensors_image narrow;
  for (const auto& [name, entry] : source.header.items()) {
    if (name == "__metadata__") continue;
    auto shape = entry["shape"].get<std::vector<std::size_t>>();
    const auto from = source.data.begin() + entry["data_offsets"][0].get<std::ptrdiff_t>(),
               to = source.data.begin() + entry["data_offsets"][1].get<std::ptrdiff_t>();
    bytes data(from, to);
    const auto has = [&, tensor = name](std::string_view part) { return tensor.ends_with(part); };
    if (has("q_proj.weight") || has("k_proj.weight") || has("v_proj.weight") || has("attn_sub_norm.weight")) {
      shape[0] /= 2;
      data.resize(data.size() / 2);
    } else if (has("o_proj.weight")) {
      for (std::size_t row = 1; row < shape[0]; ++row)
        std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(row * shape[1]), shape[1] / 2,
                    data.begin() + static_cast<std::ptrdiff_t>(row * shape[1] / 2));
      shape[1] /= 2;
      data.resize(data.size() / 2);
    }
    const std::size_t at = narrow.data.size();
    narrow.data.insert(narrow.data.end(), data.begin(), data.end());
    narrow.header[name] = {{"dtype", entry["dtype"]}, {"shape", shape}, {"data_offsets", {at, at + data.size()}}};
  }
  write_bytes(folder / "narrow/model.safetensors", narrow.build());
  const bytes raw = read_bytes(conformance("bitnet-tiny") / "hf-packed/config.json");
  auto config = nlohmann::json::parse(std::string(reinterpret_cast<const char*>(raw.data()), raw.size()));
  config["num_attention_heads"] = 2;
  config["num_key_value_heads"] = 1;
  config["head_dim"] = 64;
  write_text(folder / "narrow/config.json", config.dump());
  convert(folder / "narrow", folder / "out.gguf", {});
  const auto written = checkpoint::open(folder / "out.gguf");
  CHECK(written.config().q_size() == 128);
  // Rows of half a block stay numbers.
  convert_options blocks;
  blocks.codec = dtype::tq2_0;
  const auto report = convert(folder / "narrow", folder / "blocks.gguf", blocks);
  CHECK(std::count_if(report.warnings.begin(), report.warnings.end(), [](const auto& line) {
          return line.ends_with(": rows of 128 are no whole blocks of tq2_0, written as f16");
        }) == 3);
  CHECK(checkpoint::open(folder / "blocks.gguf").at("blk.0.attn_output.weight").stored.type == dtype::f16);
  CHECK(checkpoint::open(folder / "blocks.gguf").at("blk.0.attn_q.weight").stored.type == dtype::tq2_0);
  CHECK(written.config() == checkpoint::open(folder / "narrow").config());
  expect_same(folder / "narrow", folder / "out.gguf");
}

TEST_CASE("convert: what cannot be done leaves nothing behind", "[convert]") {
  need_shared();
  const temporary_folder folder;
  convert_options options;
  options.codec = dtype::q8_0;
  CHECK_THROWS_AS(convert(shared("models/fable-bitnet"), folder / "out.gguf", options), intaglio::argument_error);
  options.codec = dtype::i2_s;
  CHECK_THROWS_AS(convert(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf"), folder / "out.gguf", options),
                  intaglio::argument_error);
  CHECK_THROWS_AS(convert(conformance("llama-tiny") / "hf", folder / "out.gguf", {.codec = dtype::tq1_0}),
                  intaglio::argument_error);
  CHECK_THROWS_WITH(convert(conformance("llama-tiny") / "hf", folder / "out.safetensors", {.codec = dtype::q8_0}),
                    ContainsSubstring("f32 f16 bf16 for safetensors, found q8_0"));
  CHECK_THROWS_WITH(convert(conformance("llama-tiny") / "hf", folder / "out.safetensors",
                            {.codec = dtype::f16, .embedding = dtype::q8_0}),
                    ContainsSubstring("embedding: expected f32 f16 bf16 for safetensors"));
  CHECK_THROWS_WITH(
      convert(conformance("llama-tiny") / "hf", folder / "out.gguf", {.codec = dtype::f16, .embedding = dtype::bcml1}),
      ContainsSubstring("embedding: expected f32 f16 bf16 q8_0"));
  CHECK_THROWS_AS(convert(folder / "nothing.gguf", folder / "out.gguf", options), intaglio::file_error);
  CHECK_THROWS_AS(convert(shared("models/fable-bitnet"), folder / "no" / "out.gguf", options), intaglio::file_error);

  // A fault in the middle of the data, found while the new file is being written.
  bytes data = read_bytes(shared("models/fable-bitnet-i2_s.gguf"));
  const auto file = gguf::open(shared("models/fable-bitnet-i2_s.gguf"));
  data[static_cast<std::size_t>(file.find_tensor("blk.5.ffn_up.weight")->offset) + 77] = std::byte{0xFF};
  write_bytes(folder / "bad.gguf", data);
  write_text(folder / "out.gguf", "old");
  options.codec = dtype::tq2_0;
  CHECK_THROWS_AS(convert(folder / "bad.gguf", folder / "out.gguf", options), intaglio::file_error);
  CHECK(read_bytes(folder / "out.gguf").size() == 3);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);

  // A callback that throws stops it as well.
  options.progress = [](const file_progress& progress) {
    if (progress.tensors == 20) throw std::runtime_error("enough");
  };
  CHECK_THROWS_AS(convert(shared("models/fable-bitnet-i2_s.gguf"), folder / "out.gguf", options), std::runtime_error);
  CHECK(read_bytes(folder / "out.gguf").size() == 3);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("convert: the version of the blocks is stated though the input did not", "[convert]") {
  const temporary_folder folder;
  auto image = gguf_image::of(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf");
  std::erase_if(image.keys, [](const auto& key) { return key.name == "general.quantization_version"; });
  convert(write_bytes(folder / "in.gguf", image.build()), folder / "out.gguf", {.codec = dtype::q8_0});
  CHECK(gguf::open(folder / "out.gguf").value<std::uint32_t>("general.quantization_version") == 2u);
}

TEST_CASE("convert: tensors that have their type already are copied", "[convert]") {
  const temporary_folder folder;
  const auto in = shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf");
  const auto report = convert(in, folder / "out.gguf", {.codec = dtype::q4_k});
  const auto from = gguf::open(in), to = gguf::open(folder / "out.gguf");
  std::size_t copied = 0;
  for (const auto& tensor : from.tensors()) {
    if (tensor.type != dtype::q4_k) continue;
    INFO(tensor.name);
    CHECK((data_of(from, tensor) == data_of(to, tensor.name)));
    ++copied;
  }
  CHECK(copied > 10);
  for (const auto& kind : report.kinds) CHECK((kind.loss.largest == 0) == (kind.from == kind.to));
  // So are panels.
  convert(in, folder / "panels.gguf", {.codec = dtype::bcml1});
  CHECK(convert(folder / "panels.gguf", folder / "again.gguf", {.codec = dtype::bcml1}).loss.largest == 0);
  CHECK((read_bytes(folder / "panels.gguf") == read_bytes(folder / "again.gguf")));
}

TEST_CASE("convert: what a codec cost is reported by kind of tensor and for all", "[convert]") {
  const temporary_folder folder;
  const auto in = conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf";
  for (const auto& [codec, least, most] : {std::tuple{dtype::f32, 0., 0.},
                                           {dtype::f16, 0., 0.},
                                           {dtype::q8_0, 0.001, 0.01},
                                           {dtype::q6_k, 0.01, 0.03},
                                           {dtype::q4_k, 0.05, 0.09},
                                           {dtype::q4_1, 0.06, 0.1},
                                           {dtype::bcml1, 0.06, 0.1},
                                           {dtype::q4_0, 0.06, 0.12}}) {
    INFO(intaglio::name(codec));
    const auto report = convert(in, folder / "out.gguf", {.codec = codec});
    const auto before = checkpoint::open(in), after = checkpoint::open(folder / "out.gguf");
    CHECK(after.at("output.weight").stored.type == (codec == dtype::bcml1 ? dtype::f16 : codec));
    CHECK(after.at("blk.1.attn_k.weight").stored.type == codec);
    conversion_loss all, ups;
    std::size_t tensors = 0;
    for (const auto& tensor : before.tensors()) {
      std::vector<float> x(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns)), y(x.size());
      before.read_f32(tensor, 0, tensor.stored.rows, x);
      after.read_f32(after.at(tensor.stored.name), 0, tensor.stored.rows, y);
      all.add(x, y);
      if (tensor.stored.name.ends_with("ffn_up.weight")) ups.add(x, y);
    }
    const auto same = [](const conversion_loss& a, const conversion_loss& b) {
      return a.values == b.values && a.largest == b.largest && std::fabs(a.rms() - b.rms()) <= 1e-9 * b.rms() &&
             std::fabs(a.relative() - b.relative()) <= 1e-9 * b.relative();
    };
    CHECK(same(report.loss, all));
    for (const auto& kind : report.kinds) {
      tensors += kind.tensors;
      if (kind.name != "ffn_up") continue;
      CHECK((kind.tensors == 3 && kind.from == dtype::f32 && kind.to == codec));
      CHECK(same(kind.loss, ups));
      CHECK(kind.loss.relative() >= least);
      CHECK(kind.loss.relative() <= most);
    }
    CHECK(tensors == before.tensors().size());
  }
}
