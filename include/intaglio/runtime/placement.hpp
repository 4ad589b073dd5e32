// SPDX-License-Identifier: MIT
// Puts a model's weights and caches in device memory: many items in few buffers, split where the device's limits or
// its free memory require it. Also computes the memory that a session needs, before anything is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/gpu/memory.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::runtime {

/// Alignment of every item in bytes; the plan's offsets rely on it, and copies are faster with it.
inline constexpr std::uint64_t item_alignment = 256;

/// Bytes of an item with the padding before the next one.
constexpr std::uint64_t item_bytes(std::uint64_t bytes) {
  return (std::max<std::uint64_t>)((bytes + item_alignment - 1) / item_alignment * item_alignment, item_alignment);
}

/// Items in as few buffers as possible; item i has an address of its own.
struct placed_items {
  /// Where one item is: its buffer, its range there, and its device address.
  struct item {
    std::uint32_t buffer = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t address = 0;
  };
  std::vector<gpu::buffer> buffers;
  std::vector<item> items;
};

/// Puts items one after the other, a buffer at a time. A buffer ends where the next item would exceed the device's
/// limit or `largest_piece` (0: no limit). Where the device has no memory for a buffer, smaller ones are tried, down to
/// single items.
class item_placer {
 public:
  /// @param sizes in bytes; outlive it  @param purpose name of the items in error messages; outlives it
  item_placer(const gpu::device& on, std::span<const std::uint64_t> sizes, gpu::placement where,
              std::string_view purpose, std::uint64_t largest_piece = 0)
      : on_(on), sizes_(sizes), where_(where), purpose_(purpose),
        piece_((std::min)(on.limits().max_buffer_bytes, on.limits().max_allocation_bytes)) {
    if (largest_piece != 0) piece_ = (std::min)(piece_, largest_piece);
  }

  bool done() const { return next_ == sizes_.size(); }
  /// Allocates one more buffer for the next items and adds them to `out` from `first_item` on.
  /// @error device_error: an item is larger than the device allows; out_of_memory
  void place_some(placed_items& out, std::size_t first_item = 0) {
    for (;;) {
      std::size_t end = next_;
      std::uint64_t bytes = 0;
      while (end < sizes_.size() && (end == next_ || bytes + item_bytes(sizes_[end]) <= piece_))
        bytes += item_bytes(sizes_[end++]);
      try {
        out.buffers.emplace_back(on_, bytes, where_, purpose_);
      } catch (const out_of_memory&) {
        if (end == next_ + 1) throw;
        piece_ = bytes / 2;
        continue;
      }
      std::uint64_t offset = 0;
      for (; next_ < end; ++next_) {
        out.items[first_item + next_] = {static_cast<std::uint32_t>(out.buffers.size() - 1), offset, sizes_[next_],
                                         out.buffers.back().address() + offset};
        offset += item_bytes(sizes_[next_]);
      }
      return;
    }
  }
  /// Number of items that are placed.
  std::size_t placed() const { return next_; }

 private:
  gpu::device on_;
  std::span<const std::uint64_t> sizes_;
  gpu::placement where_;
  std::string_view purpose_;
  std::uint64_t piece_;
  std::size_t next_ = 0;
};

/// Puts all items into buffers. @error device_error: an item is larger than the device allows; out_of_memory
inline placed_items place_items(const gpu::device& on, std::span<const std::uint64_t> sizes, gpu::placement where,
                                std::string_view purpose, std::uint64_t largest_piece = 0) {
  return gpu::translated([&] {
    placed_items out;
    out.items.resize(sizes.size());
    for (item_placer placer(on, sizes, where, purpose, largest_piece); !placer.done();) placer.place_some(out);
    return out;
  });
}

/// The name of a plan in error messages: its model, or the architecture of a model without a name.
inline std::string model_name(const plan::table& of) {
  return std::string(of.model.empty() ? name(of.config->model_type) : of.model);
}

/// Device memory of a session by purpose.
struct memory_need {
  std::uint64_t weights = 0, caches = 0, arena = 0, rest = 0;
  std::uint64_t total() const { return weights + caches + arena + rest; }
};
/// Bytes of device memory that a session of a plan needs.
/// @param weights bytes of weights in device memory, where the others are read from a mapped file; absent: all weights
inline memory_need needed_memory(const plan::table& of, std::optional<std::uint64_t> weights = {}) {
  memory_need out;
  out.weights = weights.value_or(of.weight_bytes());
  out.caches =
      of.cache_bytes() + (of.batch.layers != 0 ? of.pool_bytes() + of.batch_recurrent_bytes() : of.recurrent_bytes());
  out.arena = (std::max)(of.arena_bytes(), of.batch.arena_bytes);
  out.rest = of.state_bytes() + kernels::ring_bytes(of.ring_size) + (1u << 20);
  return out;
}

/// Bytes that the device's own memory can still hold.
inline std::uint64_t available_memory(const gpu::device& on) {
  std::uint64_t out = 0;
  for (const auto& status : gpu::memory_status(on))
    if (status.heap.device_local) out += status.available_bytes;
  return out;
}

/// Bytes of the device's own memory that this program uses, as the driver reports; 0 where it does not.
inline std::uint64_t used_memory(const gpu::device& on) {
  std::uint64_t out = 0;
  for (const auto& status : gpu::memory_status(on))
    if (status.heap.device_local) out += status.used_bytes;
  return out;
}

/// Text for messages: "2.3 GiB (weights 1.2 GiB, KV cache 1.0 GiB for a context of 16384, scratch 12 MiB)".
inline std::string need_text(const memory_need& need, std::uint32_t context) {
  return gpu::bytes_text(need.total()) + " (weights " + gpu::bytes_text(need.weights) + ", KV cache " +
         gpu::bytes_text(need.caches) + " for a context of " + std::to_string(context) + ", scratch " +
         gpu::bytes_text(need.arena + need.rest) + ")";
}
/// Refuses a plan that does not fit in the free memory.
/// @error out_of_memory naming the memory that is needed, the memory that is free and the largest context that fits
[[gnu::cold]] inline void require_memory(const plan::table& of, std::uint64_t available, const std::string& device,
                                         std::optional<std::uint64_t> weights = {}) {
  const memory_need need = needed_memory(of, weights);
  if (need.total() <= available) return;
  const std::uint64_t fixed = need.total() - need.caches, position = of.context != 0 ? need.caches / of.context : 0;
  const std::uint64_t fits =
      available > fixed && position != 0 ? (std::min<std::uint64_t>)((available - fixed) / position, of.context) : 0;
  std::string what = "need " + need_text(need, of.context) + ", have " + gpu::bytes_text(available);
  what += fits != 0 ? "; the largest context that fits is " + std::to_string(fits) : "; no context fits";
  throw out_of_memory(device, "load model " + model_name(of), what);
}

}  // namespace intaglio::runtime
