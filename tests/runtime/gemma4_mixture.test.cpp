// SPDX-License-Identifier: MIT
// A Gemma 4 with experts beside its FFNs, from a folder and from GGUF, against numpy (gemma4_mixture.py).
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "numpy_models.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// Folder of the model and its logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    const std::filesystem::path source = conformance("gemma4d-tiny", "conformance2", "confgen2.py");
    run_python("tests/runtime/gemma4_mixture.py",
               {shared("conformance2").string(), source.string(), (folder / "model").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    io::convert(folder / "model", folder / "model/converted.gguf", options);
    return folder / "model";
  }();
  return out;
}

}  // namespace

TEST_CASE("a Gemma 4 with experts beside its FFNs gives numpy's logits, decoded and in chunks", "[once]") {
  const std::string form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(form);
  const io::checkpoint file = io::checkpoint::open(made() / form);
  const decoder_config& c = file.config();
  CHECK((c.num_local_experts == 8 && c.num_experts_per_tok == 2 && c.intermediate_size == 96 &&
         c.shared_expert_intermediate_size == 512));
  const families::weight_types types = families::types_of(file).types;
  const plan::planned plan = families::planned_of(c, types, "gemma4_mixture", plan::profiles::cpu, 128);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  std::ifstream in(shared("conformance2") / "gemma4d-tiny" / "manifest.json");
  const auto manifest = nlohmann::json::parse(in);
  for (const auto& [prompt, chunk] : {std::pair{"p17", 0u}, {"p100", 0u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    const auto ids = manifest["prompts"][prompt]["ids"].get<std::vector<std::int32_t>>();
    const std::vector<float> expected = read_floats(made() / (std::string(prompt) + ".logits"));
    session.reset();
    const logits_result found = session.logits(ids, chunk);
    REQUIRE(found.logits.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(found.logits[i]) - static_cast<double>(expected[i])));
    CHECK(worst < 1e-3);
  }
}
