// SPDX-License-Identifier: MIT
// An embedding model whose vector is the last token's state, as Qwen3-Embedding is published, from a folder, from GGUF
// and converted, against numpy in float64 (last_token.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

/// Folder of the model, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/last_token.py", {(folder / "model").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    io::convert(folder / "model", folder / "model" / "converted.gguf", options);
    return folder / "model";
  }();
  return out;
}

}  // namespace

TEST_CASE("a decoder for embeddings gives the last token's state, after the EOS of its template", "[once]") {
  const std::string form = GENERATE("", "model.gguf", "converted.gguf");
  CAPTURE(form);
  const io::checkpoint file = io::checkpoint::open(made() / form);
  CHECK(file.warnings().empty());
  CHECK(file.pooling() == pooling::last);
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, "last", plan::profiles::cpu, 128);
  checked_device on;
  basic_session session(on.device, std::array{&plan.table()}, file, {.cache_folder = ""});
  std::ifstream list(made() / "embeddings.json");
  const auto all = nlohmann::json::parse(list);
  REQUIRE(all.size() == 4);
  for (const auto& each : all) {
    const std::string text = each["text"];
    CAPTURE(text);
    CHECK(io::encode_for_embedding(session.tokenizer(), text) == each["ids"].get<std::vector<std::int32_t>>());
    const std::vector<float> found = session.embed(text);
    const std::vector<double> expected = each["last"];
    REQUIRE(found.size() == expected.size());
    double length = 0, difference = 0;
    for (const double x : expected) length += x * x;
    for (std::size_t i = 0; i < found.size(); ++i)
      difference = (std::max)(difference, std::abs(double{found[i]} - expected[i] / std::sqrt(length)));
    CHECK(difference < 1e-5);
  }
}
