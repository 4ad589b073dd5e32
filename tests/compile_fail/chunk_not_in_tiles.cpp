// SPDX-License-Identifier: MIT
// A prefill chunk that tiles of tokens do not fill.
// expect: profile cpu: prefill_tokens: expected a multiple of tile_tokens 8, found 20
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr plan::profile mine = [] {
  plan::profile p = plan::profiles::cpu;
#ifndef INTAGLIO_TWIN
  p.prefill_tokens = 20;
#endif
  return p;
}();
constexpr auto& table = plan::engraved<models::fable, mine>::table;
static_assert(table.decode.dispatch_count() > 0);
