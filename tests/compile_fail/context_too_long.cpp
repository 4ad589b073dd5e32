// SPDX-License-Identifier: MIT
// A KV cache longer than the positions that the model knows.
// expect: context: expected 1 to max_position_embeddings 512, found 1024
#include "mistake.hpp"

#ifdef INTAGLIO_TWIN
inline constexpr std::uint32_t context = 512;
#else
inline constexpr std::uint32_t context = 1024;
#endif
constexpr auto& table = plan::engraved<models::fable, plan::profiles::cpu, context>::table;
static_assert(table.context == context);
