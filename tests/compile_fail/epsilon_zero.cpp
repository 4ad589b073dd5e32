// SPDX-License-Identifier: MIT
// A norm that can divide by zero.
// expect: attn_norm\.weight: rms_norm expects an epsilon above 0
#include "mistake.hpp"

inline constexpr decoder_config mine = mistaken(models::fable_config, [](decoder_config& c) { c.rms_norm_eps = 0.f; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
