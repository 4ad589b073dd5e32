// SPDX-License-Identifier: MIT
// What a device has for weights.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/weight_memory.hpp"

/// The bytes of all items in their order.
inline std::vector<std::byte> weight_bytes(const intaglio::gpu::device& on,
                                           const intaglio::runtime::weight_memory& of) {
  intaglio::gpu::transfer transfer(on);
  std::vector<std::byte> out;
  for (const auto& each : of.placed.items) {
    const std::size_t at = out.size();
    out.resize(at + static_cast<std::size_t>(each.bytes));
    transfer.download(of.placed.buffers[each.buffer], each.offset, std::span(out).subspan(at));
  }
  return out;
}
