// SPDX-License-Identifier: MIT
// What a decoder-only transformer's checkpoint says of itself, with the keys of transformers' config.json.
#pragma once

#include <cstdint>
#include <string_view>

#include "intaglio/core/dtype.hpp"

namespace intaglio {

enum class architecture : std::uint8_t { bitnet, llama, gemma3 };
enum class activation : std::uint8_t { relu_squared, silu, gelu_tanh };

/// Sizes are in elements. A model type names one constant of this by reference, so that errors show its name.
struct decoder_config {
  architecture model_type = architecture::bitnet;
  std::uint32_t hidden_size = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t num_hidden_layers = 0;
  std::uint32_t num_attention_heads = 0;
  std::uint32_t num_key_value_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_position_embeddings = 0;
  float rope_theta = 10'000.f;
  float rms_norm_eps = 1e-5f;
  activation hidden_act = activation::relu_squared;
  bool tie_word_embeddings = true;
  /// Type of the inputs of ternary matrix products: i8 (absmax per token, as BitNet b1.58 was trained) or f32 (GGUF architecture "bitnet").
  dtype activation_type = dtype::i8;

  constexpr std::uint32_t q_size() const { return num_attention_heads * head_dim; }
  constexpr std::uint32_t kv_size() const { return num_key_value_heads * head_dim; }
  friend constexpr bool operator==(const decoder_config&, const decoder_config&) = default;
};

constexpr std::string_view name(architecture value) {
  return value == architecture::bitnet ? "bitnet" : value == architecture::llama ? "llama" : "gemma3";
}
/// As config.json's hidden_act spells it.
constexpr std::string_view name(activation value) {
  return value == activation::relu_squared ? "relu2" : value == activation::silu ? "silu" : "gelu_pytorch_tanh";
}

}  // namespace intaglio
