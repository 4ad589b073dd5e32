// SPDX-License-Identifier: MIT
// The ranges of a model's hyperparameters, in one table for all forms of files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/family.hpp"

namespace intaglio::io {

/// Upper limits of accepted values, far above the largest published models.
struct config_limits {
  static constexpr std::uint64_t hidden_size = 1 << 20, intermediate_size = 1 << 22, num_hidden_layers = 4096,
                                 num_attention_heads = 1 << 16, head_dim = 1 << 16, vocab_size = 1 << 24,
                                 max_position_embeddings = std::uint64_t{1} << 31, num_local_experts = 1024;
};

/// The range of one number of a config, under config.json's key. With `zero_is_none` a value of 0 means that it is
/// absent.
struct number_range {
  std::string_view key;
  double (*value)(const decoder_config&);
  double least = 1, most = 0;  ///< most 0: any finite number
  bool above = false;          ///< the number must be above `least`, not equal to it
  bool zero_is_none = false;
  bool (*applies)(const decoder_config&) = nullptr;  ///< nullptr: always
};

/// Whether the scaling depends on the number of turns in the original context.
constexpr bool divides_slow_angles(const decoder_config& c) {
  return c.rope_scaling.type == rope_type::llama3 || c.rope_scaling.type == rope_type::yarn;
}

/// Whether a model's recurrent layers are Mamba-2 layers.
constexpr bool is_state_space(const decoder_config& c) {
  return family_of(c.model_type).recurrent == recurrence::mamba2;
}

/// Whether a model has latent attention.
constexpr bool has_latent(const decoder_config& c) { return family_of(c.model_type).latent; }

/// The largest number of channels of a head's queries, keys or values.
constexpr std::uint32_t widest_head(const decoder_config& c) {
  return (std::max)({c.head_dim, c.v_head_dim, c.kv_lora_rank});
}

/// Whether a model has parallel streams.
constexpr bool has_streams_beside(const decoder_config& c) { return family_of(c.model_type).streams; }

/// The ranges of a config's numbers.
inline constexpr number_range number_ranges[] = {
    {"hidden_size", [](const decoder_config& c) -> double { return c.hidden_size; }, 1, config_limits::hidden_size},
    {"intermediate_size", [](const decoder_config& c) -> double { return c.intermediate_size; }, 1,
     config_limits::intermediate_size},
    {"num_hidden_layers", [](const decoder_config& c) -> double { return c.num_hidden_layers; }, 1,
     config_limits::num_hidden_layers},
    {"num_attention_heads", [](const decoder_config& c) -> double { return c.num_attention_heads; }, 1,
     config_limits::num_attention_heads},
    {"num_key_value_heads", [](const decoder_config& c) -> double { return c.num_key_value_heads; }, 1,
     config_limits::num_attention_heads},
    {"head_dim", [](const decoder_config& c) -> double { return c.head_dim; }, 1, config_limits::head_dim},
    {"vocab_size", [](const decoder_config& c) -> double { return c.vocab_size; }, 1, config_limits::vocab_size},
    {"max_position_embeddings", [](const decoder_config& c) -> double { return c.max_position_embeddings; }, 1,
     config_limits::max_position_embeddings},
    {"rms_norm_eps", [](const decoder_config& c) -> double { return c.rms_norm_eps; }, 0, 1, true},
    {"projection_norm_eps", [](const decoder_config& c) -> double { return c.projection_norm_eps; }, 0, 1, true, true},
    {"rope_theta", [](const decoder_config& c) -> double { return c.rope_theta; }},
    {"rope_local_base_freq", [](const decoder_config& c) -> double { return c.rope_local_base_freq; }, 1, 0, false,
     true},
    {"sliding_window", [](const decoder_config& c) -> double { return c.sliding_window; }, 1,
     config_limits::max_position_embeddings, false, true},
    {"sliding_window_pattern", [](const decoder_config& c) -> double { return c.sliding_window_pattern; }, 1,
     config_limits::num_hidden_layers, false, true},
    {"query_pre_attn_scalar", [](const decoder_config& c) -> double { return c.query_pre_attn_scalar; }, 1,
     config_limits::hidden_size, false, true},
    {"rotary_dim", [](const decoder_config& c) -> double { return c.rotary_dim; }, 2, config_limits::head_dim, false,
     true},
    {"no_rope_layer_interval", [](const decoder_config& c) -> double { return c.no_rope_layer_interval; }, 1,
     config_limits::num_hidden_layers, false, true},
    {"embedding_multiplier", [](const decoder_config& c) -> double { return c.embedding_multiplier; }, 0, 0, true},
    {"attention_multiplier", [](const decoder_config& c) -> double { return c.attention_multiplier; }, 0, 0, true,
     true},
    {"residual_multiplier", [](const decoder_config& c) -> double { return c.residual_multiplier; }, 0, 0, true},
    {"logits_scaling", [](const decoder_config& c) -> double { return c.logits_scaling; }, 0, 0, true},
    {"attn_logit_softcapping", [](const decoder_config& c) -> double { return c.attn_logit_softcapping; }, 0, 0, true,
     true},
    {"final_logit_softcapping", [](const decoder_config& c) -> double { return c.final_logit_softcapping; }, 0, 0, true,
     true},
    {"num_local_experts", [](const decoder_config& c) -> double { return c.num_local_experts; }, 1,
     config_limits::num_local_experts, false, true},
    {"num_experts_per_tok", [](const decoder_config& c) -> double { return c.num_experts_per_tok; }, 1,
     config_limits::num_local_experts, false, false, [](const decoder_config& c) { return c.num_local_experts != 0; }},
    {"routed_scaling_factor", [](const decoder_config& c) -> double { return c.routed_scaling_factor; }, 0, 0, true},
    {"intermediate_size of dense layers", [](const decoder_config& c) -> double { return c.dense_intermediate_size; },
     1, config_limits::intermediate_size, false, false, [](const decoder_config& c) { return c.has_dense_layers(); }},
    {"linear_num_key_heads", [](const decoder_config& c) -> double { return c.delta_net.key_heads; }, 1, 1 << 12, false,
     false, [](const decoder_config& c) { return family_of(c.model_type).recurrent == recurrence::delta_net; }},
    {"linear_num_value_heads", [](const decoder_config& c) -> double { return c.delta_net.value_heads; }, 1, 1 << 12,
     false, false, [](const decoder_config& c) { return family_of(c.model_type).recurrent == recurrence::delta_net; }},
    {"linear_key_head_dim", [](const decoder_config& c) -> double { return c.delta_net.key_dim; }, 1, 256, false, false,
     [](const decoder_config& c) { return family_of(c.model_type).recurrent == recurrence::delta_net; }},
    {"linear_value_head_dim", [](const decoder_config& c) -> double { return c.delta_net.value_dim; }, 1, 1 << 12,
     false, false, [](const decoder_config& c) { return family_of(c.model_type).recurrent == recurrence::delta_net; }},
    {"mamba_n_groups, n_groups", [](const decoder_config& c) -> double { return c.delta_net.key_heads; }, 1, 1 << 12,
     false, false, is_state_space},
    {"mamba_n_heads, mamba_num_heads", [](const decoder_config& c) -> double { return c.delta_net.value_heads; }, 1,
     1 << 12, false, false, is_state_space},
    {"mamba_d_state, ssm_state_size", [](const decoder_config& c) -> double { return c.delta_net.key_dim; }, 1, 256,
     false, false, is_state_space},
    {"mamba_d_head, mamba_head_dim", [](const decoder_config& c) -> double { return c.delta_net.value_dim; }, 1,
     1 << 12, false, false, is_state_space},
    {"shared_expert_intermediate_size",
     [](const decoder_config& c) -> double { return c.shared_expert_intermediate_size; }, 1,
     config_limits::intermediate_size, false, false,
     [](const decoder_config& c) {
       return c.num_local_experts != 0 && (has_shared_expert(family_of(c.model_type)) || is_state_space(c) ||
                                           family_of(c.model_type).kinds_of_layers);
     }},
    {"shared_intermediate_size", [](const decoder_config& c) -> double { return c.shared_expert_intermediate_size; }, 1,
     config_limits::intermediate_size, false, true},
    {"altup_num_inputs", [](const decoder_config& c) -> double { return c.altup_num_inputs; }, 2, 8, false, false,
     has_streams_beside},
    {"laurel_rank", [](const decoder_config& c) -> double { return c.laurel_rank; }, 1, config_limits::hidden_size,
     false, false, has_streams_beside},
    {"activation_sparsity_pattern, activation_sparsity_scale",
     [](const decoder_config& c) -> double { return c.sparse_deviations; }, -9, 9},
    {"kv_lora_rank", [](const decoder_config& c) -> double { return c.kv_lora_rank; }, 1, config_limits::head_dim,
     false, false, has_latent},
    {"v_head_dim", [](const decoder_config& c) -> double { return c.v_head_dim; }, 1, config_limits::head_dim, false,
     false, has_latent},
    {"q_lora_rank", [](const decoder_config& c) -> double { return c.q_lora_rank; }, 1, config_limits::hidden_size,
     false, true},
    {"type_vocab_size", [](const decoder_config& c) -> double { return c.type_vocab_size; }, 1, 1 << 10, false, true},
    {"out_features of 2_Dense", [](const decoder_config& c) -> double { return c.dense_features; }, 1,
     config_limits::intermediate_size, false, true},
    {"conv_L_cache", [](const decoder_config& c) -> double { return c.conv_taps; }, 2, 8, false, false,
     [](const decoder_config& c) { return layers_with_state(c) != 0; }},
    {"rope_scaling.factor", [](const decoder_config& c) -> double { return c.rope_scaling.factor; }, 1, 0, false, false,
     [](const decoder_config& c) { return c.rope_scaling.type != rope_type::plain; }},
    {"rope_scaling.original_max_position_embeddings",
     [](const decoder_config& c) -> double { return c.rope_scaling.original_max_position_embeddings; }, 1,
     config_limits::max_position_embeddings, false, false,
     [](const decoder_config& c) { return divides_slow_angles(c) || c.rope_scaling.type == rope_type::longrope; }},
    {"rope_scaling.low_freq_factor", [](const decoder_config& c) -> double { return c.rope_scaling.low_freq_factor; },
     0, 0, true, false, [](const decoder_config& c) { return divides_slow_angles(c); }},
    {"rope_scaling.attention_factor", [](const decoder_config& c) -> double { return c.rope_scaling.attention_factor; },
     0, 0, true},
};

}  // namespace intaglio::io
