// SPDX-License-Identifier: MIT
// A layer that expects another width than it is given.
// expect: blk\.\*\.attn_output\.weight: expected linear input width 384, found 256
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() {
    return start |
           repeat(8, residual(attention_step | rms_norm{"attn_sub_norm.weight", 1e-5f} |
                              linear<dtype::i2_s>{"attn_output.weight", 384, 256})) |
           last_norm | head;
  }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
