// SPDX-License-Identifier: MIT
// The rows that cross between two stages of a cut plan, and the memory that a stage has for them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>

#include "intaglio/plan/crossing.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Rows of the stream that cross a cut in one pass: f32 [rows, hidden_size].
struct crossing {
  std::uint32_t rows = 0;
  std::uint64_t row_bytes = 0;
  constexpr std::uint64_t bytes() const { return rows * row_bytes; }
  constexpr const crossing_way& way() const { return crossing_way_of(rows); }
};
/// The rows that a sequence passes across a cut: f32 [max_tokens, hidden_size].
constexpr crossing crossing_of(const table& t, const sequence& s) {
  return {s.max_tokens, std::uint64_t{4} * t.config->hidden_size};
}
/// The largest rows that cross a cut in one pass. @param together of a batch, else of one session
constexpr crossing largest_crossing(const table& t, bool together) {
  crossing out = crossing_of(t, t.prefill);
  out.rows = together ? (std::max)(out.rows, t.batch.max_tokens)
                      : (std::max)({out.rows, t.logits.max_tokens, t.verify.max_tokens});
  return out;
}

/// Bytes of the buffers for rows that cross into a stage and out of it. A buffer that the stage does not have takes 0.
struct row_memory {
  std::uint64_t row = 0, slot = 0;           ///< one row, the rows of one pass
  std::uint64_t incoming = 0, outgoing = 0;  ///< memory of the host (crossing_memory)
  std::uint64_t arrived = 0, leaving = 0;    ///< memory of the device
  std::uint64_t history = 0;                 ///< memory of the host: tokens, for a sampler after a cut

  constexpr std::uint64_t of_device() const { return arrived + leaving; }
  constexpr std::uint64_t of_host() const { return incoming + outgoing + history; }
};
/// Computes the memory of a stage. Passes of a batch use one slot, since they do not overlap.
/// @param t the whole plan or the stage's  @param together for a batch, else for one session
/// @param takes, gives whether rows cross into the stage and out of it
constexpr row_memory row_memory_of(const table& t, bool together, bool takes, bool gives) {
  const crossing rows = largest_crossing(t, together);
  const auto bytes = [&](crossing_memory of) {
    const std::uint64_t slot_count = rows.way().slot_count(of), of_batch = direct_crossing.slot_count(of) == 0 ? 0 : 1;
    return rows.bytes() * (together ? of_batch : slot_count);
  };
  row_memory out;
  out.row = rows.row_bytes, out.slot = rows.bytes();
  if (takes) out.incoming = bytes(crossing_memory::incoming), out.arrived = bytes(crossing_memory::arrived);
  if (gives) out.outgoing = bytes(crossing_memory::outgoing), out.leaving = bytes(crossing_memory::leaving);
  if (takes && !gives && !together) out.history = std::uint64_t{4} * receiver_boxes * t.context;
  return out;
}
/// The row memory of a stage, by the streams that its prefill takes and gives.
constexpr row_memory row_memory_of(const table& stage, bool together) {
  return row_memory_of(stage, together, stage.prefill.takes_stream, stage.prefill.gives_stream);
}

}  // namespace intaglio::plan
