// SPDX-License-Identifier: MIT
// A feed-forward width that is no multiple of the codec's block.
// expect: ffn_down\.weight: expected columns in multiples of 128 \(i2_s blocks\), found 1000
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.intermediate_size = 1000;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
