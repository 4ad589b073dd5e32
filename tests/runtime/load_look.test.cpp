// SPDX-License-Identifier: MIT
// A load looks at its caller between its units of work, and ends after those that are under way.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"

using namespace intaglio;

namespace {

/// A driver whose pipelines wait while `held`.
struct holding_driver {
  static inline std::atomic<bool> held{false};
  static inline std::atomic<unsigned> begun{0};
  static inline PFN_vkCreateComputePipelines real = nullptr;

  static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice on, VkPipelineCache cache, std::uint32_t count,
                                               const VkComputePipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* with, VkPipeline* out) {
    ++begun;
    for (int i = 0; held && i < 12'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return real(on, cache, count, infos, with, out);
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
  static gpu::device_options options() {
    faults::the_shim().reset();
    begun = 0;
    gpu::device_options out;
    out.entry = &entry;
    return out;
  }
};

/// Pipelines that are made at once.
unsigned made_at_once() { return std::min(16u, std::max(1u, std::thread::hardware_concurrency())); }

const io::checkpoint& fable_file() {
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  return file;
}

struct ended : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Calls after the last byte of the weights; throws at one of them.
struct looks {
  unsigned count = 0, throw_at = 0;
  runtime::load_callback callback() {
    return [this](const load_progress& at) {
      if (at.bytes_done != at.bytes_total || at.bytes_total == 0 || ++count != throw_at) return;
      throw ended("enough");
    };
  }
};

}  // namespace

TEST_CASE("a set of pipelines that nobody has any more begins no others", "[runtime][load_look]") {
  const checked_device on(holding_driver::options());
  const plan::table& table = fable_table();
  gpu::pipeline_cache cache(on.device, "", table.hash);
  const auto plan = runtime::executor::plan_for(table, first_class(on.device));
  holding_driver::held = true;
  std::size_t wanted = 0;
  std::thread release;
  {
    runtime::kernel_set kernels(on.device);
    kernels.begin(runtime::executor::begins_with(*plan), &cache);
    wanted = kernels.size();
    release = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      holding_driver::held = false;
    });
  }
  release.join();
  INFO(wanted << " pipelines, " << holding_driver::begun << " begun");
  CHECK(wanted > 5);
  CHECK(holding_driver::begun <= std::min<std::size_t>(wanted, made_at_once()));
}

TEST_CASE("who waits for pipelines looks at the caller meanwhile", "[runtime][load_look]") {
  const checked_device on(holding_driver::options());
  const std::array<const plan::table*, 2> tables{&fable_table(), &fable_portable_table()};
  for (const bool prove : {true, false}) {
    holding_driver::held = true;
    holding_driver::begun = 0;
    looks all{.throw_at = 4};  // the first are those of the weights
    session_options options{.cache_folder = "", .prove_kernels = prove};
    options.progress = [&, to = all.callback()](const load_progress& at) {
      try {
        to(at);
      } catch (...) {
        holding_driver::held = false;  // those under way are waited for
        throw;
      }
    };
    CHECK_THROWS_AS(basic_session(on.device, tables, fable_file(), options), ended);
    CHECK(all.count == 4);
    CHECK(holding_driver::begun <= made_at_once());
    holding_driver::held = false;
  }
  basic_session session(on.device, tables, fable_file(), {.cache_folder = ""});  // the device is well
  CHECK(session.generate(session.encode("Once"), {.max_tokens = 3}).ids.size() == 3);
}

TEST_CASE("a load looks between its proofs, and what it throws there leaves nothing", "[runtime][load_look]") {
  const checked_device on;
  const plan::planned planned =
      plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 4, .page_size = 16});
  const std::array<const plan::table*, 1> tables{&planned.table()};
  const auto load = [&](looks& all) {
    session_options options{.cache_folder = ""};
    options.progress = all.callback();
    basic_batch(on.device, tables, fable_file(), options);
  };
  looks whole;
  load(whole);
  const auto plan = runtime::batch_executor::plan_for(planned.table(), first_class(on.device));
  std::size_t claims = 0;
  for (const plan::sequence* each : runtime::batch_executor::begins_with(*plan))
    claims += runtime::kernel_proof::claims_of(*each).size();
  INFO(whole.count << " looks, " << claims << " proofs");
  CHECK(claims > 20);
  // Threads share the proofs; each look is before one of this thread's.
  CHECK(whole.count >= claims / (2 * made_at_once()));
  const std::uint64_t before = on.device.counters().allocated_bytes;
  for (const unsigned at : {1u, 2u, 3u, std::min(8u, whole.count / 2)}) {
    looks some{.throw_at = at};
    CHECK_THROWS_AS(load(some), ended);
    CHECK(some.count == at);
  }
  CHECK(on.device.counters().allocated_bytes == before);
  looks again;
  load(again);
}
