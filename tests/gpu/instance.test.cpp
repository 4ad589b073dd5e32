// SPDX-License-Identifier: MIT
#include <intaglio/gpu/instance.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <set>
#include <string>

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
