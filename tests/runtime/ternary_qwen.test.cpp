// SPDX-License-Identifier: MIT
// A Qwen3 and a Qwen2 whose folders say BitNet's quantization_config: ternary products of int8 inputs with norms of q's
// and k's heads, and with biases, against numpy (numpy_logits.py). Values beside a boundary of int8 may be rounded the
// other way, as shared/conformance2/README.md says of its llamabit. And a Qwen3 in Q1_0 and Q2_0, as Bonsai's files
// are.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "io/gguf_image.hpp"
#include "python.hpp"
#include "runtime/logits_apart.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

/// Logits of a prompt by a model's file, whose plan is that of a CPU.
std::vector<float> logits_of(const std::filesystem::path& path, const std::vector<std::int32_t>& ids) {
  const io::checkpoint file = io::checkpoint::open(path);
  CHECK((file.config().ternary && file.config().activation_type == dtype::i8));
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, "ternary_qwen", plan::profiles::cpu, 64);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  return session.logits(ids).logits;
}

/// numpy's logits of a folder, beside which they are written.
std::vector<float> numpy_logits(const std::string& model, const std::filesystem::path& folder, std::size_t count) {
  run_python("tests/runtime/numpy_logits.py", {shared("conformance2").string(), model, folder.string(), "p17"});
  std::vector<float> out(count);
  std::ifstream golden(folder / "p17.logits", std::ios::binary);
  golden.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  REQUIRE(golden);
  return out;
}

std::vector<std::int32_t> prompt_of(const std::string& model) {
  std::ifstream in(shared("conformance2") / model / "manifest.json");
  return nlohmann::json::parse(in)["prompts"]["p17"]["ids"].get<std::vector<std::int32_t>>();
}

/// Blocks of Q1_0 or Q2_0 near some values, which become those of the blocks.
bytes blocks_of(dtype type, std::span<float> values) {
  const bool signs = type == dtype::q1_0;
  const std::size_t size = info(type).block_elements;
  bytes out;
  for (std::size_t at = 0; at < values.size(); at += size) {
    const std::span<float> block = values.subspan(at, size);
    float sum = 0;
    for (const float value : block) sum += std::abs(value);
    const std::uint16_t scale = f16_from_f32(sum / static_cast<float>(size));
    const float d = f32_from_f16(scale);
    std::array<std::uint8_t, 18> made{};
    std::memcpy(made.data(), &scale, sizeof(scale));
    for (std::size_t j = 0; j < size; ++j) {
      const int code =
          signs ? (block[j] > 0 ? 1 : 0) : std::clamp(static_cast<int>(std::lround(block[j] / d)), -1, 2) + 1;
      const std::size_t per_byte = signs ? 8 : 4, shift = j % per_byte * (8 / per_byte);
      made[2 + j / per_byte] = static_cast<std::uint8_t>(made[2 + j / per_byte] | code << shift);
      block[j] = d * static_cast<float>(signs ? 2 * code - 1 : code - 1);
    }
    for (const std::uint8_t byte : made) append(out, byte);
  }
  return out;
}

}  // namespace

TEST_CASE("a Qwen3 in Q1_0 or Q2_0 gives numpy's logits over its decoded weights", "[once]") {
  const dtype type = GENERATE(dtype::q1_0, dtype::q2_0);
  INFO(name(type));
  const std::string model = "qwen3-tiny";
  const std::filesystem::path published = conformance(model, "conformance2", "confgen2.py");
  const temporary_folder folder;
  gguf_image coded = gguf_image::of(published / "gguf/qwen3-tiny-f32.gguf"), decoded = coded;
  for (std::size_t i = 0; i < coded.tensors.size(); ++i) {
    if (coded.tensors[i].shape.size() != 2) continue;
    std::vector<float> values(coded.tensors[i].data.size() / sizeof(float));
    std::memcpy(values.data(), coded.tensors[i].data.data(), coded.tensors[i].data.size());
    coded.tensors[i].data = blocks_of(type, values);
    coded.tensors[i].type = static_cast<std::uint32_t>(info(type).ggml_type);
    std::memcpy(decoded.tensors[i].data.data(), values.data(), decoded.tensors[i].data.size());
  }
  write_bytes(folder / "coded.gguf", coded.build());
  write_bytes(folder / "decoded.gguf", decoded.build());
  io::convert_options options;
  options.codec = dtype::f32;
  std::filesystem::create_directory(folder / "hf");
  io::convert(folder / "decoded.gguf", folder / "hf/model.safetensors", options);
  std::filesystem::copy_file(published / "hf/config.json", folder / "hf/config.json");

  const io::checkpoint file = io::checkpoint::open(folder / "coded.gguf");
  const families::weight_types types = families::types_of(file).types;
  CHECK((types.layers == type && types.embedding == type && types.head == type));
  const plan::planned plan = families::planned_of(file.config(), types, model, plan::profiles::cpu, 64);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  const std::vector<std::int32_t> ids = prompt_of(model);
  const std::vector<float> whole = session.logits(ids).logits;
  const std::vector<float> expected = numpy_logits(model, folder / "hf", whole.size());
  CHECK(logits_apart<float>(whole, expected).apart < 1e-3);
  session.reset();
  CHECK(logits_apart<float>(session.logits(ids, 1).logits, expected).apart < 1e-3);
}

TEST_CASE("a Qwen with BitNet's linear layers stays ternary, from a folder and as I2_S", "[once]") {
  const std::string model = GENERATE("qwen3-tiny", "qwen2-tiny");
  INFO(model);
  const temporary_folder folder;
  std::filesystem::copy(conformance(model, "conformance2", "confgen2.py") / "hf", folder.path(),
                        std::filesystem::copy_options::recursive);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config["quantization_config"] = {
      {"quant_method", "bitnet"}, {"linear_class", "autobitlinear"}, {"quantization_mode", "online"}};
  std::ofstream(folder / "config.json") << config;
  const std::vector<std::int32_t> ids = prompt_of(model);
  const std::vector<float> found = logits_of(folder.path(), ids),
                           expected = numpy_logits(model, folder.path(), found.size());
  CHECK(logits_apart<float>(found, expected).apart < 1.5);
  CHECK(logits_cosine(found, expected) >= 0.995);

  io::convert_options options;
  options.codec = dtype::i2_s;
  options.embedding = dtype::f32;
  io::convert(folder.path(), folder / "model.gguf", options);
  CHECK(logits_of(folder / "model.gguf", ids) == found);
}
