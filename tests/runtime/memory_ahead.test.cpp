// SPDX-License-Identifier: MIT
#include "intaglio/runtime/memory_ahead.hpp"

#include <catch2/catch_test_macros.hpp>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;

TEST_CASE("memory ahead: items have the places that they have when all are placed at once", "[weight_memory]") {
  const checked_device on;
  const plan::table& table = fable_table();
  const auto split = runtime::split_weights(table, std::uint64_t{3} << 20);
  REQUIRE((!split.device.empty() && !split.host.empty()));
  for (const std::uint64_t largest : {std::uint64_t{1}, std::uint64_t{300'000}, std::uint64_t{0}}) {
    const auto expected = runtime::allocate_items(on.device, table, split, largest);
    runtime::memory_ahead made(on.device, table, split, largest);
    for (std::size_t i = 0; i < expected.items.size(); ++i) {
      const auto& items = made.until(i + 1);
      CHECK((items.items[i].buffer == expected.items[i].buffer && items.items[i].offset == expected.items[i].offset && items.items[i].bytes == expected.items[i].bytes));
      CHECK(items.items[i].address == items.buffers[items.items[i].buffer].address() + items.items[i].offset);
    }
    const auto all = std::move(made).take();
    CHECK(all.items.size() == expected.items.size());
    REQUIRE(all.buffers.size() == expected.buffers.size());
    for (std::size_t b = 0; b < all.buffers.size(); ++b) CHECK(all.buffers[b].size_bytes() == expected.buffers[b].size_bytes());
  }
}

TEST_CASE("memory ahead: who waits hears that memory has run out, and what was there is freed", "[weight_memory]") {
  gpu::device_options options;
  options.entry = &faults::entry;
  faults::the_shim().reset();
  {
    const checked_device on(options);
    const auto split = runtime::split_weights(fable_table());
    faults::the_shim().arm(faults::id::vkAllocateMemory, 3, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    runtime::memory_ahead made(on.device, fable_table(), split, 1);  // a buffer for each item
    CHECK(made.until(3).items[2].address != 0);
    CHECK_THROWS_AS(made.until(5), out_of_memory);
    CHECK_THROWS_AS(std::move(made).take(), out_of_memory);
    faults::the_shim().reset();
    const runtime::memory_ahead unused(on.device, fable_table(), split, 1);
  }
  CHECK(faults::the_shim().live().empty());
}
