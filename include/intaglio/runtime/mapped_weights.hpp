// SPDX-License-Identifier: MIT
// The weights of a packed file that the device reads from the mapped file (VK_EXT_external_memory_host). Several
// threads check them; nothing is copied.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/runtime/packed_weights.hpp"
#include "intaglio/runtime/parallel.hpp"
#include "intaglio/runtime/session_options.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// Whether a device reads host memory as fast as its own memory, so that a copy would gain nothing.
inline bool shares_host_memory(const gpu::device& on) {
  return on.description().type == gpu::device_type::cpu || on.description().type == gpu::device_type::integrated;
}

/// Offsets of a plan's weights in a packed file: the items of the plan's slots in order.
class mapped_weights {
 public:
  /// @error file_error: as packed_weights
  mapped_weights(const io::packed_image& from, const plan::table& of, std::span<const std::uint32_t> slot_count)
      : from_(&from) {
    const packed_weights found(from, of);
    for (const std::uint32_t slot : slot_count) {
      const io::packed_weight& weight = found.of(slot);
      for (std::uint32_t copy = 0; copy < weight.copies; ++copy)
        items_.push_back({&weight, copy, weight.offset + copy * weight.step()});
    }
  }

  std::uint64_t bytes() const {
    return std::accumulate(items_.begin(), items_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const item& each) { return sum + each.weight->bytes; });
  }
  std::size_t size() const { return items_.size(); }

  /// Compares the bytes of all weights of the plan with their checksums. A thread checks a gigabyte in about a tenth of
  /// a second where the file is in the page cache.
  /// @param done receives bytes and items, on this thread, every 64 MiB
  /// @error file_error: a checksum that differs, a file that was truncated or changed
  template <class Done>
  void check(const io::leased_mapping& mapping, unsigned threads, Done&& done) const {
    struct task {
      const item* of;
      std::uint64_t begin, end;
    };
    std::vector<task> tasks;
    const auto run = [&] {
      parallel(threads, tasks.size(), [&](std::size_t i) {
        const task& each = tasks[i];
        mapping.populate(each.of->offset + each.begin, each.end - each.begin);
        from_->expect(*each.of->weight, each.of->copy, each.begin, each.end, mapping.bytes());
      });
      std::uint64_t bytes = 0;
      std::uint32_t whole = 0;
      for (const task& each : tasks) {
        bytes += each.end - each.begin;
        whole += each.end == each.of->weight->bytes;
      }
      tasks.clear();
      done(bytes, whole);
    };
    constexpr std::uint64_t step = std::uint64_t{1} << 20;
    for (const item& each : items_)
      for (std::uint64_t at = 0; at < each.weight->bytes; at += step) {
        tasks.push_back({&each, at, (std::min)(at + step, each.weight->bytes)});
        if (tasks.size() == 64) run();
      }
    run();
    mapping.expect_unchanged();
  }

  /// Imports the file's ranges into the device, in as few buffers as its limits allow.
  /// @error device_error: the driver refuses such memory, or a weight is larger than it allows; out_of_memory
  placed_items import(const gpu::device& on, std::shared_ptr<const io::leased_mapping> mapping,
                      std::uint64_t largest_piece) const {
    placed_items out;
    out.items.resize(items_.size());
    const std::vector<std::size_t> order = sorted_indices(
        items_.size(), [&](std::size_t a, std::size_t b) { return items_[a].offset < items_[b].offset; });
    const std::uint64_t step = (std::max<std::uint64_t>)(on.limits().host_pointer_alignment, 1);
    std::uint64_t limit = (std::min)(on.limits().max_buffer_bytes, on.limits().max_allocation_bytes);
    if (largest_piece != 0) limit = (std::min)(limit, largest_piece);
    constexpr std::uint64_t gap = std::uint64_t{1} << 20;  // between them: weights that only other plans use
    const auto end_of = [&](std::size_t i) {
      return (items_[i].offset + items_[i].weight->bytes + step - 1) / step * step;
    };
    for (std::size_t first = 0; first < order.size();) {
      const std::uint64_t begin = items_[order[first]].offset / step * step;
      std::uint64_t end = end_of(order[first]);
      std::size_t after = first + 1;
      while (after < order.size() && end_of(order[after]) - begin <= limit && items_[order[after]].offset <= end + gap)
        end = end_of(order[after++]);
      const auto range =
          mapping->bytes().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      const gpu::buffer& made = out.buffers.emplace_back(gpu::buffer::imported(on, range, mapping, "the weights"));
      for (; first < after; ++first) {
        const item& each = items_[order[first]];
        out.items[order[first]] = {static_cast<std::uint32_t>(out.buffers.size() - 1), each.offset - begin,
                                   each.weight->bytes, made.address() + (each.offset - begin)};
      }
    }
    return out;
  }

 private:
  struct item {
    const io::packed_weight* weight;
    std::uint32_t copy;
    std::uint64_t offset;  ///< offset in the file
  };
  const io::packed_image* from_;
  std::vector<item> items_;
};

}  // namespace intaglio::runtime
