// SPDX-License-Identifier: MIT
// Tuning on the device at hand: what it keeps is what the next start runs, and the tokens stay.
#include "intaglio/runtime/tune.hpp"

#include <catch2/catch_test_macros.hpp>

#include "gpu/kept_device.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

constexpr std::uint32_t position = 5, count = 12;

std::vector<std::uint32_t> tokens_of(const gpu::device& on, const plan::table& table,
                                     const runtime::kernel_modules& modules) {
  runtime::executor run(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  return drawn_tokens(run, position, 1, {}, count);
}

}  // namespace

TEST_CASE("what tuning keeps is proven, runs in the next start, and leaves the tokens", "[runtime][gpu]") {
  const faults::sharing_device on;
  const plan::table& table = bitnet_tiny_table();
  const temporary_folder folder;
  std::vector<runtime::tuning_trial> told;
  runtime::tuning_result found;
  {
    gpu::pipeline_cache cache(on.device, folder.path().string(), table.hash);
    runtime::tuning_options quick{
        .trial_ms = 0.2, .turns = 1, .least_gain = 0.01, .tell = [&](const auto& each) { told.push_back(each); }};
    found = runtime::tuner(on.device, table, cache, quick).run(runtime::synthetic_weights(on.device, table));
  }
  CHECK(found.decode_ms > 0);
  CHECK(found.plan_decode_ms > 0);
  CHECK(found.prefill_ms > 0);
  CHECK(told.size() == found.trials.size());
  REQUIRE_FALSE(told.empty());
  gpu::pipeline_cache cache(on.device, folder.path().string(), table.hash);
  CHECK(runtime::kept_tuning(cache) == found.best);
  const auto variants = runtime::variants_left(on.device, cache, &runtime::modules_of<>);
  CHECK(variants.front().name() == found.best.variant);
  CHECK(cache.note() == runtime::proof_note(variants.front()));  // the next start proves nothing
  CHECK(tokens_of(on.device, table, variants.front()) ==
        tokens_of(on.device, table, runtime::usable_modules(on.device).front()));
}

TEST_CASE("products shared out otherwise leave the same tokens, and a start takes the shapes that are kept",
          "[runtime][gpu]") {
  const faults::sharing_device on;
  const plan::table& table = bitnet_tiny_portable_table();
  const temporary_folder folder;
  gpu::pipeline_cache cache(on.device, folder.path().string(), table.hash);
  const runtime::kernel_modules plain = runtime::usable_modules(on.device).back();
  runtime::tuning other{plain.name(), {}};
  for (const auto part : table.decode.recorded())
    for (const plan::dispatch& call : part)
      if (runtime::shares_rows(call))
        other.shapes.push_back({runtime::product_key(call), call.subgroups / 2,
                                runtime::counts_groups(call) ? call.groups[0] : call.groups[0] / 2 + 1});
  REQUIRE(other.shapes.size() == 5);
  REQUIRE(runtime::keep_tuning(cache, other).empty());
  const auto run =
      runtime::proven_executor(on.device, table, runtime::synthetic_weights(on.device, table), cache, true);
  REQUIRE(run->kernels().modules().tuned);
  CHECK(*run->kernels().modules().tuned == other);
  CHECK(drawn_tokens(*run, position, 1, {}, count) == tokens_of(on.device, table, plain));
}

TEST_CASE("a kept variant that the device has not is left alone", "[runtime][gpu]") {
  const faults::sharing_device on;
  const temporary_folder folder;
  const gpu::pipeline_cache cache(on.device, folder.path().string(), 17);
  REQUIRE(runtime::keep_tuning(cache, {"of another device", {{5, 1, 12}}}).empty());
  const auto all = runtime::usable_modules(on.device),
             found = runtime::variants_left(on.device, cache, &runtime::modules_of<>);
  REQUIRE(found.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(found[i].identity() == all[i].identity());
}
