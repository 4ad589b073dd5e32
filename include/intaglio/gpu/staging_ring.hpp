// SPDX-License-Identifier: MIT
// Host memory in places of one size, filled by several threads and copied on by one: how much is uploaded by more than a thread can read.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>

namespace intaglio::gpu {

/// Places to fill, and turns to copy them. It waits for its copies when it goes, so it should go before their targets.
class staging_ring {
 public:
  /// Bytes of the places, which lie one behind the other, and where they are to go.
  struct part {
    std::uint64_t from = 0, size_bytes = 0;
    const buffer* to = nullptr;
    std::uint64_t offset = 0;
  };

  /// @param turns copies in flight at most
  /// @error argument_error: no place, no turn or no bytes; out_of_memory
  staging_ring(const device& on, std::uint64_t place_bytes, std::size_t places, std::size_t turns)
      : device_(on), turns_(turns), place_bytes_(place_bytes), line_(on) {
    if (places == 0 || turns == 0)
      throw argument_error("places and turns of a staging ring", "at least one of each",
                           std::to_string(places) + " and " + std::to_string(turns));
    // Cached by the host, so that it is checked where it was read to; devices fetch from it as fast as from any.
    memory_ = buffer(device_, place_bytes * places, placement::readback, "staging");
  }

  std::size_t places() const noexcept { return static_cast<std::size_t>(memory_.size_bytes() / place_bytes_); }
  std::size_t turns() const noexcept { return turns_.size(); }
  /// Memory of a place, read as fast as written; any thread's while no copy of it is under way.
  std::span<std::byte> place(std::size_t index) const {
    return memory_.mapped().subspan(static_cast<std::size_t>(index * place_bytes_), static_cast<std::size_t>(place_bytes_));
  }

  /// Submits copies of some parts when the last ones of this turn are done. Later submissions on this device see what they write.
  /// @error argument_error: a part ends outside the places or its target; out_of_memory, device_lost
  void copy(std::size_t turn, std::span<const part> parts) {
    translated([&] {
      wait(turn);
      state& of = turns_[turn];
      recorder commands(device_, "upload", std::move(of.commands));
      for (const part& each : parts) commands.copy(memory_, each.from, *each.to, each.offset, each.size_bytes);
      of.commands = commands.finish();
      const VkCommandBuffer handle = of.commands.handle();
      of.submission = line_.submit({&handle, 1}, of.commands.name());
    });
  }
  /// Waits until the last copies of a turn are done. @error device_lost, out_of_memory
  void wait(std::size_t turn) { line_.wait(turns_[turn].submission); }
  /// Waits until all copies are done. @error device_lost, out_of_memory
  void finish() { line_.wait(line_.submitted()); }

 private:
  struct state {
    recording commands;
    std::uint64_t submission = 0;
  };

  device device_;
  buffer memory_;
  std::vector<state> turns_;
  std::uint64_t place_bytes_;
  queue line_;  // goes first, and waits: what is above may be in flight
};

}  // namespace intaglio::gpu
