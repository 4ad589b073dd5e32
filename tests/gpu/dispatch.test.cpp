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

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL only_versions(VkInstance, const char* name) {
  const PFN_vkEnumerateInstanceVersion version = [](std::uint32_t* out) {
    *out = VK_API_VERSION_1_3;
    return VK_SUCCESS;
  };
  return std::string_view(name) == "vkEnumerateInstanceVersion" ? reinterpret_cast<PFN_vkVoidFunction>(version)
                                                                : nullptr;
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
  CHECK(table.vkEnumerateInstanceVersion == nullptr);
  table.init(&only_versions);
  REQUIRE(table.vkEnumerateInstanceVersion != nullptr);
  std::uint32_t version = 0;
  CHECK(table.vkEnumerateInstanceVersion(&version) == VK_SUCCESS);
  CHECK(version == VK_API_VERSION_1_3);
  CHECK(table.vkCreateInstance == nullptr);
  CHECK(table.vkQueueSubmit == nullptr);
}
