// SPDX-License-Identifier: MIT
// Nemotron-H: each layer is Mamba-2, attention without rotation, or an FFN without a gate. Source: transformers,
// models/nemotron_h; values from the config.json that each model was published with.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include <array>
#include <string_view>

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/mamba2.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/ungated_ffn.hpp"

namespace intaglio::models {

/// Kinds of layers: 0 recurrent, 1 attention, 2 an FFN.
constexpr layer_pattern nemotron_h_pattern(const decoder_config& c) {
  std::array<std::uint8_t, layer_pattern::max_period> kinds{};
  const std::uint32_t layers = c.num_hidden_layers < kinds.size() ? c.num_hidden_layers : layer_pattern::max_period;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    kinds[layer] = c.recurrent_layers.has(layer) ? 0 : c.ffn_layers.has(layer) ? 2 : 1;
  return layer_pattern::of(std::span<const std::uint8_t>(kinds).first(layers));
}

/// The layers of a Nemotron-H, for a model type and for plans that are made at run time.
template <dtype W>
constexpr auto nemotron_h_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const rms_norm norm{"attn_norm.weight", c.rms_norm_eps};
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers, nemotron_h_pattern(c),
             residual(norm
                    | mamba2<W>{c}
                    | linear<W>{"ssm_out.weight", c.delta_net.value_size(), c.hidden_size}),
             residual(norm
                    | self_attention<W>{c}
                    | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size}),
             residual(norm
                    | ungated_ffn<W>{c.hidden_size, c.intermediate_size, c.hidden_act}
                    | linear<W>{"ffn_down.weight", c.intermediate_size, c.hidden_size}))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct nemotron_h {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return nemotron_h_graph<W>(c, H, D); }
};

/// Puts the layers of a hybrid_override_pattern, a letter a layer, into their sets: M, * and -.
constexpr void set_nemotron_h_layers(decoder_config& c, std::string_view pattern) {
  c.num_hidden_layers = static_cast<std::uint32_t>(pattern.size());
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    if (pattern[layer] == 'M') c.recurrent_layers.add(layer);
    if (pattern[layer] == '-') c.ffn_layers.add(layer);
  }
}

/// nvidia/Nemotron-H-8B-Base-8K
inline constexpr decoder_config nemotron_h_8b_config = [] {
  decoder_config c{.model_type = architecture::nemotron_h,
                   .hidden_size = 4096,
                   .intermediate_size = 21'504,
                   .num_attention_heads = 32,
                   .num_key_value_heads = 8,
                   .head_dim = 128,
                   .vocab_size = 131'072,
                   .max_position_embeddings = 8192,
                   .no_rope_layer_interval = 1,
                   .rms_norm_eps = 1e-5f,
                   .hidden_act = activation::relu_squared,
                   .tie_word_embeddings = false,
                   .conv_taps = 4,
                   .delta_net = {8, 128, 128, 64}};
  set_nemotron_h_layers(c, "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-");
  return c;
}();
/// nvidia/NVIDIA-Nemotron-Nano-9B-v2
inline constexpr decoder_config nemotron_nano_9b_v2_config = [] {
  decoder_config c = nemotron_h_8b_config;
  c.hidden_size = 4480;
  c.intermediate_size = 15'680;
  c.num_attention_heads = 40;
  c.max_position_embeddings = 131'072;
  c.delta_net.value_dim = 80;
  c.recurrent_layers = c.ffn_layers = {};
  set_nemotron_h_layers(c, "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-");
  return c;
}();
template <dtype W = dtype::bf16>
struct nemotron_h_8b : nemotron_h<nemotron_h_8b_config, W> {
  static constexpr std::string_view name = "nemotron_h_8b";
};
template <dtype W = dtype::bf16>
struct nemotron_nano_9b_v2 : nemotron_h<nemotron_nano_9b_v2_config, W> {
  static constexpr std::string_view name = "nemotron_nano_9b_v2";
};

}  // namespace intaglio::models
