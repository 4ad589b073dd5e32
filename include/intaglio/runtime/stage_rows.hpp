// SPDX-License-Identifier: MIT
// Rows of the stream on their way into a stage and out of it: the memory of one device's side of a crossing
// (plan/crossing.hpp), and copies that are recorded once.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/plan/row_memory.hpp"
#include "intaglio/runtime/pass_kind.hpp"
#include "intaglio/runtime/pass_memory.hpp"
#include "intaglio/runtime/row_copy.hpp"
#include "intaglio/runtime/stage_poll.hpp"

namespace intaglio::runtime {

/// Used by the thread of the stage's runner.
class stage_rows {
 public:
  static constexpr std::size_t boxes = plan::receiver_boxes, slot_count = plan::most_asked_passes;
  static_assert(boxes == pass_memory::mailboxes);

  /// @error out_of_memory, device_lost
  stage_rows(const gpu::device& on, const plan::table& of) : stage_rows(on, of, plan::row_memory_of(of, false)) {}

  /// Records the copies of a kind of pass. @param arena with which its sequence is recorded
  void record(pass_kind kind, const plan::sequence& of, const gpu::buffer& arena) {
    recordings made;
    const plan::crossing rows = plan::crossing_of(*table_, of);
    const std::uint64_t bytes = rows.bytes();
    made.staged = &rows.way() == &plan::staged_crossing;
    const std::string owner = std::string(of.name) + " of " + model_name(*table_);
    for (std::size_t box = 0; of.takes_stream && box < boxes; ++box) {
      const std::uint64_t at = box * slot_bytes_;
      if (made.staged)
        made.arrive[box] = copy("rows to " + owner, gpu::lane::copies, incoming_, at, arrived_, at, bytes);
      made.in[box] = copy("rows into " + owner, gpu::lane::work, made.staged ? arrived_ : incoming_, at, arena,
                          of.stream_in_offset, bytes);
    }
    for (std::size_t slot = 0; of.gives_stream && slot < slot_count; ++slot) {
      const std::uint64_t at = slot * slot_bytes_, leaves_at = slot % leaving_slots * slot_bytes_;
      if (made.staged)
        made.leave[slot] = copy("rows from " + owner, gpu::lane::copies, leaving_, leaves_at, outgoing_, at, bytes);
      made.out[slot] =
          made.staged
              ? copy("rows out of " + owner, gpu::lane::work, arena, of.residual_offset, leaving_, leaves_at, bytes)
              : copy("rows out of " + owner, gpu::lane::work, arena, of.residual_offset, outgoing_, at, bytes);
    }
    of_[static_cast<std::size_t>(kind)] = std::move(made);
  }

  /// Whether passes of a kind begin with rows.
  bool takes(pass_kind kind) const noexcept { return its(kind).in[0].handle() != nullptr; }
  /// Writes the rows of a pass where its commands read them.
  /// @param box index of the mailbox, whose last use is done  @param after set to what the pass waits for
  /// @return commands that run before the pass  @error device_lost, out_of_memory
  VkCommandBuffer enter(pass_kind kind, std::size_t box, std::span<const std::byte> rows, gpu::queue_point& after) {
    const recordings& of = its(kind);
    copy_rows(incoming_.mapped().data() + box * slot_bytes_, rows);
    if (of.staged) after = copies_->end_of(submit(of.arrive[box]));
    return of.in[box].handle();
  }
  /// Commands that run after a pass of a kind; null: it gives no rows. @param slot for the rows
  VkCommandBuffer leave(pass_kind kind, std::size_t slot) const noexcept { return its(kind).out[slot].handle(); }
  /// Brings the rows of a pass to the host. @param pass the end of the pass, which is done
  /// @return f32 [tokens, hidden_size], valid until the slot's next use  @error device_lost, out_of_memory
  std::span<const std::byte> bring(pass_kind kind, std::size_t slot, std::uint32_t tokens,
                                   const gpu::queue_point& pass) {
    if (const recordings& of = its(kind); of.staged) {
      const std::uint64_t number = submit(of.leave[slot], pass);
      poll_for(stage_poll(device_), [&] { return copies_->finished(number); });
      copies_->wait(number);
    }
    return outgoing_.mapped().subspan(slot * slot_bytes_, tokens * row_bytes_);
  }

 private:
  static constexpr std::size_t leaving_slots = plan::staged_crossing.slot_count(plan::crossing_memory::leaving);
  static_assert(slot_count % leaving_slots == 0);
  struct recordings {
    bool staged = false;
    std::array<gpu::recording, boxes> arrive, in;
    std::array<gpu::recording, slot_count> leave, out;
  };

  stage_rows(const gpu::device& on, const plan::table& of, const plan::row_memory& bytes)
      : device_(on), table_(&of), row_bytes_(bytes.row), slot_bytes_(bytes.slot),
        incoming_(room(bytes.incoming, gpu::placement::host, "rows that cross into a stage")),
        arrived_(room(bytes.arrived, gpu::placement::device_local, "rows that have crossed into a stage")),
        leaving_(room(bytes.leaving, gpu::placement::device_local, "rows that leave a stage")),
        outgoing_(room(bytes.outgoing, gpu::placement::readback, "rows that cross out of a stage")) {
    if (bytes.of_device() != 0) copies_.emplace(on, gpu::queue::hang_limit, gpu::lane::copies);
  }
  gpu::buffer room(std::uint64_t bytes, gpu::placement where, const char* purpose) const {
    return bytes == 0 ? gpu::buffer() : gpu::buffer(device_, bytes, where, purpose, gpu::lanes::both);
  }

  const recordings& its(pass_kind kind) const noexcept { return of_[static_cast<std::size_t>(kind)]; }
  gpu::recording copy(std::string name, gpu::lane where, const gpu::buffer& from, std::uint64_t from_offset,
                      const gpu::buffer& to, std::uint64_t to_offset, std::uint64_t bytes) const {
    return gpu::recorder(device_, std::move(name), nullptr, where)
        .copy(from, from_offset, to, to_offset, bytes)
        .finish();
  }
  std::uint64_t submit(const gpu::recording& of, const gpu::queue_point& after = {}) {
    const VkCommandBuffer commands = of.handle();
    return copies_->submit({&commands, 1}, of.name(), after);
  }

  gpu::device device_;
  const plan::table* table_;
  std::uint64_t row_bytes_, slot_bytes_;
  gpu::buffer incoming_, arrived_, leaving_, outgoing_;
  std::array<recordings, pass_kinds> of_;
  /// Only if passes are staged. Destroyed first, which waits: the members above may be in use by the device.
  std::optional<gpu::queue> copies_;
};

}  // namespace intaglio::runtime
