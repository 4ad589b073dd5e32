// SPDX-License-Identifier: MIT
// The session's state in device memory, as 32-bit words. It holds values that would otherwise be push constants of
// each token, so that recorded commands never change. Shaders read the same offsets from shaders/include/state.glsl; a
// test compares the two.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::kernels::state {

/// Words with the number of tokens in the KV cache before this pass, of this pass, and written to the ring.
inline constexpr std::uint32_t position = 0, count = 1, generated = 2;
/// Words with sampling parameters, f32.
inline constexpr std::uint32_t temperature = 4, top_p = 5, min_p = 6, repeat_penalty = 7;
/// Words with sampling parameters, u32. top_k 0: off.
inline constexpr std::uint32_t top_k = 8, repeat_last_n = 9, seed_low = 10, seed_high = 11;
/// The word with the position at which the second of two texts of an encoder begins; 0: there is one text.
inline constexpr std::uint32_t second_text = 12;
/// Words of a plan with adapters: the adapter that its products use, 0 for none, and its factor, f32.
inline constexpr std::uint32_t adapter = 13, adapter_scale = 14;
/// Word of a slot with the number, from 1 on, of the row of the same pass that computes the token in front of the
/// slot's; 0: that token is in the slot's pages. Rows of drafts have such a row (runtime/batch_drafts.hpp).
inline constexpr std::uint32_t before = 15;
/// First of max_tokens words with the token ids of this pass. `context` words follow with every token fed or drawn so
/// far, by position. Then, in a plan's memory, follow the counters of attention, one word a head, and of the sampler,
/// one word a draw.
inline constexpr std::uint32_t tokens = 16;

// A batch has such a state for each of its slots: a single token, the page table of its cache, its history. Before the
// slots are 16 words for all of them: count, the number of rows of a pass, and the arguments of `pages`.

/// Offset of the first slot; word of a slot with the number of positions that its pages hold, and offset of its page
/// table there. The sampler sets count to 0 if the next token would have no position.
inline constexpr std::uint32_t first_slot = 16, limit = 3, page_table = 17;
/// Words with the arguments of `pages`: direction, slot, first octet of positions, end of the octets.
inline constexpr std::uint32_t move = 4, move_slot = 5, move_first = 6, move_end = 7;
/// Values of `move`.
inline constexpr std::uint32_t move_to_pool = 0, move_from_pool = 1;

/// Number of pages of a full slot.
constexpr std::uint32_t slot_pages(std::uint32_t context, std::uint32_t page_size) {
  return (context + page_size - 1) / page_size;
}

/// Offset of the words with every token fed or drawn so far, by position.
constexpr std::uint32_t history(std::uint32_t max_tokens) { return tokens + max_tokens; }
/// Words of the state of a session.
constexpr std::uint32_t words(std::uint32_t max_tokens, std::uint32_t context) { return history(max_tokens) + context; }
/// Words of a slot, in whole quads: for each page a word of the page table and a history of page_size, so that shaders
/// can compute the number of pages.
constexpr std::uint32_t slot_words(std::uint32_t context, std::uint32_t page_size) {
  return (page_table + slot_pages(context, page_size) * (1 + page_size) + 3) / 4 * 4;
}
/// Words of the state of a batch.
constexpr std::uint64_t batch_words(std::uint32_t slot_count, std::uint32_t context, std::uint32_t page_size) {
  return first_slot + std::uint64_t{slot_count} * slot_words(context, page_size);
}

}  // namespace intaglio::kernels::state
