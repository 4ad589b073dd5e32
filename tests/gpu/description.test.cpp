// SPDX-License-Identifier: MIT
#include <intaglio/gpu/description.hpp>

#include <catch2/catch_test_macros.hpp>

#include "gpu/checked_device.hpp"

using namespace intaglio;

TEST_CASE("identities read as in bug reports") {
  std::array<std::uint8_t, 16> uuid{};
  for (std::size_t i = 0; i < uuid.size(); ++i) uuid[i] = static_cast<std::uint8_t>(0x10 * i + i);
  CHECK(gpu::uuid_text(uuid) == "00112233-4455-6677-8899-aabbccddeeff");
  gpu::device_description card;
  card.name = "card";
  CHECK(card.label() == "card");
  card.driver_name = "driver";
  card.driver_info = "1.2";
  CHECK(card.label() == "card [driver 1.2]");
  CHECK(gpu::name(gpu::device_type::virtual_gpu) == "virtual GPU");
  CHECK(gpu::detail::type_of(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) == gpu::device_type::discrete);
  CHECK(gpu::detail::type_of(static_cast<VkPhysicalDeviceType>(77)) == gpu::device_type::other);
}

TEST_CASE("a usable device lacks nothing and says its limits") {
  const checked_device on;
  const gpu::device_description& found = on.device.description();
  CHECK(found.missing.empty());
  CHECK(found.queue_family.has_value());
  CHECK((found.features & gpu::required_features()) == gpu::required_features());
  CHECK(found.limits.max_push_constant_bytes >= 128);
  CHECK((found.limits.subgroup_size >= found.limits.min_subgroup_size &&
         found.limits.subgroup_size <= found.limits.max_subgroup_size));
  CHECK(found.limits.max_buffer_bytes > 0);
  CHECK_FALSE(found.heaps.empty());
}
