// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <string>

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
  const std::size_t made = kernels->size(), compiled = cache.hits() + cache.misses();
  CHECK(made > 5);
  CHECK(compiled == made);
  const runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), std::move(*kernels), &cache);
  CHECK(run.pipelines() == made);
  CHECK(cache.hits() + cache.misses() == compiled);
}

TEST_CASE("nothing is made ahead unless asked for", "[runtime][pipelines_ahead]") {
  runtime::pipelines_ahead none;
  CHECK(!none.take());
}

TEST_CASE("a pipeline that cannot be made ahead is told of by who takes it, and by nobody else", "[runtime][pipelines_ahead]") {
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
      if (taken) CHECK_THROWS_AS(ahead.take(), out_of_memory);
    }
    CHECK(faults::the_shim().injected());
    CHECK(faults::the_shim().live().empty());
  }
  faults::the_shim().reset();
}
