// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

#include <intaglio/gpu/transfer.hpp>

#include <random>

using namespace intaglio;

TEST_CASE("bytes go up and come back, by both ways, at every kind of offset") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer store(on, 100'000, gpu::placement::device_local, "store");
  std::mt19937 random(1);
  std::vector<std::byte> mirror(store.size_bytes());
  gpu::transfer ways[] = {gpu::transfer(on, 4096, false), gpu::transfer(on)};
  ways[0].upload(store, 0, mirror);
  ways[0].finish();
  for (int round = 0; round < 60; ++round) {
    gpu::transfer& way = ways[round % 2];
    const std::size_t offset = random() % mirror.size(),
                      size = random() % std::min<std::size_t>(20'000, mirror.size() - offset + 1);
    way.upload(store, offset, size, [&](std::span<std::byte> into, std::uint64_t at) {
      for (std::size_t i = 0; i < into.size(); ++i)
        mirror[offset + at + i] = into[i] = static_cast<std::byte>(random());
    });
    way.finish();
    if (round % 5 == 4) {
      std::vector<std::byte> back(mirror.size());
      ways[(round / 2) % 2].download(store, 0, back);
      REQUIRE(back == mirror);
    }
  }
}

TEST_CASE("an upload takes two staging buffers, however large it is") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer store(on, 1U << 20U, gpu::placement::device_local, "store");
  const auto before = on.counters().allocations.load();
  gpu::transfer way(on, 1U << 14U, false);
  std::uint64_t expected_at = 0;
  way.upload(store, 0, store.size_bytes(), [&](std::span<std::byte> into, std::uint64_t at) {
    CHECK(at == expected_at);
    CHECK(into.size() == 1U << 14U);
    expected_at += into.size();
    std::fill(into.begin(), into.end(), std::byte{1});
  });
  CHECK(expected_at == store.size_bytes());
  CHECK(on.counters().allocations == before + 2);
}

TEST_CASE("a producer that throws ends the upload and leaves nothing behind") {
  faults::the_shim().reset();
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    const checked_device checked(options);
    const gpu::buffer store(checked.device, 65536, gpu::placement::device_local, "store");
    for (const bool direct : {false, true}) {
      gpu::transfer way(checked.device, 4096, direct);
      CHECK_THROWS_AS(way.upload(store, 0, store.size_bytes(),
                                 [](std::span<std::byte>, std::uint64_t at) {
                                   if (at >= 12288)
                                     throw file_error("model.gguf", at, "the file ended", "65536 bytes", "12288");
                                 }),
                      file_error);
      std::vector<std::byte> works(64);
      way.upload(store, 0, works);
      way.download(store, 0, works);
    }
  }
  CHECK(faults::the_shim().live().empty());
}

TEST_CASE("ranges outside the buffer are refused") {
  const checked_device checked;
  const gpu::buffer store(checked.device, 64, gpu::placement::device_local, "store");
  gpu::transfer way(checked.device);
  std::vector<std::byte> bytes(65);
  CHECK_THROWS_AS(way.upload(store, 0, bytes), argument_error);
  CHECK_THROWS_AS(way.download(store, 1, std::span(bytes).first(64)), argument_error);
  CHECK_THROWS_AS(way.upload(store, ~std::uint64_t{0}, std::span(bytes).first(2)), argument_error);
  way.upload(store, 64, std::span(bytes).first(0));
}
