// SPDX-License-Identifier: MIT
// Encoders from folders and from GGUF: tokens and embeddings against numpy in float64 (encoder.py,
// windowed_encoder.py, modern_encoder.py, eurobert.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

/// Whether a model has one kind of texts, and positions of its padding in front.
bool is_roberta(const std::string_view model) { return model == "xlmr" || model == "roberta"; }

/// Whether a model's products are matrices after its last norm too, and pooling a mean.
bool is_gemma_embedding(const std::string_view model) { return model == "gemma"; }

/// Whether a model is written as safetensors: the folder of a RoBERTa has rows of positions that GGUF has not, that of
/// an EmbeddingGemma has files for its last products.
bool becomes_folder(const std::string_view model) { return !is_roberta(model) && !is_gemma_embedding(model); }

/// Folder of the models, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/encoder.py", {(folder / "models").string()});
    run_python("tests/runtime/windowed_encoder.py", {(folder / "models" / "gemma").string()});
    run_python("tests/runtime/modern_encoder.py", {(folder / "models" / "modern").string()});
    run_python("tests/runtime/eurobert.py", {(folder / "models" / "euro").string()});
    for (const char* model : {"bert", "cross", "nomic", "xlmr", "roberta", "gemma", "modern", "euro"}) {
      io::convert_options options;
      options.codec = dtype::f32;
      io::convert(folder / "models" / model, folder / "models" / model / "converted.gguf", options);
      if (!becomes_folder(model)) continue;
      const std::filesystem::path written = folder / "models" / model / "converted";
      std::filesystem::create_directory(written);
      std::filesystem::copy(folder / "models" / model / "1_Pooling", written / "1_Pooling");
      for (const char* each : {"config.json", "tokenizer.json"})
        std::filesystem::copy(folder / "models" / model / each, written / each);
      io::convert(folder / "models" / model / "model.gguf", written / "model.safetensors", options);
    }
    return folder / "models";
  }();
  return out;
}

nlohmann::json expected_of(const std::string& model) {
  std::ifstream list(made() / model / "embeddings.json");
  REQUIRE(list);
  return nlohmann::json::parse(list);
}

/// 1 less the cosine of two vectors, and their largest difference over the largest component.
std::array<double, 2> apart(const std::vector<float>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double product = 0, own = 0, other = 0, largest = 0, difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    product += double{found[i]} * expected[i], own += double{found[i]} * found[i], other += expected[i] * expected[i];
    largest = (std::max)(largest, std::abs(expected[i]));
    difference = (std::max)(difference, std::abs(found[i] - expected[i]));
  }
  return {1 - product / std::sqrt(own * other), difference / largest};
}

basic_session session_of(const gpu::device& on, const plan::planned& plan, const io::checkpoint& file) {
  session_options options;
  options.cache_folder = "";
  return basic_session(on, std::array{&plan.table()}, file, options);
}

}  // namespace

TEST_CASE("encoders give numpy's embeddings, however they are pooled", "[once]") {
  const std::string model = GENERATE("bert", "nomic", "xlmr", "roberta", "gemma", "modern", "euro");
  // In tiles of tokens, as on GPUs: with the bits of floats, and with f16.
  static const plan::profile tiles = plan::with_cache(plan::profiles::exact, kernels::element::f32);
  struct way {
    std::string form;
    const plan::profile* target;
    double tolerance;
  };
  const auto [form, target, tolerance] =
      GENERATE(way{"", &plan::profiles::cpu, 2e-5}, way{"model.gguf", &tiles, 2e-5},
               way{"model.gguf", &plan::profiles::portable, 2e-2}, way{"converted.gguf", &plan::profiles::cpu, 2e-5},
               way{"converted", &plan::profiles::cpu, 2e-5});
  if (!becomes_folder(model) && form == "converted") return;
  const bool mean = model == "nomic" || model == "euro" || is_gemma_embedding(model);
  CAPTURE(model, form, target->name);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  CHECK(file.warnings().empty());
  CHECK(file.pooling() == (mean ? pooling::mean : pooling::first));
  const plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model, *target, 320);
  checked_device on;
  basic_session session = session_of(on.device, plan, file);
  for (const auto& each : expected_of(model)) {
    const std::string text = each["text"];
    CAPTURE(text);
    const std::vector<std::int32_t> ids = each["ids"];
    CHECK(io::encode_for_embedding(session.tokenizer(), text) == ids);
    for (const pooling how : {pooling::first, pooling::mean, pooling::last}) {
      const auto [angle, difference] = apart(session.embed(ids, {.pooling = how, .normalize = false}), each[name(how)]);
      CHECK(angle < tolerance * tolerance);
      CHECK(difference < tolerance);
    }
    const std::vector<float> whole = session.embed(text);
    double length = 0;
    for (const float x : whole) length += double{x} * x;
    CHECK(std::abs(length - 1) < 1e-6);
    CHECK(apart(whole, each[mean ? "mean" : "first"])[0] < tolerance * tolerance);
  }
}

TEST_CASE("an encoder's text is one pass, and has no next token", "[once]") {
  const io::checkpoint file = io::checkpoint::open(made() / "bert");
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, "bert", plan::profiles::cpu, 64);
  checked_device on;
  basic_session session = session_of(on.device, plan, file);
  const std::vector<std::int32_t> many(65, 7), some(10, 7);
  using Catch::Matchers::Message;
  CHECK_THROWS_MATCHES(session.embed(many), argument_error,
                       Message("prompt: expected at most 64 tokens (the context), found 65 tokens"));
  CHECK_THROWS_MATCHES(session.embed(some, {.chunk = 9}), argument_error,
                       Message("chunk: expected all 10 tokens of the text, which see each other, found 9"));
  const auto refused = Message(
      "model: expected a decoder, whose texts have a next token, found an encoder (bert), which gives embeddings");
  CHECK_THROWS_MATCHES(session.begin(some), argument_error, refused);
  CHECK_THROWS_MATCHES(session.begin(), argument_error, refused);
  CHECK_THROWS_MATCHES(session.prefill(some), argument_error, refused);
  CHECK_THROWS_MATCHES(session.logits(some), argument_error, refused);
  CHECK_THROWS_MATCHES(session.complete("cat"), argument_error, refused);
  CHECK_THROWS_MATCHES(session.reply("cat"), argument_error, refused);
  CHECK(session.embed(some).size() == 64);
}

TEST_CASE("a cross-encoder scores two texts as numpy does", "[once]") {
  const std::string model = GENERATE("cross", "xlmr", "roberta");
  const std::string form = GENERATE("", "model.gguf", "converted.gguf", "converted");
  if (is_roberta(model) && form == "converted") return;
  CAPTURE(model, form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  CHECK(file.warnings().empty());
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, "cross", plan::profiles::cpu, 64);
  checked_device on;
  basic_session session = session_of(on.device, plan, file);
  REQUIRE(session.has_score());
  std::ifstream list(made() / model / "scores.json");
  const auto expected = nlohmann::json::parse(list);
  REQUIRE(expected.size() == 3);
  for (const auto& each : expected) {
    const std::string first = each["first"], second = each["second"];
    const io::text_pair both = io::encode_pair(session.tokenizer(), first, second);
    CHECK((both.ids == each["ids"].get<std::vector<std::int32_t>>() && both.second == each["begins"]));
    const double score = each["score"];
    CHECK(std::abs(session.score(first, second) - score) < 1e-4 * (1 + std::abs(score)));
    // The same tokens as one text are another text.
    const auto one = session.score(both.ids, static_cast<std::uint32_t>(both.ids.size()) - 1);
    if (is_roberta(model)) CHECK(std::abs(one - score) < 1e-4 * (1 + std::abs(score)));  // it has one kind of texts
    else if (both.second + 1 != both.ids.size()) CHECK(std::abs(one - score) > 1e-3);
  }
  using Catch::Matchers::Message;
  CHECK_THROWS_MATCHES(session.score(std::vector<std::int32_t>{2, 3}, 2), argument_error,
                       Message("second text: expected a beginning from 1 to 1, found 2"));
}

TEST_CASE("a model without a head for one number refuses to score", "[once]") {
  const io::checkpoint file = io::checkpoint::open(made() / "nomic");
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, "nomic", plan::profiles::cpu, 64);
  checked_device on;
  basic_session session = session_of(on.device, plan, file);
  CHECK(!session.has_score());
  CHECK_THROWS_MATCHES(session.score("a", "b"), argument_error,
                       Catch::Matchers::Message("model: expected one that scores two texts together, with a head for "
                                                "one number, found one without (nomic-bert)"));
}
