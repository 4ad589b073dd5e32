// SPDX-License-Identifier: MIT
#include <intaglio/gpu/doctor.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {

const std::string* find(const gpu::report_section& in, const std::string& key) {
  for (const auto& [each, value] : in.entries)
    if (each == key) return &value;
  return nullptr;
}

}  // namespace

TEST_CASE("a report's keys are aligned") {
  CHECK(gpu::report_text({{"first", {{"a", "1"}, {"longer", "2"}}}, {"second", {}}}) ==
        "first\n  a       1\n  longer  2\nsecond\n");
}

TEST_CASE("a device that cannot be used says why") {
  gpu::device_description card;
  card.name = "old card";
  card.missing = {"Vulkan 1.3 (found 1.1.0)", "a queue family with compute"};
  const gpu::report_section section = gpu::report_device(card);
  REQUIRE(find(section, "usable") != nullptr);
  CHECK(*find(section, "usable") == "no, it lacks Vulkan 1.3 (found 1.1.0) and more");
  CHECK(*find(section, "subgroup operations") == "none");
  CHECK(*find(section, "timestamps") == "none");
  CHECK(*find(section, "features") == "none");
  CHECK(*find(section, "cooperative matrices") == "none");
  CHECK(*find(section, "int8 products of chunks") == "by dot products");
  CHECK(*find(section, "f16 products of chunks") == "in tiles");
  using enum gpu::matrix_element;
  card.matrix_shapes = {{.m = 16,
                         .n = 16,
                         .k = 32,
                         .a = s8,
                         .b = s8,
                         .c = s32,
                         .result = s32,
                         .scope = gpu::matrix_shape::subgroup_scope}};
  const gpu::report_section matrices = gpu::report_device(card);
  CHECK(*find(matrices, "cooperative matrices") == "16x16x32 s8 s8 s32");
}

TEST_CASE("subgroup operations are listed in words") {
  CHECK(gpu::detail::subgroup_operations_text(VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT) ==
        "basic shuffle");
}

TEST_CASE("the machine's own report has a chosen device, and a loader that knows nothing is a finding") {
  const gpu::report found = gpu::examine();
  REQUIRE(found.size() >= 2);
  REQUIRE(find(found.front(), "chosen") != nullptr);
  CHECK(find(found[1], "name") != nullptr);
  const gpu::report nothing = gpu::examine([](VkInstance, const char*) -> PFN_vkVoidFunction { return nullptr; });
  CHECK(nothing.size() == 1);
  CHECK(find(nothing.front(), "problem") != nullptr);
}
