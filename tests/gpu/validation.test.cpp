// SPDX-License-Identifier: MIT
#include "gpu/fault_shim.hpp"
#include "gpu/scale_add.hpp"
#include "planted_messages.hpp"

#include <intaglio/gpu/transfer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <thread>

using namespace intaglio;

TEST_CASE("the environment turns validation on") {
  const char* const kept = std::getenv("INTAGLIO_VALIDATE");
  const std::string before = kept != nullptr ? kept : "";
  const auto read = [](const char* value) {
    ::setenv("INTAGLIO_VALIDATE", value, 1);
    return gpu::validation_from_environment();
  };
  CHECK(read("") == gpu::validation::off);
  CHECK(read("0") == gpu::validation::off);
  CHECK(read("1") == gpu::validation::synchronization);
  CHECK(read("gpu") == gpu::validation::gpu_assisted);
  CHECK(read("best") == gpu::validation::best_practices);
  CHECK_THROWS_AS(read("yes\n"), argument_error);
  ::setenv("INTAGLIO_VALIDATE", before.c_str(), 1);
}

TEST_CASE("a mistake is heard, counted and kept") {
  const planted_messages planted;
  gpu::device_options options;
  options.validate = gpu::validation::synchronization;
  const gpu::device on(options);
  REQUIRE(on.validated());
  CHECK(on.validation_message_count() == 0);
  gpu::typed<VkBufferCreateInfo> nonsense;  // neither size nor usage
  VkBuffer made = VK_NULL_HANDLE;
  on.on()->call.vkCreateBuffer(on.handle(), &nonsense, nullptr, &made);
  on.on()->call.vkDestroyBuffer(on.handle(), made, nullptr);
  CHECK(on.validation_message_count() >= 1);
  CHECK(on.validation_messages().size() == on.validation_message_count());
}

TEST_CASE(
    "what the layer changes for its own checks and what drivers ask for is no message, what it can't check is one") {
  gpu::message_log log;
  const auto report = [&](const char* id, const char* text) {
    VkDebugUtilsMessengerCallbackDataEXT data{};
    data.pMessageIdName = id;
    data.pMessage = text;
    CHECK(gpu::message_log::receive(VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
                                    VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT, &data, &log) == VK_FALSE);
    return log.count();
  };
  const planted_messages planted;
  CHECK(report("WARNING-GPU-Assisted-Validation",
               "vkCreateDevice(): Internal Warning: Forcing fragmentStoresAndAtomics to VK_TRUE") == 0);
  CHECK(report("BestPractices-vkAllocateMemory-small-allocation", "small") == 0);
  CHECK(report("WARNING-vkGetDeviceProcAddr-device",
               "vkGetDeviceProcAddr(): pName is trying to grab vkGetPhysicalDeviceFeatures which is an instance level "
               "function") == 0);
  CHECK(report("WARNING-GPU-Assisted-Validation",
               "vkCreateDevice(): Internal Warning: the device lacks a feature. GPU-AV disabled.") == 1);
  CHECK(report(nullptr, nullptr) == 2);
  CHECK(log.messages().back() == "(no text)");
}

TEST_CASE("a missing layer is an error, not silence") {
  faults::the_shim().arm(faults::id::vkEnumerateInstanceLayerProperties, 0, VK_ERROR_OUT_OF_HOST_MEMORY);
  CHECK_THROWS_AS(gpu::instance(gpu::loader(&faults::entry), gpu::validation::synchronization), out_of_memory);
  const auto without_layers = +[](VkInstance instance, const char* name) -> PFN_vkVoidFunction {
    if (std::strcmp(name, "vkEnumerateInstanceLayerProperties") == 0)
      return reinterpret_cast<PFN_vkVoidFunction>(+[](std::uint32_t* count, VkLayerProperties*) -> VkResult {
        *count = 0;
        return VK_SUCCESS;
      });
    return faults::real_entry()(instance, name);
  };
  try {
    gpu::instance(gpu::loader(without_layers), gpu::validation::synchronization);
    FAIL("nothing was thrown");
  } catch (const device_error& problem) {
    CHECK(std::string(problem.what()).find("VK_LAYER_KHRONOS_validation is not installed") != std::string::npos);
  }
}

TEST_CASE("GPU-assisted validation sees an address outside its buffer") {
  const planted_messages planted;
  gpu::device_options options;
  options.validate = gpu::validation::gpu_assisted;
  const gpu::device on(options);
  const gpu::buffer x(on, 256, gpu::placement::device_local, "x"), y(on, 1U << 16U, gpu::placement::device_local, "y");
  const gpu::specialization constants[] = {{0, 64}};
  const gpu::pipeline kernel(
      on, {.name = "scale_add", .spirv = scale_add_spirv(), .constants = constants, .push_constant_bytes = 24});
  for (const std::uint32_t count : {64U, 65U}) {
    gpu::recorder commands(on, "read past the end");
    const scale_add_arguments arguments{x.address(), y.address(), count, 0};
    commands.dispatch(kernel, std::as_bytes(std::span(&arguments, 1)), {2, 1, 1});
    const gpu::recording recorded = commands.finish();
    gpu::queue line(on);
    const VkCommandBuffer handle = recorded.handle();
    line.wait(line.submit({&handle, 1}, recorded.name()));
    // Layer 1.4 reports it from its own thread.
    for (int i = 0; i < 1000 && count > 64 && on.validation_message_count() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK((on.validation_message_count() > 0) == (count > 64));
  }
}
