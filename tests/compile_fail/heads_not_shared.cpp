// SPDX-License-Identifier: MIT
// Query heads that key/value heads cannot share evenly.
// expect: self_attention: expected num_attention_heads in multiples of num_key_value_heads 3, found 4
#include "mistake.hpp"

inline constexpr decoder_config mine =
    mistaken(models::fable_config, [](decoder_config& c) { c.num_key_value_heads = 3; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
