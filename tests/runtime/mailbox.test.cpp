// SPDX-License-Identifier: MIT
#include "intaglio/runtime/mailbox.hpp"

#include "gpu/checked_device.hpp"
#include "intaglio/runtime/clear_memory.hpp"

using namespace intaglio;

namespace {

/// What a buffer of the host's memory holds.
std::vector<std::uint32_t> words_of(const gpu::buffer& of) {
  std::vector<std::uint32_t> out(of.mapped().size() / 4);
  std::memcpy(out.data(), of.mapped().data(), out.size() * 4);
  return out;
}

void run(gpu::queue& line, const gpu::recording& what) {
  const VkCommandBuffer handle = what.handle();
  line.wait(line.submit({&handle, 1}, what.name()));
}

}  // namespace

TEST_CASE("what the host writes into a box is where kernels read it, when the box was fed") {
  const checked_device checked;
  gpu::queue line(checked.device);
  const runtime::mailbox box(checked.device, 64);
  for (const std::byte each : box.mapped()) CHECK(each == std::byte{0});
  const gpu::buffer to(checked.device, 32, gpu::placement::readback, "the state");
  std::memset(to.mapped().data(), 0xFF, 32);
  const gpu::recording feed = box.feed(checked.device, "a test", 16, to, 8, 12);
  box.words(16, 3)[0] = 7;
  box.words(16, 3)[2] = 9;
  run(line, feed);
  CHECK(words_of(to) == std::vector<std::uint32_t>{~0u, ~0u, 7, 0, 9, ~0u, ~0u, ~0u});
  box.words(20, 1)[0] = 8;  // the same commands feed what is there then
  run(line, feed);
  CHECK(words_of(to)[3] == 8);
}

TEST_CASE("memory is cleared to the last whole word") {
  const checked_device checked;
  gpu::queue line(checked.device);
  const gpu::buffer one(checked.device, 16, gpu::placement::readback, "one");
  runtime::placed_items items;
  items.buffers.emplace_back(checked.device, 8, gpu::placement::readback, "two");
  const gpu::buffer& two = items.buffers[0];
  for (const gpu::buffer* each : {&one, &two}) std::memset(each->mapped().data(), 0xFF, each->mapped().size());
  runtime::clear_memory(checked.device, line, "a test", {&one}, {&items});
  for (const gpu::buffer* each : {&one, &two})
    for (const std::uint32_t word : words_of(*each)) CHECK(word == 0);
}
