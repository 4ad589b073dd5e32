// SPDX-License-Identifier: MIT
// Decoders whose folders have names or orders of rows of their own, and mixtures like those of other families, from
// folders, from GGUF and converted, against numpy in float64 (renamed_families.py).
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <utility>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "numpy_models.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::array tiny_families{"glm",      "glm_edge", "chatglm",    "exaone",      "internlm2", "internlm3",
                                   "deepseek", "dots1",    "minimax_m2", "hunyuan_moe", "minicpm",   "minicpm4",
                                   "xverse",   "baichuan", "ling",       "ling2"};

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/renamed_families.py", {(folder / "models").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    for (const char* model : tiny_families)
      io::convert(folder / "models" / model, folder / "models" / model / "converted.gguf", options);
    return folder / "models";
  }();
  return out;
}

}  // namespace

TEST_CASE("decoders under other names give numpy's logits", "[once]") {
  const std::string model = GENERATE(from_range(tiny_families.begin(), tiny_families.end()));
  const std::string form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model,
                                                  narrow ? plan::profiles::exact : plan::profiles::cpu, 128);
  CHECK(plan::verify(plan.table()).empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  for (const auto& [prompt, chunk] : {std::pair{"p70", 0u}, {"p17", 5u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    session.reset();
    const logits_result found = session.logits(prompt_of(made() / model, prompt), chunk);
    CHECK(largest_difference(found.logits, read_floats(made() / model / (std::string(prompt) + ".logits"))) <
          (narrow ? 1e-2 : 1e-3));
  }
}

TEST_CASE("a folder under other names, its GGUF and what is converted have one config", "[once]") {
  for (const char* const model : tiny_families) {
    INFO(model);
    const decoder_config folder = io::checkpoint::open(made() / model).config();
    for (const char* form : {"model.gguf", "converted.gguf"})
      CHECK(io::config_differences(folder, io::checkpoint::open(made() / model / form).config()) ==
            std::vector<std::string>{});
  }
}

TEST_CASE("safetensors are written under a folder's names where they have its matrices", "[once]") {
  io::convert_options options;
  options.codec = dtype::f32;
  for (const char* const model : {"exaone", "glm", "minicpm4", "xverse"}) {
    INFO(model);
    const std::filesystem::path copy = made() / (std::string(model) + "_copy");
    std::filesystem::create_directory(copy);
    std::filesystem::copy_file(made() / model / "config.json", copy / "config.json");
    io::convert(made() / model, copy / "model.safetensors", options);
    const io::checkpoint one = io::checkpoint::open(made() / model), other = io::checkpoint::open(copy);
    for (const io::checkpoint_tensor& tensor : one.tensors()) {
      const std::uint64_t rows = tensor.stored.rows;
      std::vector<float> mine(rows * tensor.stored.columns), its(mine.size());
      one.read_f32(tensor, 0, rows, mine);
      other.read_f32(other.at(tensor.stored.name), 0, rows, its);
      CHECK(other.at(tensor.stored.name).stored_name == tensor.stored_name);
      CHECK(mine == its);
    }
  }
  for (const char* const model : {"chatglm", "internlm2", "baichuan", "ling", "ling2"})
    CHECK_THROWS_WITH(io::convert(made() / model, made() / model / "again.safetensors", options),
                      ContainsSubstring("whose folders have q, k and v as one matrix"));
}
