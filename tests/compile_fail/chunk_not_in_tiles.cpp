// SPDX-License-Identifier: MIT
// A prefill chunk that tiles of tokens do not fill.
// expect: profile cpu: prefill_tokens: expected a multiple of tile_tokens 8, found 20
#include "mistake.hpp"

inline constexpr plan::profile mine = mistaken(plan::profiles::cpu, [](plan::profile& p) { p.prefill_tokens = 20; });
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
