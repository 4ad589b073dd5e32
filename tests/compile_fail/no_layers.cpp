// SPDX-License-Identifier: MIT
// A model of no layers.
// expect: repeat: expected num_hidden_layers of at least 1, found 0
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.num_hidden_layers = 0;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
