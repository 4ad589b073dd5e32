// SPDX-License-Identifier: MIT
// Copies a packed file's weights into device memory. Several threads read and check a piece each in slots of bounded
// host memory. The device copies from the slots, without waiting for each other, while later memory is still being
// allocated.
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

namespace intaglio::runtime {

/// Sizes of an upload. Drivers block submissions while they allocate memory, which takes as long as a copy. So memory
/// is allocated in turns with the copies: copies that were submitted before go on meanwhile.
struct upload_shape {
  std::uint64_t piece_bytes = std::uint64_t{2} << 20;  ///< read by one thread, at least packed_layout::chunk_bytes
  unsigned most_threads = 12;                          ///< more threads only wait for the bus
  std::size_t slot_count = 48;                         ///< of one piece each, in host memory
  std::uint64_t memory_bytes = std::uint64_t{128}
                               << 20;  ///< of device memory allocated at once, unless one item is larger
};

/// A piece of consecutive items, each with the zeros after it. A checksummed chunk is never split.
struct upload_piece {
  /// Consecutive bytes of one item in a piece.
  struct range {
    std::uint32_t item = 0;
    std::uint64_t begin = 0, end = 0;  ///< of the item's bytes
    std::uint64_t at = 0, stop = 0;    ///< offsets in the piece, with the zeros
  };
  std::vector<range> ranges;
};

/// Cuts items, given by their sizes in order, into pieces that cover each byte once.
/// @param piece_bytes at least packed_layout::chunk_bytes
inline std::vector<upload_piece> upload_pieces(std::span<const std::uint64_t> sizes, std::uint64_t piece_bytes) {
  constexpr std::uint64_t chunk = io::packed_layout::chunk_bytes;
  std::vector<upload_piece> out;
  std::uint64_t filled = piece_bytes;  // of the last piece
  for (std::uint32_t i = 0; i < sizes.size(); ++i)
    for (std::uint64_t begin = 0; begin < sizes[i];) {
      const std::uint64_t left = sizes[i] - begin, padded = item_bytes(sizes[i]) - begin, room = piece_bytes - filled;
      const std::uint64_t some = padded <= room ? left : (std::min)(room, left - 1) / chunk * chunk;
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

/// Allocates memory for some weights of a plan, and fills it from a packed file.
/// @return an item for each of the split's layers, in their order
/// @error as load_weights
[[gnu::cold]] inline placed_items load_packed(const gpu::device& on, const plan::table& of, const weight_split& split,
                                              const packed_weights& from, const load_options& options,
                                              const upload_shape& shape = {}) {
  return gpu::translated([&] {
    struct owner {
      std::uint32_t slot, layer, tensors;
    };
    std::vector<owner> owners;
    std::uint64_t bytes = 0;
    std::uint32_t tensors = 0;
    const std::vector<weight_part> parts = split.all();
    for (const weight_part& part : parts)
      part.layers(of, [&](std::uint32_t layer) {
        owners.push_back({part.slot, layer, tensors_of(of.weights[part.slot])});
        bytes += of.weights[part.slot].bytes;
        tensors += owners.back().tensors;
      });
    const std::vector<std::uint64_t> sizes = sizes_of(of, parts);
    const std::vector<upload_piece> pieces = upload_pieces(sizes, shape.piece_bytes);
    load_meter meter(options.progress, bytes, tensors);

    const bool in_place = options.in_place(on);
    const std::uint64_t most = in_place ? ~std::uint64_t{0} : shape.memory_bytes,
                        largest = options.largest_piece != 0 ? (std::min)(options.largest_piece, most) : most;
    placed_items out;
    out.items.resize(sizes.size());
    const std::size_t on_device = sizes_of(of, split.device).size();
    item_placer device(on, std::span(sizes).first(on_device), gpu::placement::device_local, "the weights", largest);
    item_placer host(on, std::span(sizes).subspan(on_device), gpu::placement::host, "the weights", largest);
    const auto place_until = [&](std::size_t end) {
      while (device.placed() < (std::min)(end, on_device)) device.place_some(out);
      while (on_device + host.placed() < end) host.place_some(out, on_device);
    };
    if (in_place) place_until(sizes.size());
    std::optional<gpu::staging_ring> ring;
    const auto seen = [](const gpu::buffer& each) { return !each.mapped().empty(); };
    if (!pieces.empty() && !(in_place && std::all_of(out.buffers.begin(), out.buffers.end(), seen)))
      ring.emplace(on, shape.piece_bytes, (std::min)(shape.slot_count, pieces.size()));

    const auto make = [&](std::size_t i, std::size_t) {
      const std::span<std::byte> slot = ring ? ring->slot(i % ring->slot_count()) : std::span<std::byte>();
      for (const upload_piece::range& each : pieces[i].ranges) {
        const auto size = static_cast<std::size_t>(each.end - each.begin),
                   padded = static_cast<std::size_t>(each.stop - each.at);
        std::span<std::byte> into;
        if (ring) {
          into = slot.subspan(static_cast<std::size_t>(each.at), padded);
        } else {
          const auto& item = out.items[each.item];
          into = out.buffers[item.buffer].mapped().subspan(static_cast<std::size_t>(item.offset + each.begin), padded);
        }
        from.fill(owners[each.item].slot, owners[each.item].layer, each.begin, into.first(size));
        std::memset(into.data() + size, 0, padded - size);
      }
    };
    std::vector<gpu::staging_ring::part> parts_of_piece;
    const auto take = [&](std::size_t i, std::size_t) {
      if (ring) {
        place_until(std::size_t{pieces[i].ranges.back().item} + 1);
        parts_of_piece.clear();
        for (const upload_piece::range& each : pieces[i].ranges) {
          const auto& item = out.items[each.item];
          parts_of_piece.push_back({each.at, each.stop - each.at, &out.buffers[item.buffer], item.offset + each.begin});
        }
        ring->copy(i % ring->slot_count(), parts_of_piece);
      }
      std::uint64_t done = 0;
      std::uint32_t whole = 0;
      for (const upload_piece::range& each : pieces[i].ranges) {
        done += each.end - each.begin;
        if (each.end == sizes[each.item]) whole += owners[each.item].tensors;
      }
      meter.add(done, whole);
    };
    // As many pieces are begun as there are slots; the piece that used a slot before was submitted by then.
    io::ordered_work(options.threads_up_to(shape.most_threads), ring ? ring->slot_count() : pieces.size(),
                     pieces.size(), make, take);
    place_until(sizes.size());
    if (ring) ring->finish();
    return out;
  });
}

}  // namespace intaglio::runtime
