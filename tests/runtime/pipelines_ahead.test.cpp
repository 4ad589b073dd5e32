// SPDX-License-Identifier: MIT
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/pipelines_ahead.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;

namespace {

/// A driver that takes as long as one likes for some pipelines.
struct slow_driver {
  static inline bool (*is_slow)(const VkSpecializationInfo&) = nullptr;
  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline bool ready = false;
  static inline PFN_vkCreateComputePipelines real = nullptr;

  static std::uint32_t value(const VkSpecializationInfo& of, const kernels::kernel_interface& face,
                             std::string_view name) {
    std::uint32_t out = 0;
    for (const VkSpecializationMapEntry& each : std::span(of.pMapEntries, of.mapEntryCount))
      if (each.constantID == face.specialization_index(name))
        std::memcpy(&out, static_cast<const char*>(of.pData) + each.offset, sizeof out);
    return out;
  }
  /// The sampler of bitnet_tiny that does all passes.
  static bool is_whole_sampler(const VkSpecializationInfo& of) {
    const kernels::kernel_interface& face = kernels::sample_interface;
    const plan::table& table = bitnet_tiny_table();
    return of.mapEntryCount == face.specialization_count() &&
           value(of, face, "vocab_size") == table.config->vocab_size &&
           value(of, face, "ring_size") == table.ring_size && value(of, face, "form") == 0;
  }
  /// Whether a pipeline is fable's resident dispatch.
  static bool is_all_layers(const VkSpecializationInfo& of) {
    const kernels::kernel_interface& face = kernels::layers_interface;
    const decoder_config& config = *fable_table().config;
    return of.mapEntryCount == face.specialization_count() && value(of, face, "hidden_size") == config.hidden_size &&
           value(of, face, "intermediate_size") == config.intermediate_size &&
           value(of, face, "layers") == config.num_hidden_layers;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice on, VkPipelineCache cache, std::uint32_t count,
                                               const VkComputePipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* with, VkPipeline* out) {
    if (infos->stage.pSpecializationInfo != nullptr && is_slow(*infos->stage.pSpecializationInfo)) {
      std::unique_lock own(mutex);
      changed.wait_for(own, std::chrono::minutes(1), [] { return ready; });
    }
    return real(on, cache, count, infos, with, out);
  }
  static void finish() {
    {
      const std::lock_guard own(mutex);
      ready = true;
    }
    changed.notify_all();
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice, const char* name) {
    return entry(faults::last_instance.load(), name);
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL entry(VkInstance instance, const char* name) {
    if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&entry);
    if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&device_entry);
    const PFN_vkVoidFunction found = faults::entry(instance, name);
    if (std::strcmp(name, "vkCreateComputePipelines") != 0) return found;
    real = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&create);
  }
};

}  // namespace

TEST_CASE("pipelines made ahead are all that an executor begins with", "[runtime][pipelines_ahead]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  gpu::pipeline_cache cache(on.device, "", table.hash);
  const auto plan = runtime::executor::plan_for(table, modules);
  runtime::pipelines_ahead ahead(on.device, plan, &runtime::modules_of<>, runtime::executor::begins_with(*plan), cache);
  auto kernels = ahead.take();
  REQUIRE(kernels);
  CHECK(!ahead.take());
  kernels->wait();
  const std::size_t made = kernels->size(), compiled = cache.hits() + cache.misses();
  CHECK(made > 5);
  CHECK(compiled == made);
  const runtime::executor run(on.device, plan, runtime::synthetic_weights(on.device, table), std::move(*kernels),
                              &cache);
  CHECK(run.pipelines() == made);
  CHECK(cache.hits() + cache.misses() == compiled);
}

TEST_CASE("a kernel can be proven while other pipelines are still made, and an executor records what comes last",
          "[runtime][pipelines_ahead]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  gpu::pipeline_cache cache(on.device, "", table.hash);
  const auto plan = runtime::executor::plan_for(table, modules);
  auto kernels =
      runtime::pipelines_ahead(on.device, plan, &runtime::modules_of<>, runtime::executor::begins_with(*plan), cache)
          .take();
  REQUIRE(kernels);
  auto weights = runtime::synthetic_weights(on.device, table);
  CHECK(runtime::executor::prove_kernels(on.device, *plan, *kernels, weights).kernel.empty());
  runtime::executor run(on.device, plan, std::move(weights), std::move(*kernels), &cache);
  CHECK(run.prove_resident().kernel.empty());
}

TEST_CASE("an executor that draws later draws what another one draws, and notes the proof when all is proven",
          "[runtime][pipelines_ahead]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  const plan::device_class modules = gpu_class(on.device);
  const auto plan = runtime::executor::plan_for(table, modules);
  const auto drawn = [&](runtime::executor& run, float temperature) {
    const std::array<std::uint32_t, 3> prompt{3, 17, 40};
    std::vector<std::uint32_t> out;
    for (const std::uint32_t turns : {1u, 6u}) {  // in flight when another job begins
      run.begin(runtime::pass_kind::prefill, 0, prompt, {}, 1);
      while (run.pending()) run.may_submit() ? run.submit(1e9, 1) : run.wait();
      run.begin(runtime::pass_kind::decode, 3, {{5}},
                {.temperature = temperature, .top_p = 0.9f, .repeat_penalty = 1.2f, .seed = 11}, turns);
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
    runtime::kernel_set kernels(on.device);
    kernels.begin(runtime::executor::begins_with(*plan), &cache);
    runtime::executor run(on.device, plan, runtime::synthetic_weights(on.device, table), std::move(kernels), &cache,
                          true);
    CHECK(!run.is_complete());
    if (!draws_at_once) CHECK(drawn(run, 0) == drawn(all, 0));
    CHECK(!run.is_complete());
    run.kernels().wait();
    CHECK(drawn(run, 0.8f) == drawn(all, 0.8f));
    CHECK(run.is_complete());
    CHECK(drawn(run, 0) == drawn(all, 0));
    CHECK(cache.note().empty());
    run.note_when_complete(cache, "proven");
    CHECK(cache.note() == "proven");
  }
  gpu::pipeline_cache cache(on.device, "", table.hash);
  {
    runtime::kernel_set kernels(on.device);
    kernels.begin(runtime::executor::begins_with(*plan), &cache);
    runtime::executor run(on.device, plan, runtime::synthetic_weights(on.device, table), std::move(kernels), &cache,
                          true);
    run.note_when_complete(cache, "proven");
  }
  CHECK(cache.note() == "proven");  // it ends what it has left to do
}

TEST_CASE(
    "while a sampler is still compiled another one draws the same tokens, and makes room for it in the middle of a job",
    "[runtime][pipelines_ahead]") {
  const plan::table& table = bitnet_tiny_table();
  faults::the_shim().reset();
  slow_driver::is_slow = &slow_driver::is_whole_sampler;
  slow_driver::ready = false;
  gpu::device_options options;
  options.entry = &slow_driver::entry;
  const checked_device on(options);
  const plan::device_class modules = gpu_class(on.device);
  const auto plan = runtime::executor::plan_for(table, modules);
  constexpr std::uint32_t tokens = 8;
  const auto begin = [&](runtime::executor& run, std::uint64_t seed) {
    run.begin(runtime::pass_kind::decode, 0, {{5}},
              {.temperature = 1.5f, .top_k = 30, .top_p = 0.95f, .min_p = 0.01f, .repeat_penalty = 1.2f, .seed = seed},
              tokens);
  };
  const auto drawn = [&](runtime::executor& run) {
    while (run.pending()) run.may_submit() ? run.submit(1e9, 1) : run.wait();
    while (run.in_flight() != 0) run.wait();
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < tokens; ++i) out.push_back(run.drawn(i));
    return out;
  };
  gpu::pipeline_cache cache(on.device, "", table.hash);
  runtime::kernel_set kernels(on.device);
  kernels.begin(runtime::executor::begins_with(*plan), &cache);
  auto weights = runtime::synthetic_weights(on.device, table);
  CHECK(runtime::executor::prove_kernels(on.device, *plan, kernels, weights, false).kernel.empty());
  runtime::executor run(on.device, plan, std::move(weights), std::move(kernels), &cache, true);
  run.note_when_complete(cache, "proven");
  begin(run, 1);
  const auto first = drawn(run);
  CHECK(!run.is_complete());
  CHECK(cache.note().empty());
  const std::uint64_t recordings = run.counters().recordings;
  begin(run, 2);
  CHECK(run.counters().recordings == recordings);
  run.submit(1e9, 1);
  run.submit(1e9, 1);
  slow_driver::finish();
  run.kernels().wait();
  const auto second = drawn(run);
  CHECK(run.is_complete());
  CHECK(cache.note() == "proven");

  runtime::executor all(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  begin(all, 1);
  CHECK(drawn(all) == first);
  begin(all, 2);
  CHECK(drawn(all) == second);
}

TEST_CASE(
    "while the dispatch of all layers is still compiled decode runs the chain, and the same tokens follow when it "
    "takes over between two passes",
    "[runtime][pipelines_ahead][resident]") {
  const plan::table& table = fable_table();
  faults::the_shim().reset();
  slow_driver::is_slow = &slow_driver::is_all_layers;
  slow_driver::ready = false;
  gpu::device_options options;
  options.entry = &slow_driver::entry;
  const checked_device on(options);
  on.skip_unless_llvmpipe();
  const plan::device_class modules = first_class(on.device);
  const auto plan = runtime::executor::plan_for(table, modules);
  const std::array<std::uint32_t, 3> prompt{3, 17, 400};
  const auto begin = [&](runtime::executor& run, std::uint32_t tokens) {
    run.begin(runtime::pass_kind::prefill, 0, prompt, {}, 1);
    while (run.pending()) run.may_submit() ? run.submit(1e9, 1) : run.wait();
    run.begin(runtime::pass_kind::decode, 3, {{5}}, {.temperature = 4.f, .repeat_penalty = 1.5f, .seed = 5}, tokens);
  };
  const auto drawn = [&](runtime::executor& run) {
    while (run.pending()) run.may_submit() ? run.submit(1e9, 1) : run.wait();
    while (run.in_flight() != 0) run.wait();
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < run.completed(); ++i) out.push_back(run.drawn(i));
    return out;
  };
  const auto is_chain = [](const runtime::executor& run) {
    return run.plan_of(runtime::pass_kind::decode).resident.empty();
  };
  const auto made = [&](gpu::pipeline_cache& cache) {
    runtime::kernel_set kernels(on.device);
    kernels.begin(runtime::executor::begins_with(*plan, true), &cache, runtime::executor::goes_on_with(*plan, true));
    auto weights = runtime::synthetic_weights(on.device, table);
    CHECK(runtime::executor::prove_kernels(on.device, *plan, kernels, weights, false, true).kernel.empty());
    auto run =
        std::make_unique<runtime::executor>(on.device, plan, std::move(weights), std::move(kernels), &cache, true);
    CHECK(run->prove_resident().kernel.empty());
    run->note_when_complete(cache, "proven", "proven as a chain");
    return run;
  };
  gpu::pipeline_cache cache(on.device, "", table.hash);
  auto run = made(cache);
  begin(*run, 6);
  const auto first = drawn(*run);
  CHECK(!run->is_complete());
  CHECK(is_chain(*run));
  begin(*run, 8);
  run->submit(1e9, 1);
  run->submit(1e9, 1);
  CHECK(is_chain(*run));
  slow_driver::finish();
  run->kernels().wait();
  const auto counters = run->counters();
  const auto second = drawn(*run);
  CHECK(run->is_complete());
  CHECK(!is_chain(*run));
  CHECK(cache.note() == "proven");
  CHECK(run->counters().jobs == counters.jobs);
  CHECK(run->counters().passes == counters.passes + 6);
  begin(*run, 8);
  CHECK(drawn(*run) == second);

  runtime::executor all(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  CHECK(all.is_complete());
  CHECK(!is_chain(all));
  begin(all, 6);
  CHECK(drawn(all) == first);
  begin(all, 8);
  CHECK(drawn(all) == second);

  // Where the context has no room for the proof after what was written decode stays the chain until there is.
  slow_driver::ready = false;
  auto full = made(cache);
  slow_driver::finish();
  full->kernels().wait();
  full->begin(runtime::pass_kind::decode, table.context - 2, {{5}}, {}, 1);
  CHECK(drawn(*full).size() == 1);
  full->begin(runtime::pass_kind::decode, table.context - 1, {{5}}, {}, 1);
  CHECK(drawn(*full).size() == 1);
  CHECK(is_chain(*full));
  begin(*full, 8);
  CHECK(drawn(*full) == second);
  CHECK(!is_chain(*full));
  // A session that has decoded nothing yet finishes the start in its destructor.
  slow_driver::ready = false;
  gpu::pipeline_cache other(on.device, "", table.hash);
  auto idle = made(other);
  CHECK(!idle->is_complete());
  slow_driver::finish();
  idle.reset();
  CHECK(other.note() == "proven");
}

TEST_CASE("nothing is made ahead unless asked for", "[runtime][pipelines_ahead]") {
  runtime::pipelines_ahead none;
  CHECK(!none.take());
}

TEST_CASE("a pipeline that cannot be made ahead is reported to who waits for it, and to nobody else",
          "[runtime][pipelines_ahead]") {
  for (const bool taken : {true, false}) {
    faults::the_shim().reset();
    {
      gpu::device_options options;
      options.entry = &faults::entry;
      const gpu::device on(options);
      const plan::table& table = bitnet_tiny_table();
      const auto plan = runtime::executor::plan_for(table, first_class(on));
      gpu::pipeline_cache cache(on, "", table.hash);
      faults::the_shim().arm(faults::id::vkCreateComputePipelines, 0, VK_ERROR_OUT_OF_DEVICE_MEMORY);
      runtime::pipelines_ahead ahead(on, plan, &runtime::modules_of<>, runtime::executor::begins_with(*plan), cache);
      if (taken) {
        const auto kernels = ahead.take();
        REQUIRE(kernels);
        CHECK_THROWS_AS(kernels->wait(), out_of_memory);
        CHECK_THROWS_AS(runtime::executor::prove_kernels(on, *plan, *kernels, runtime::synthetic_weights(on, table)),
                        out_of_memory);
      } else {  // whose thread may not have begun when nobody waits for it
        using clock = std::chrono::steady_clock;
        for (const auto end = clock::now() + std::chrono::seconds(60);
             !faults::the_shim().injected() && clock::now() < end;)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    CHECK(faults::the_shim().injected());
    CHECK(faults::the_shim().live().empty());
  }
  faults::the_shim().reset();
}
