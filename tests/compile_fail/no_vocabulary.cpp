// SPDX-License-Identifier: MIT
// An empty vocabulary.
// expect: token_embd\.weight: embedding needs a vocabulary and a width, found 0
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.vocab_size = 0;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
