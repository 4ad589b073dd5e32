// SPDX-License-Identifier: MIT
// The common part of the files of a single session and of a batch's prefix (io/session_file.hpp): the record of tokens,
// sampler and note, bound to a plan and its weights.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/io/session_file.hpp"
#include "intaglio/runtime/session_body.hpp"
#include "intaglio/runtime/session_note.hpp"

namespace intaglio::runtime {

/// The longest note of a saved session, in bytes.
inline constexpr std::size_t session_note_limit = std::size_t{64} << 20;

/// XXH3 of all weights as they are in device memory, computed once a session.
/// @error device_lost, out_of_memory
inline std::uint64_t weights_checksum(session_body& body, const weight_memory& weights) {
  if (!body.weight_sum) {
    gpu::transfer from(body.device);
    io::running_checksum sum;
    std::vector<std::byte> piece;
    const placed_items& placed = weights.placed;
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

/// Makes a record of tokens and a note, without the content of the caches.
/// @error argument_error: the note is too long, or its sampling out of range; device_lost, out_of_memory
inline io::session_record record_of(session_body& body, const weight_memory& weights,
                                    std::span<const std::int32_t> tokens, const session_note& note) {
  validate(note.sampling, body.vocab_size(), body.table->context);
  if (note.text.size() > session_note_limit)
    throw argument_error("note of the session", "at most " + std::to_string(session_note_limit) + " bytes",
                         std::to_string(note.text.size()));
  io::session_record out;
  out.engraving = body.table->hash;
  out.weights = weights_checksum(body, weights);
  std::array<std::uint32_t, kernels::state::tokens> words{};
  write_sampling(note.sampling, words);
  std::copy_n(words.begin() + kernels::state::temperature, out.sampler.size(), out.sampler.begin());
  out.tokens.assign(tokens.begin(), tokens.end());
  out.note = note.text;
  return out;
}

/// The sampling parameters in a record. @error file_error naming a parameter that is out of range
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

/// The model, the profile and the cache's codec of a plan, for errors.
inline std::string engraving_name(const plan::table& of) {
  return model_name(of) + ", profile " + std::string(of.profile) + ", cache of " +
         std::string(kernels::cache_codec_of(of.cache_element).name);
}
/// Refuses a record that does not fit a session's plan.
/// @error file_error: a record of another engraving, or with tokens that the plan does not have
inline void expect_plan(const io::session_reader& from, const session_body& body) {
  using layout = io::session_layout;
  const io::session_record& record = from.record();
  const plan::table& table = *body.table;
  if (record.engraving != table.hash)
    from.refuse(layout::at_engraving, "engraving", hexadecimal(table.hash) + " (" + engraving_name(table) + ")",
                hexadecimal(record.engraving));
  if (record.tokens.size() > table.context)
    from.refuse(layout::at_tokens, "tokens", "at most " + std::to_string(table.context) + " (the context)",
                std::to_string(record.tokens.size()));
  for (std::size_t i = 0; i < record.tokens.size(); ++i)
    if (record.tokens[i] < 0 || static_cast<std::uint32_t>(record.tokens[i]) >= body.vocab_size())
      from.refuse(layout::header_bytes + 4 * i, "token " + std::to_string(i),
                  "0 .. " + std::to_string(body.vocab_size() - 1), std::to_string(record.tokens[i]));
}
/// Refuses a cache of another size. @error file_error: not the bytes that the plan needs for these positions
inline void expect_cache_bytes(const io::session_reader& from, std::uint64_t bytes) {
  if (bytes != from.record().cache_bytes)
    from.refuse(io::session_layout::at_cache_bytes, "bytes of the cache", std::to_string(bytes),
                std::to_string(from.record().cache_bytes));
}
/// Refuses a record of other weights. @error file_error: other weights; device_lost, out_of_memory
inline void expect_weights(const io::session_reader& from, session_body& body, const weight_memory& weights) {
  if (const std::uint64_t own = weights_checksum(body, weights); from.record().weights != own)
    from.refuse(io::session_layout::at_weights, "weights", hexadecimal(own) + " (" + printable(body.path, 120) + ")",
                hexadecimal(from.record().weights));
}

}  // namespace intaglio::runtime
