// SPDX-License-Identifier: MIT
// Runs the module of a batch's resident dispatch on the CPU (spirv/machine.hpp), over memory as a batch of sessions has
// it: slots, and caches in pages of a pool, which are in no order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "reference/interpreted_layers.hpp"

namespace interpreted {

/// A row of a pass: the next token of a session, or a draft after an earlier row.
struct row {
  std::uint32_t position = 0, token = 0;
  bool unused = false;       ///< a slot without a session
  std::uint32_t before = 0;  ///< kernels::state::before
};
/// The slot of the session that a row belongs to.
inline std::uint32_t session_of(std::span<const row> rows, std::uint32_t slot) {
  while (rows[slot].before != 0) slot = rows[slot].before - 1;
  return slot;
}

/// Passes of a batch in two ways: each session by the reference of its own chain, and all by the module.
class batch_both_ways {
 public:
  batch_both_ways(const plan::table& of, std::span<const std::byte> module)
      : table_(of), weights_(of), run_(of.resident_batch.resident[0], module) {
    weights_.make_all();
    for (std::uint32_t slot = 0; slot < of.shape.slot_count; ++slot)
      sessions_.emplace_back(of, [this](std::uint32_t which, std::uint32_t layer) { return weights_(which, layer); });
    arena_.assign(of.resident_batch.arena_bytes, std::byte{0xCD});
    const plan::operand& progress = run_.operand_of("progress");
    state_.assign((progress.offset + kernels::layers::progress_bytes(of.config->num_hidden_layers)) / 4, 0);
    for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer) fill_caches(layer);
  }

  /// The streams after the last layer, a row for each row of the pass. @return {the chains', the module's}, as bits
  std::array<std::vector<std::uint32_t>, 2> pass(std::span<const row> rows) {
    const plan::sequence& chain = table_.decode;
    const std::uint32_t hidden = table_.config->hidden_size;
    std::array<std::vector<std::uint32_t>, 2> out;
    state_[kernels::state::count] = static_cast<std::uint32_t>(rows.size());
    for (std::uint32_t slot = 0; slot < rows.size(); ++slot) {
      reference::machine& session = sessions_[session_of(rows, slot)];
      feed(slot, rows[slot], session_of(rows, slot));
      session.feed(rows[slot].position, {&rows[slot].token, 1});
      for (const plan::dispatch& d : chain.prologue) session.step(d, 0);
      std::memcpy(stream(slot), session.floats(chain.residual_offset, hidden).data(), 4 * hidden);
      for (std::uint32_t layer = 0; layer < chain.layers; ++layer)
        for (const plan::dispatch& d : chain.block(chain.pattern(layer))) session.step(d, layer);
      for (const float each : session.floats(chain.residual_offset, hidden))
        if (!rows[slot].unused) out[0].push_back(std::bit_cast<std::uint32_t>(each));
    }
    const plan::sequence& batch = table_.resident_batch;
    std::fill_n(arena_.begin() + static_cast<std::ptrdiff_t>(batch.blank_offset), batch.blank_bytes, std::byte{0xff});
    run_(batch, {table_, weights_, arena_, state_, keys_, values_});
    for (std::uint32_t slot = 0; slot < rows.size(); ++slot) {
      if (rows[slot].unused) continue;
      out[1].resize(out[1].size() + hidden);
      std::memcpy(&out[1][out[1].size() - hidden], stream(slot), 4 * hidden);
    }
    return out;
  }
  /// Whether the pool holds what a session's own caches hold at a position.
  bool pool_agrees(std::uint32_t slot, std::uint32_t position) const {
    bool same = true;
    for (std::uint32_t layer = 0; layer < table_.config->num_hidden_layers; ++layer)
      each_half(slot, position, [&](bool value, std::size_t own, std::size_t pooled) {
        const auto& of = value ? sessions_[slot].values : sessions_[slot].keys;
        same = same && std::memcmp(of[layer].data() + own, (value ? values_ : keys_)[layer].data() + pooled, 2) == 0;
      });
    return same;
  }
  /// Whether a wait of a workgroup timed out.
  bool timed_out() const { return state_[run_.operand_of("progress").offset / 4 + 3] != 0; }

 private:
  std::byte* stream(std::uint32_t slot) {
    return arena_.data() + table_.resident_batch.residual_offset + 4ull * slot * table_.config->hidden_size;
  }
  std::uint32_t pool_positions() const { return table_.shape.pages * table_.shape.page_size; }
  std::uint32_t page(std::uint32_t slot, std::uint32_t index) const {
    return table_.shape.pages - 1 - (index * table_.shape.slot_count + slot);
  }

  /// What the host writes for a slot before a pass.
  void feed(std::uint32_t slot, const row& its, std::uint32_t session) {
    namespace words = kernels::state;
    std::uint32_t* const at =
        state_.data() + words::first_slot + slot * words::slot_words(table_.context, table_.shape.page_size);
    at[words::position] = its.position, at[words::count] = its.unused ? 0 : 1;
    at[words::limit] = table_.context, at[words::before] = its.before;
    for (std::uint32_t i = 0; i < table_.slot_pages(); ++i) at[words::page_table + i] = page(session, i);
  }
  /// Visits each number of a position's keys and values. @param visit whether it is a value's, and its bytes in a
  /// session's own cache and in the pool
  template <class Visit>
  void each_half(std::uint32_t slot, std::uint32_t position, Visit visit) const {
    const decoder_config& c = *table_.config;
    const std::uint32_t page_size = table_.shape.page_size, context = table_.context, all = pool_positions(),
                        position_of_page = page(slot, position / page_size) * page_size + position % page_size;
    for (std::uint32_t head = 0; head < c.num_key_value_heads; ++head)
      for (std::uint32_t channel = 0; channel < c.head_dim; ++channel) {
        visit(false, 2 * kernels::key_cache_index(head, position, channel, c.head_dim, context),
              2 * kernels::key_cache_index(head, position_of_page, channel, c.head_dim, all));
        visit(true, 2 * kernels::value_cache_index(head, position, channel, c.head_dim, context),
              2 * kernels::value_cache_index(head, position_of_page, channel, c.head_dim, all));
      }
  }
  /// Halves from -2 to 2 in all positions of all sessions.
  void fill_caches(std::uint32_t layer) {
    const decoder_config& c = *table_.config;
    keys_.emplace_back(2 * kernels::key_cache_elements(c.num_key_value_heads, c.head_dim, pool_positions()));
    values_.emplace_back(2 * kernels::value_cache_elements(c.num_key_value_heads, c.head_dim, pool_positions()));
    std::uint64_t random = 5 + layer;
    for (std::uint32_t slot = 0; slot < table_.shape.slot_count; ++slot)
      for (std::uint32_t position = 0; position < table_.context; ++position)
        each_half(slot, position, [&](bool value, std::size_t own, std::size_t pooled) {
          const std::uint64_t drawn = runtime::next_random(random) >> 40;
          const std::array<std::byte, 2> half{static_cast<std::byte>(drawn), static_cast<std::byte>(drawn >> 8 & 0xbf)};
          auto& of = value ? sessions_[slot].values : sessions_[slot].keys;
          std::memcpy(of[layer].data() + own, half.data(), 2);
          std::memcpy((value ? values_ : keys_)[layer].data() + pooled, half.data(), 2);
        });
  }
  const plan::table& table_;
  random_weights weights_;
  module_run run_;
  std::vector<reference::machine> sessions_;
  std::vector<std::byte> arena_;
  std::vector<std::uint32_t> state_;
  std::vector<std::vector<std::byte>> keys_, values_;  ///< the pool's, by layer
};

}  // namespace interpreted
