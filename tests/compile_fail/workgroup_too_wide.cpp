// SPDX-License-Identifier: MIT
// More invocations a workgroup than devices offer.
// expect: expected 1 to 1024 invocations a workgroup, found 1088
#include "mistake.hpp"

inline constexpr plan::profile mine =
    mistaken(plan::profiles::cpu, [](plan::profile& p) { p.work.matmul_subgroups = 17; });
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
