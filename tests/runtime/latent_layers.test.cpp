// SPDX-License-Identifier: MIT
// Latent attention in sessions and batches: chunks and coded caches, saved and shared beginnings, the reference's
// logits. The models are those of latent_attention.py.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "loaded_machine.hpp"
#include "numpy_models.hpp"
#include "python.hpp"
#include "runtime/batch_and_alone.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/latent_attention.py", {(folder / "models").string()});
    io::convert_options options;
    options.codec = dtype::q8_0;
    for (const char* model : {"v2_lite", "flash"})
      io::convert(folder / "models" / model, folder / "models" / model / "coded.gguf", options);
    return folder / "models";
  }();
  return out;
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "latent", target, 128, shape);
}

/// The cosine between rows of logits, for the row in the middle: a few rows of other experts do not count.
double usual_cosine(const std::vector<float>& one, const std::vector<float>& other, std::size_t width) {
  REQUIRE(one.size() == other.size());
  std::vector<double> rows;
  for (std::size_t at = 0; at < one.size(); at += width) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = at; i < at + width; ++i) {
      const double a = static_cast<double>(one[i]), b = static_cast<double>(other[i]);
      ab += a * b, aa += a * a, bb += b * b;
    }
    rows.push_back(ab / std::sqrt(aa * bb));
  }
  std::ranges::sort(rows);
  return rows[rows.size() / 2];
}

std::vector<float> expected_of(const std::string& model, const std::string& prompt) {
  return read_floats(made() / model / (prompt + ".logits"));
}

/// Runs all sessions to their ends. @return what the session drew
std::vector<std::int32_t> drawn_of(basic_batch& from, const batch_handle& who) {
  std::vector<std::int32_t> out;
  for (int i = 0; from.active() != 0 && i < 500; ++i)
    for (const batch_token& token : from.step(3))
      if (token.of.number == who.number) out.push_back(token.id);
  return out;
}

}  // namespace

TEST_CASE("a plan with latent attention keeps a latent vector and a rotated key a position", "[runtime]") {
  const io::checkpoint file = io::checkpoint::open(made() / "flash");
  const plan::planned plan = planned(file, plan::profiles::portable, {.slot_count = 3, .page_size = 16});
  CHECK(plan::verify(plan.table()).empty());
  const plan::layer_cache& cache = plan.table().caches[0];
  CHECK((cache.key_bytes == std::uint64_t{2} * 128 * 80 && cache.value_bytes == std::uint64_t{2} * 128 * 64));
  CHECK((plan.table().resident_decode.resident.empty() && plan.table().resident_batch.resident.empty()));
}

TEST_CASE("latent attention in f16 chunks, coded weights and coded caches stays near numpy's logits", "[once]") {
  using kernels::element;
  const std::string model = GENERATE("v2_lite", "flash");
  struct way {
    std::string file;
    plan::profile target;
    double least;
  };
  const way ways[] = {{"", plan::profiles::portable, 0.9999},
                      {"coded.gguf", plan::profiles::cpu, 0.99},
                      {"coded.gguf", plan::profiles::portable, 0.99},
                      {"", plan::with_cache(plan::profiles::cpu, element::q8_0), 0.999},
                      {"", plan::with_cache(plan::profiles::exact, element::q4_0), 0.95}};
  checked_device on;
  for (const way& each : ways) {
    INFO(model << " " << each.file << " " << each.target.name);
    const io::checkpoint file = io::checkpoint::open(made() / model / each.file);
    const plan::planned plan = planned(file, each.target);
    CHECK(plan::verify(plan.table()).empty());
    const std::array<const plan::table*, 1> tables{&plan.table()};
    basic_session session(on.device, tables, file, {.cache_folder = ""});  // every kernel proves itself
    CHECK(usual_cosine(session.logits(prompt_of(made() / model, "p70")).logits, expected_of(model, "p70"),
                       file.config().vocab_size) > each.least);
  }
}

TEST_CASE("the reference has numpy's logits of latent attention", "[once]") {
  const std::string model = GENERATE("v2_lite", "flash");
  const io::checkpoint file = io::checkpoint::open(made() / model);
  const plan::planned plan = planned(file, plan::profiles::cpu);
  file_weights weights(plan.table(), file);
  loaded_machine machine(weights);
  std::vector<std::uint32_t> ids;
  for (const std::int32_t id : prompt_of(made() / model, "p17")) ids.push_back(static_cast<std::uint32_t>(id));
  machine.feed(0, std::span(ids).first(ids.size() - 1));
  machine.run(plan.table().prefill);
  machine.feed(static_cast<std::uint32_t>(ids.size()) - 1, std::span(ids).last(1));
  machine.run(plan.table().decode);
  const auto found = machine.floats(plan.table().decode.logits_offset, plan.table().config->vocab_size);
  const std::vector<float> expected = expected_of(model, "p17");
  CHECK(largest_difference({found.begin(), found.end()},
                           {expected.end() - static_cast<std::ptrdiff_t>(found.size()), expected.end()}) < 1e-3);
}

TEST_CASE("a session with latent attention goes on from its beginning, saved and restored", "[runtime]") {
  const std::string model = GENERATE("v2_lite", "flash");
  const auto type = GENERATE(kernels::element::f32, kernels::element::q8_0);
  const io::checkpoint file = io::checkpoint::open(made() / model);
  const plan::planned plan = planned(file, plan::with_cache(plan::profiles::cpu, type));
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session one(on.device, tables, file, {.cache_folder = ""}),
      other(on.device, tables, file, {.cache_folder = ""});
  const auto ids = prompt_of(made() / model, "p70");
  const auto said = [](basic_session& of, const std::vector<std::int32_t>& prompt) {
    return of.generate(prompt, {.max_tokens = 12, .stop_at_end = false});
  };
  const generation first = said(one, ids);
  CHECK(first.ids == said(other, ids).ids);
  auto branch = ids;
  branch[50] = 11;
  other.reset();
  const generation parted = said(one, branch);
  CHECK((parted.ids == said(other, branch).ids && parted.timings.cached_tokens == 50));
  const temporary_folder folder;
  one.save(folder / "session");
  other.restore(folder / "session");
  const std::vector<std::int32_t> after{5, 6, 7};
  CHECK(one.logits(after).logits == other.logits(after).logits);
}

TEST_CASE("sessions with latent attention in a batch draw what they draw alone, from pages of others too",
          "[runtime]") {
  const auto& [model, target] =
      GENERATE(std::pair{"v2_lite", plan::profiles::cpu}, std::pair{"flash", plan::profiles::exact},
               std::pair{"flash", plan::with_cache(plan::profiles::cpu, kernels::element::q8_0)});
  INFO(model << " " << target.name);
  io::checkpoint file = io::checkpoint::open(made() / model);
  plan::planned plan = planned(file, target, {.slot_count = 3, .page_size = 16});
  CHECK(plan::verify(plan.table()).empty());
  both b(std::move(plan), std::move(file));
  check_mixed(b);
  const auto ids = prompt_of(made() / model, "p70");
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 20};
  const auto alone = b.drawn_alone(ids, options);
  const batch_handle one = b.batch.join(ids, options), two = b.batch.join(ids, options);
  CHECK(drawn_of(b.batch, one) == alone);
  CHECK(b.batch.cached_tokens(two) != 0);
  // Its beginning in a file, for another batch of the plan.
  const temporary_folder folder;
  auto turn = ids;
  turn.insert(turn.end(), alone.begin(), alone.end());
  const saved_prefix saved = b.batch.save(turn, folder / "one", {options.sampling, ""});
  basic_batch other(b.on.device, b.tables, b.file, {.cache_folder = "", .prove_kernels = false});
  CHECK(other.restore(folder / "one").positions == saved.positions);
  CHECK(drawn_of(other, other.join(ids, options)) == alone);
}
