// SPDX-License-Identifier: MIT
// A prefill chunk longer than the context.
// expect: profile cpu: prefill_tokens: expected 1 to the context of 512, found 1024
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr plan::profile mine = [] {
  plan::profile p = plan::profiles::cpu;
#ifndef INTAGLIO_TWIN
  p.prefill_tokens = 1024;
#endif
  return p;
}();
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
