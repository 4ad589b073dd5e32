// SPDX-License-Identifier: MIT
// An input too wide for the shared memory of the fused norm.
// expect: ffn_down \(ternary_matmul\): expected 1 to 32768 bytes of shared memory, found 42432
#include "mistake.hpp"

inline constexpr decoder_config mine =
    mistaken(models::fable_config, [](decoder_config& c) { c.intermediate_size = 40960; });
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
