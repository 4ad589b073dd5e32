// SPDX-License-Identifier: MIT
// How rows of the residual stream cross from one stage of a cut plan to the next: the steps of one pass, the memory
// that each step reads and writes, and what it waits for. verify_crossing() proves that the waits suffice.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/message.hpp"

namespace intaglio::plan {

/// Where a step runs. Steps of one lane run in the order of the passes, and within a pass in the order of the list.
enum class crossing_lane : std::uint8_t { sender_work, sender_copies, host, receiver_copies, receiver_work };

/// Memory of a crossing. Each has a number of slots, which the passes use in turn.
enum class crossing_memory : std::uint8_t {
  none,
  sender_arena,    ///< the stream of the stage before the cut
  leaving,         ///< the sender's device memory
  outgoing,        ///< host memory that the sender writes
  incoming,        ///< host memory that the receiver reads
  arrived,         ///< the receiver's device memory
  receiver_arena,  ///< the stream of the stage after the cut
};
/// Number of kinds of memory.
inline constexpr std::size_t crossing_memories = 7;

/// A step that must have ended: the step of this pass, or of a pass before.
struct crossing_wait {
  std::uint8_t step = 0, passes_before = 0;
};
/// One copy or pass of the way that rows take across a cut.
struct crossing_step {
  std::string_view name{};
  crossing_lane lane = crossing_lane::host;
  crossing_memory reads = crossing_memory::none, writes = crossing_memory::none;
  std::array<crossing_wait, 2> waits{};
  std::uint8_t wait_count = 0;
};
/// A way for rows to cross.
struct crossing_way {
  std::string_view name{};
  array_view<const crossing_step> steps{};
  std::array<std::uint8_t, crossing_memories> slot_counts{};

  constexpr std::uint8_t slot_count(crossing_memory of) const { return slot_counts[static_cast<std::size_t>(of)]; }
};

/// Passes that the first stage may be asked for at most before the last stage has taken the rows of the oldest one.
inline constexpr std::uint8_t most_asked_passes = 8;
/// Slots of the receiver: as many as its runner has mailboxes.
inline constexpr std::uint8_t receiver_boxes = 4;

namespace crossing_steps {

/// Short name of crossing_lane in the tables of steps.
using lane = crossing_lane;
/// Short name of crossing_memory in the tables of steps.
using memory = crossing_memory;

/// The passes themselves copy between their arena and host memory.
inline constexpr std::array<crossing_step, 5> direct{{
    {"pass of the sender", lane::sender_work, memory::none, memory::sender_arena, {}, 0},
    {"copy to the host", lane::sender_work, memory::sender_arena, memory::outgoing, {{{2, most_asked_passes}}}, 1},
    {"copy by the host", lane::host, memory::outgoing, memory::incoming, {{{1, 0}, {4, receiver_boxes}}}, 2},
    {"copy from the host", lane::receiver_work, memory::incoming, memory::receiver_arena, {{{2, 0}}}, 1},
    {"pass of the receiver", lane::receiver_work, memory::receiver_arena, memory::none, {}, 0},
}};
/// The passes copy within their device, and the queues for copies cross the bus meanwhile.
inline constexpr std::uint8_t leaving_slots = 2;
/// Steps of staged rows, in their order.
inline constexpr std::array<crossing_step, 7> staged{{
    {"pass of the sender", lane::sender_work, memory::none, memory::sender_arena, {}, 0},
    {"copy in the sender", lane::sender_work, memory::sender_arena, memory::leaving, {{{2, leaving_slots}}}, 1},
    {"copy to the host", lane::sender_copies, memory::leaving, memory::outgoing, {{{1, 0}, {3, most_asked_passes}}}, 2},
    {"copy by the host", lane::host, memory::outgoing, memory::incoming, {{{2, 0}, {6, receiver_boxes}}}, 2},
    {"copy from the host", lane::receiver_copies, memory::incoming, memory::arrived, {{{3, 0}}}, 1},
    {"copy in the receiver", lane::receiver_work, memory::arrived, memory::receiver_arena, {{{4, 0}}}, 1},
    {"pass of the receiver", lane::receiver_work, memory::receiver_arena, memory::none, {}, 0},
}};

}  // namespace crossing_steps

/// For few rows, as those of decode: one submission to each device.
inline constexpr crossing_way direct_crossing{
    "direct", crossing_steps::direct, {0, 1, 0, most_asked_passes, receiver_boxes, 0, 1}};
/// For many rows, as those of a prompt's chunk: the devices compute while rows cross the bus.
inline constexpr crossing_way staged_crossing{
    "staged",
    crossing_steps::staged,
    {0, 1, crossing_steps::leaving_slots, most_asked_passes, receiver_boxes, receiver_boxes, 1}};

/// Passes over this number of tokens and more are staged: rows of fewer tokens cross in less time than another
/// submission takes.
inline constexpr std::uint32_t staged_from_rows = 32;
/// The way of a pass over a number of rows.
constexpr const crossing_way& crossing_way_of(std::uint32_t rows) {
  return rows < staged_from_rows ? direct_crossing : staged_crossing;
}

/// Which steps of which passes have ended when a step of a pass begins.
class crossing_order {
 public:
  static constexpr std::size_t most_steps = 8, passes = 20;

  constexpr explicit crossing_order(const crossing_way& of) : way_(of) {}
  /// Whether step `first` of pass `first_pass` has ended when step `then` of pass `then_pass` begins.
  constexpr bool ends_before(std::size_t first, std::size_t first_pass, std::size_t then, std::size_t then_pass) {
    ended_ = {};
    note(then, then_pass);
    return ended_[first_pass * most_steps + first];
  }

 private:
  /// Notes everything that ends before a step of a pass.
  constexpr void note(std::size_t step, std::size_t pass) {
    const crossing_step& of = way_.steps[step];
    for (std::size_t i = 0; i < of.wait_count; ++i)
      if (of.waits[i].passes_before <= pass) add(of.waits[i].step, pass - of.waits[i].passes_before);
    for (std::size_t before = 0; before < way_.steps.size(); ++before) {
      if (way_.steps[before].lane != of.lane) continue;
      if (before < step) add(before, pass);
      else if (pass != 0) add(before, pass - 1);
    }
  }
  constexpr void add(std::size_t step, std::size_t pass) {
    bool& known = ended_[pass * most_steps + step];
    if (known) return;
    known = true;
    note(step, pass);
  }

  const crossing_way& way_;
  std::array<bool, most_steps * passes> ended_{};
};

/// Proves a way to cross: a step begins when the rows that it reads are written, and no step overwrites rows that are
/// still read.
/// @return the first step that does not wait enough, or an empty text
constexpr text<256> verify_crossing(const crossing_way& way) {
  text<256> out;
  const auto refuse = [&](const crossing_step& what, const crossing_step& waits_for, std::size_t passes_before) {
    out.append("crossing ", way.name, ": expected \"", what.name, "\" to wait for \"", waits_for.name, "\"");
    if (passes_before != 0) out.append(" of ", passes_before, " passes before");
    out.append(", found no such wait");
    return out;
  };
  if (way.steps.size() > crossing_order::most_steps) {
    out.append("crossing ", way.name, ": expected at most ", crossing_order::most_steps, " steps, found ",
               way.steps.size());
    return out;
  }
  constexpr std::size_t pass = crossing_order::passes - 1;
  crossing_order order(way);
  for (std::size_t writes = 0; writes < way.steps.size(); ++writes) {
    const crossing_step& writer = way.steps[writes];
    if (writer.writes == crossing_memory::none) continue;
    const std::size_t slots_of = way.slot_count(writer.writes);
    if (slots_of == 0 || slots_of > pass) {
      out.append("crossing ", way.name, ": expected 1 to ", pass, " slots for \"", writer.name, "\", found ", slots_of);
      return out;
    }
    for (std::size_t reads = 0; reads < way.steps.size(); ++reads) {
      const crossing_step& reader = way.steps[reads];
      if (reader.reads != writer.writes) continue;
      if (!order.ends_before(writes, pass, reads, pass)) return refuse(reader, writer, 0);
      if (!order.ends_before(reads, pass - slots_of, writes, pass)) return refuse(writer, reader, slots_of);
    }
  }
  return out;
}

static_assert(verify_crossing(direct_crossing).empty());
static_assert(verify_crossing(staged_crossing).empty());

}  // namespace intaglio::plan
