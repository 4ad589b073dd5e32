// SPDX-License-Identifier: MIT
// What the conformance set's tiny Llama and Gemma 3 are.
#pragma once

#include "intaglio/core/decoder_config.hpp"

/// conformance/llama-tiny
inline constexpr intaglio::decoder_config llama_tiny{.model_type = intaglio::architecture::llama,
                                                     .hidden_size = 256,
                                                     .intermediate_size = 768,
                                                     .num_hidden_layers = 3,
                                                     .num_attention_heads = 8,
                                                     .num_key_value_heads = 2,
                                                     .head_dim = 32,
                                                     .vocab_size = 1024,
                                                     .max_position_embeddings = 1024,
                                                     .rope_theta = 500'000.f,
                                                     .hidden_act = intaglio::activation::silu,
                                                     .tie_word_embeddings = false};
/// conformance/gemma3-tiny
inline constexpr intaglio::decoder_config gemma3_tiny{.model_type = intaglio::architecture::gemma3,
                                                      .hidden_size = 256,
                                                      .intermediate_size = 512,
                                                      .num_hidden_layers = 7,
                                                      .num_attention_heads = 4,
                                                      .num_key_value_heads = 1,
                                                      .head_dim = 64,
                                                      .vocab_size = 1024,
                                                      .max_position_embeddings = 1024,
                                                      .rope_theta = 1e6f,
                                                      .rope_scaling = {intaglio::rope_type::linear, 8.f},
                                                      .rms_norm_eps = 1e-6f,
                                                      .hidden_act = intaglio::activation::gelu_tanh,
                                                      .sliding_window = 32,
                                                      .sliding_window_pattern = 6,
                                                      .rope_local_base_freq = 1e4f};
