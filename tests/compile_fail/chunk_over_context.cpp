// SPDX-License-Identifier: MIT
// A prefill chunk longer than the context.
// expect: profile cpu: prefill_tokens: expected 1 to the context of 512, found 1024
#include "mistake.hpp"

inline constexpr plan::profile mine = mistaken(plan::profiles::cpu, [](plan::profile& p) { p.prefill_tokens = 1024; });
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
