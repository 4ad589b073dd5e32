// SPDX-License-Identifier: MIT
// Connects a stage of a cut plan (plan/cut.hpp) to the stages before and after it, as a pass_runner uses it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/gpu/memory.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/pass_kind.hpp"

namespace intaglio::runtime {

/// Copies rows of the stream in before each pass and out after it. Used by the runner's thread.
class stage_ends {
 public:
  static constexpr std::size_t most_commands = 3;  ///< most command buffers that before() or behind() return

  virtual ~stage_ends() = default;
  stage_ends(const stage_ends&) = delete;
  stage_ends& operator=(const stage_ends&) = delete;

  /// Asks the earlier stages for the rows of a job's first or next pass.
  /// @error the error of an earlier stage
  virtual void ask(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens) = 0;
  /// Asks the earlier stages to begin passes that will be needed later, as many as there is room for: chunks of the
  /// tokens from a position on.
  /// @return the position after the last one
  virtual std::uint32_t ask_ahead(pass_kind kind, std::uint32_t position, std::span<const std::int32_t> tokens,
                                  std::uint32_t chunk) = 0;
  /// Waits for the rows of the pass that was asked for and writes them where its commands read them.
  /// @param box index of the mailbox, whose last use is done  @param penalised whether the sampler reads the history
  /// @param after set to what the submission waits for, if the rows arrive on another queue
  /// @return number of command buffers, written to `into`, that run before the pass  @error the error of an earlier
  ///   stage
  virtual std::size_t before(pass_kind kind, std::size_t box, bool penalised, VkCommandBuffer* into,
                             gpu::queue_point& after) = 0;
  /// @return number of command buffers, written to `into`, that run after the pass
  virtual std::size_t after(pass_kind kind, VkCommandBuffer* into) = 0;
  /// Records the copies of a kind of pass. @param arena with which its sequence is recorded
  virtual void record(pass_kind kind, const plan::sequence& of, const gpu::buffer& arena) = 0;

 protected:
  stage_ends() = default;
};

}  // namespace intaglio::runtime
