// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

#include <intaglio/core/joining_thread.hpp>
#include <intaglio/gpu/staging_ring.hpp>
#include <intaglio/gpu/transfer.hpp>

#include <random>
#include <thread>

using namespace intaglio;

TEST_CASE("a staging ring copies what several threads put into its parts, however often each is used") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  constexpr std::size_t piece = 4096, pieces = 40;
  const gpu::buffer store(on, piece * pieces, gpu::placement::device_local, "store");
  std::mt19937 random(5);
  std::vector<std::byte> expected(piece * pieces);
  for (auto& each : expected) each = static_cast<std::byte>(random());

  const auto allocations = on.counters().allocations.load();
  gpu::staging_ring ring(on, piece, 4);
  CHECK(ring.slot_count() == 4);
  for (std::size_t first = 0; first < pieces; first += ring.slot_count()) {
    {
      std::vector<intaglio::joining_thread> threads;
      for (std::size_t i = 0; i < ring.slot_count(); ++i)
        threads.emplace_back(
            [&, i] { std::memcpy(ring.slot(i).data(), expected.data() + (first + i) * piece, piece); });
    }
    for (std::size_t i = 0; i < ring.slot_count(); ++i) {  // in two parts, the last one first
      const gpu::staging_ring::part parts[] = {{1000, piece - 1000, &store, (first + i) * piece + 1000},
                                               {0, 1000, &store, (first + i) * piece}};
      ring.copy(i, parts);
    }
  }
  ring.finish();
  CHECK(on.counters().allocations == allocations + 1);
  std::vector<std::byte> found(expected.size());
  gpu::transfer(on).download(store, 0, found);
  CHECK(found == expected);
}

TEST_CASE("a staging ring of no parts, and copies beyond a part or a target, are refused") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer store(on, 1024, gpu::placement::device_local, "store");
  CHECK_THROWS_AS(gpu::staging_ring(on, 512, 0), argument_error);
  CHECK_THROWS_AS(gpu::staging_ring(on, 0, 1), argument_error);
  gpu::staging_ring ring(on, 512, 2);
  using part = gpu::staging_ring::part;
  const part beyond{1, 512, &store, 0}, after{513, 0, &store, 0}, too_far{0, 512, &store, 513},
      right{0, 512, &store, 512};
  for (const part& wrong : {beyond, after, too_far}) CHECK_THROWS_AS(ring.copy(0, {&wrong, 1}), argument_error);
  CHECK(ring.slot(1).size() == 512);
  std::memset(ring.slot(1).data(), 7, 512);
  ring.copy(1, {&right, 1});
  ring.finish();
  std::vector<std::byte> found(512);
  gpu::transfer(on).download(store, 512, found);
  CHECK(found == std::vector<std::byte>(512, std::byte{7}));
}

TEST_CASE("a staging ring that goes while it copies leaves nothing behind") {
  faults::the_shim().reset();
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    const checked_device checked(options);
    const gpu::buffer store(checked.device, std::uint64_t{1} << 20U, gpu::placement::device_local, "store");
    gpu::staging_ring ring(checked.device, std::uint64_t{1} << 19U, 2);
    std::memset(ring.slot(0).data(), 1, ring.slot(0).size());
    const gpu::staging_ring::part all{0, ring.slot(0).size(), &store, 0};
    ring.copy(0, {&all, 1});
  }
  CHECK(faults::the_shim().live().empty());
  CHECK(faults::the_shim().wrong_destroys() == 0);
}
