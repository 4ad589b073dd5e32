// SPDX-License-Identifier: MIT
// More invocations a workgroup than devices offer.
// expect: expected 1 to 1024 invocations a workgroup, found 1088
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr plan::profile mine = [] {
  plan::profile p = plan::profiles::cpu;
#ifndef INTAGLIO_TWIN
  p.matmul_subgroups = 17;
#endif
  return p;
}();
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
