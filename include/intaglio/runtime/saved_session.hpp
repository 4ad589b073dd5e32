// SPDX-License-Identifier: MIT
// A session's state to and from a file (io/session_file.hpp): what the KV cache holds of the tokens so far goes along,
// so that the next token is the one that an uninterrupted run draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/io/session_file.hpp"
#include "intaglio/runtime/session_body.hpp"
#include "intaglio/runtime/session_handle.hpp"

namespace intaglio {

namespace runtime {

inline constexpr std::size_t session_note_limit = std::size_t{64} << 20;

/// A stretch of the KV cache that holds something.
struct cache_slice {
  std::uint32_t item = 0;  ///< of executor::caches()
  std::uint64_t offset = 0, bytes = 0;
};

/// What the positions below `written` take of the caches: of keys whole octets, head by head; of values rows, where
/// they are coded whole octets too. A ring
/// that was written round is taken whole.
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

/// XXH3 of all weights as they lie in device memory, computed once a session.
/// @error device_lost, out_of_memory
inline std::uint64_t weights_checksum(session_body& body) {
  if (!body.weight_sum) {
    gpu::transfer from(body.device);
    io::running_checksum sum;
    std::vector<std::byte> piece;
    const placed_items& placed = body.run->weights().placed;
    for (const auto& item : placed.items)
      for (std::uint64_t at = 0; at < item.bytes; at += piece.size()) {
        piece.resize(static_cast<std::size_t>((std::min<std::uint64_t>)(item.bytes - at, std::uint64_t{16} << 20)));
        from.download(placed.buffers[item.buffer], item.offset + at, piece);
        sum.add(piece);
      }
    body.weight_sum = sum.take();
  }
  return *body.weight_sum;
}

/// @error argument_error: a model that is cut over devices, each of which has a part of the cache
[[gnu::cold]] inline void expect_uncut(const session_body& body) {
  if (body.run->is_stage())
    throw argument_error("saved session", "a model on one device", "one that is cut over several");
}

/// @error file_error: the place or the disk; argument_error: the note is too long, or its sampling out of range;
/// device_lost, out_of_memory
inline void save_session(session_body& body, const std::filesystem::path& path, const session_note& note) {
  expect_uncut(body);
  validate(note.sampling, body.vocab_size(), body.table->context);
  if (note.text.size() > session_note_limit)
    throw argument_error("note of the session", "at most " + std::to_string(session_note_limit) + " bytes",
                         std::to_string(note.text.size()));
  body.run->drain();
  body.cached = body.run->kept((std::min)(body.cached, body.size()));
  io::session_record record;
  record.engraving = body.table->hash;
  record.weights = weights_checksum(body);
  record.cached = body.cached;
  record.written = record.cached == 0 ? 0 : (std::max)(body.run->written(), record.cached);
  std::array<std::uint32_t, kernels::state::tokens> words{};
  write_sampling(note.sampling, words);
  std::copy_n(words.begin() + kernels::state::temperature, record.sampler.size(), record.sampler.begin());
  record.tokens = body.history;
  record.note = note.text;
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

/// The parameters in a record. @error file_error naming what is out of range
inline sampling_options saved_sampling(const io::session_reader& from, const session_body& body) {
  namespace state = kernels::state;
  const auto word = [&](std::uint32_t at) { return from.record().sampler[at - state::temperature]; };
  const auto number = [&](std::uint32_t at) { return std::bit_cast<float>(word(at)); };
  sampling_options out;
  out.temperature = number(state::temperature);
  out.top_p = number(state::top_p);
  out.min_p = number(state::min_p);
  out.repeat_penalty = number(state::repeat_penalty);
  if (word(state::top_k) != 0) out.top_k = word(state::top_k);
  if (const std::uint32_t last = word(state::repeat_last_n); last != default_repeat_last_n) out.repeat_last_n = last;
  out.seed = word(state::seed_low) | std::uint64_t{word(state::seed_high)} << 32;
  try {
    validate(out, body.vocab_size(), body.table->context);
  } catch (const argument_error& wrong) {
    throw file_error(from.file().path(), io::session_layout::at_sampler, std::string("sampler: ") + wrong.what());
  }
  return out;
}

inline std::string engraving_name(const plan::table& of) {
  return model_name(of) + ", profile " + std::string(of.profile) + ", cache of " +
         std::string(kernels::cache_codec_of(of.cache_element).name);
}

/// Takes a saved session's place: all is checked before anything of the present one is lost.
/// @error file_error: not a sound file, or one of another model, of other weights, of another engraving; device_lost,
/// out_of_memory
inline session_note restore_session(session_body& body, const std::filesystem::path& path) {
  expect_uncut(body);
  using layout = io::session_layout;
  const io::session_reader from{io::mapped_file(path)};
  const io::session_record& record = from.record();
  const plan::table& table = *body.table;
  if (record.engraving != table.hash)
    from.refuse(layout::at_engraving, "engraving", hexadecimal(table.hash) + " (" + engraving_name(table) + ")",
                hexadecimal(record.engraving));
  if (record.tokens.size() > table.context)
    from.refuse(layout::at_tokens, "tokens", "at most " + std::to_string(table.context) + " (the context)",
                std::to_string(record.tokens.size()));
  if (record.written > std::uint64_t{table.context} + table.max_tokens)
    from.refuse(layout::at_written, "positions written",
                "at most " + std::to_string(std::uint64_t{table.context} + table.max_tokens),
                std::to_string(record.written));
  for (std::size_t i = 0; i < record.tokens.size(); ++i)
    if (record.tokens[i] < 0 || static_cast<std::uint32_t>(record.tokens[i]) >= body.vocab_size())
      from.refuse(layout::header_bytes + 4 * i, "token " + std::to_string(i),
                  "0 .. " + std::to_string(body.vocab_size() - 1), std::to_string(record.tokens[i]));
  const std::vector<cache_slice> slices = used_slices(table, record.written);
  std::uint64_t bytes = 0;
  for (const cache_slice& each : slices) bytes += each.bytes;
  const std::uint64_t kept = record.written == 0 ? 0 : table.kept_bytes();
  bytes += kept;
  if (bytes != record.cache_bytes)
    from.refuse(layout::at_cache_bytes, "bytes of the cache", std::to_string(bytes),
                std::to_string(record.cache_bytes));
  session_note out{saved_sampling(from, body), record.note};
  if (const std::uint64_t own = weights_checksum(body); record.weights != own)
    from.refuse(layout::at_weights, "weights", hexadecimal(own) + " (" + printable(body.path, 120) + ")",
                hexadecimal(record.weights));

  body.run->drain();
  body.history.clear();  // should what follows fail, nothing is relied on
  body.cached = 0;
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
  if (record.cached != 0)  // the repetition penalty looks them up there
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
