// SPDX-License-Identifier: MIT
#include <intaglio/gpu/features.hpp>

#include <catch2/catch_test_macros.hpp>

#include <set>
#include <string>

using namespace intaglio::gpu;

TEST_CASE("features have names of their own, and what is required has a switch of Vulkan 1.3") {
  std::set<std::string_view> names;
  for (const feature_entry& each : feature_table) {
    CAPTURE(each.name);
    CHECK(names.insert(each.name).second);
    CHECK(name(each.id) == each.name);
    CHECK(contains(required_features(), each.id) == each.required);
    if (each.required) {
      CHECK(each.extension == nullptr);
      CHECK(each.member != nullptr);
    }
  }
}

TEST_CASE("only what is wanted is switched on") {
  feature_set wanted;
  wanted.set(static_cast<std::size_t>(feature::timeline_semaphore));
  feature_chain chain;
  enable(chain, wanted);
  for (const feature_entry& each : feature_table) {
    CAPTURE(each.name);
    if (each.member != nullptr)
      CHECK(*each.member(chain) == (each.id == feature::timeline_semaphore ? VK_TRUE : VK_FALSE));
  }
}

TEST_CASE("the chain holds the structs of extensions that are there, and no others") {
  feature_chain chain;
  const auto linked = [&] {
    std::size_t count = 0;
    for (auto* at = static_cast<const VkBaseInStructure*>(chain.head()); at != nullptr; at = at->pNext) ++count;
    return count;
  };
  CHECK(linked() == 4);
  chain.link_extensions([](const char*) { return false; });
  CHECK(linked() == 4);
  chain.link_extensions([](const char* extension) { return std::string(extension) == "VK_EXT_robustness2"; });
  CHECK(linked() == 5);
  CHECK(chain.core13.pNext == &chain.robustness2);
}
