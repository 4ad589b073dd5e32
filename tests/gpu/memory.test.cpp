// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

#include <intaglio/gpu/memory.hpp>

using namespace intaglio;

TEST_CASE("buffers have addresses, and a host's view where asked for") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  for (const auto where : {gpu::placement::device_local, gpu::placement::shared, gpu::placement::readback}) {
    gpu::buffer words(on, 1000, where, "words");
    CHECK(words.address() != 0);
    CHECK(words.size_bytes() == 1000);
    if (where != gpu::placement::device_local) REQUIRE(words.mapped().size() == 1000);
    CHECK(on.counters().allocated_bytes >= 1000);
    const auto address = words.address();
    gpu::buffer moved = std::move(words);
    CHECK(moved.address() == address);
    CHECK_FALSE(words);  // NOLINT: that a moved-from buffer is empty is what is tested
    CHECK(words.mapped().empty());
    moved = gpu::buffer(on, 64, where, "fewer words");
    CHECK(moved.size_bytes() == 64);
  }
  CHECK(on.counters().allocated_bytes == 0);
}

TEST_CASE("sizes that no device allows are refused before Vulkan is asked") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  CHECK_THROWS_AS(gpu::buffer(on, 0, gpu::placement::shared, "nothing"), argument_error);
  for (const std::uint64_t size : {on.limits().max_buffer_bytes + 1, on.limits().max_allocation_bytes + 1, ~std::uint64_t{0}})
    CHECK_THROWS_AS(gpu::buffer(on, size, gpu::placement::device_local, "too much"), device_error);
  CHECK(on.counters().allocations == 0);
}

TEST_CASE("a region splits at the limit and at whole rows") {
  const checked_device checked;
  const auto pieces = gpu::allocate_split(checked.device, 10'000, 300, gpu::placement::device_local, "weights", 4096);
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[0].size_bytes() == 3900);
  CHECK(pieces[1].size_bytes() == 3900);
  CHECK(pieces[2].size_bytes() == 2200);
  CHECK(gpu::allocate_split(checked.device, 0, 300, gpu::placement::device_local, "nothing").empty());
  CHECK_THROWS_AS(gpu::allocate_split(checked.device, 10, 0, gpu::placement::device_local, "weights"), argument_error);
  CHECK_THROWS_AS(gpu::allocate_split(checked.device, 10'000, 5000, gpu::placement::device_local, "weights", 4096), argument_error);
}

TEST_CASE("where a large piece is refused, smaller ones are tried") {
  faults::the_shim().arm(faults::id::vkAllocateMemory, 0, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    options.selector = "llvmpipe";  // one memory type: no other to fall back on
    const checked_device checked(options);
    const auto pieces = gpu::allocate_split(checked.device, std::uint64_t{64} << 20U, 1024, gpu::placement::device_local, "weights");
    REQUIRE(pieces.size() == 2);
    CHECK(pieces[0].size_bytes() == std::uint64_t{32} << 20U);
    faults::the_shim().arm(faults::id::vkAllocateMemory, 0, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    try {
      gpu::buffer refused(checked.device, 4096, gpu::placement::device_local, "the cache of keys");
      FAIL("nothing was thrown");
    } catch (const out_of_memory& refused) {
      const std::string text = refused.what();
      CHECK(text.find("llvmpipe") != std::string::npos);
      CHECK(text.find("the cache of keys") != std::string::npos);
      CHECK(text.find("4.0 KiB wanted, 64.0 MiB already taken") != std::string::npos);
    }
  }
  CHECK(faults::the_shim().live().empty());
}
