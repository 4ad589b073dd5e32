// SPDX-License-Identifier: MIT
// Word offsets of the session's state; include/intaglio/kernels/state.hpp has the same numbers.
#ifndef INTAGLIO_STATE
#define INTAGLIO_STATE

const uint state_position = 0u;
const uint state_count = 1u;
const uint state_generated = 2u;
const uint state_temperature = 4u;
const uint state_top_p = 5u;
const uint state_min_p = 6u;
const uint state_repeat_penalty = 7u;
const uint state_top_k = 8u;
const uint state_repeat_last_n = 9u;
const uint state_seed_low = 10u;
const uint state_seed_high = 11u;
const uint state_tokens = 16u;

#endif
