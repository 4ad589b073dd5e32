// SPDX-License-Identifier: MIT
// A head width that RoPE cannot pair in fours.
// expect: attn_q: expected rope head_dim in multiples of 4, found 34|columns in multiples of 128 .*found 136
#include "mistake.hpp"

inline constexpr decoder_config mine = mistaken(models::fable_config, [](decoder_config& c) { c.head_dim = 34; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
