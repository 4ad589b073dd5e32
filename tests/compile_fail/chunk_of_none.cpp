// SPDX-License-Identifier: MIT
// A prefill chunk without tokens.
// expect: profile cpu: prefill_tokens and logits_tokens: expected at least 1, found 0 and 32
#include "mistake.hpp"

inline constexpr plan::profile mine = mistaken(plan::profiles::cpu, [](plan::profile& p) { p.prefill_tokens = 0; });
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
