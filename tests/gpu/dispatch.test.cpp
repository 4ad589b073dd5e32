// SPDX-License-Identifier: MIT
#include "intaglio/gpu/dispatch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string_view>
#include <type_traits>

using namespace intaglio;

namespace {

// A typed struct is the plain one, so it is handed over in place.
using typed_buffer_info = gpu::typed<VkBufferCreateInfo>;
static_assert(std::is_convertible_v<typed_buffer_info*, VkBufferCreateInfo*>);
static_assert(sizeof(typed_buffer_info) == sizeof(VkBufferCreateInfo) && std::is_standard_layout_v<typed_buffer_info>);

const PFN_vkQueueWaitIdle by_loader = [](VkQueue) { return VK_NOT_READY; };
const PFN_vkQueueWaitIdle by_driver = [](VkQueue) { return VK_SUCCESS; };
const PFN_vkEnumeratePhysicalDevices no_devices = [](VkInstance, std::uint32_t* count, VkPhysicalDevice*) {
  *count = 0;
  return VK_SUCCESS;
};

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance, const char* name) {
  if (std::string_view(name) == "vkEnumeratePhysicalDevices") return reinterpret_cast<PFN_vkVoidFunction>(no_devices);
  return std::string_view(name) == "vkQueueWaitIdle" ? reinterpret_cast<PFN_vkVoidFunction>(by_loader) : nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice, const char* name) {
  return std::string_view(name) == "vkQueueWaitIdle" ? reinterpret_cast<PFN_vkVoidFunction>(by_driver) : nullptr;
}

}  // namespace

TEST_CASE("dispatch: structs begin with their type and with zeros", "[gpu]") {
  const typed_buffer_info info;
  const VkBufferCreateInfo* const plain = &info;
  CHECK(static_cast<const void*>(plain) == &info);
  CHECK((plain->sType == VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO && plain->pNext == nullptr && plain->size == 0));
  CHECK(gpu::typed<VkPhysicalDeviceVulkan13Features>{}.sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
}

TEST_CASE("dispatch: a table holds what its loader gives, and nothing else", "[gpu]") {
  gpu::dispatch_table table;
  CHECK(table.vkEnumeratePhysicalDevices == nullptr);
  table.look_up(VkInstance{VK_NULL_HANDLE}, &of_instance);
  REQUIRE(table.vkEnumeratePhysicalDevices != nullptr);
  std::uint32_t count = 7;
  CHECK(table.vkEnumeratePhysicalDevices(VK_NULL_HANDLE, &count, nullptr) == VK_SUCCESS);
  CHECK(count == 0);
  CHECK(table.vkCreateDevice == nullptr);
  CHECK(table.vkQueueSubmit == nullptr);
  REQUIRE(table.vkQueueWaitIdle != nullptr);
  CHECK(table.vkQueueWaitIdle(VK_NULL_HANDLE) == VK_NOT_READY);
}

TEST_CASE("dispatch: a device's own functions replace the loader's", "[gpu]") {
  gpu::dispatch_table table;
  table.look_up(VkInstance{VK_NULL_HANDLE}, &of_instance);
  table.look_up(VkDevice{VK_NULL_HANDLE}, &of_device);
  REQUIRE(table.vkQueueWaitIdle != nullptr);
  CHECK(table.vkQueueWaitIdle(VK_NULL_HANDLE) == VK_SUCCESS);
  CHECK(table.vkEnumeratePhysicalDevices == no_devices);  // of the instance, so it stays
}
