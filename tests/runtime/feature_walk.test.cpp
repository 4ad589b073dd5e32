// SPDX-License-Identifier: MIT
// Llama and Gemma 3 whose decode walks FFNs of f32 and f16 by features, all of them or the nearest, against the dense
// models and the walks of the reference.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/graph/layers/walk_ffn.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/io/fold.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/plan/weight_identity.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/walked_model.hpp"
#include "intaglio/runtime/weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

template <template <dtype, dtype> class FFN>
plan::planned stories(const plan::profile& target) {
  return plan::planned::of<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32, FFN>>(target,
                                                                                                               64);
}
template <template <dtype, dtype> class FFN>
plan::planned gemma(const plan::profile& target) {
  return plan::planned::of<models::gemma3<gemma3_tiny, dtype::f16, dtype::f16, FFN>>(target, 64);
}

/// A model planned dense, for a full walk, and for a walk of some features.
struct walks {
  plan::planned dense, full, sparse;
  std::size_t count;
  std::filesystem::path file;
};
walks made(int which, const plan::profile& target) {
  if (which == 0)
    return {stories<graph::gated_ffn>(target), stories<graph::walk_ffn>(target),
            stories<graph::sparse_walk<40>::ffn>(target), 40, shared("models/stories260k/stories260K-f32.gguf")};
  return {gemma<graph::gated_ffn>(target), gemma<graph::walk_ffn>(target), gemma<graph::sparse_walk<100>::ffn>(target),
          100, conformance("gemma3-tiny") / "gguf/gemma3-tiny-f16.gguf"};
}

std::vector<std::vector<float>> logits(runtime::walked_model& model, std::span<const std::uint32_t> ids,
                                       const reference::walk_choice* choice = nullptr) {
  std::vector<std::vector<float>> out;
  for (const std::uint32_t id : ids) {
    const auto row = model.feed(id, choice);
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}
runtime::walk_error error_of(const std::vector<std::vector<float>>& found,
                             const std::vector<std::vector<float>>& expected) {
  runtime::walk_error out;
  for (std::size_t i = 0; i < expected.size(); ++i) out.add(found[i], expected[i]);
  return out;
}

std::vector<std::uint32_t> drawn(runtime::executor& run, std::uint32_t count) {
  return drawn_tokens(run, 0, 300, {.temperature = 0}, count);
}
std::vector<std::uint32_t> drawn(const gpu::device& on, const plan::table& table, const io::checkpoint& file,
                                 std::uint32_t count) {
  runtime::executor run(on, table, runtime::load_weights(on, table, file), chain_class(on), nullptr);
  CHECK(run.prove().kernel.empty());
  return drawn(run, count);
}
/// Tokens that the walked model on the CPU draws.
std::vector<std::uint32_t> drawn(runtime::walked_model& model, const reference::walk_choice* choice,
                                 std::uint32_t count) {
  model.restart();
  std::vector<std::uint32_t> out;
  for (std::uint32_t token = 300; out.size() < count; out.push_back(token)) {
    const auto row = model.feed(token, choice);
    token = static_cast<std::uint32_t>(std::ranges::max_element(row) - row.begin());
  }
  return out;
}

}  // namespace

TEST_CASE(
    "feature walk: the plan of a full walk gives the dense logits, one of the nearest features those of the "
    "reference's walk",
    "[runtime][walk]") {
  const walks of = made(GENERATE(0, 1), plan::profiles::cpu);
  INFO(of.file);
  const io::checkpoint file = io::checkpoint::open(of.file);
  const temporary_folder folder;
  io::build_feature_index(of.file, folder.path());
  const io::feature_index index = io::feature_index::open(folder.path());
  const std::vector<std::uint32_t> ids{1, 300, 17, 42};
  runtime::walked_model dense(of.dense.table(), file, index), full(of.full.table(), file, index),
      sparse(of.sparse.table(), file, index);
  const auto expected = logits(dense, ids);
  const auto whole = error_of(logits(full, ids), expected);
  CHECK(whole.same_top == ids.size());
  CHECK(whole.relative() <= 1e-5);
  dense.restart();
  const reference::walk_choice nearest{.count = of.count};
  const auto some = logits(sparse, ids);
  CHECK(error_of(some, logits(dense, ids, &nearest)).relative() <= 1e-5);
  CHECK(error_of(some, expected).relative() > 1e-3);
}

TEST_CASE("feature walk: a device draws the reference's tokens", "[runtime][walk][gpu][once]") {
  const checked_device on;
  const bool cpu = GENERATE(true, false);
  const walks of = made(cpu ? 0 : 1, cpu ? plan::profiles::cpu : plan::profiles::portable);
  const io::checkpoint file = io::checkpoint::open(of.file);
  CHECK(drawn(on.device, of.full.table(), file, 12) == drawn(on.device, of.dense.table(), file, 12));
  const auto found = drawn(on.device, of.sparse.table(), file, 12);
  const temporary_folder folder;
  io::build_feature_index(of.file, folder.path());
  const io::feature_index index = io::feature_index::open(folder.path());
  runtime::walked_model model(of.sparse.table(), file, index);
  CHECK(found == drawn(model, nullptr, 12));
}

TEST_CASE("feature walk: a device takes a patch while loading, and changes of it between passes",
          "[runtime][walk][gpu][once]") {
  const checked_device on;
  const bool ternary = GENERATE(true, false);
  const auto path =
      ternary ? shared("models/fable-bitnet-i2_s.gguf") : shared("models/stories260k/stories260K-f32.gguf");
  const auto planned = stories<graph::sparse_walk<40>::ffn>(plan::profiles::cpu);
  const plan::table& table = ternary ? fable_walk_table() : planned.table();
  const io::checkpoint file = io::checkpoint::open(path);
  const temporary_folder folder;
  io::build_feature_index(path, folder / "index");
  const io::feature_index index = io::feature_index::open(folder / "index");
  io::feature_patch patch(index, folder / "patch", true);
  const auto change = [&](std::uint32_t layer, std::uint32_t feature, std::uint32_t seed) {
    io::feature_change out{io::feature_edit::update, layer, feature, {}};
    for (const auto which : io::feature_vectors)
      for (std::uint32_t c = 0; c < table.config->hidden_size; ++c) {
        const float code = static_cast<float>((c * 7 + seed * 5 + static_cast<std::uint32_t>(which) * 3) % 3) - 1;
        out.vectors[static_cast<std::size_t>(which)].push_back(code *
                                                               (ternary ? index.layer(layer)[which].scale : .7f));
      }
    patch.apply(out);
  };
  const reference::walk_choice choice{.count = ternary ? ~std::size_t{0} : 40, .active_only = ternary};
  runtime::walked_model plain(ternary ? fable_table() : planned.table(), file, index);
  const auto original = drawn(plain, ternary ? &choice : nullptr, 10);
  const std::uint32_t changes = ternary ? 160 : 40;
  for (std::uint32_t i = 0; i < changes; ++i) change(2, 4 * i + i % 2, i);
  const auto dense = stories<graph::gated_ffn>(plan::profiles::cpu);
  runtime::walked_model walked(ternary ? fable_table() : dense.table(), file, index,
                               &patch);  // a walk of the dense plan: of nothing that the device runs
  const auto expected = drawn(walked, &choice, 10);
  CHECK(expected != original);
  // Each weight as changed is that of a checkpoint with the changes in it.
  io::fold(path, patch, folder / "folded.gguf");
  const io::checkpoint folded = io::checkpoint::open(folder / "folded.gguf");
  runtime::weight_image changed(file, table, &patch), wanted(folded, table);
  for (runtime::weight_image* each : {&changed, &wanted}) each->measure(1, [](std::uint64_t) {});
  for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot) {
    if (!table.weights[slot].per_layer) continue;
    std::vector<std::byte> a(table.weights[slot].bytes), b = a, part(a.size() / 3);
    changed.fill(slot, 2, 0, a);
    wanted.fill(slot, 2, 0, b);
    INFO(table.weights[slot].sources[0].view() << ", layout " << plan::name(table.weights[slot].layout));
    CHECK((a == b));
    changed.fill(slot, 2, a.size() / 2, part);
    CHECK(std::ranges::equal(part, std::span(a).subspan(a.size() / 2, part.size())));
  }

  runtime::executor run(on.device, table, runtime::load_weights(on.device, table, file, {.patch = &patch}),
                        chain_class(on.device), nullptr);
  CHECK(run.prove().kernel.empty());
  CHECK(drawn(run, 10) == expected);
  for (std::uint32_t i = 0; i < changes; ++i) patch.apply({io::feature_edit::restore, 2, 4 * i + i % 2, {}});
  for (std::uint32_t i = 0; i < changes; ++i) change(4, 4 * i, i + 1);
  runtime::weight_image image(file, table, &patch);
  image.measure(1, [](std::uint64_t) {});
  for (const std::uint32_t layer : {2u, 4u}) runtime::update_features(on.device, table, image, run.weights(), layer);
  CHECK(drawn(run, 10) == drawn(walked, &choice, 10));
  CHECK(drawn(walked, &choice, 10) != original);
  if (!ternary) {
    patch.apply(
        {io::feature_edit::insert, 1, 172,
         std::array<std::vector<float>, 3>{std::vector<float>(64), std::vector<float>(64), std::vector<float>(64)}});
    CHECK_THROWS_AS(runtime::update_features(on.device, table, image, run.weights(), 1), argument_error);
  }
}
