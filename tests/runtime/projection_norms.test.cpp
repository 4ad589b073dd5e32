// SPDX-License-Identifier: MIT
// A Qwen3 and a Gemma 3 whose matrices each have a norm of their own in front, as microsoft's bitnet-embedding models:
// ternary by their tensors or by transformers' quantization_config, as I2_S, and as floats, against numpy
// (projection_norms.py). Values beside a boundary of int8 may be rounded the other way.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
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
  double worst = 0;
  for (std::size_t i = 0; i < width; ++i)
    worst = std::max(worst, std::abs(static_cast<double>(last[i]) - static_cast<double>(all[all.size() - width + i])));
  CHECK(worst < 0.05);
  return all;
}

std::vector<float> golden(const std::filesystem::path& path, std::size_t count) {
  std::vector<float> out(count);
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(count * sizeof(float)));
  REQUIRE(in);
  return out;
}

struct distance {
  double worst = 0, cosine = 0;
};
distance between(const std::vector<float>& found, const std::vector<float>& expected) {
  distance out;
  double both = 0, mine = 0, theirs = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    out.worst = std::max(out.worst, std::abs(a - b));
    both += a * b, mine += a * a, theirs += b * b;
  }
  out.cosine = both / std::sqrt(mine * theirs);
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
  const distance apart = between(found, golden(folder / "p17.logits", found.size()));
  INFO(apart.worst << " " << apart.cosine);
  CHECK(apart.worst < 1.5);
  CHECK(apart.cosine >= 0.995);
  CHECK(logits_of(folder / "auto", ids, true) == found);

  io::convert_options options;
  options.codec = dtype::i2_s;
  options.embedding = dtype::f32;
  io::convert(folder / "bitlinear", folder / "model.gguf", options);
  CHECK(logits_of(folder / "model.gguf", ids, true) == found);
  if (gemma) return;
  const std::vector<float> floats = logits_of(folder / "float.gguf", ids, false);
  const distance exact = between(floats, golden(folder / "float.logits", floats.size()));
  INFO(exact.worst << " " << exact.cosine);
  CHECK(exact.worst < 2e-3);

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
