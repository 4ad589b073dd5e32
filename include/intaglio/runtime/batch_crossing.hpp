// SPDX-License-Identifier: MIT
// Input and output of a stage's passes in a batch: rows of the residual stream cross host memory by copies that are
// recorded once.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "intaglio/gpu/recorder.hpp"
#include "intaglio/plan/row_memory.hpp"

namespace intaglio::runtime {

/// Host copies for the passes of a batch_executor. It runs one pass at a time and waits for each.
class batch_crossing {
 public:
  /// @param of the stage's table  @error out_of_memory, device_lost
  batch_crossing(const gpu::device& on, const plan::table& of)
      : device_(on), row_bytes_(std::uint64_t{4} * of.config->hidden_size) {
    const plan::row_memory bytes = plan::row_memory_of(of, true);
    if (bytes.incoming != 0)
      incoming_ = gpu::buffer(on, bytes.incoming, gpu::placement::host, "rows that cross into a stage");
    if (bytes.outgoing != 0)
      outgoing_ = gpu::buffer(on, bytes.outgoing, gpu::placement::readback, "rows that cross out of a stage");
  }

  /// Sets the rows of the next pass: f32 [tokens, hidden_size]. A first stage, which has no stage before it, has no
  /// rows.
  void supply(std::span<const std::byte> rows) const {
    const std::span<std::byte> to = incoming_.mapped();
    std::copy_n(rows.begin(), (std::min)(rows.size(), to.size()), to.begin());
  }
  /// Rows of the last pass, which must have ended.
  std::span<const std::byte> given(std::uint32_t tokens) const { return outgoing_.mapped().first(tokens * row_bytes_); }

  /// Records the copies. @param arena memory that both sequences use
  void record(const plan::sequence& chunk, const plan::sequence& batch, const gpu::buffer& arena) {
    for (const plan::sequence* each : {&chunk, &batch}) {
      const std::size_t which = each == &batch ? 1 : 0;
      const std::uint64_t bytes = row_bytes_ * each->max_tokens;
      if (incoming_) {
        gpu::recorder to(device_, "rows into " + std::string(each->name));
        to.copy(incoming_, 0, arena, each->stream_in_offset, bytes);
        in_[which] = to.finish();
      }
      if (outgoing_) {
        gpu::recorder to(device_, "rows out of " + std::string(each->name));
        to.copy(arena, each->residual_offset, outgoing_, 0, bytes);
        out_[which] = to.finish();
      }
    }
  }
  /// Commands in front of a pass of a batch, or of a chunk, and after it; null: none.
  VkCommandBuffer in(bool batch) const noexcept { return in_[batch ? 1 : 0].handle(); }
  VkCommandBuffer out(bool batch) const noexcept { return out_[batch ? 1 : 0].handle(); }

 private:
  gpu::device device_;
  std::uint64_t row_bytes_;
  gpu::buffer incoming_, outgoing_;
  std::array<gpu::recording, 2> in_, out_;
};

}  // namespace intaglio::runtime
