// SPDX-License-Identifier: MIT
// Every fault of Vulkan and of the host's memory during a whole life: device, memory, pipelines, recording, submission,
// download. Expected each time: the right result or one of intaglio's exceptions, no handle left, and a new attempt
// that works.
#include "gpu/checked_device.hpp"
#include "gpu/failing_new.hpp"
#include "gpu/scale_add.hpp"
#include "temporary_folder.hpp"

#include <intaglio/gpu/staging_ring.hpp>
#include <intaglio/gpu/transfer.hpp>

#include <catch2/catch_test_macros.hpp>

#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

using namespace intaglio;

namespace {

constexpr std::uint32_t count = 1000;

/// All that the room does, once. @return true where the numbers came out right
bool whole_life(const std::string& cache_folder, gpu::validation validate = gpu::validation::off) {
  gpu::device_options options;
  options.entry = &faults::entry;
  options.validate = validate;
  const gpu::device on(options);
  const gpu::buffer x(on, count * 4, gpu::placement::device_local, "x");
  const gpu::buffer y(on, count * 4, gpu::placement::device_local, "y");
  const gpu::buffer notes(on, 64, gpu::placement::shared, "notes");
  const std::vector<gpu::buffer> weights =
      gpu::allocate_split(on, 1U << 16U, 256, gpu::placement::device_local, "weights", 1U << 14U);

  gpu::pipeline_cache cache(on, cache_folder, 42);
  const gpu::specialization constants[] = {{0, 64}, {1, 3}};
  const gpu::pipeline_description descriptions[] = {
      {.name = "scale_add", .spirv = scale_add_spirv(), .constants = constants, .push_constant_bytes = 24},
      {.name = "scale_add again", .spirv = scale_add_spirv(), .constants = constants, .push_constant_bytes = 24}};
  const auto pipelines = gpu::build_pipelines(on, descriptions, &cache, 1);
  cache.set_note("checked");
  cache.store();

  const gpu::timestamps times(on, 3);
  gpu::recorder commands(on, "scale twice", &times);
  const scale_add_arguments arguments{x.address(), y.address(), count, 5};
  commands.dispatch(pipelines[0], std::as_bytes(std::span(&arguments, 1)), {(count + 63) / 64, 1, 1}).barrier();
  commands.dispatch(pipelines[1], std::as_bytes(std::span(&arguments, 1)), {(count + 63) / 64, 1, 1});
  const gpu::recording recorded = commands.finish();

  std::vector<std::uint32_t> in(count), out(count);
  for (std::uint32_t i = 0; i < count; ++i) in[i] = i;
  gpu::transfer staged(on, 4096, false), direct(on);
  staged.upload(x, 0, std::as_bytes(std::span(in)));
  staged.finish();
  gpu::staging_ring ring(on, count, 2);
  for (std::size_t i = 0; i < 4; ++i) {
    std::memcpy(ring.slot(i % 2).data(), in.data() + i * count / 4, count);
    const gpu::staging_ring::part part{0, count, &x, i * count};
    ring.copy(i % 2, {&part, 1});
  }
  ring.finish();
  gpu::queue line(on);
  const VkCommandBuffer handle = recorded.handle();
  for (int run = 0; run < 3; ++run) line.submit({&handle, 1}, recorded.name());
  line.wait(line.submitted());
  if (!line.finished(3) || times.read(recorded.points()).size() != 3) return false;
  staged.download(y, 0, std::as_writable_bytes(std::span(out)));
  direct.download(y, 0, std::as_writable_bytes(std::span(out)));
  for (std::uint32_t i = 0; i < count; ++i)
    if (out[i] != 3 * i + 5) return false;
  return on.validation_message_count() == 0;
}

}  // namespace

TEST_CASE("a life without faults leaves no handle") {
  const temporary_folder folder;
  const std::string cache = folder.path();
  faults::the_shim().reset();
  REQUIRE(whole_life(cache));
  CHECK(faults::the_shim().live().empty());
  CHECK(faults::the_shim().wrong_destroys() == 0);
  CHECK(faults::the_shim().calls(faults::id::vkQueueSubmit) >= 5);
}

namespace {

/// Lets each call of a life that `choose` takes return each of its codes.
template <class Choose>
void fail_each_call(gpu::validation validate, Choose choose) {
  const temporary_folder folder;
  const std::string cache = folder.path();
  faults::the_shim().reset();
  REQUIRE(whole_life(cache, validate));
  const auto calls = faults::the_shim().record();
  REQUIRE(calls.size() > 60);
  std::size_t thrown = 0, survived = 0;
  for (const auto& call : calls) {
    const auto& what = faults::functions()[static_cast<std::size_t>(call.which)];
    if (!choose(call.which)) continue;
    auto codes = what.codes;
    codes.push_back(VK_ERROR_UNKNOWN);
    for (const VkResult code : codes) {
      INFO(what.name << " call " << call.nth << " returns " << gpu::result_name(code));
      faults::the_shim().arm(call.which, call.nth, code);
      std::string problem;
      bool right = false;
      try {
        right = whole_life(cache, validate);
        ++survived;
      } catch (const device_error& typed) {
        ++thrown;
        problem = typed.what();
        CHECK_FALSE(typed.operation().empty());
        const bool memory = code == VK_ERROR_OUT_OF_HOST_MEMORY || code == VK_ERROR_OUT_OF_DEVICE_MEMORY;
        CHECK(memory == (dynamic_cast<const out_of_memory*>(&typed) != nullptr));
        const bool lost = code == VK_ERROR_DEVICE_LOST || code == VK_TIMEOUT;
        CHECK(lost == (dynamic_cast<const device_lost*>(&typed) != nullptr));
      }
      // how often a counter is looked at depends on how long the device takes
      CHECK((faults::the_shim().injected() ||
             (call.which == faults::id::vkGetSemaphoreCounterValue && call.nth != 0 && right)));
      CHECK(faults::the_shim().live().empty());
      CHECK(faults::the_shim().wrong_destroys() == 0);
      // a list that grew while it was read is read again; nothing else may pass unnoticed but a call after which all is
      // done
      if (problem.empty()) {
        CHECK(right);
        const bool excused = code == VK_INCOMPLETE || call.which == faults::id::vkCreatePipelineCache ||
                             call.which == faults::id::vkWaitSemaphores || call.which == faults::id::vkAllocateMemory ||
                             call.which == faults::id::vkGetSemaphoreCounterValue;
        CHECK(excused);
      }
    }
  }
  CHECK(thrown > survived);
  faults::the_shim().reset();
  CHECK(whole_life(cache, validate));
}

}  // namespace

TEST_CASE("every Vulkan call returns each of its errors") {
  fail_each_call(gpu::validation::off, [](faults::id) { return true; });
}

TEST_CASE("opening the validation layer fails at each call") {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler
      layer_leaks;  // seven objects a pipeline in layer 1.3.239; without the layer nothing does
#endif
  fail_each_call(gpu::validation::synchronization, [](faults::id which) {
    return which == faults::id::vkEnumerateInstanceLayerProperties ||
           which == faults::id::vkCreateDebugUtilsMessengerEXT;
  });
}

TEST_CASE("the device is lost at each submit and names what was in flight") {
  const temporary_folder folder;
  const std::string cache = folder.path();
  faults::the_shim().reset();
  REQUIRE(whole_life(cache));
  const std::size_t submits = faults::the_shim().calls(faults::id::vkQueueSubmit);
  const bool explains = checked_device().device.has(gpu::feature::device_fault);  // then the shim does
  std::size_t named = 0;
  for (std::size_t nth = 0; nth < submits; ++nth) {
    faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_DEVICE_LOST);
    try {
      whole_life(cache);
      FAIL("the loss went unnoticed");
    } catch (const device_lost& lost) {
      CHECK(lost.result() == VK_ERROR_DEVICE_LOST);
      CHECK(std::string(lost.what()).find("(in flight: ") != std::string::npos);
      CHECK((std::string(lost.what()).find("; driver: planted") != std::string::npos) == explains);
      named += std::string(lost.what()).find("scale twice") != std::string::npos ? 1 : 0;
    }
    CHECK(faults::the_shim().live().empty());
    faults::the_shim().reset();
    CHECK(whole_life(cache));
  }
  CHECK(named == 3);
}

TEST_CASE("the host's memory ends at each allocation") {
  const temporary_folder folder;
  const std::string cache = folder.path();
  faults::the_shim().reset();
  REQUIRE(whole_life(cache));  // first-time allocations of the C++ library are over
  for (const bool for_good : {false, true}) {
    long at = 0;
    bool failed = true;
    for (; failed; ++at) {
      std::string problem;
      bool right = false, foreign = false, typed = false;
      {
        const faults::failing_allocations order(at, for_good);
        try {
          right = whole_life(cache);
        } catch (const out_of_memory&) { typed = true; } catch (const std::bad_alloc&) {
          foreign = true;  // allocated by this test itself, between calls of the library
        }
        failed = faults::allocations.failed;
      }
      INFO("allocation " << at << (for_good ? " and all after" : ""));
      CHECK((right || typed || foreign));
      CHECK(faults::the_shim().live().empty());
      CHECK(faults::the_shim().wrong_destroys() == 0);
    }
    CHECK(at > 30);
  }
  CHECK(whole_life(cache));
}
