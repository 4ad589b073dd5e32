// SPDX-License-Identifier: MIT
#include <intaglio/gpu/connection.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
int destroyed = 0;
using semaphore = gpu::owned_handle<VkSemaphore, &gpu::dispatch_table::vkDestroySemaphore>;
VkSemaphore numbered(std::uintptr_t number) { return reinterpret_cast<VkSemaphore>(number); }
std::shared_ptr<gpu::connection> borrowed() {
  auto out = std::make_shared<gpu::connection>();
  out->owned = false;
  out->label = "card";
  out->call.vkDestroySemaphore = [](VkDevice, VkSemaphore, const VkAllocationCallbacks*) { ++destroyed; };
  return out;
}
}  // namespace

TEST_CASE("an owned handle is destroyed once, by its last owner") {
  destroyed = 0;
  const auto on = borrowed();
  {
    semaphore first(on, numbered(1)), second(std::move(first));
    CHECK_FALSE(static_cast<bool>(first));
    CHECK(second.get() == numbered(1));
    semaphore third(on, numbered(3));
    third = std::move(second);  // its own goes now
    CHECK(destroyed == 1);
    CHECK(third.get() == numbered(1));
  }
  CHECK(destroyed == 2);
  CHECK(on.use_count() == 1);
}

TEST_CASE("a forked child calls nothing") {
  destroyed = 0;
  const auto on = borrowed();
  {
    const semaphore held(on, numbered(1));
    on->process += 1;
    CHECK_THROWS_AS(on->require_alive("submit"), device_error);
  }
  CHECK(destroyed == 0);
}

TEST_CASE("a lost device stays lost") {
  const auto on = borrowed();
  CHECK_NOTHROW(on->check(VK_SUCCESS, "submit"));
  CHECK_NOTHROW(on->require_alive("submit"));
  CHECK_THROWS_AS(on->check(VK_ERROR_OUT_OF_DEVICE_MEMORY, "allocate", "weights"), out_of_memory);
  CHECK_NOTHROW(on->require_alive("submit"));
  CHECK_THROWS_AS(on->check(VK_ERROR_DEVICE_LOST, "submit"), device_lost);
  CHECK_THROWS_AS(on->require_alive("submit"), device_lost);
}
