// SPDX-License-Identifier: MIT
#include "intaglio/gpu/dispatch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string_view>

using namespace intaglio;

namespace {

// The C view of a struct is the struct itself, const as it is.
static_assert(
    std::is_same_v<decltype(gpu::native(std::declval<const gpu::vk::BufferCreateInfo&>())), const VkBufferCreateInfo*>);
static_assert(std::is_same_v<decltype(gpu::native(std::declval<gpu::vk::BufferCreateInfo&>())), VkBufferCreateInfo*>);
static_assert(sizeof(gpu::vk::BufferCreateInfo) == sizeof(VkBufferCreateInfo) &&
              std::is_standard_layout_v<gpu::vk::BufferCreateInfo>);

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

TEST_CASE("dispatch: structs are handed over in place", "[gpu]") {
  gpu::vk::BufferCreateInfo info;
  info.size = 7;
  CHECK(static_cast<const void*>(gpu::native(info)) == &info);
  CHECK((gpu::native(info)->sType == VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO && gpu::native(info)->size == 7));
  gpu::native(info)->size = 9;
  CHECK(info.size == 9);
  const auto& fixed = info;
  CHECK(gpu::native(fixed)->size == 9);
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

TEST_CASE("dispatch: a device's own functions take the place of the loader's", "[gpu]") {
  gpu::dispatch_table table;
  table.look_up(VkInstance{VK_NULL_HANDLE}, &of_instance);
  table.look_up(VkDevice{VK_NULL_HANDLE}, &of_device);
  REQUIRE(table.vkQueueWaitIdle != nullptr);
  CHECK(table.vkQueueWaitIdle(VK_NULL_HANDLE) == VK_SUCCESS);
  CHECK(table.vkEnumeratePhysicalDevices == no_devices);  // of the instance, so it stays
}
