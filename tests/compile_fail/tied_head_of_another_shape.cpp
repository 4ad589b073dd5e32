// SPDX-License-Identifier: MIT
// A tied head with another vocabulary than the embedding.
// expect: token_embd\.weight: expected the shape of its first use, rows 4096, found 4000
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() { return start | blocks | last_norm | lm_head{"token_embd.weight", 4000, 256}; }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
