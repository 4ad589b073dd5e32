// SPDX-License-Identifier: MIT
// Nemotron-H: each layer is Mamba-2, attention without rotation, an FFN without a gate, or a mixture of such FFNs with
// a shared expert. Source: transformers, models/nemotron_h; values from the config.json of each published model.
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
#include "intaglio/graph/layers/shared_expert.hpp"
#include "intaglio/graph/layers/ungated_ffn.hpp"

namespace intaglio::models {

/// The kinds of layers: 0 recurrent, 1 attention, 2 an FFN, and the next number for mixtures of experts.
constexpr layer_pattern nemotron_h_pattern(const decoder_config& c) {
  std::array<std::uint8_t, layer_pattern::max_period> kinds{};
  const std::uint32_t layers = c.num_hidden_layers < kinds.size() ? c.num_hidden_layers : layer_pattern::max_period;
  const std::uint8_t mixture = c.has_dense_layers() ? 3 : 2;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    kinds[layer] = c.recurrent_layers.has(layer) ? 0
                   : !c.ffn_layers.has(layer)    ? 1
                   : c.has_experts(layer)        ? mixture
                                                 : 2;
  return layer_pattern::of(std::span<const std::uint8_t>(kinds).first(layers));
}

/// A mixture layer: x + mixture(norm(x)) + shared(norm(x)). Experts and shared expert have two matrices each; the
/// router is logistic.
/// @shape  x, out: [tokens, hidden_size] f32
/// @source transformers, NemotronHMOE
template <dtype W>
struct nemotron_h_mixture {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const moe experts{linear<dtype::f32>{"ffn_gate_inp.weight", c.hidden_size, c.num_local_experts},
                      ungated_experts<W>{c.hidden_size, c.intermediate_size, c.num_local_experts, c.hidden_act},
                      c.num_experts_per_tok, !c.norm_topk_prob, router_gate_of(c)};
    const ungated_ffn<W> shared{
        c.hidden_size, c.shared_expert_intermediate_size, c.hidden_act, {}, "ffn_up_shexp.weight"};
    return moe_beside_shared<W>(rms_norm{"attn_norm.weight", c.rms_norm_eps}, experts, shared).forward(t, x);
  }
};

/// The blocks of a Nemotron-H, of up to four kinds.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W>
struct nemotron_h_blocks {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    const layer_pattern pattern = nemotron_h_pattern(c);
    const std::uint32_t dense = c.num_local_experts == 0 ? c.intermediate_size
                                : c.has_dense_layers()   ? c.dense_intermediate_size
                                                         : 0;
    const rms_norm norm{"attn_norm.weight", c.rms_norm_eps};
    return t.repeat_kinds(x, c.num_hidden_layers, pattern, pattern.kinds(), [&](std::uint8_t kind, ir::value_id in) {
      if (kind == 0)
        return residual(norm | mamba2<W>{c} | linear<W>{"ssm_out.weight", c.delta_net.value_size(), c.hidden_size})
            .forward(t, in);
      if (kind == 1)
        return residual(norm | self_attention<W>{c} | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size})
            .forward(t, in);
      if (kind == 3 || dense == 0) return nemotron_h_mixture<W>{&c}.forward(t, in);
      return residual(norm | ungated_ffn<W>{c.hidden_size, dense, c.hidden_act} |
                      linear<W>{"ffn_down.weight", dense, c.hidden_size})
          .forward(t, in);
    });
  }
};

/// The layers of a Nemotron-H, for a model type and for plans that are made at run time. `c` must outlive them.
template <dtype W>
constexpr auto nemotron_h_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | nemotron_h_blocks<W>{&c}
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct nemotron_h {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return nemotron_h_graph<W>(c, H, D); }
};

/// Puts the layers of a hybrid_override_pattern into their sets. The pattern has one letter for each layer: M, *, - or
/// E.
constexpr void set_nemotron_h_layers(decoder_config& c, std::string_view pattern) {
  c.num_hidden_layers = static_cast<std::uint32_t>(pattern.size());
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    if (pattern[layer] == 'M') c.recurrent_layers.add(layer);
    if (pattern[layer] == '-' || pattern[layer] == 'E') c.ffn_layers.add(layer);
    if (pattern[layer] == 'E') c.expert_layers.add(layer);
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
/// nvidia/NVIDIA-Nemotron-Nano-12B-v2
inline constexpr decoder_config nemotron_nano_12b_v2_config = [] {
  decoder_config c = nemotron_nano_9b_v2_config;
  c.hidden_size = 5120;
  c.intermediate_size = 20'480;
  c.recurrent_layers = c.ffn_layers = {};
  set_nemotron_h_layers(c, "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-");
  return c;
}();
/// nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
inline constexpr decoder_config nemotron_3_nano_config = [] {
  decoder_config c = nemotron_h_8b_config;
  c.hidden_size = 2688;
  c.intermediate_size = 1856;
  c.num_key_value_heads = 2;
  c.max_position_embeddings = 262'144;
  c.delta_net.value_heads = 64;
  c.delta_net.value_dim = 64;
  c.num_local_experts = 128;
  c.num_experts_per_tok = 6;
  c.routed_scaling_factor = 2.5f;
  c.use_expert_bias = true;
  c.shared_expert_intermediate_size = 3712;
  c.recurrent_layers = c.ffn_layers = {};
  set_nemotron_h_layers(c, "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME");
  return c;
}();
/// nvidia/Nemotron-H-8B-Base-8K with matrices of codec W.
template <dtype W = dtype::bf16>
struct nemotron_h_8b : nemotron_h<nemotron_h_8b_config, W> {
  static constexpr std::string_view name = "nemotron_h_8b";
};
/// nvidia/NVIDIA-Nemotron-Nano-9B-v2 with matrices of codec W.
template <dtype W = dtype::bf16>
struct nemotron_nano_9b_v2 : nemotron_h<nemotron_nano_9b_v2_config, W> {
  static constexpr std::string_view name = "nemotron_nano_9b_v2";
};
/// nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 with matrices of codec W.
template <dtype W = dtype::bf16>
struct nemotron_3_nano : nemotron_h<nemotron_3_nano_config, W> {
  static constexpr std::string_view name = "nemotron_3_nano";
};
/// nvidia/NVIDIA-Nemotron-Nano-12B-v2 with matrices of codec W.
template <dtype W = dtype::bf16>
struct nemotron_nano_12b_v2 : nemotron_h<nemotron_nano_12b_v2_config, W> {
  static constexpr std::string_view name = "nemotron_nano_12b_v2";
};

}  // namespace intaglio::models
