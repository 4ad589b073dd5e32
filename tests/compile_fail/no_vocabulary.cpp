// SPDX-License-Identifier: MIT
// An empty vocabulary.
// expect: token_embd\.weight: embedding needs a vocabulary and a width, found 0
#include "mistake.hpp"

inline constexpr decoder_config mine = mistaken(models::fable_config, [](decoder_config& c) { c.vocab_size = 0; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
