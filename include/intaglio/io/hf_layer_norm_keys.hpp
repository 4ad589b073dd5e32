// SPDX-License-Identifier: MIT
// The keys of config.json of decoders with LayerNorms. Key names: transformers' configuration classes of these
// families, and published files.
#pragma once

#include "intaglio/io/hf_keys.hpp"

namespace intaglio::io {

/// Keys beside those of hf_key_rules.
inline constexpr config_key_rule hf_layer_norm_key_rules[] = {
    {"logit_scale", config_key_use::read, "cohere cohere2"},
    {"layer_switch", config_key_use::read, "cohere2"},
    {"order_of_interleaved_layers", config_key_use::read, "cohere2"},
    {"rotary_pct", config_key_use::read, "cohere2 gpt_neox"},
    {"use_embedding_sharing", config_key_use::read, "cohere2"},
    {"use_gated_activation", config_key_use::read, "cohere2"},
    {"use_parallel_block", config_key_use::read, "cohere2"},
    {"use_parallel_embedding", config_key_use::harmless},  // how matrices are split among devices
    {"norm_epsilon", config_key_use::read, "starcoder2"},
    {"mlp_type", config_key_use::read, "starcoder2"},
    {"use_qkv_bias", config_key_use::read, "stablelm bailing_moe bailing_moe_v2"},
    {"use_parallel_residual", config_key_use::read, "stablelm gpt_neox"},
    // Keys of Falcon.
    {"num_kv_heads", config_key_use::read, "falcon"},
    {"multi_query", config_key_use::read, "falcon gpt_bigcode"},
    {"parallel_attn", config_key_use::read, "falcon"},
    {"new_decoder_architecture", config_key_use::read, "falcon"},
    {"bias", config_key_use::own, "falcon"},
    {"ffn_hidden_size", config_key_use::read, "falcon"},
    {"activation", config_key_use::read, "falcon"},
    {"num_ln_in_parallel_attn", config_key_use::read, "falcon"},
    {"apply_residual_connection_post_layernorm", config_key_use::off},
    {"n_ctx", config_key_use::harmless},
    // Keys of GPT-BigCode about how programs run it.
    {"attention_softmax_in_fp32", config_key_use::harmless},
    {"scale_attention_softmax_in_fp32", config_key_use::harmless},
    {"inference_runner", config_key_use::harmless},
    {"max_batch_size", config_key_use::harmless},
    {"max_sequence_length", config_key_use::harmless},
    {"pad_key_length", config_key_use::harmless},
    {"pre_allocate_kv_cache", config_key_use::harmless},
    {"validate_runner_input", config_key_use::harmless},
    {"gradient_checkpointing_func", config_key_use::harmless},
    {"qk_layernorm", config_key_use::off},
};

}  // namespace intaglio::io
