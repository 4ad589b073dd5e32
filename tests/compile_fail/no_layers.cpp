// SPDX-License-Identifier: MIT
// A model of no layers.
// expect: repeat: expected num_hidden_layers of at least 1, found 0
#include "mistake.hpp"

inline constexpr decoder_config mine =
    mistaken(models::fable_config, [](decoder_config& c) { c.num_hidden_layers = 0; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
