// SPDX-License-Identifier: MIT
// A branch narrower than the stream it is added to.
// expect: blk\.\*\.residual: expected a branch as wide as its input, 256, found 128
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() {
    return start |
           repeat(8, residual(attention_step | rms_norm{"attn_sub_norm.weight", 1e-5f} |
                              linear<dtype::i2_s>{"attn_output.weight", 256, 128})) |
           last_norm | head;
  }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
