// SPDX-License-Identifier: MIT
// A feed-forward width that is no multiple of the codec's block.
// expect: ffn_down\.weight: expected columns in multiples of 128 \(i2_s blocks\), found 1000
#include "mistake.hpp"

inline constexpr decoder_config mine =
    mistaken(models::fable_config, [](decoder_config& c) { c.intermediate_size = 1000; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
