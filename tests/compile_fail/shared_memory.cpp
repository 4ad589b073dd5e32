// SPDX-License-Identifier: MIT
// More experts than the router's shared memory has room for.
// expect: route \(route\): expected 1 to 32768 bytes of shared memory, found 32816
#include "intaglio/models/mixtral.hpp"
#include "mistake.hpp"

inline constexpr decoder_config mine =
    mistaken(models::mixtral_8x7b_config, [](decoder_config& c) { c.num_local_experts = 4096; });
constexpr auto& table = plan::engraved<models::mixtral<mine, dtype::q4_0>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
