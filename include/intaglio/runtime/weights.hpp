// SPDX-License-Identifier: MIT
// Loads a checkpoint into device memory. Several threads repack tensors, or check and copy a packed file
// (packed_upload.hpp), while earlier pieces are being copied. Host memory is bounded whatever the model's size: two
// buffers of 16 MiB and a few megabytes a thread. Where host and device share memory, a packed file is checked and read
// in place.
// read in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/packed_upload.hpp"
#include "intaglio/runtime/weight_image.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {
/// Refuses a checkpoint of another config than the plan's.
/// @error mismatch_error with the list of differences and the command that engraves the right program
[[gnu::cold]] inline void require_match(const io::checkpoint& from, const plan::table& of) {
  decoder_config wanted = *of.config;
  if (of.model_layers != 0) wanted.num_hidden_layers = of.model_layers;
  auto differences = from.differences(wanted);
  if (!differences.empty())
    throw mismatch_error(
        from.path(), std::move(differences),
        from.packed() != nullptr ? std::string{} : "intaglio engrave " + printable(from.path(), 240) + " -o DIR");
}

/// A weight of a layer.
struct weight_owner {
  std::uint32_t slot, layer;
};
/// A range of bytes of a weight that is to be filled.
struct fill_task {
  const weight_owner* of;
  std::uint64_t begin;
  std::span<std::byte> into;
};
/// Adds tasks of about a megabyte, which end at cheap offsets.
/// @param unit weight_image::unit_bytes of the weight
inline void add_tasks(std::vector<fill_task>& to, const weight_owner& of, std::uint64_t unit, std::uint64_t begin,
                      std::span<std::byte> into) {
  const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 20) / unit) * unit;
  while (!into.empty()) {
    const auto count =
        static_cast<std::size_t>((std::min<std::uint64_t>)((begin / step + 1) * step - begin, into.size()));
    to.push_back({&of, begin, into.first(count)});
    begin += count;
    into = into.subspan(count);
  }
}

/// Finds the scales of ternary matrices. Reports the bytes that it reads. @error file_error; what the report throws
inline void measure_weights(weight_image& image, unsigned threads, load_meter& meter) {
  std::atomic<std::uint64_t> measured{0};
  image.measure(threads, [&, here = std::this_thread::get_id()](std::uint64_t bytes) {
    measured += bytes;
    if (bytes != 0 && std::this_thread::get_id() == here) meter.add(measured.exchange(0), 0);
  });
  if (const std::uint64_t rest = measured; rest != 0) meter.add(rest, 0);
}

/// Fills the memory of some weights of a plan from a checkpoint's tensors.
/// @param out an item for each of the parts' layers, in their order
/// @error as load_weights
inline void fill_weights(const gpu::device& on, const plan::table& of, array_view<const weight_part> parts,
                         const placed_items& out, weight_image& image, const load_options& options) {
  gpu::translated([&] {
    const unsigned threads = options.threads_up_to(8);
    std::vector<weight_owner> owners;
    std::uint64_t bytes_total = image.measured_bytes();
    std::uint32_t tensors_total = 0;
    for (const weight_part& part : parts)
      part.layers(of, [&](std::uint32_t layer) {
        owners.push_back({part.slot, layer});
        bytes_total += of.weights[part.slot].bytes;
        tensors_total += tensors_of(of.weights[part.slot]);
      });
    load_meter meter(options.progress, bytes_total, tensors_total);

    measure_weights(image, threads, meter);

    std::vector<fill_task> tasks;
    gpu::transfer uploads(on, std::uint64_t{16} << 20, options.in_place(on));
    std::size_t item = 0;
    for (std::uint32_t b = 0; b < out.buffers.size(); ++b) {
      const gpu::buffer& buffer = out.buffers[b];
      std::size_t first = item;  // the first item of this buffer that may continue in the next piece
      std::size_t end = item;
      while (end < out.items.size() && out.items[end].buffer == b) ++end;
      uploads.upload(buffer, 0, buffer.size_bytes(), [&](std::span<std::byte> piece, std::uint64_t at) {
        tasks.clear();
        std::uint64_t covered = at;
        std::uint64_t bytes = 0;
        std::uint32_t finished = 0;
        const auto pad = [&](std::uint64_t until) {
          if (until > covered) std::memset(piece.data() + (covered - at), 0, static_cast<std::size_t>(until - covered));
        };
        for (std::size_t i = first; i < end && out.items[i].offset < at + piece.size(); ++i) {
          const auto& its = out.items[i];
          const std::uint64_t begin = (std::max)(its.offset, at),
                              stop = (std::min)(its.offset + its.bytes, at + piece.size());
          if (its.offset + its.bytes <= at + piece.size()) first = i + 1;
          if (begin >= stop) continue;
          pad(begin);
          covered = stop;
          bytes += stop - begin;
          const plan::weight& weight = of.weights[owners[i].slot];
          if (stop == its.offset + its.bytes) finished += tensors_of(weight);
          add_tasks(tasks, owners[i], weight_image::unit_bytes(weight), begin - its.offset,
                    piece.subspan(static_cast<std::size_t>(begin - at), static_cast<std::size_t>(stop - begin)));
        }
        pad(at + piece.size());
        parallel(threads, tasks.size(), [&](std::size_t i) {
          image.fill(tasks[i].of->slot, tasks[i].of->layer, tasks[i].begin, tasks[i].into);
        });
        meter.add(bytes, finished);
      });
      item = end;
    }
    uploads.finish();
  });
}

/// Has the device read weights from a mapped packed file, after checking them, and copies the other weights; empty
/// where all weights are to be copied.
/// @error file_error; device_error: mapped was requested and is impossible; out_of_memory
[[gnu::cold]] inline std::optional<weight_memory> map_weights(const gpu::device& on, const plan::table& of,
                                                              const io::packed_image& from,
                                                              const load_options& options) {
  const bool asked = options.storage != weight_storage::automatic,
             all = options.storage != weight_storage::features_mapped;
  if (options.storage == weight_storage::copied || (!asked && (options.staged || !shares_host_memory(on))))
    return std::nullopt;
  const auto refuse = [&](const std::string& why) -> std::optional<weight_memory> {
    if (asked)
      throw device_error(on.label(),
                         "read the weights of " + printable(from.file->path(), 240) + " where they are mapped", why);
    return std::nullopt;
  };
  if (!on.has(gpu::feature::external_memory_host))
    return refuse("VK_EXT_external_memory_host is not there or not enabled");
  const auto mapped = slots_where(of, [&](const plan::weight& w) { return all || is_of_features(w); });
  const auto copied =
      whole_slots(of, slots_where(of, [&](const plan::weight& w) { return !all && !is_of_features(w); }));
  const mapped_weights image(from, of, mapped);
  std::uint64_t bytes_copied = 0;
  for (const weight_part& part : copied) bytes_copied += of.weights[part.slot].bytes * of.copies(of.weights[part.slot]);
  require_memory(of, available_memory(on), on.label(), bytes_copied);
  std::string refusal;
  const auto mapping = io::leased_mapping::of(*from.file, on.limits().host_pointer_alignment, refusal);
  if (!mapping) return refuse(refusal);
  weight_memory out;
  out.mapping = mapping;
  out.mapped_bytes = image.bytes();
  out.first = first_items(of);
  out.placed.items.resize(item_count(of));
  try {
    take_items(of, out, image.import(on, mapping, options.largest_piece), whole_slots(of, mapped));
  } catch (const device_lost&) { throw; } catch (const device_error&) {
    if (asked) throw;
    return std::nullopt;
  }
  load_meter meter(options.progress, image.bytes() + bytes_copied, static_cast<std::uint32_t>(image.size()));
  image.check(*mapping, options.threads_up_to(8),
              [&](std::uint64_t bytes, std::uint32_t items) { meter.add(bytes, items); });
  if (copied.empty()) return out;
  load_options rest = options;
  if (options.progress)
    rest.progress = [&](const load_progress& at) {
      load_progress both = at;
      both.bytes_done += image.bytes(), both.bytes_total += image.bytes();
      both.tensors_done += meter.now().tensors_total, both.tensors_total += meter.now().tensors_total;
      options.progress(both);
    };
  const weight_split own{copied, {}, bytes_copied, 0};
  take_items(of, out, load_packed(on, of, own, packed_weights(from, of), rest), copied);
  return out;
}

/// Allocates and fills the weights of a plan, or has the device read them from a mapped packed file
/// (load_options::storage).
/// @error mismatch_error; file_error: a bad value, a file that was truncated or changed meanwhile, a packed file of
///   another layout; argument_error: mapped, but the file is not packed; out_of_memory, device_lost; what
///   `options.progress` throws. Nothing stays allocated then.
inline weight_memory load_weights(const gpu::device& on, const plan::table& of, const io::checkpoint& from,
                                  const load_options& options = {}) {
  return gpu::translated([&] {
    require_match(from, of);
    if (from.packed() != nullptr) {
      if (options.patch != nullptr)
        throw argument_error("patch", "the model that the file was packed from", "a packed file");
      if (auto out = map_weights(on, of, *from.packed(), options)) return std::move(*out);
    } else if (options.storage == weight_storage::mapped || options.storage == weight_storage::features_mapped) {
      throw argument_error("storage of the weights", "a packed file, which has them as the device wants them",
                           printable(from.path(), 240));
    }
    const weight_split split = split_weights(of, options.budget);
    require_memory(of, available_memory(on), on.label(), split.device_bytes);
    const auto load = [&] {
      if (from.packed() != nullptr) return load_packed(on, of, split, packed_weights(*from.packed(), of), options);
      weight_image image(from, of, options.patch);
      placed_items items = allocate_items(on, of, split, options.largest_piece);
      fill_weights(on, of, split.all(), items, image, options);
      return items;
    };
    placed_items items = load();
    from.expect_unchanged();
    return weights_of(of, split, std::move(items));
  });
}

/// Rewrites a layer's FFN weights with the features of the image's present patch. No pass may run. The KV cache keeps
/// its content.
/// @error argument_error: a change that the weights have no room for; file_error, device_lost
inline void update_features(const gpu::device& on, const plan::table& of, const weight_image& image,
                            const weight_memory& weights, std::uint32_t layer) {
  gpu::translated([&] {
    gpu::transfer uploads(on, std::uint64_t{1} << 20);
    for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot) {
      if (of.weights[slot].layout == plan::weight_layout::column_norms) {  // only the layer's part
        const auto& all = weights.placed.items[weights.first[slot]];
        const std::uint64_t bytes = std::uint64_t{4} * of.weights[slot].columns, first = layer * bytes;
        uploads.upload(weights.placed.buffers[all.buffer], all.offset + first, bytes,
                       [&](std::span<std::byte> piece, std::uint64_t at) { image.fill(slot, 0, first + at, piece); });
      }
      if (!of.weights[slot].per_layer || !weight_image::has_features(of.weights[slot]) ||
          !of.has(of.weights[slot], layer))
        continue;
      const auto& item = weights.placed.items[weights.item(of, slot, layer)];
      uploads.upload(weights.placed.buffers[item.buffer], item.offset, item.bytes,
                     [&](std::span<std::byte> piece, std::uint64_t at) { image.fill(slot, layer, at, piece); });
    }
    uploads.finish();
  });
}

}  // namespace intaglio::runtime
