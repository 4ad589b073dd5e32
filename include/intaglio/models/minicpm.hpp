// SPDX-License-Identifier: MIT
// MiniCPM: a Llama whose embedding, additions to the stream and logits have factors, which depend on its width and
// depth. Source: modeling_minicpm.py of openbmb/MiniCPM-2B-sft-bf16 and MiniCPM4-0.5B; sizes of the
// published models.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// openbmb/MiniCPM-2B-sft-bf16
inline constexpr decoder_config minicpm_2b_config{.model_type = architecture::minicpm,
                                                  .hidden_size = 2304,
                                                  .intermediate_size = 5760,
                                                  .num_hidden_layers = 40,
                                                  .num_attention_heads = 36,
                                                  .num_key_value_heads = 36,
                                                  .head_dim = 64,
                                                  .vocab_size = 122'753,
                                                  .max_position_embeddings = 4096,
                                                  .rope_theta = 10'000.f,
                                                  .rms_norm_eps = 1e-5f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = true,
                                                  .embedding_multiplier = 12.f,
                                                  .residual_multiplier = 0.22135943621178653f,  // 1.4 / sqrt(40)
                                                  .logits_scaling = 9.f};
/// openbmb/MiniCPM-1B-sft-bf16
inline constexpr decoder_config minicpm_1b_config = [] {
  decoder_config c = minicpm_2b_config;
  c.hidden_size = 1536;
  c.intermediate_size = 3840;
  c.num_hidden_layers = 52;
  c.num_attention_heads = 24;
  c.num_key_value_heads = 8;
  c.vocab_size = 73'440;
  c.residual_multiplier = 0.1941450686788302f;  // 1.4 / sqrt(52)
  c.logits_scaling = 6.f;
  return c;
}();
/// openbmb/MiniCPM4-0.5B
inline constexpr decoder_config minicpm4_05b_config = [] {
  decoder_config c = minicpm_2b_config;
  c.hidden_size = 1024;
  c.intermediate_size = 4096;
  c.num_hidden_layers = 24;
  c.num_attention_heads = 16;
  c.num_key_value_heads = 2;
  c.vocab_size = 73'448;
  c.max_position_embeddings = 32'768;
  c.rope_scaling = {.type = rope_type::longrope, .original_max_position_embeddings = 32'768};
  c.rope_factors.short_factor = {1.0004360675811768f, 1.0668443441390991f, 1.1631425619125366f, 1.3025742769241333f,
                                 1.5040205717086792f, 1.7941505908966064f, 2.2101221084594727f, 2.802666664123535f,
                                 3.6389970779418945f, 4.804192543029785f,  6.39855432510376f,   8.527148246765137f,
                                 11.277542114257812f, 14.684998512268066f, 18.69317054748535f,  23.13019371032715f,
                                 27.72362518310547f,  32.1606559753418f,   36.168827056884766f, 39.57627868652344f,
                                 42.32667541503906f,  44.45526885986328f,  46.04962921142578f,  47.21482849121094f,
                                 48.05115509033203f,  48.64370346069336f,  49.05967712402344f,  49.34980392456055f,
                                 49.551246643066406f, 49.69068145751953f,  49.78697967529297f,  49.85338592529297f};
  c.rope_factors.long_factor = c.rope_factors.short_factor;
  c.residual_multiplier = 0.28577380332470415f;  // 1.4 / sqrt(24)
  c.logits_scaling = 4.f;
  return c;
}();
/// openbmb/MiniCPM-2B-sft-bf16 with matrices of codec W.
template <dtype W = dtype::bf16>
struct minicpm_2b : llama<minicpm_2b_config, W> {
  static constexpr std::string_view name = "minicpm_2b";
};
/// openbmb/MiniCPM-1B-sft-bf16 with matrices of codec W.
template <dtype W = dtype::bf16>
struct minicpm_1b : llama<minicpm_1b_config, W> {
  static constexpr std::string_view name = "minicpm_1b";
};
/// openbmb/MiniCPM4-0.5B with matrices of codec W.
template <dtype W = dtype::bf16>
struct minicpm4_05b : llama<minicpm4_05b_config, W> {
  static constexpr std::string_view name = "minicpm4_05b";
};

}  // namespace intaglio::models
