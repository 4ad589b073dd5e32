// SPDX-License-Identifier: MIT
// An op that no kernel of the catalogue computes here in the graph.
// expect: attn_output\.weight: no kernel computes matmul here; expected i2_s weights of int8 or f32 inputs or coded weights of f32 inputs, found tq1_0
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() {
    return start | repeat(8, residual(attention_step | linear<dtype::tq1_0>{"attn_output.weight", 256, 256})) |
           last_norm | head;
  }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
