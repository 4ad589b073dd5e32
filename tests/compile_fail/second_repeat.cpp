// SPDX-License-Identifier: MIT
// Two stacks of blocks in one model.
// expect: repeat: expected one repeat in a model, found a second
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() { return start | blocks | blocks | last_norm | head; }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
