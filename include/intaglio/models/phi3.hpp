// SPDX-License-Identifier: MIT
// Phi-3 and Phi-4: a Llama whose files hold q, k and v as one matrix, and gate and up as one. In some models only part
// of a head's channels are rotated, with factors that depend on the context. Source: transformers, models/phi3;
// Phi-4-mini Technical Report 2025; values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// microsoft/phi-4
inline constexpr decoder_config phi_4_config{.model_type = architecture::phi3,
                                             .hidden_size = 5120,
                                             .intermediate_size = 17'920,
                                             .num_hidden_layers = 40,
                                             .num_attention_heads = 40,
                                             .num_key_value_heads = 10,
                                             .head_dim = 128,
                                             .vocab_size = 100'352,
                                             .max_position_embeddings = 16'384,
                                             .rope_theta = 250'000.f,
                                             .rms_norm_eps = 1e-5f,
                                             .hidden_act = activation::silu,
                                             .tie_word_embeddings = false};
/// microsoft/phi-4 with matrices of codec W.
template <dtype W = dtype::bf16>
struct phi_4 : llama<phi_4_config, W> {
  static constexpr std::string_view name = "phi_4";
};
/// microsoft/Phi-4-mini-instruct, whose window of 262,144 is longer than its context
inline constexpr decoder_config phi_4_mini_config{
    .model_type = architecture::phi3,
    .hidden_size = 3072,
    .intermediate_size = 8192,
    .num_hidden_layers = 32,
    .num_attention_heads = 24,
    .num_key_value_heads = 8,
    .head_dim = 128,
    .vocab_size = 200'064,
    .max_position_embeddings = 131'072,
    .rope_theta = 10'000.f,
    .rope_scaling = {.type = rope_type::longrope,
                     .original_max_position_embeddings = 4096,
                     .attention_factor = 1.1902380714238083f},  // sqrt(1 + ln(131072 / 4096) / ln 4096)
    .rope_factors = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                     {1.f,          1.118320672f, 1.250641126f, 1.398617824f, 1.564103225f, 1.74916897f,  1.956131817f,
                      2.187582649f, 2.446418898f, 2.735880826f, 3.059592084f, 3.421605075f, 3.826451687f, 4.279200023f,
                      4.785517845f, 5.351743533f, 5.984965424f, 6.693110555f, 7.485043894f, 8.370679318f, 9.36110372f,
                      10.4687158f,  11.70738129f, 13.09260651f, 14.64173252f, 16.37415215f, 18.31155283f, 20.47818807f,
                      22.90118105f, 25.61086418f, 28.64115884f, 32.03f,       32.1f,        32.13f,       32.23f,
                      32.6f,        32.61f,       32.64f,       32.66f,       32.7f,        32.71f,       32.93f,
                      32.97f,       33.28f,       33.49f,       33.5f,        44.16f,       47.77f}},
    .rotary_dim = 96,
    .rms_norm_eps = 1e-5f,
    .hidden_act = activation::silu,
    .tie_word_embeddings = true};
/// microsoft/Phi-4-mini-instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct phi_4_mini : llama<phi_4_mini_config, W> {
  static constexpr std::string_view name = "phi_4_mini";
};
/// microsoft/Phi-3.5-mini-instruct, whose window of 262,144 is longer than its context
inline constexpr decoder_config phi_35_mini_config = [] {
  decoder_config c = phi_4_mini_config;
  c.num_attention_heads = 32;
  c.num_key_value_heads = 32;
  c.head_dim = 96;
  c.vocab_size = 32'064;
  c.rope_factors = {{1.f,        1.02f,      1.03f,      1.03f,      1.05f,      1.05f,      1.05f,      1.05f,
                     1.05f,      1.0699999f, 1.0999999f, 1.1099999f, 1.1599998f, 1.1599998f, 1.1699998f, 1.2899998f,
                     1.3399998f, 1.6799998f, 1.7899998f, 1.8199998f, 1.8499998f, 1.8799998f, 1.9099997f, 1.9399997f,
                     1.9899997f, 2.0199997f, 2.0199997f, 2.0199997f, 2.0199997f, 2.0199997f, 2.0199997f, 2.0299997f,
                     2.0299997f, 2.0299997f, 2.0299997f, 2.0299997f, 2.0299997f, 2.0299997f, 2.0299997f, 2.0299997f,
                     2.0799997f, 2.0899997f, 2.1899996f, 2.2199996f, 2.5899994f, 2.7299995f, 2.7499995f, 2.8399994f},
                    {1.08f,      1.11f,      1.14f,      1.34f,      1.5899999f, 1.6f,       1.62f,      2.6200001f,
                     3.23f,      3.23f,      4.79f,      7.4f,       7.7000003f, 9.09f,      12.2f,      17.67f,
                     24.460001f, 28.570002f, 30.420002f, 30.840002f, 32.590004f, 32.930004f, 42.320004f, 44.960003f,
                     50.340004f, 50.450005f, 57.550003f, 57.930004f, 58.210003f, 60.140003f, 62.610004f, 62.620003f,
                     62.710003f, 63.140003f, 63.140003f, 63.770004f, 63.930004f, 63.960003f, 63.97f,     64.03f,
                     64.07f,     64.08f,     64.12f,     64.41f,     64.48f,     64.51f,     64.53f,     64.84f}};
  c.rotary_dim = 0;
  c.tie_word_embeddings = false;
  return c;
}();
/// microsoft/Phi-3.5-mini-instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct phi_35_mini : llama<phi_35_mini_config, W> {
  static constexpr std::string_view name = "phi_35_mini";
};

}  // namespace intaglio::models
