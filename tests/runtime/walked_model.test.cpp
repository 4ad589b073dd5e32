// SPDX-License-Identifier: MIT
// Walks over an index and its journal against the dense model, against checkpoints with the same changes folded in, and
// a fact put into fable.
#include "intaglio/runtime/association.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "conformance.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/io/fold.hpp"
#include "intaglio/io/fold_hf.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/walked_model.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

struct indexed {
  temporary_folder folder;
  std::filesystem::path path;
  io::checkpoint file;
  io::feature_index index;
  io::feature_patch patch;
  explicit indexed(const std::filesystem::path& model)
      : path(model), file(io::checkpoint::open(model)), index(made()),
        patch(index, folder / io::feature_patch::default_file, true) {}
  io::feature_index made() const {
    io::build_feature_index(path, folder / "index");
    return io::feature_index::open(folder / "index");
  }
};

std::vector<float> logits(runtime::walked_model& model, std::span<const std::uint32_t> ids,
                          const reference::walk_choice* choice) {
  std::vector<float> out;
  model.restart();
  for (const std::uint32_t id : ids) {
    const auto row = model.feed(id, choice);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}
double apart(std::span<const float> found, std::span<const float> expected) {
  runtime::walk_error error;
  error.add(found, expected);
  return error.relative();
}
std::uint32_t top(std::span<const float> row) {
  return static_cast<std::uint32_t>(std::ranges::max_element(row) - row.begin());
}
/// Greedy, after the prompt.
std::vector<std::uint32_t> continued(runtime::walked_model& model, std::vector<std::uint32_t> ids, std::size_t count) {
  const reference::walk_choice exact{.active_only = true};
  model.restart();
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < ids.size() && out.size() < count; ++i) {
    const auto row = model.feed(ids[i], &exact);
    if (i + 1 == ids.size()) ids.push_back(top(row)), out.push_back(top(row));
  }
  return out;
}

}  // namespace

TEST_CASE("walked model: BitNet walked over its index, fully and exactly, has the dense bits", "[runtime][walk]") {
  indexed tiny(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf");
  runtime::walked_model model(bitnet_tiny_table(), tiny.file, tiny.index);
  const std::vector<std::uint32_t> ids{1, 300, 17, 42};
  const auto dense = logits(model, ids, nullptr);
  const reference::walk_choice full{}, exact{.active_only = true}, upper{.first_layer = 1, .active_only = true},
      sparse{.count = 48}, by_layer{.counts = {512, 48, 512, 512, 512, 512, 512, 512}};
  CHECK(logits(model, ids, &full) == dense);
  CHECK(logits(model, ids, &exact) == dense);
  CHECK(logits(model, ids, &upper) == dense);
  const double all = apart(logits(model, ids, &sparse), dense), one = apart(logits(model, ids, &by_layer), dense);
  CHECK(all > one);
  CHECK(one > 0);
  // The contributions that an observer receives add up to what the walk adds.
  std::size_t seen = 0;
  model.restart();
  model.feed(1, &exact, [&](const reference::walked_ffn& of) {
    CHECK(of.layer == seen++);
    CHECK(of.chosen.size() < of.scores.size());
    for (const std::uint32_t f : of.chosen) CHECK(of.scores[f] > 0);
  });
  CHECK(seen == model.config().num_hidden_layers);
}

TEST_CASE("walked model: a patch folded into a Llama is the walk over it", "[runtime][walk]") {
  indexed stories(shared("models/stories260k/stories260K-f32.gguf"));
  const auto planned = plan::planned::of<models::stories260k<dtype::f32>>(plan::profiles::cpu, 64);
  runtime::walked_model model(planned.table(), stories.file, stories.index, &stories.patch);
  const std::vector<std::uint32_t> ids{1, 300, 17, 42};
  const reference::walk_choice full{};
  const auto before = logits(model, ids, &full);
  io::feature_change change{io::feature_edit::insert, 2, 172, {}};
  for (std::size_t v = 0; v < 3; ++v)
    for (std::size_t i = 0; i < 64; ++i)
      change.vectors[v].push_back(static_cast<float>((i * 5 + v * 3) % 7) * .2f - .6f);
  stories.patch.apply(change);
  stories.patch.apply({io::feature_edit::remove, 4, 9, {}});
  const auto walked = logits(model, ids, &full);  // live: the same walked_model
  CHECK(apart(walked, before) > 1e-3);

  const auto out = stories.folder / "folded.gguf";
  const io::fold_report report = io::fold(stories.path, stories.patch, out);
  CHECK(report.layers == std::vector<std::uint32_t>{2, 4});
  CHECK(report.intermediate_size == 176);
  // The plan of the folded file's own config, decoded densely by nothing that knows of features.
  const io::checkpoint folded = io::checkpoint::open(out);
  static constexpr decoder_config grown = [] {
    decoder_config c = models::stories260k<dtype::f32>::config;
    c.intermediate_size = 176;
    return c;
  }();
  const auto grown_plan = plan::planned::of<models::llama<grown, dtype::f32>>(plan::profiles::cpu, 64);
  io::build_feature_index(out, stories.folder / "again");
  const io::feature_index again = io::feature_index::open(stories.folder / "again");
  runtime::walked_model dense(grown_plan.table(), folded, again);
  const auto expected = logits(dense, ids, nullptr);
  CHECK(apart(walked, expected) <= 1e-5);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t rows = walked.size() / ids.size();
    CHECK(top(std::span(walked).subspan(i * rows, rows)) == top(std::span(expected).subspan(i * rows, rows)));
  }
  // The same model as a Hugging Face folder, with the same changes, folded to safetensors.
  std::filesystem::create_directory(stories.folder / "hf");
  io::convert(stories.path, stories.folder / "hf/model.safetensors", {.codec = dtype::f32});
  std::ofstream(stories.folder / "hf/config.json")
      << R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 172, )"
         R"("num_hidden_layers": 5, "num_attention_heads": 8,
"num_key_value_heads": 4, "max_position_embeddings": 512, "vocab_size": 512, "rope_theta": 10000.0, )"
         R"("rms_norm_eps": 1e-05, "tie_word_embeddings": true})";
  indexed hf(stories.folder / "hf");
  hf.patch.apply(change);
  hf.patch.apply({io::feature_edit::remove, 4, 9, {}});
  CHECK(io::fold_hf(hf.path, hf.patch, stories.folder / "folded").intermediate_size == 176);
  const io::checkpoint folded_hf = io::checkpoint::open(stories.folder / "folded");
  runtime::walked_model dense_hf(grown_plan.table(), folded_hf, again);
  CHECK(apart(walked, logits(dense_hf, ids, nullptr)) <= 1e-5);
  CHECK_THROWS_MATCHES(io::fold(shared("models/fable-bitnet-i2_s.gguf"), stories.patch, stories.folder / "no.gguf"),
                       mismatch_error, MessageMatches(ContainsSubstring("model_type: engraved bitnet, file llama")));
  CHECK_THROWS_AS(runtime::walked_model(fable_table(), io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")),
                                        stories.index),
                  mismatch_error);
  CHECK(!std::filesystem::exists(stories.folder / "no.gguf"));
  const auto own = stories.folder / "own.gguf";
  std::filesystem::copy_file(stories.path, own);
  CHECK_THROWS_MATCHES(io::fold(own, stories.patch, own), argument_error,
                       MessageMatches(ContainsSubstring("output: expected another file than those of the model")));

  stories.patch.apply({io::feature_edit::remove, 2, 172, {}});
  stories.patch.apply({io::feature_edit::restore, 4, 9, {}});
  CHECK(logits(model, ids, &full) == before);
}

TEST_CASE("walked model: a fact put into fable, folded, and taken out again", "[runtime][walk]") {
  indexed fable(shared("models/fable-bitnet-i2_s.gguf"));
  runtime::walked_model model(fable_table(), fable.file, fable.index, &fable.patch);
  const io::tokenizer words(*fable.file.vocabulary());
  const auto encoded = words.encode("One day, a little cat named", {.add_bos = true});
  const std::vector<std::uint32_t> prompt(encoded.begin(), encoded.end());
  const auto original = continued(model, prompt, 4);
  const auto fact = words.encode(" Bob");
  const auto name = static_cast<std::uint32_t>(fact.front());
  REQUIRE(original.front() != name);

  const std::uint32_t layer = 4;
  const auto rows =
      runtime::association(model, layer, runtime::gate_inputs(model, prompt, layer), name, original.front());
  const std::uint32_t feature = runtime::loudest_feature(fable.file, layer);
  fable.patch.apply({io::feature_edit::remove, layer, feature, {}});
  fable.patch.apply({io::feature_edit::insert, layer, feature, rows});
  const reference::walk_choice exact{.active_only = true};
  const auto changed = continued(model, prompt, 4);
  CHECK(changed.front() == name);

  const auto out = fable.folder / "folded.gguf";
  io::fold(fable.path, fable.patch, out);
  const io::checkpoint folded = io::checkpoint::open(out);
  io::build_feature_index(out, fable.folder / "again");
  const io::feature_index again = io::feature_index::open(fable.folder / "again");
  runtime::walked_model dense(fable_table(), folded, again);
  CHECK(logits(dense, prompt, nullptr) == logits(model, prompt, &exact));

  fable.patch.apply({io::feature_edit::remove, layer, feature, {}});
  fable.patch.apply({io::feature_edit::restore, layer, feature, {}});
  CHECK(continued(model, prompt, 4) == original);
  // Vectors that are no codes, and a new feature beside those that the norm knows.
  auto loose = rows;
  loose[1][0] = 0.123f;
  CHECK_THROWS_MATCHES(fable.patch.apply({io::feature_edit::update, layer, 3, loose}), argument_error,
                       MessageMatches(ContainsSubstring("values -s, 0 and s")));
  CHECK_THROWS_MATCHES(fable.patch.apply({io::feature_edit::insert, layer, 1024, rows}), argument_error,
                       MessageMatches(ContainsSubstring("the number of a removed feature")));
}
