// SPDX-License-Identifier: MIT
// Maps Hugging Face tensor names of decoders with names of their own to GGUF's (llama.cpp's
// gguf-py/gguf/tensor_mapping.py).
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_encoder_names.hpp"

namespace intaglio::io {
/// Names of the tensors of StarCoder 2. @source transformers, modeling_starcoder2.py
inline constexpr own_names starcoder2_names{
    "layers.",
    {{{"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"}}},
    {{{"embed_tokens", "token_embd"}, {"norm", "output_norm"}, {"lm_head", "output"}}},
    "model."};
inline constexpr own_names phi_names{
    "layers.",
    {{{"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.dense", "attn_output"},
      {"mlp.fc1", "ffn_up"},
      {"mlp.fc2", "ffn_down"}}},
    {{{"embed_tokens", "token_embd"}, {"final_layernorm", "output_norm"}, {"lm_head", "output"}}},
    "model."};  ///< of Phi-1.5 and Phi-2
/// Names of the tensors of GPT-NeoX (Pythia). @source transformers, modeling_gpt_neox.py
inline constexpr own_names gpt_neox_names{
    "layers.",
    {{{"input_layernorm", "attn_norm"},
      {"attention.query_key_value", "attn_qkv_heads"},
      {"attention.dense", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.dense_h_to_4h", "ffn_up"},
      {"mlp.dense_4h_to_h", "ffn_down"}}},
    {{{"embed_in", "token_embd"}, {"final_layer_norm", "output_norm"}, {"embed_out", "output"}}},
    "gpt_neox."};
inline constexpr own_names falcon_names{
    "h.",
    {{{"input_layernorm", "attn_norm"},
      {"self_attention.query_key_value", "attn_qkv"},
      {"self_attention.dense", "attn_output"},
      {"mlp.dense_h_to_4h", "ffn_up"},
      {"mlp.dense_4h_to_h", "ffn_down"}}},
    {{{"word_embeddings", "token_embd"}, {"ln_f", "output_norm"}, {"lm_head", "output"}}},
    "transformer."};  ///< of Falcon
inline constexpr own_names gpt2_names{
    "h.",
    {{{"ln_1", "attn_norm"},
      {"attn.c_attn", "attn_qkv"},
      {"attn.c_proj", "attn_output"},
      {"ln_2", "ffn_norm"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"}}},
    {{{"wte", "token_embd"}, {"wpe", "position_embd"}, {"ln_f", "output_norm"}, {"lm_head", "output"}}},
    "transformer."};  ///< of GPT-2 and StarCoder

/// Whether a tensor is a mask or a table of rotations, which files of older libraries have.
constexpr bool is_decoder_buffer(std::string_view name, const family& of) {
  if (of.names == tensor_names::gpt2) return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  if (of.names != tensor_names::gpt_neox) return false;
  return name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias") ||
         name.ends_with(".attention.rotary_emb.inv_freq");
}

/// The names of a family that has names of its own; nullptr for one with Llama's.
inline const own_names* own_names_of(const family& of) {
  switch (of.names) {
    case tensor_names::starcoder2:
      return &starcoder2_names;
    case tensor_names::phi:
      return &phi_names;
    case tensor_names::gpt_neox:
      return &gpt_neox_names;
    case tensor_names::falcon:
      return &falcon_names;
    case tensor_names::gpt2:
      return &gpt2_names;
    case tensor_names::llama:
      break;
  }
  return of.layer_norms && of.encoder ? &encoder_names_of(of) : nullptr;
}

}  // namespace intaglio::io
