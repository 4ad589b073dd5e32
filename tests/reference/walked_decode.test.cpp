// SPDX-License-Identifier: MIT
// Llama and Gemma decoded over a feature index of their own file: the full walk gives the dense logits, from any layer
// on; the sparse one comes nearer with every feature.
#include "intaglio/reference/walked_decode.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include "conformance.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "loaded_machine.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

/// A model file, its plan, and an index made of the file.
struct walked_model {
  plan::planned planned;
  io::checkpoint file;
  file_weights weights;
  temporary_folder folder;
  io::feature_index index;
  std::map<std::uint32_t, std::array<std::vector<float>, 3>> vectors;

  walked_model(plan::planned plan, const std::filesystem::path& path)
      : planned(std::move(plan)), file(io::checkpoint::open(path)), weights(planned.table(), file), index(made(path)) {}
  io::feature_index made(const std::filesystem::path& path) const {
    io::build_feature_index(path, folder.path());
    return io::feature_index::open(folder.path());
  }
  reference::walked_layer layer(std::uint32_t number) {
    const std::size_t size = std::size_t{index.config().hidden_size} * index.config().intermediate_size;
    auto& of = vectors[number];
    for (const auto which : io::feature_vectors)
      if (auto& values = of[static_cast<std::size_t>(which)]; values.empty()) {
        values.resize(size);
        index.read_f32(number, which, 0, index.config().intermediate_size, values);
      }
    return {index.config().hidden_size, of[0], of[1], of[2]};
  }
  /// Logits of every position, decoded token by token.
  std::vector<std::vector<float>> logits(std::span<const std::uint32_t> ids, const reference::walk_choice* choice) {
    const plan::table& table = planned.table();
    loaded_machine machine(weights);
    std::vector<std::vector<float>> out;
    for (std::uint32_t at = 0; at < ids.size(); ++at) {
      machine.feed(at, ids.subspan(at, 1));
      if (choice == nullptr) machine.run(table.decode);
      else
        reference::walked_decode(
            machine, table, [this](std::uint32_t number) { return layer(number); }, *choice)
            .run();
      const auto found = machine.floats(table.decode.logits_offset, table.config->vocab_size);
      out.emplace_back(found.begin(), found.end());
    }
    return out;
  }
};

std::size_t top(const std::vector<float>& logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}
/// found - expected| / |expected| over all positions.
double apart(const std::vector<std::vector<float>>& found, const std::vector<std::vector<float>>& expected) {
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      const double d = static_cast<double>(found[i][k]) - static_cast<double>(expected[i][k]);
      difference += d * d, whole += static_cast<double>(expected[i][k]) * static_cast<double>(expected[i][k]);
    }
  return std::sqrt(difference / whole);
}

void expect_walks(walked_model& model) {
  const std::uint32_t layers = model.index.layers();
  const std::size_t features = model.index.config().intermediate_size;
  const std::vector<std::uint32_t> ids{1, 300, 17, 42, 5};
  const auto dense = model.logits(ids, nullptr);
  for (std::uint32_t first = 0; first <= layers; ++first) {  // the boundary sweep
    INFO("dense below layer " << first);
    const reference::walk_choice choice{.first_layer = first};
    const auto walked = model.logits(ids, &choice);
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(top(walked[i]) == top(dense[i]));
    CHECK(apart(walked, dense) <= 1e-5);
    if (first == layers) CHECK(walked == dense);
  }
  double before = 1e9;
  for (const std::size_t count : {features / 16, features / 4, features * 3 / 4}) {
    const reference::walk_choice choice{.count = count};
    const double error = apart(model.logits(ids, &choice), dense);
    INFO(count << " of " << features << ": " << error);
    CHECK(error > 1e-5);  // it does leave something out
    CHECK(error < before);
    before = error;
  }
}

}  // namespace

TEST_CASE("walked decode: Llama over its index, in f32 and with gates in blocks") {
  walked_model stories(plan::planned::of<models::stories260k<dtype::f32>>(plan::profiles::cpu, 64),
                       shared("models/stories260k/stories260K-f32.gguf"));
  expect_walks(stories);
  walked_model blocks(plan::planned::of<models::llama<llama_tiny, dtype::q8_0>>(plan::profiles::cpu, 64),
                      conformance("llama-tiny") / "gguf/llama-tiny-q8_0.gguf");
  expect_walks(blocks);
}

TEST_CASE("walked decode: Gemma 3 over its index") {
  walked_model gemma(plan::planned::of<models::gemma3<gemma3_tiny, dtype::f16>>(plan::profiles::cpu, 64),
                     conformance("gemma3-tiny") / "gguf/gemma3-tiny-f16.gguf");
  expect_walks(gemma);
  // Vectors of another model.
  const reference::walk_choice all{};
  loaded_machine machine(gemma.weights);
  const std::vector<std::uint32_t> id{1};
  machine.feed(0, id);
  const std::vector<float> few(64);
  reference::walked_decode wrong(
      machine, gemma.planned.table(),
      [&](std::uint32_t) {
        return reference::walked_layer{32, few, few, few};
      },
      all);
  CHECK_THROWS_MATCHES(wrong.run(), argument_error,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                           "vectors of layer 0: expected 512 of 256, found 2 of 32")));
}
