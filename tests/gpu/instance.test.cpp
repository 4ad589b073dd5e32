// SPDX-License-Identifier: MIT
#include <intaglio/gpu/instance.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

using namespace intaglio;

TEST_CASE("a list that grows while it is read is read again") {
  int calls = 0;
  const auto found = gpu::enumerate<int>("card", "list", [&](std::uint32_t* count, int* items) {
    ++calls;
    if (items == nullptr) {
      *count = calls == 1 ? 2 : 3;
      return VK_SUCCESS;
    }
    if (*count < 3) return VK_INCOMPLETE;
    for (int i = 0; i < 3; ++i) items[i] = i;
    return VK_SUCCESS;
  });
  CHECK(found == std::vector<int>{0, 1, 2});
  CHECK(calls == 4);
}

TEST_CASE("a list that shrinks while it is read, an empty one, and one that never settles") {
  const auto shrinking = gpu::enumerate<int>("card", "list", [](std::uint32_t* count, int* items) {
    *count = items == nullptr ? 5u : 2u;
    return VK_SUCCESS;
  });
  CHECK(shrinking.size() == 2);
  CHECK(gpu::enumerate<int>("card", "list", [](std::uint32_t* count, int*) { return *count = 0, VK_SUCCESS; }).empty());
  CHECK_THROWS_AS(gpu::enumerate<int>("card", "list",
                                      [](std::uint32_t* count, int* items) {
                                        return *count = 1, items == nullptr ? VK_SUCCESS : VK_INCOMPLETE;
                                      }),
                  device_error);
}

TEST_CASE("an instance opens without validation and finds a device") {
  const gpu::instance made{gpu::loader()};
  CHECK(made.handle() != VK_NULL_HANDLE);
  CHECK_FALSE(made.validated());
  CHECK_FALSE(made.physical_devices().empty());
}

TEST_CASE("drivers stay loaded behind an instance, so that a process may make any number of them") {
  const auto libraries = [] {
    std::set<std::string> out;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find(".so") != std::string::npos) out.insert(line.substr(line.find('/')));
    return out;
  };
  std::set<std::string> used;
  for (int i = 0; i < 40; ++i) {
    const gpu::instance made{gpu::loader()};
    CHECK_FALSE(made.physical_devices().empty());
    if (i == 0) used = libraries();
  }
  const auto left = libraries();
  for (const std::string& each : used) {
    INFO(each);
    CHECK(left.contains(each));
  }
}

namespace {
/// A loader that has VK_KHR_portability_enumeration or has it not, and what an instance of it was made with.
struct portability_loader {
  static inline bool offers = false;
  static inline VkInstanceCreateFlags flags = 0;
  static inline std::set<std::string> extensions;

  static VkResult list(const char* layer, std::uint32_t* count, VkExtensionProperties* items) {
    const VkResult result =
        real<PFN_vkEnumerateInstanceExtensionProperties>("vkEnumerateInstanceExtensionProperties")(layer, count, items);
    for (std::uint32_t i = 0; items != nullptr && !offers && i < *count; ++i)
      if (std::string_view(items[i].extensionName) == VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)
        items[i].extensionName[0] = 'X';
    return result;
  }
  static VkResult make(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* memory, VkInstance* out) {
    flags = info->flags;
    extensions = {info->ppEnabledExtensionNames, info->ppEnabledExtensionNames + info->enabledExtensionCount};
    return real<PFN_vkCreateInstance>("vkCreateInstance")(info, memory, out);
  }
  static PFN_vkVoidFunction entry(VkInstance instance, const char* name) {
    if (std::string_view(name) == "vkEnumerateInstanceExtensionProperties")
      return reinterpret_cast<PFN_vkVoidFunction>(&list);
    if (std::string_view(name) == "vkCreateInstance") return reinterpret_cast<PFN_vkVoidFunction>(&make);
    return gpu::loader().entry()(instance, name);
  }
  template <class Function>
  static Function real(const char* name) {
    return reinterpret_cast<Function>(gpu::loader().entry()(VK_NULL_HANDLE, name));
  }
};
}  // namespace

TEST_CASE("drivers of a part of Vulkan are listed where the loader can") {
  for (const bool offers : {true, false}) {
    portability_loader::offers = offers;
    const gpu::instance made{gpu::loader(&portability_loader::entry)};
    CHECK_FALSE(made.physical_devices().empty());
    CHECK(portability_loader::flags ==
          (offers ? VkInstanceCreateFlags{VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR} : 0u));
    CHECK(portability_loader::extensions.contains(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME) == offers);
  }
}
