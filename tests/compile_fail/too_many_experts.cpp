// SPDX-License-Identifier: MIT
// More experts a token than there are.
// expect: ffn_gate_inp\.weight: expected a choice of at least 1 and at most num_local_experts 4 experts a token, found 5
#include "mistake.hpp"

#include "intaglio/models/mixtral.hpp"

inline constexpr decoder_config right{.model_type = architecture::llama,
                                      .hidden_size = 64,
                                      .intermediate_size = 96,
                                      .num_hidden_layers = 2,
                                      .num_attention_heads = 4,
                                      .num_key_value_heads = 2,
                                      .head_dim = 16,
                                      .vocab_size = 512,
                                      .max_position_embeddings = 128,
                                      .hidden_act = activation::silu,
                                      .num_local_experts = 4,
                                      .num_experts_per_tok = 2};
inline constexpr decoder_config mine = mistaken(right, [](decoder_config& c) { c.num_experts_per_tok = 5; });
constexpr auto& table = plan::engraved<models::mixtral<mine, dtype::f16>, plan::profiles::cpu>::table;
static_assert(table.decode.dispatch_count() > 0);
