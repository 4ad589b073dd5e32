// SPDX-License-Identifier: MIT
// Clears the memory of a session or a batch. Masked positions are read and multiplied by zero, so they must hold finite
// values.
#pragma once

#include <initializer_list>
#include <string>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// Commands that clear a buffer; bytes after the last whole word keep their values.
inline gpu::recording clear_commands(const gpu::device& on, const std::string& label,
                                     std::initializer_list<const gpu::buffer*> buffers,
                                     std::initializer_list<const placed_items*> items) {
  gpu::recorder to(on, label);
  const auto fill = [&](const gpu::buffer& each) { to.fill(each, 0, each.size_bytes() / 4 * 4, 0); };
  for (const gpu::buffer* each : buffers) fill(*each);
  for (const placed_items* some : items)
    for (const gpu::buffer& each : some->buffers) fill(each);
  return to.finish();
}

/// Clears a buffer and waits. @error device_lost, out_of_memory
inline void clear_memory(const gpu::device& on, gpu::queue& line, const std::string& owner,
                         std::initializer_list<const gpu::buffer*> buffers,
                         std::initializer_list<const placed_items*> items) {
  const gpu::recording commands = clear_commands(on, "clear the memory of " + owner, buffers, items);
  const VkCommandBuffer handle = commands.handle();
  line.wait(line.submit({&handle, 1}, commands.name()));
}

}  // namespace intaglio::runtime
