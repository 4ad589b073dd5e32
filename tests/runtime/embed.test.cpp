// SPDX-License-Identifier: MIT
// Embeddings: states after the last norm against goldens of transformers (shared/conformance2/README.md), alone and
// beside the sessions of a batch.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"

using namespace intaglio;

namespace {

struct golden_text {
  std::vector<std::int32_t> ids;
  std::vector<double> states;  ///< [tokens, width]: the golden's, after the last norm
  std::size_t width = 0;
};

/// The prompt of 17 tokens of a model, with its states.
golden_text golden_of(const std::string& model, std::size_t width) {
  const std::filesystem::path folder = shared("conformance2") / model;
  std::ifstream list(folder / "manifest.json");
  golden_text out;
  out.width = width;
  out.ids = nlohmann::json::parse(list)["prompts"]["p17"]["ids"].get<std::vector<std::int32_t>>();
  std::ifstream in(folder / "goldens/base/hidden_p17_all.npy", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<float> last(17 * width);
  REQUIRE(bytes.size() > 4 * last.size());
  std::memcpy(last.data(), bytes.data() + bytes.size() - 4 * last.size(), 4 * last.size());
  out.states.assign(last.begin(), last.end());
  return out;
}

std::vector<double> pooled(const golden_text& of, pooling how, bool normalize) {
  std::vector<double> out(of.width);
  const std::size_t tokens = of.ids.size(), first = how == pooling::last ? tokens - 1 : 0,
                    end = how == pooling::first ? 1 : tokens;
  for (std::size_t token = first; token < end; ++token)
    for (std::size_t i = 0; i < of.width; ++i)
      out[i] += of.states[token * of.width + i] / static_cast<double>(end - first);
  double length = 0;
  for (const double x : out) length += x * x;
  for (double& x : out) x /= normalize ? std::sqrt(length) : 1;
  return out;
}

double distance(std::span<const float> a, std::span<const double> b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out = std::max(out, std::abs(static_cast<double>(a[i]) - b[i]));
  return out;
}

}  // namespace

TEST_CASE("embed gives the pooled states of transformers, whatever the chunk", "[once]") {
  const std::string model =
      GENERATE("qwen3-tiny", "granite-tiny", "lfm2-tiny");  // Granite's stream and norm have factors
  INFO(model);
  const io::checkpoint file = io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / "hf");
  const golden_text of = golden_of(model, file.config().hidden_size);
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, model, plan::profiles::cpu, 64);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  session.prefill(std::vector<std::int32_t>{3, 4, 5});
  for (const pooling how : {pooling::last, pooling::mean, pooling::first})
    for (const bool normalize : {true, false})
      for (const std::uint32_t chunk : {0u, 5u, 1u}) {
        INFO(name(how) << ", " << normalize << ", chunk " << chunk);
        const auto found = session.embed(of.ids, {.pooling = how, .normalize = normalize, .chunk = chunk});
        CHECK(distance(found, pooled(of, how, normalize)) < 1e-3);
        CHECK(session.history().empty());
      }
  CHECK(distance(session.embed(of.ids), pooled(of, pooling::last, true)) < 1e-3);
  CHECK_THROWS_AS(session.embed(std::vector<std::int32_t>{}), argument_error);
  CHECK_THROWS_AS(session.embed(std::vector<std::int32_t>(65)), argument_error);
  CHECK_THROWS_AS(session.embed(std::vector<std::int32_t>{-1}), argument_error);
  if (session.has_tokenizer()) {
    const io::tokenizer& words = session.tokenizer();
    const auto ids = words.encode("one two", {.add_bos = words.adds_bos(), .add_eos = words.adds_eos()});
    CHECK(session.embed("one two") == session.embed(ids));
  }
}

TEST_CASE("embed leaves the sessions of a batch as they are", "[once]") {
  const std::string model = "qwen3-tiny";
  const io::checkpoint file = io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / "hf");
  const golden_text of = golden_of(model, file.config().hidden_size);
  const plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model,
                                                  plan::profiles::cpu, 64, {.slot_count = 2, .page_size = 8});
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_batch batch(on.device, tables, file, {.cache_folder = ""});
  const auto tokens_of = [&](bool embeds) {
    const batch_handle whose = batch.join(of.ids, {.max_tokens = 6});
    std::vector<std::int32_t> out;
    while (batch.has(whose)) {
      for (const batch_token& each : batch.step()) out.push_back(each.id);
      if (embeds) CHECK(distance(batch.embed(of.ids), pooled(of, pooling::last, true)) < 1e-3);
    }
    return out;
  };
  const auto alone = tokens_of(false);
  CHECK(alone.size() == 6);
  CHECK(tokens_of(true) == alone);
}
