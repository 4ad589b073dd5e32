// SPDX-License-Identifier: MIT
// A rotary base that turns nothing.
// expect: attn_q: rope expects a theta above 1
#include "mistake.hpp"

inline constexpr decoder_config mine = mistaken(models::fable_config, [](decoder_config& c) { c.rope_theta = 1.f; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
