// SPDX-License-Identifier: MIT
// Staging memory of the host in slots of one size. Several threads fill the slots and one thread copies them to the
// device. It serves uploads of more data than one thread can read in time.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>

#include "intaglio/core/array_view.hpp"

namespace intaglio::gpu {

/// Slots to fill and to copy from. The destructor waits for the copies, so the ring should be destroyed before their
/// targets.
class staging_ring {
 public:
  /// A range of a slot, and its destination.
  struct part {
    std::uint64_t from = 0, size_bytes = 0;
    const buffer* to = nullptr;
    std::uint64_t offset = 0;
  };

  /// @error argument_error: no slots or no bytes; out_of_memory
  staging_ring(const device& on, std::uint64_t slot_bytes, std::size_t slot_count)
      : device_(on), states_(slot_count), slot_bytes_(slot_bytes), line_(on) {
    if (slot_count == 0) throw argument_error("slots of a staging ring", "at least one", "0");
    // Memory cached by the host, so that the data is checked where it was read to. Devices copy from it as fast as from
    // any other.
    memory_ = buffer(device_, slot_bytes * slot_count, placement::readback, "staging");
  }

  std::size_t slot_count() const noexcept { return states_.size(); }
  /// Memory of a slot, read as fast as written, once its last copy is done. Any thread may call it, also while another
  /// one copies other slots.
  /// @error device_lost, out_of_memory
  std::span<std::byte> slot(std::size_t index) const {
    if (states_[index].submission != 0) line_.await(states_[index].submission);
    return memory_.mapped().subspan(static_cast<std::size_t>(index * slot_bytes_),
                                    static_cast<std::size_t>(slot_bytes_));
  }

  /// Submits a copy of parts of a slot that slot() returned since its last copy. Later submissions on this device see
  /// the copied data.
  /// @error argument_error: a part ends outside the slot or its target; out_of_memory, device_lost
  void copy(std::size_t index, array_view<const part> parts) {
    translated([&] {
      state& of = states_[index];
      recorder commands(device_, "upload", std::move(of.commands));
      for (const part& each : parts) {
        if (each.from > slot_bytes_ || each.size_bytes > slot_bytes_ - each.from)
          throw argument_error("part of a slot", "inside of " + std::to_string(slot_bytes_) + " bytes",
                               std::to_string(each.size_bytes) + " from " + std::to_string(each.from));
        commands.copy(memory_, index * slot_bytes_ + each.from, *each.to, each.offset, each.size_bytes);
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
  std::uint64_t slot_bytes_;
  queue line_;  // destroyed first, and waits: the members above may be in flight
};

}  // namespace intaglio::gpu
