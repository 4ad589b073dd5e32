// SPDX-License-Identifier: MIT
// Decoders whose layers are put together of those of other families, from folders, from GGUF and converted, against
// numpy in float64 (decoders.py, later_decoders.py, logistic_decoders.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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

namespace {

constexpr std::array tiny_decoders{"olmo3",    "olmo3_kinds",  "qwen3vlmoe",        "granitemoe",  "granitemoeshared",
                                   "granite4", "olmoe",        "qwen35moe",         "lfm2moe",     "gemma",
                                   "arcee",    "seed_oss",     "exaone4",           "exaone4_all", "qwen2moe",
                                   "ernie4_5", "ministral3",   "glm4moe",           "glm4moe_air", "glm4",
                                   "hunyuan",  "ernie4_5_moe", "ernie4_5_moe_alone"};

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    for (const char* script :
         {"tests/runtime/decoders.py", "tests/runtime/later_decoders.py", "tests/runtime/logistic_decoders.py"})
      run_python(script, {(folder / "models").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    for (const char* model : tiny_decoders)
      io::convert(folder / "models" / model, folder / "models" / model / "converted.gguf", options);
    return folder / "models";
  }();
  return out;
}

}  // namespace

TEST_CASE("decoders put together of others' layers give numpy's logits", "[once]") {
  const std::string model = GENERATE(from_range(tiny_decoders.begin(), tiny_decoders.end()));
  const std::string form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  if ((model.starts_with("glm4moe") && form != "converted.gguf") || (model.starts_with("ernie4_5_moe") && form.empty()))
    CHECK((file.warnings().size() == 1 &&
           file.warnings()[0].ends_with("3 tensors of layers that draft tokens are not read")));
  else CHECK(file.warnings().empty());
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

TEST_CASE("a folder of such a decoder, its GGUF and what is converted have one config", "[once]") {
  for (const char* const model : tiny_decoders) {
    INFO(model);
    decoder_config folder = io::checkpoint::open(made() / model).config();
    folder.delta_net.in_turn = folder.delta_net.value_heads != 0;  // as GGUF has value heads
    for (const char* form : {"model.gguf", "converted.gguf"})
      CHECK(io::config_differences(folder, io::checkpoint::open(made() / model / form).config()) ==
            std::vector<std::string>{});
  }
}
