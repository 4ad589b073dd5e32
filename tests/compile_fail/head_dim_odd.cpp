// SPDX-License-Identifier: MIT
// A head width that RoPE cannot pair in fours.
// expect: attn_q: expected rope head_dim in multiples of 4, found 34|columns in multiples of 128 .*found 136
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.head_dim = 34;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
