// SPDX-License-Identifier: MIT
// A packed file's weights into memory of the device: several threads read and check a piece each, at places of bounded host memory from
// which the device copies, without waiting for each other, while the memory that is filled later is still being allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "intaglio/gpu/staging_ring.hpp"
#include "intaglio/io/ordered_work.hpp"
#include "intaglio/runtime/load_options.hpp"
#include "intaglio/runtime/memory_ahead.hpp"

namespace intaglio::runtime {

/// What an upload is cut into.
struct upload_shape {
  std::uint64_t piece_bytes = std::uint64_t{2} << 20;     ///< one thread's, at least packed_layout::chunk_bytes
  unsigned most_threads = 12;                             ///< beyond them the bus waits
  std::size_t ahead = 6;                                  ///< pieces that are read and wait for those before them
  std::size_t together = 2;                               ///< pieces that the device copies at once
  std::size_t turns = 4;                                  ///< such copies in flight
  std::uint64_t memory_bytes = std::uint64_t{512} << 20;  ///< of device memory allocated at once
};

/// Ranges of items that lie one behind the other, each whole item with the zeros behind it. No checked chunk is parted.
struct upload_piece {
  struct range {
    std::uint32_t item = 0;
    std::uint64_t begin = 0, end = 0;  ///< of the item's bytes
    std::uint64_t at = 0, stop = 0;    ///< in the piece, with the zeros
  };
  std::vector<range> ranges;
};

/// Cuts items of some bytes, in their order, into pieces that cover each byte once.
/// @param piece_bytes at least packed_layout::chunk_bytes
inline std::vector<upload_piece> upload_pieces(std::span<const std::uint64_t> sizes, std::uint64_t piece_bytes) {
  constexpr std::uint64_t chunk = io::packed_layout::chunk_bytes;
  std::vector<upload_piece> out;
  std::uint64_t filled = piece_bytes;  // of the last piece
  for (std::uint32_t i = 0; i < sizes.size(); ++i)
    for (std::uint64_t begin = 0; begin < sizes[i];) {
      const std::uint64_t left = sizes[i] - begin, padded = item_bytes(sizes[i]) - begin, room = piece_bytes - filled;
      const std::uint64_t some = padded <= room ? left : std::min(room, left - 1) / chunk * chunk;
      if (some == 0) {
        out.emplace_back();
        filled = 0;
        continue;
      }
      const std::uint64_t stop = filled + (some == left ? padded : some);
      out.back().ranges.push_back({i, begin, begin + some, filled, stop});
      filled = stop;
      begin += some;
    }
  return out;
}

/// Memory for some weights of a plan, filled from a packed file.
/// @return an item for each of the split's layers, in their order
/// @error as of load_weights
inline placed_items load_packed(const gpu::device& on, const plan::table& of, const weight_split& split, const packed_weights& from,
                                const load_options& options, const upload_shape& shape = {}) {
  return gpu::translated([&] {
    struct owner {
      std::uint32_t slot, layer, tensors;
    };
    std::vector<owner> owners;
    std::uint64_t bytes = 0;
    std::uint32_t tensors = 0;
    const std::vector<weight_part> parts = split.all();
    for (const weight_part& part : parts)
      for (std::uint32_t layer = part.first; layer < part.end; ++layer) {
        owners.push_back({part.slot, layer, tensors_of(of.weights[part.slot])});
        bytes += of.weights[part.slot].bytes;
        tensors += owners.back().tensors;
      }
    const std::vector<std::uint64_t> sizes = sizes_of(of, parts);
    const std::vector<upload_piece> pieces = upload_pieces(sizes, shape.piece_bytes);
    const unsigned threads = options.threads_up_to(shape.most_threads);
    const std::size_t alive = threads + shape.ahead;

    const bool in_place = options.in_place(on);
    const std::uint64_t most = in_place ? ~std::uint64_t{0} : shape.memory_bytes;
    memory_ahead memory(on, of, split, options.largest_piece != 0 ? std::min(options.largest_piece, most) : most);
    load_meter meter(options.progress, bytes, tensors);
    const placed_items* const whole_memory = in_place ? &memory.until(sizes.size()) : nullptr;
    const auto seen = [](const gpu::buffer& each) { return !each.mapped().empty(); };
    std::optional<gpu::staging_ring> ring;
    // A place is free again when its copy is done: those of pieces that are alive, of copies in flight, and of the next copy while it is
    // gathered.
    if (!pieces.empty() && !(in_place && std::all_of(whole_memory->buffers.begin(), whole_memory->buffers.end(), seen)))
      ring.emplace(on, shape.piece_bytes, std::min(alive + (shape.turns + 1) * shape.together, pieces.size()), shape.turns);
    const auto make = [&](std::size_t i, std::size_t) {
      for (const upload_piece::range& each : pieces[i].ranges) {
        const auto size = static_cast<std::size_t>(each.end - each.begin), padded = static_cast<std::size_t>(each.stop - each.at);
        std::span<std::byte> into;
        if (ring) {
          into = ring->place(i % ring->places()).subspan(static_cast<std::size_t>(each.at), padded);
        } else {
          const auto& item = whole_memory->items[each.item];
          into = whole_memory->buffers[item.buffer].mapped().subspan(static_cast<std::size_t>(item.offset + each.begin), padded);
        }
        from.fill(owners[each.item].slot, owners[each.item].layer, each.begin, into.first(size));
        std::memset(into.data() + size, 0, padded - size);
      }
    };
    std::vector<gpu::staging_ring::part> gathered;
    const auto take = [&](std::size_t i, std::size_t) {
      std::uint64_t done = 0;
      std::uint32_t whole = 0;
      for (const upload_piece::range& each : pieces[i].ranges) {
        done += each.end - each.begin;
        if (each.end == sizes[each.item]) whole += owners[each.item].tensors;
        if (!ring) continue;
        const placed_items& items = memory.until(each.item + 1);
        const auto& item = items.items[each.item];
        const gpu::staging_ring::part next{i % ring->places() * shape.piece_bytes + each.at, each.stop - each.at,
                                           &items.buffers[item.buffer], item.offset + each.begin};
        gpu::staging_ring::part* const last = gathered.empty() ? nullptr : &gathered.back();
        if (last != nullptr && last->to == next.to && last->from + last->size_bytes == next.from &&
            last->offset + last->size_bytes == next.offset)
          last->size_bytes += next.size_bytes;
        else gathered.push_back(next);
      }
      if (ring && ((i + 1) % shape.together == 0 || i + 1 == pieces.size())) {
        ring->copy(i / shape.together % ring->turns(), gathered);
        gathered.clear();
      }
      meter.add(done, whole);
    };
    io::ordered_work(threads, alive, pieces.size(), make, take);
    if (ring) ring->finish();
    ring.reset();
    return std::move(memory).take();
  });
}

}  // namespace intaglio::runtime
