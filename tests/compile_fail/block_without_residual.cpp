// SPDX-License-Identifier: MIT
// A block whose result does not replace its input.
// expect: repeat: expected a block that ends by adding to its input \(residual\), found one that returns another value
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
using mine = sound_model;
#else
struct mine {
  static constexpr const decoder_config& config = sizes;
  static constexpr auto graph() { return start | repeat(8, branch) | last_norm | head; }
};
#endif
constexpr auto& table = plan::engraved<mine, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
