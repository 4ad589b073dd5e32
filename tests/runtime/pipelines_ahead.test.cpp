// SPDX-License-Identifier: MIT
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/pipelines_ahead.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;

TEST_CASE("pipelines made ahead are all that an executor begins with", "[runtime][pipelines_ahead]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const runtime::kernel_modules modules = runtime::usable_modules(on.device).front();
  gpu::pipeline_cache cache(on.device, "", table.hash);
  runtime::pipelines_ahead ahead(on.device, modules, runtime::executor::begins_with(modules, table), cache);
  auto kernels = ahead.take();
  REQUIRE(kernels);
  CHECK(!ahead.take());
  kernels->wait();
  const std::size_t made = kernels->size(), compiled = cache.hits() + cache.misses();
  CHECK(made > 5);
  CHECK(compiled == made);
  const runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), std::move(*kernels), &cache);
  CHECK(run.pipelines() == made);
  CHECK(cache.hits() + cache.misses() == compiled);
}

TEST_CASE("a kernel can be proven while other pipelines are still made, and an executor records what comes last", "[runtime][pipelines_ahead]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const runtime::kernel_modules modules = runtime::usable_modules(on.device).front();
  gpu::pipeline_cache cache(on.device, "", table.hash);
  auto kernels = runtime::pipelines_ahead(on.device, modules, runtime::executor::begins_with(modules, table), cache).take();
  REQUIRE(kernels);
  auto weights = runtime::synthetic_weights(on.device, table);
  CHECK(runtime::executor::prove_kernels(on.device, table, *kernels, weights).kernel.empty());
  runtime::executor run(on.device, table, std::move(weights), std::move(*kernels), &cache);
  CHECK(run.prove_in_one().kernel.empty());
}

TEST_CASE("an executor that draws later draws what another one draws, and notes the proof when all is proven", "[runtime][pipelines_ahead]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const runtime::kernel_modules modules{};  // of GPUs
  const auto drawn = [&](runtime::executor& run, float temperature) {
    const std::array<std::uint32_t, 3> prompt{3, 17, 40};
    std::vector<std::uint32_t> out;
    for (const std::uint32_t turns : {1u, 6u}) {  // in flight when another job begins
      run.begin(runtime::pass_kind::prefill, 0, prompt, {}, 1);
      while (run.pending()) run.may_submit() ? run.submit(1e9, 1) : run.wait();
      run.begin(runtime::pass_kind::decode, 3, {{5}}, {.temperature = temperature, .top_p = 0.9f, .repeat_penalty = 1.2f, .seed = 11}, turns);
      while (run.pending()) run.may_submit() ? run.submit(1e9, 2) : run.wait();
      while (run.in_flight() != 0) run.wait();
      for (std::uint32_t i = 0; i < turns; ++i) out.push_back(run.drawn(i));
    }
    return out;
  };
  runtime::executor all(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  CHECK(all.is_complete());
  for (const bool draws_at_once : {false, true}) {
    gpu::pipeline_cache cache(on.device, "", table.hash);
    runtime::kernel_set kernels(on.device, modules, true);
    kernels.begin(runtime::executor::begins_with(modules, table), &cache);
    runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), std::move(kernels), &cache, true);
    CHECK(!run.is_complete());
    if (!draws_at_once) CHECK(drawn(run, 0) == drawn(all, 0));
    CHECK(!run.is_complete());
    CHECK(drawn(run, 0.8f) == drawn(all, 0.8f));
    CHECK(run.is_complete());
    CHECK(drawn(run, 0) == drawn(all, 0));
    CHECK(cache.note().empty());
    run.note_when_complete(cache, "proven");
    CHECK(cache.note() == "proven");
  }
  gpu::pipeline_cache cache(on.device, "", table.hash);
  {
    runtime::kernel_set kernels(on.device, modules, true);
    kernels.begin(runtime::executor::begins_with(modules, table), &cache);
    runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), std::move(kernels), &cache, true);
    run.note_when_complete(cache, "proven");
  }
  CHECK(cache.note() == "proven");  // it ends what it has left to do
}

TEST_CASE("nothing is made ahead unless asked for", "[runtime][pipelines_ahead]") {
  runtime::pipelines_ahead none;
  CHECK(!none.take());
}

TEST_CASE("a pipeline that cannot be made ahead is told of by who waits for it, and by nobody else", "[runtime][pipelines_ahead]") {
  for (const bool taken : {true, false}) {
    faults::the_shim().reset();
    {
      gpu::device_options options;
      options.entry = &faults::entry;
      const gpu::device on(options);
      const plan::table& table = bitnet_tiny_table();
      const runtime::kernel_modules modules = runtime::usable_modules(on).front();
      gpu::pipeline_cache cache(on, "", table.hash);
      faults::the_shim().arm(faults::id::vkCreateComputePipelines, 0, VK_ERROR_OUT_OF_DEVICE_MEMORY);
      runtime::pipelines_ahead ahead(on, modules, runtime::executor::begins_with(modules, table), cache);
      if (taken) {
        const auto kernels = ahead.take();
        REQUIRE(kernels);
        CHECK_THROWS_AS(kernels->wait(), out_of_memory);
        CHECK_THROWS_AS(runtime::executor::prove_kernels(on, table, *kernels, runtime::synthetic_weights(on, table)), out_of_memory);
      }
    }
    CHECK(faults::the_shim().injected());
    CHECK(faults::the_shim().live().empty());
  }
  faults::the_shim().reset();
}
