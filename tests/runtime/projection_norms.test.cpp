// SPDX-License-Identifier: MIT
// A Qwen3 and a Gemma 3 whose matrices each have a norm of their own in front, as microsoft's bitnet-embedding models:
// ternary by their tensors or by transformers' quantization_config, as I2_S, and as floats, against numpy
// (projection_norms.py). Values beside a boundary of int8 may be rounded the other way.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/io/lora_adapter.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "lora_files.hpp"
#include "python.hpp"
#include "runtime/logits_apart.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<float> logits_of(const std::filesystem::path& path, const std::vector<std::int32_t>& ids, bool ternary) {
  const io::checkpoint file = io::checkpoint::open(path);
  CHECK(file.config().projection_norm_eps == 1e-6f);
  CHECK(file.config().ternary == ternary);
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, "projection_norms", plan::profiles::cpu, 64);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  std::vector<float> all = session.logits(ids).logits;
  const std::size_t width = file.config().vocab_size;
  // The last token again by decode, whose products take the norms as their prologues.
  basic_session other(on.device, tables, file, {.cache_folder = ""});
  other.prefill(std::span(ids).first(ids.size() - 1));
  const std::vector<float> last = other.logits(std::span(ids).last(1)).logits;
  REQUIRE(last.size() == width);
  CHECK(logits_apart<float>(last, std::span(all).last(width)).apart < 0.05);
  return all;
}

std::vector<float> golden(const std::filesystem::path& path, std::size_t count) {
  std::vector<float> out(count);
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(count * sizeof(float)));
  REQUIRE(in);
  return out;
}

}  // namespace

TEST_CASE("matrices have norms of their own, in folders, as I2_S and as floats", "[once]") {
  const std::string model = GENERATE("qwen3-tiny", "gemma3-tiny");
  const bool gemma = model == "gemma3-tiny";
  INFO(model);
  const temporary_folder folder;
  const std::string set = gemma ? "conformance" : "conformance2";
  const auto source = conformance(model, set, gemma ? "confgen.py" : "confgen2.py") / "hf";
  run_python("tests/runtime/projection_norms.py",
             {shared("conformance").parent_path().string(), model, source.string(), folder.path().string()});
  std::ifstream in(shared(set) / model / "manifest.json");
  const auto ids = nlohmann::json::parse(in)["prompts"]["p17"]["ids"].get<std::vector<std::int32_t>>();

  const std::vector<float> found = logits_of(folder / "bitlinear", ids, true);
  const std::vector<float> expected = golden(folder / "p17.logits", found.size());
  CHECK(logits_apart<float>(found, expected).apart < 1.5);
  CHECK(logits_cosine(found, expected) >= 0.995);
  CHECK(logits_of(folder / "auto", ids, true) == found);

  io::convert_options options;
  options.codec = dtype::i2_s;
  options.embedding = dtype::f32;
  io::convert(folder / "bitlinear", folder / "model.gguf", options);
  CHECK(logits_of(folder / "model.gguf", ids, true) == found);
  if (gemma) return;
  const std::vector<float> floats = logits_of(folder / "float.gguf", ids, false);
  CHECK(logits_apart<float>(floats, golden(folder / "float.logits", floats.size())).apart < 2e-3);

  testing::lora_file{.tensors = {"blk.0.attn_q.weight"}, .architecture = "qwen3"}.write(
      folder / "lora.gguf", io::gguf::open(folder / "float.gguf"));
  io::checkpoint file = io::checkpoint::open(folder / "float.gguf");
  CHECK_THROWS_WITH(io::lora_adapter(folder / "lora.gguf").merge_into(file, 1),
                    ContainsSubstring("an adapter of a model whose matrices have no norms of their own"));
}

TEST_CASE("a folder whose tensors alone show BitNet's linear layers says so", "[once]") {
  const temporary_folder folder;
  const auto source = conformance("qwen3-tiny", "conformance2", "confgen2.py") / "hf";
  run_python("tests/runtime/projection_norms.py",
             {shared("conformance").parent_path().string(), "qwen3-tiny", source.string(), folder.path().string()});
  const auto lines = io::checkpoint::open(folder / "bitlinear").warnings();
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("matrices have norms of their own") != std::string::npos;
  }));
  // A file without one of them is refused by the tensor's name.
  nlohmann::json config = nlohmann::json::parse(std::ifstream(source / "config.json"));
  std::filesystem::copy(source, folder / "none", std::filesystem::copy_options::recursive);
  config["quantization_config"] = {
      {"quant_method", "bitnet"}, {"linear_class", "autobitlinear"}, {"use_rms_norm", true}};
  std::ofstream(folder / "none" / "config.json") << config;
  CHECK_THROWS_WITH(io::checkpoint::open(folder / "none"), ContainsSubstring("attn_q_norm_in.weight"));
}
