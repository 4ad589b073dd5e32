// SPDX-License-Identifier: MIT
// Tuning on the device at hand: what it keeps is what the next start runs, and the tokens stay.
#include "intaglio/runtime/tune.hpp"

#include <catch2/catch_test_macros.hpp>

#include "gpu/checked_device.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

constexpr std::uint32_t position = 5, count = 12;

std::vector<std::uint32_t> tokens_of(const gpu::device& on, const plan::table& table, const plan::device_class& of,
                                     std::vector<plan::product_shape> shapes = {}) {
  runtime::executor run(on, runtime::executor::plan_for(table, of, std::move(shapes)),
                        runtime::synthetic_weights(on, table), runtime::kernel_set(on), nullptr);
  return drawn_tokens(run, position, 1, {}, count);
}

}  // namespace

TEST_CASE("what tuning keeps is proven, runs in the next start, and leaves the tokens", "[runtime][gpu]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const temporary_folder folder;
  std::vector<runtime::tuning_trial> trials;
  runtime::tuning_result found;
  {
    gpu::pipeline_cache cache(on.device, folder.path().string(), table.hash);
    runtime::tuning_options quick{
        .trial_ms = 0.2, .turns = 1, .least_gain = 0.01, .on_trial = [&](const auto& each) { trials.push_back(each); }};
    found = runtime::tuner(on.device, table, cache, quick).run(runtime::synthetic_weights(on.device, table));
  }
  CHECK(found.decode_ms > 0);
  CHECK(found.plan_decode_ms > 0);
  CHECK(found.prefill_ms > 0);
  CHECK(trials.size() == found.trials.size());
  REQUIRE_FALSE(trials.empty());
  gpu::pipeline_cache cache(on.device, folder.path().string(), table.hash);
  CHECK(runtime::kept_tuning(cache) == found.best);
  const runtime::planning_input next = runtime::inputs_left(on.device, cache).front();
  CHECK(plan::uses(next.device) == found.best.variant);
  CHECK(next.shapes == found.best.shapes);
  CHECK(cache.note() == next.note());  // the next start proves nothing
  CHECK(tokens_of(on.device, table, next.device, next.shapes) ==
        tokens_of(on.device, table, runtime::usable_classes(on.device).front()));
}

TEST_CASE("products shared out otherwise leave the same tokens, and a start takes the shapes that are kept",
          "[runtime][gpu]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_portable_table();
  const temporary_folder folder;
  gpu::pipeline_cache cache(on.device, folder.path().string(), table.hash);
  const plan::device_class plain = runtime::usable_classes(on.device).back();
  runtime::tuning other{plan::uses(plain), {}};
  for (const auto part : table.decode.recorded())
    for (const plan::dispatch& call : part)
      if (plan::shares_rows(call))
        other.shapes.push_back({plan::product_key(call), call.subgroups / 2,
                                plan::counts_groups(call) ? call.groups[0] : call.groups[0] / 2 + 1});
  REQUIRE(other.shapes.size() == 5);
  REQUIRE(runtime::keep_tuning(cache, other).empty());
  const auto run =
      runtime::proven_executor(on.device, table, runtime::synthetic_weights(on.device, table), cache, true);
  CHECK(plan::uses(run->plan().device()) == other.variant);
  CHECK(run->plan().options().shapes == other.shapes);
  // The plan that runs is one of its own, proven with these shapes.
  for (const auto part : run->table().decode.recorded())
    for (const plan::dispatch& call : part)
      if (const auto at = std::ranges::find_if(
              table.decode.period, [&](const plan::dispatch& each) { return each.label.view() == call.label.view(); });
          at != table.decode.period.end() && plan::shares_rows(*at))
        CHECK(call.groups[0] == at->groups[0] / 2 + 1);
  CHECK(drawn_tokens(*run, position, 1, {}, count) == tokens_of(on.device, table, plain));
}

TEST_CASE("a kept variant that the device has not is left alone", "[runtime][gpu]") {
  const checked_device on;
  const temporary_folder folder;
  const gpu::pipeline_cache cache(on.device, folder.path().string(), 17);
  REQUIRE(runtime::keep_tuning(cache, {"of another device", {{5, 1, 12}}}).empty());
  const auto all = runtime::usable_classes(on.device), found = [&] {
    std::vector<plan::device_class> out;
    for (const auto& each : runtime::inputs_left(on.device, cache)) out.push_back(each.device);
    return out;
  }();
  CHECK(found == all);
}

TEST_CASE("what a host with fewer features proved leaves the plans of more capable classes to try", "[runtime][gpu]") {
  const checked_device on;
  const temporary_folder folder;
  gpu::pipeline_cache cache(on.device, folder.path().string(), 17);
  const std::vector<runtime::planning_input> all = runtime::inputs_left(on.device, cache);
  REQUIRE(all.size() > 1);
  REQUIRE(all.back().device.offers().bits != all.front().device.offers().bits);
  runtime::planning_input lesser = all.back();
  lesser.offered = lesser.device.offers().bits;  // the most that its host had enabled
  cache.set_note(lesser.note());
  CHECK(runtime::inputs_left(on.device, cache).size() == all.size());
  cache.set_note(all.back().note());  // here the others were tried and failed
  CHECK(runtime::inputs_left(on.device, cache).size() == 1);
}
