// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

#include <intaglio/gpu/memory.hpp>
#include <intaglio/gpu/transfer.hpp>

#include <cstdlib>

using namespace intaglio;

TEST_CASE("buffers have addresses, and a host's view where asked for") {
  const own_device checked;
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
  const own_device checked;
  const gpu::device& on = checked.device;
  CHECK_THROWS_AS(gpu::buffer(on, 0, gpu::placement::shared, "nothing"), argument_error);
  for (const std::uint64_t size :
       {on.limits().max_buffer_bytes + 1, on.limits().max_allocation_bytes + 1, ~std::uint64_t{0}})
    CHECK_THROWS_AS(gpu::buffer(on, size, gpu::placement::device_local, "too much"), device_error);
  CHECK(on.counters().allocations == 0);
}

TEST_CASE("a region splits at the limit and at whole rows") {
  const own_device checked;
  const auto pieces = gpu::allocate_split(checked.device, 10'000, 300, gpu::placement::device_local, "weights", 4096);
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[0].size_bytes() == 3900);
  CHECK(pieces[1].size_bytes() == 3900);
  CHECK(pieces[2].size_bytes() == 2200);
  CHECK(gpu::allocate_split(checked.device, 0, 300, gpu::placement::device_local, "nothing").empty());
  CHECK_THROWS_AS(gpu::allocate_split(checked.device, 10, 0, gpu::placement::device_local, "weights"), argument_error);
  CHECK_THROWS_AS(gpu::allocate_split(checked.device, 10'000, 5000, gpu::placement::device_local, "weights", 4096),
                  argument_error);
}

namespace {
void skip_without_llvmpipe() {
  for (const auto& each : gpu::list_devices())
    if (each.driver_name == "llvmpipe") return;
  SKIP("NOT RUN: needs llvmpipe, found none");
}
}  // namespace

TEST_CASE("where a large piece is refused, smaller ones are tried") {
  skip_without_llvmpipe();
  faults::the_shim().arm(faults::id::vkAllocateMemory, 0, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    options.selector = "llvmpipe";  // one memory type: no other to fall back on
    const checked_device checked(options);
    const auto pieces =
        gpu::allocate_split(checked.device, std::uint64_t{64} << 20U, 1024, gpu::placement::device_local, "weights");
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

TEST_CASE("memory of the host is read in place, where the device takes it") {
  const own_device checked;
  const gpu::device& on = checked.device;
  if (!on.has(gpu::feature::external_memory_host))
    SKIP("NOT RUN: needs VK_EXT_external_memory_host, found " << on.label());
  const auto step = static_cast<std::size_t>(on.limits().host_pointer_alignment);
  std::shared_ptr<std::byte> host(static_cast<std::byte*>(std::aligned_alloc(step, 4 * step)), &std::free);
  const std::span bytes(host.get(), 4 * step);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  {
    gpu::buffer first = gpu::buffer::imported(on, bytes, host, "words"), moved = std::move(first);
    CHECK(host.use_count() == 2);
    CHECK(on.counters().allocated_bytes == 0);
    CHECK((moved.address() != 0 && moved.size_bytes() == bytes.size() && moved.mapped().empty()));
    std::vector<std::byte> read(2 * step);
    gpu::transfer(on).download(moved, step, read);
    CHECK(std::equal(read.begin(), read.end(), bytes.begin() + static_cast<std::ptrdiff_t>(step)));
  }
  CHECK(host.use_count() == 1);
  CHECK_THROWS_AS(gpu::buffer::imported(on, bytes.first(0), host, "nothing"), argument_error);
  CHECK_THROWS_AS(gpu::buffer::imported(on, bytes.first(step - 1), host, "a part of a page"), argument_error);
  CHECK_THROWS_AS(gpu::buffer::imported(on, bytes.subspan(64, step), host, "another part"), argument_error);
  CHECK(host.use_count() == 1);
}

TEST_CASE(
    "without the extension, or where the driver refuses, host memory is not read in place, and the error says why") {
  skip_without_llvmpipe();
  gpu::device_options options;
  options.entry = &faults::entry;
  options.selector = "llvmpipe";
  faults::the_shim().reset();
  const checked_device checked(options);
  const gpu::device& on = checked.device;
  if (!on.has(gpu::feature::external_memory_host))
    SKIP("NOT RUN: needs VK_EXT_external_memory_host, found " << on.label());
  const auto step = static_cast<std::size_t>(on.limits().host_pointer_alignment);
  std::shared_ptr<std::byte> host(static_cast<std::byte*>(std::aligned_alloc(step, step)), &std::free);
  for (const auto which : {faults::id::vkCreateBuffer, faults::id::vkAllocateMemory, faults::id::vkBindBufferMemory}) {
    faults::the_shim().arm(which, 0, VK_ERROR_INVALID_EXTERNAL_HANDLE);
    try {
      gpu::buffer::imported(on, {host.get(), step}, host, "words");
      FAIL("it was imported");
    } catch (const device_error& caught) {
      CHECK(std::string(caught.what()).find("VK_ERROR_INVALID_EXTERNAL_HANDLE") != std::string::npos);
    }
    CHECK(host.use_count() == 1);
  }
  const gpu::host_device lent{.entry = &faults::entry,
                              .instance = on.on()->from->handle(),
                              .physical = on.on()->physical,
                              .device = on.on()->handle,
                              .queue = on.on()->queue,
                              .queue_family = on.on()->queue_family};
  CHECK_THROWS_AS(gpu::buffer::imported(gpu::device(lent), {host.get(), step}, host, "words"), device_error);
}
