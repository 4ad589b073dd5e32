// SPDX-License-Identifier: MIT
// A stream too wide for the shared memory of the head.
// expect: token_embd \(dense_matmul\): expected 1 to 32768 bytes of shared memory, found 34272
#include "mistake.hpp"

inline constexpr decoder_config mine = mistaken(models::fable_config, [](decoder_config& c) {
  c.hidden_size = 8448, c.num_attention_heads = 132, c.num_key_value_heads = 66;
});
constexpr auto& table = plan::engraved<models::bitnet_b158<mine>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
