// SPDX-License-Identifier: MIT
// Host memory in places of one size, filled by several threads and copied on by one: how much is uploaded by more than
// a thread can read.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>

namespace intaglio::gpu {

/// Places to fill and to copy from. It waits for its copies when it goes, so it should go before their targets.
class staging_ring {
 public:
  /// Bytes of a place, and where they are to go.
  struct part {
    std::uint64_t from = 0, size_bytes = 0;
    const buffer* to = nullptr;
    std::uint64_t offset = 0;
  };

  /// @error argument_error: no place or no bytes; out_of_memory
  staging_ring(const device& on, std::uint64_t place_bytes, std::size_t places)
      : device_(on), states_(places), place_bytes_(place_bytes), line_(on) {
    if (places == 0) throw argument_error("places of a staging ring", "at least one", "0");
    // Cached by the host, so that it is checked where it was read to; devices fetch from it as fast as from any.
    memory_ = buffer(device_, place_bytes * places, placement::readback, "staging");
  }

  std::size_t places() const noexcept { return states_.size(); }
  /// Memory of a place, read as fast as written, when its last copy is done. Any thread may call, also while another
  /// copies other places.
  /// @error device_lost, out_of_memory
  std::span<std::byte> place(std::size_t index) const {
    if (states_[index].submission != 0) line_.await(states_[index].submission);
    return memory_.mapped().subspan(static_cast<std::size_t>(index * place_bytes_),
                                    static_cast<std::size_t>(place_bytes_));
  }

  /// Submits a copy of parts of a place that was asked for since its last one. Later submissions on this device see
  /// what it writes.
  /// @error argument_error: a part ends outside the place or its target; out_of_memory, device_lost
  void copy(std::size_t index, std::span<const part> parts) {
    translated([&] {
      state& of = states_[index];
      recorder commands(device_, "upload", std::move(of.commands));
      for (const part& each : parts) {
        if (each.from > place_bytes_ || each.size_bytes > place_bytes_ - each.from)
          throw argument_error("part of a place", "inside of " + std::to_string(place_bytes_) + " bytes",
                               std::to_string(each.size_bytes) + " from " + std::to_string(each.from));
        commands.copy(memory_, index * place_bytes_ + each.from, *each.to, each.offset, each.size_bytes);
      }
      of.commands = commands.finish();
      const VkCommandBuffer handle = of.commands.handle();
      of.submission = line_.submit({&handle, 1}, of.commands.name());
    });
  }
  /// Waits until all copies are done. @error device_lost, out_of_memory
  void finish() { line_.wait(line_.submitted()); }

 private:
  struct state {
    recording commands;
    std::uint64_t submission = 0;
  };

  device device_;
  buffer memory_;
  std::vector<state> states_;
  std::uint64_t place_bytes_;
  queue line_;  // goes first, and waits: what is above may be in flight
};

}  // namespace intaglio::gpu
