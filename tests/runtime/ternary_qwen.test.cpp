// SPDX-License-Identifier: MIT
// A Qwen3 and a Qwen2 whose folders say BitNet's quantization_config: ternary products of int8 inputs with norms of q's
// and k's heads, and with biases, against numpy (numpy_logits.py). Values beside a boundary of int8 may be rounded the
// other way, as shared/conformance2/README.md says of its llamabit.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/runtime/basic_session.hpp"
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

}  // namespace

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
  run_python("tests/runtime/numpy_logits.py", {shared("conformance2").string(), model, folder.path().string(), "p17"});
  std::ifstream in(shared("conformance2") / model / "manifest.json");
  const auto ids = nlohmann::json::parse(in)["prompts"]["p17"]["ids"].get<std::vector<std::int32_t>>();

  const std::vector<float> found = logits_of(folder.path(), ids);
  std::vector<float> expected(found.size());
  std::ifstream golden(folder / "p17.logits", std::ios::binary);
  golden.read(reinterpret_cast<char*>(expected.data()), static_cast<std::streamsize>(expected.size() * sizeof(float)));
  REQUIRE(golden);
  CHECK(logits_apart<float>(found, expected).apart < 1.5);
  CHECK(logits_cosine(found, expected) >= 0.995);

  io::convert_options options;
  options.codec = dtype::i2_s;
  options.embedding = dtype::f32;
  io::convert(folder.path(), folder / "model.gguf", options);
  CHECK(logits_of(folder / "model.gguf", ids) == found);
}
