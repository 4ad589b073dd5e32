// SPDX-License-Identifier: MIT
// Passes over a batch: each row is the next token of a session of its own, whose slot of the state (kernels/state.hpp)
// has its position and the pages of the pool that its cache uses. With slot_words 0 rows are tokens of one session, and
// no code is generated. The including shader has slot_words, page_size, context (positions of the pool) and state.
#ifndef INTAGLIO_SLOTS
#define INTAGLIO_SLOTS

const uint state_limit = 3u;
const uint state_slots = 16u;
const uint state_page_table = 17u;
// Words before the slots: the move that `pages` has to do.
const uint state_move = 4u;
const uint state_move_slot = 5u;
const uint state_move_first = 6u;
const uint state_move_end = 7u;

const bool batched = slot_words != 0u;

// First word of a row's slot.
uint slot_at(uint row) { return state_slots + row * slot_words; }

#ifdef PAGED
const uint slot_pages = (slot_words - state_page_table) / (page_size + 1u);  // kernels::state::slot_words

// Positions that a slot may write.
uint limit_of(uint slot) { return min(state.at[slot + state_limit], slot_pages * page_size); }
// The pool's slot for a position that is below the limit of the session's slot.
uint pool_offset(uint slot, uint position) {
  uint page = state.at[slot + state_page_table + min(position / page_size, slot_pages - 1u)];
  return min(page, context / page_size - 1u) * page_size + position % page_size;
}
uint row_position(uint row) { return state.at[slot_at(row) + state_position]; }
// The pool's slot for a row's position; `context`, which means none, if the session's slot is unused or its pages end.
uint row_offset(uint row, uint position) {
  uint slot = slot_at(row);
  if (state.at[slot + state_count] == 0u || position >= limit_of(slot)) return context;
  return pool_offset(slot, position);
}
#endif

#endif
