// SPDX-License-Identifier: MIT
// A walk where no feature is ever off.
// expect: walk_ffn: expected squared ReLU, which leaves features out, found another activation
#include "mistake.hpp"

#include "intaglio/graph/layers/walk_ffn.hpp"

constexpr decoder_config config =
    mistaken(models::fable_config, [](decoder_config& c) { c.hidden_act = activation::silu; });
using mine = models::bitnet_b158<config, dtype::i2_s, dtype::i8, dtype::f16, walk_ffn>;
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
