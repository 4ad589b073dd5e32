// SPDX-License-Identifier: MIT
// A norm that can divide by zero.
// expect: attn_norm\.weight: rms_norm expects an epsilon above 0
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.rms_norm_eps = 0.f;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
