// SPDX-License-Identifier: MIT
// Passes over a batch: each row is the next token of a session of its own, whose slot of the state (kernels/state.hpp)
// says its position and which pages of the pool its cache has. slot_words 0: rows are tokens of one session, and all of
// this is no code. The including shader has slot_words, page_size, context (positions of the pool) and state.
#ifndef INTAGLIO_SLOTS
#define INTAGLIO_SLOTS

const uint state_limit = 3u;
const uint state_slots = 16u;
const uint state_page_table = 17u;
// In front of the slots: what `pages` has to move.
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
// The pool's place for a position of a slot that is below its limit.
uint pool_place(uint slot, uint position) {
  uint page = state.at[slot + state_page_table + min(position / page_size, slot_pages - 1u)];
  return min(page, context / page_size - 1u) * page_size + position % page_size;
}
uint row_position(uint row) { return state.at[slot_at(row) + state_position]; }
// The place for what a row writes at its position, `context`, which is none, where nobody has the slot or its pages
// end.
uint row_place(uint row, uint position) {
  uint slot = slot_at(row);
  if (state.at[slot + state_count] == 0u || position >= limit_of(slot)) return context;
  return pool_place(slot, position);
}
#endif

#endif
