// SPDX-License-Identifier: MIT
// Query heads that key/value heads cannot share evenly.
// expect: self_attention: expected num_attention_heads in multiples of num_key_value_heads 3, found 4
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.num_key_value_heads = 3;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
