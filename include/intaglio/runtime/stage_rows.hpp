// SPDX-License-Identifier: MIT
// Rows of the stream on their way into a stage and out of it: the memory of one device's side of a crossing
// (plan/crossing.hpp), and copies that are recorded once.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/plan/cut.hpp"
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
  stage_rows(const gpu::device& on, const plan::table& of)
      : device_(on), table_(&of), row_bytes_(std::uint64_t{4} * of.config->hidden_size),
        slot_bytes_(row_bytes_ * (std::max)({of.prefill.max_tokens, of.logits.max_tokens, of.verify.max_tokens})),
        copies_(on, gpu::queue::hang_limit, gpu::lane::copies) {
    constexpr auto lanes = gpu::lanes::both;
    const bool staged = is_staged(plan::crossing_of(of, of.prefill)) || is_staged(plan::crossing_of(of, of.logits)) ||
                        is_staged(plan::crossing_of(of, of.verify));
    if (of.decode.takes_stream) {
      incoming_ = gpu::buffer(on, boxes * slot_bytes_, gpu::placement::host, "rows that cross into a stage", lanes);
      if (staged)
        arrived_ = gpu::buffer(on, boxes * slot_bytes_, gpu::placement::device_local,
                               "rows that have crossed into a stage", lanes);
    }
    if (of.decode.gives_stream) {
      outgoing_ =
          gpu::buffer(on, slot_count * slot_bytes_, gpu::placement::readback, "rows that cross out of a stage", lanes);
      if (staged)
        leaving_ = gpu::buffer(on, leaving_slots * slot_bytes_, gpu::placement::device_local, "rows that leave a stage",
                               lanes);
    }
  }

  /// Records the copies of a kind of pass. @param arena with which its sequence is recorded
  void record(pass_kind kind, const plan::sequence& of, const gpu::buffer& arena) {
    recordings made;
    const plan::crossing rows = plan::crossing_of(*table_, of);
    const std::uint64_t bytes = rows.bytes();
    made.staged = is_staged(rows);
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
    if (of.staged) after = copies_.end_of(submit(of.arrive[box]));
    return of.in[box].handle();
  }
  /// Commands that run behind a pass of a kind; null: it gives no rows. @param slot for the rows
  VkCommandBuffer leave(pass_kind kind, std::size_t slot) const noexcept { return its(kind).out[slot].handle(); }
  /// Brings the rows of a pass to the host. @param pass the end of the pass, which is done
  /// @return f32 [tokens, hidden_size], valid until the slot's next use  @error device_lost, out_of_memory
  std::span<const std::byte> bring(pass_kind kind, std::size_t slot, std::uint32_t tokens,
                                   const gpu::queue_point& pass) {
    if (const recordings& of = its(kind); of.staged) {
      const std::uint64_t number = submit(of.leave[slot], pass);
      poll_for(stage_poll(device_), [&] { return copies_.finished(number); });
      copies_.wait(number);
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

  static bool is_staged(const plan::crossing& of) { return &of.way() == &plan::staged_crossing; }
  const recordings& its(pass_kind kind) const noexcept { return of_[static_cast<std::size_t>(kind)]; }
  gpu::recording copy(std::string name, gpu::lane where, const gpu::buffer& from, std::uint64_t from_offset,
                      const gpu::buffer& to, std::uint64_t to_offset, std::uint64_t bytes) const {
    return gpu::recorder(device_, std::move(name), nullptr, where)
        .copy(from, from_offset, to, to_offset, bytes)
        .finish();
  }
  std::uint64_t submit(const gpu::recording& of, const gpu::queue_point& after = {}) {
    const VkCommandBuffer commands = of.handle();
    return copies_.submit({&commands, 1}, of.name(), after);
  }

  gpu::device device_;
  const plan::table* table_;
  std::uint64_t row_bytes_, slot_bytes_;
  gpu::buffer incoming_, arrived_, leaving_, outgoing_;
  std::array<recordings, pass_kinds> of_;
  gpu::queue copies_;  // destroyed first, which waits: the members above may be in use by the device
};

}  // namespace intaglio::runtime
