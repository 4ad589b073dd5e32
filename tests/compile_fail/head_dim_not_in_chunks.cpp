// SPDX-License-Identifier: MIT
// A head width that the key cache cannot part into chunks of eight channels.
// expect: self_attention: expected head_dim in multiples of 8, found 36
#include "mistake.hpp"

inline constexpr decoder_config mine = mistaken(models::fable_config, [](decoder_config& c) { c.head_dim = 36; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
