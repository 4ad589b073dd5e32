// SPDX-License-Identifier: MIT
// A tile of more tokens than a ternary product has room for.
// expect: profile cpu: ternary_tile_tokens: expected 1 to 16, found 32
#include "mistake.hpp"

inline constexpr plan::profile mine =
    mistaken(plan::profiles::cpu, [](plan::profile& p) { p.work.ternary_tile_tokens = 32; });
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
