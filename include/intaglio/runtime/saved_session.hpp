// SPDX-License-Identifier: MIT
// Saves a session's state to a file and loads it (io/session_file.hpp). The file includes the KV cache of the tokens so
// far, so that the next token is the same as in an uninterrupted run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "intaglio/runtime/saved_record.hpp"

namespace intaglio {

namespace runtime {

/// A used range of the KV cache.
struct cache_slice {
  std::uint32_t item = 0;  ///< index in executor::caches()
  std::uint64_t offset = 0, bytes = 0;
};

/// The ranges of the caches that hold the positions below `written`: for keys whole octets, head by head; for values
/// rows, or whole octets where they are coded. A ring that was written all around is used completely.
inline std::vector<cache_slice> used_slices(const plan::table& of, std::uint32_t written) {
  std::vector<cache_slice> out;
  if (written == 0) return out;
  const decoder_config& config = *of.config;
  const auto octets = [](std::uint64_t positions) {
    return (positions + kernels::cache_octet - 1) / kernels::cache_octet * kernels::cache_octet;
  };
  for (std::uint32_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const plan::layer_cache& cache = of.cache_of(layer);
    if (cache.positions == 0 || cache.shared) continue;
    const std::uint64_t heads = config.key_value_heads_of(config.is_windowed(of.first_layer + layer));
    const std::uint64_t slot_count = (std::min)(written, cache.positions);
    const std::uint64_t key_head = cache.key_bytes / heads, value_head = cache.value_bytes / heads;
    for (std::uint64_t head = 0; head < heads; ++head)
      out.push_back({2 * layer, head * key_head, key_head / octets(cache.positions) * octets(slot_count)});
    for (std::uint64_t head = 0; head < heads; ++head)
      out.push_back({2 * layer + 1, head * value_head,
                     kernels::is_coded(of.cache_element) ? value_head / octets(cache.positions) * octets(slot_count)
                                                         : value_head / cache.positions * slot_count});
  }
  return out;
}
/// Refuses a session that is cut over devices.
/// @error argument_error: a model that is cut over devices, since each device has only a part of the cache
[[gnu::cold]] inline void expect_uncut(const session_body& body) {
  if (body.run->is_stage())
    throw argument_error("saved session", "a model on one device", "one that is cut over several");
}
/// Writes the state of a session to a file.
/// @error file_error: the path or the disk; argument_error: the note is too long, or its sampling out of range;
///   device_lost, out_of_memory
inline void save_session(session_body& body, const std::filesystem::path& path, const session_note& note) {
  expect_uncut(body);
  if (body.run->adapter().number != 0)
    throw argument_error("saved session", "one without an adapter",
                         "one with adapter " + std::to_string(body.run->adapter().number));
  body.run->drain();
  body.cached = body.run->kept((std::min)(body.cached, body.size()));
  io::session_record record = record_of(body, body.run->weights(), body.history, note);
  record.cached = body.cached;
  record.written = record.cached == 0 ? 0 : (std::max)(body.run->written(), record.cached);
  const std::vector<cache_slice> slices = used_slices(*body.table, record.written);
  for (const cache_slice& each : slices) record.cache_bytes += each.bytes;
  const std::uint64_t kept = record.written == 0 ? 0 : body.table->kept_bytes();
  record.cache_bytes += kept;

  io::session_writer to(path, record);
  gpu::transfer from(body.device);
  std::vector<std::byte> bytes;
  const placed_items& caches = body.run->caches();
  for (const cache_slice& each : slices) {
    bytes.resize(static_cast<std::size_t>(each.bytes));
    const auto& item = caches.items[each.item];
    from.download(caches.buffers[item.buffer], item.offset + each.offset, bytes);
    to.cache(bytes);
  }
  if (kept != 0) {
    bytes.resize(static_cast<std::size_t>(kept));
    from.download(body.run->recurrent().buffer(), body.run->recurrent().offset_at(record.cached), bytes);
    to.cache(bytes);
  }
  to.commit();
}

/// Replaces the session's state by a saved one. Everything is checked before the present state is lost.
/// @error file_error: a damaged file, or a file of another model, of other weights, of another engraving; device_lost,
///   out_of_memory
inline session_note restore_session(session_body& body, const std::filesystem::path& path) {
  expect_uncut(body);
  using layout = io::session_layout;
  const io::session_reader from{io::mapped_file(path)};
  const io::session_record& record = from.record();
  const plan::table& table = *body.table;
  expect_plan(from, body);
  if (record.adapter != 0)  // only a batch's prefix has one (batch_prefixes.hpp)
    from.refuse(layout::at_adapter, "adapter of the session", "0 (none)", std::to_string(record.adapter));
  if (record.written > std::uint64_t{table.context} + table.max_tokens)
    from.refuse(layout::at_written, "positions written",
                "at most " + std::to_string(std::uint64_t{table.context} + table.max_tokens),
                std::to_string(record.written));
  const std::vector<cache_slice> slices = used_slices(table, record.written);
  std::uint64_t bytes = 0;
  for (const cache_slice& each : slices) bytes += each.bytes;
  const std::uint64_t kept = record.written == 0 ? 0 : table.kept_bytes();
  bytes += kept;
  expect_cache_bytes(from, bytes);
  session_note out{saved_sampling(from, body), record.note};
  expect_weights(from, body, body.run->weights());

  body.run->drain();
  body.history.clear();  // if the next steps fail, no token counts as cached
  body.cached = 0;
  body.run->choose({0, 0});
  gpu::transfer to(body.device);
  const placed_items& caches = body.run->caches();
  std::uint64_t done = 0;
  for (const cache_slice& each : slices) {
    const auto& item = caches.items[each.item];
    to.upload(caches.buffers[item.buffer], item.offset + each.offset, each.bytes,
              [&](std::span<std::byte> into, std::uint64_t at) { from.cache(done + at, into); });
    done += each.bytes;
  }
  if (kept != 0)
    to.upload(body.run->recurrent().buffer(), 0, kept,
              [&](std::span<std::byte> into, std::uint64_t at) { from.cache(done + at, into); });
  if (record.cached != 0)  // the repetition penalty looks up tokens there
    to.upload(body.run->state(), std::uint64_t{4} * kernels::state::history(table.max_tokens),
              std::as_bytes(std::span(record.tokens).first(record.cached)));
  to.finish();
  from.file().expect_unchanged();
  body.run->restored(record.written, record.cached);
  body.history = record.tokens;
  body.history.reserve(table.context);
  body.cached = record.cached;
  return out;
}

}  // namespace runtime
}  // namespace intaglio
