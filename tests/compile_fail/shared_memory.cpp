// SPDX-License-Identifier: MIT
// An input too wide for the shared memory of the fused norm.
// expect: ffn_down \(ternary_matmul\): expected 1 to 32768 bytes of shared memory, found 42388
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
inline constexpr decoder_config mine = [] {
  decoder_config c = models::fable_config;
#ifndef INTAGLIO_TWIN
  c.intermediate_size = 40960;
#endif
  return c;
}();
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
