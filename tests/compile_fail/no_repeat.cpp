// SPDX-License-Identifier: MIT
// A model whose block is not repeated.
// expect: graph: expected a repeat around the blocks of a model, found none
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() { return start | last_norm | head; }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
