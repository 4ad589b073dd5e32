// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "gpu/scale_add.hpp"

#include <intaglio/gpu/transfer.hpp>

using namespace intaglio;

namespace {

constexpr std::uint32_t count = 4096;

/// y = factor * x + addend, on a device of the caller's.
gpu::pipeline scale_add(const gpu::device& on, std::uint32_t factor) {
  const gpu::specialization constants[] = {{0, 64}, {1, factor}};
  return {on, {.name = "scale_add", .spirv = scale_add_spirv(), .constants = constants, .push_constant_bytes = 24}};
}

std::span<const std::byte> bytes_of(const scale_add_arguments& arguments) {
  return std::as_bytes(std::span(&arguments, 1));
}

std::vector<std::uint32_t> read(gpu::transfer& moves, const gpu::buffer& from) {
  std::vector<std::uint32_t> out(from.size_bytes() / 4);
  moves.download(from, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace

TEST_CASE("a recording replays: each run goes on from the last one's result") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer x(on, count * 4, gpu::placement::device_local, "x"),
      y(on, count * 4, gpu::placement::device_local, "y");
  const gpu::pipeline triple = scale_add(on, 3), copy = scale_add(on, 1);
  const std::array<std::uint32_t, 3> groups{count / 64, 1, 1};
  gpu::recorder commands(on, "x = 3 x + 2");
  const scale_add_arguments there{x.address(), y.address(), count, 1}, back{y.address(), x.address(), count, 1};
  commands.dispatch(triple, bytes_of(there), groups).barrier().dispatch(copy, bytes_of(back), groups);
  const gpu::recording recorded = commands.finish();
  CHECK(recorded.dispatches() == 2);
  CHECK(recorded.points() == 0);

  gpu::transfer moves(on);
  std::vector<std::uint32_t> expected(count);
  for (std::uint32_t i = 0; i < count; ++i) expected[i] = i;
  moves.upload(x, 0, std::as_bytes(std::span(expected)));
  gpu::queue line(on);
  const VkCommandBuffer twice[] = {recorded.handle(), recorded.handle()};

  const auto recorded_before = on.counters().recorded_commands.load(),
             allocated_before = on.counters().allocations.load();
  for (int run = 0; run < 5; ++run) line.submit(twice, recorded.name());
  line.wait(line.submitted());
  CHECK(on.counters().recorded_commands == recorded_before);  // replayed, not recorded
  CHECK(on.counters().allocations == allocated_before);
  CHECK(on.counters().submits >= 5);
  for (auto& value : expected)
    for (int run = 0; run < 10; ++run) value = 3 * value + 2;
  CHECK(read(moves, x) == expected);
}

TEST_CASE("what was recorded is recorded anew in the same memory") {
  faults::the_shim().reset();
  gpu::device_options options;
  options.entry = &faults::entry;
  const checked_device checked(options);
  const gpu::device& on = checked.device;
  const gpu::buffer x(on, count * 4, gpu::placement::device_local, "x");
  gpu::recording recorded;
  gpu::queue line(on);
  for (const std::uint32_t word : {3u, 5u, 7u}) {
    gpu::recorder commands(on, "fill", std::move(recorded));
    recorded = commands.fill(x, 0, x.size_bytes(), word).finish();
    const VkCommandBuffer handle = recorded.handle();
    line.wait(line.submit({&handle, 1}, recorded.name()));
    gpu::transfer moves(on);
    CHECK(read(moves, x) == std::vector<std::uint32_t>(count, word));
  }
  CHECK(faults::the_shim().calls(faults::id::vkAllocateCommandBuffers) == 1 + 3);  // once, and by each download
}

TEST_CASE("a touched kernel runs no workgroup, and the next dispatch is not its") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer x(on, count * 4, gpu::placement::device_local, "x"),
      y(on, count * 4, gpu::placement::device_local, "y");
  const gpu::pipeline triple = scale_add(on, 3), copy = scale_add(on, 1);
  const scale_add_arguments there{x.address(), y.address(), count, 1};
  gpu::recorder commands(on, "y = x + 1, or 3 x + 1");
  commands.fill(x, 0, count * 4, 5).fill(y, 0, count * 4, 9).full_barrier();
  commands.dispatch(copy, bytes_of(there), {1, 1, 1}).touch(triple).dispatch(copy, bytes_of(there), {2, 1, 1});
  const gpu::recording recorded = commands.finish();
  CHECK(recorded.dispatches() == 2);
  gpu::queue line(on);
  const VkCommandBuffer once = recorded.handle();
  line.wait(line.submit({&once, 1}, recorded.name()));
  gpu::transfer moves(on);
  std::vector<std::uint32_t> expected(count, 9);
  std::fill_n(expected.begin(), 128, 6u);
  CHECK(read(moves, y) == expected);
}

TEST_CASE("between tokens only submit and wait are called") {
  faults::the_shim().reset();
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    const checked_device checked(options);
    const gpu::device& on = checked.device;
    const gpu::buffer x(on, 256, gpu::placement::device_local, "x");
    const gpu::pipeline kernel = scale_add(on, 1);
    gpu::recorder commands(on, "count up");
    const scale_add_arguments arguments{x.address(), x.address(), 64, 1};
    commands.fill(x, 0, 256, 0).full_barrier().dispatch(kernel, bytes_of(arguments), {1, 1, 1});
    const gpu::recording recorded = commands.finish();
    gpu::queue line(on);
    const VkCommandBuffer handle = recorded.handle();
    faults::the_shim().reset();
    for (int token = 0; token < 64; ++token) line.wait(line.submit({&handle, 1}, recorded.name()));
    CHECK(faults::the_shim().calls() == 128);
    CHECK(faults::the_shim().calls(faults::id::vkQueueSubmit) == 64);
    CHECK(faults::the_shim().calls(faults::id::vkWaitSemaphores) == 64);
    gpu::transfer moves(on);
    CHECK(read(moves, x) == std::vector<std::uint32_t>(64, 1));
  }
  CHECK(faults::the_shim().live().empty());
}

TEST_CASE("copies and fills write to their offsets") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer x(on, 64, gpu::placement::device_local, "x"), y(on, 64, gpu::placement::device_local, "y");
  gpu::recorder commands(on, "moves");
  commands.fill(x, 0, 64, 7).fill(y, 0, 64, 9).full_barrier().copy(x, 16, y, 32, 8);
  const gpu::recording recorded = commands.finish();
  gpu::queue line(on);
  const VkCommandBuffer handle = recorded.handle();
  line.wait(line.submit({&handle, 1}, recorded.name()));
  gpu::transfer moves(on);
  std::vector<std::uint32_t> expected(16, 9);
  expected[8] = expected[9] = 7;
  CHECK(read(moves, y) == expected);
}

TEST_CASE("timestamps bracket every dispatch") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  REQUIRE(on.limits().timestamp_bits > 0);
  const gpu::buffer x(on, count * 4, gpu::placement::device_local, "x");
  const gpu::pipeline kernel = scale_add(on, 2);
  const gpu::timestamps times(on, 4);
  gpu::recorder commands(on, "three times", &times);
  const scale_add_arguments arguments{x.address(), x.address(), count, 0};
  commands.fill(x, 0, count * 4, 1).full_barrier();
  for (int i = 0; i < 3; ++i) commands.dispatch(kernel, bytes_of(arguments), {count / 64, 1, 1}).barrier();
  CHECK_THROWS_AS(commands.dispatch(kernel, bytes_of(arguments), {count / 64, 1, 1}), argument_error);
  gpu::recorder enough(on, "three times", &times);
  enough.fill(x, 0, count * 4, 1).full_barrier();
  for (int i = 0; i < 3; ++i) enough.dispatch(kernel, bytes_of(arguments), {count / 64, 1, 1}).barrier();
  const gpu::recording recorded = enough.finish();
  REQUIRE(recorded.points() == 4);
  gpu::queue line(on);
  const VkCommandBuffer handle = recorded.handle();
  for (int run = 0; run < 2; ++run) {
    line.wait(line.submit({&handle, 1}, recorded.name()));
    const auto points = times.read(recorded.points());
    REQUIRE(points.size() == 4);
    CHECK(points[0] == 0);
    for (int i = 1; i < 4; ++i) CHECK(points[static_cast<std::size_t>(i)] >= points[static_cast<std::size_t>(i - 1)]);
    CHECK(points[3] < 10e9);
  }
}

TEST_CASE("what does not fit is refused while recording") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const gpu::buffer x(on, 64, gpu::placement::device_local, "x");
  const gpu::pipeline kernel = scale_add(on, 2);
  gpu::recorder commands(on, "wrong");
  const scale_add_arguments arguments{x.address(), x.address(), 16, 0};
  CHECK_THROWS_AS(commands.dispatch(kernel, bytes_of(arguments).first(20), {1, 1, 1}), argument_error);
  CHECK_THROWS_AS(commands.dispatch(kernel, bytes_of(arguments), {0, 1, 1}), argument_error);
  CHECK_THROWS_AS(commands.dispatch(kernel, bytes_of(arguments), {1, on.limits().max_workgroup_count[1] + 1, 1}),
                  argument_error);
  CHECK_THROWS_AS(commands.fill(x, 2, 4, 0), argument_error);
  CHECK_THROWS_AS(commands.fill(x, 0, 68, 0), argument_error);
  CHECK_THROWS_AS(commands.copy(x, ~std::uint64_t{0}, x, 0, 4), argument_error);
  CHECK_THROWS_AS(commands.copy(x, 0, x, 61, 4), argument_error);
  CHECK_THROWS_AS(commands.copy(x, 0, x, 0, 0), argument_error);
}
