// SPDX-License-Identifier: MIT
// Gemma 4, text: windowed and global layers, whose heads differ in width and number; values normalised without a
// weight; a factor for each layer; bounded logits. The small models have layers that share keys and values, and
// per-layer embeddings. The model 26B-A4B has experts beside each FFN. Norm weights are plain. Source: transformers,
// models/gemma4; values from the published config.json.
#pragma once

#include "intaglio/models/gemma3.hpp"

#include "intaglio/core/square_root.hpp"
#include "intaglio/graph/layers/layer_inputs.hpp"
#include "intaglio/graph/layers/moe.hpp"

namespace intaglio::models {

/// The attention of a layer of Gemma 4: q, attention, and k and v where the layer has its own.
/// @shape  x: [tokens, hidden_size]; out: [tokens, num_attention_heads * head_dim] f32
template <dtype W>
struct gemma4_attention {
  const decoder_config* config;  ///< of the model
  bool windowed, shares;         ///< the kind of layer: it sees a window; it uses the keys and values of an earlier
                                 ///< layer
  float eps;                     ///< epsilon of the norms of heads

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const decoder_config& c = *config;
    const std::uint32_t wide = c.head_dim_of(windowed), heads = c.num_attention_heads,
                        kv = c.key_value_heads_of(windowed);
    const rope_parameters rope = windowed ? c.local_rope() : c.rope();
    ir::value_id q = t.matmul(x, "attn_q.weight", heads * wide, c.hidden_size, W);
    q = t.rope(t.head_norm(q, "attn_q_norm.weight", eps, wide), "attn_q", wide, rope);
    if (!shares) {
      const ir::value_id k = t.matmul(x, "attn_k.weight", kv * wide, c.hidden_size, W);
      const ir::value_id v =
          c.attention_k_eq_v && !windowed ? k : t.matmul(x, "attn_v.weight", kv * wide, c.hidden_size, W);
      const ir::value_id keys = t.rope(t.head_norm(k, "attn_k_norm.weight", eps, wide), "attn_k", wide, rope);
      t.cache_write(keys, t.head_norm(v, "", eps, wide), kv, wide, window());
    }
    return t.attention(q, heads, kv, wide, c.attention_multiplier, window());
  }
  /// Positions that a token sees; 0: all.
  constexpr std::uint32_t window() const { return windowed ? config->sliding_window : 0; }
};

/// The FFN beside experts: norm(ffn(norm(x))) + norm(experts(norm(x))). The router has its own norm, and each expert a
/// factor.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W, template <dtype, dtype> class FFN>
struct gemma4_mixture {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const std::uint32_t hidden = c.hidden_size, inner = c.shared_expert_intermediate_size;
    const float eps = c.rms_norm_eps;
    // clang-format off
    const auto dense = rms_norm{"ffn_norm.weight", eps}
                     | FFN<W, input_type<W>>{hidden, inner, c.hidden_act};
    const auto router = rms_norm{"ffn_gate_inp.scale", eps, 1 / square_root(static_cast<float>(hidden))}
                      | linear<dtype::f32>{"ffn_gate_inp.weight", hidden, c.num_local_experts};
    // clang-format on
    // Steps of the FFN are next to steps of the mixture that do not wait for them.
    const ir::value_id gated = dense.forward(t, x);
    const ir::value_id choice =
        t.route(router.forward(t, x), "ffn_gate_inp.weight", c.num_experts_per_tok, false, "ffn_down_exps.scale");
    const ir::value_id down = linear<W>{"ffn_down.weight", inner, hidden}.forward(t, gated);
    const ir::value_id given = gated_experts<W>{hidden, c.intermediate_size, c.num_local_experts, c.hidden_act}.forward(
        t, t.rms_norm(x, "pre_ffw_norm_2.weight", eps), choice);
    const ir::value_id own = t.rms_norm(down, "post_ffw_norm_1.weight", eps);
    return t.add(own, t.rms_norm(t.weigh(given, choice, "ffn_down_exps.weight"), "post_ffw_norm_2.weight", eps));
  }
};

/// A block of a Gemma 4. @shape  x, out: [tokens, hidden_size] f32; inputs: of layer_inputs, or ir::none
template <dtype W, template <dtype, dtype> class FFN>
constexpr ir::value_id gemma4_block(ir::trace& t, const decoder_config& c, ir::value_id x, ir::value_id inputs,
                                    bool windowed, bool shares) {
  using namespace intaglio::graph;
  const std::uint32_t inner = c.intermediate_size_of(shares);
  // clang-format off
  const auto attention =
      residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
             | gemma4_attention<W>{&c, windowed, shares, c.rms_norm_eps}
             | linear<W>{"attn_output.weight", c.num_attention_heads * c.head_dim_of(windowed), c.hidden_size}
             | rms_norm{"post_attention_norm.weight", c.rms_norm_eps});
  const auto ffn =
      residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps}
             | FFN<W, input_type<W>>{c.hidden_size, inner, c.hidden_act}
             | linear<W>{"ffn_down.weight", inner, c.hidden_size}
             | rms_norm{"post_ffw_norm.weight", c.rms_norm_eps});
  const auto mixture =
      residual(gemma4_mixture<W, FFN>{&c}
             | rms_norm{"post_ffw_norm.weight", c.rms_norm_eps});
  // clang-format on
  x = attention.forward(t, x);
  x = c.num_local_experts != 0 ? mixture.forward(t, x) : ffn.forward(t, x);
  if (inputs != ir::none)
    x = layer_input_block<W>{c.hidden_size, c.num_hidden_layers, c.hidden_size_per_layer_input, c.rms_norm_eps}.forward(
        t, x, inputs);
  return t.scale(x, "layer_output_scale.weight");
}

/// The blocks of a Gemma 4, of up to four kinds: windowed or not, with their own keys and values or an earlier
/// layer's.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma4_blocks {
  const decoder_config* config;  ///< of the model
  dtype table, projection;       ///< types of the per-layer embeddings and of the projection to them

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const decoder_config& c = *config;
    ir::value_id inputs = ir::none;
    if (c.hidden_size_per_layer_input != 0)
      inputs = graph::layer_inputs{c.vocab_size,   c.hidden_size, c.num_hidden_layers, c.hidden_size_per_layer_input,
                                   c.rms_norm_eps, table,         projection}
                   .forward(t, x);
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    const auto kinds = numbered_kinds<std::uint8_t>::of(c.num_hidden_layers, [&](std::uint32_t layer) {
      return static_cast<std::uint8_t>((c.is_windowed(layer) ? 1 : 0) + (c.shares_kv(layer) ? 2 : 0));
    });
    return t.repeat_kinds(x, c.num_hidden_layers, kinds.pattern, kinds.count, [&](std::uint8_t kind, ir::value_id in) {
      return gemma4_block<W, FFN>(t, c, in, inputs, (kinds.traits[kind] & 1) != 0, (kinds.traits[kind] & 2) != 0);
    });
  }
};

/// The layers of a Gemma 4, for a model type and for plans that are made at run time. `c` must outlive them.
/// @param projection how the device holds the projection to per-layer embeddings
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto gemma4_graph(const decoder_config& c, dtype embedding_type, dtype projection = W) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   embedding_scale(c.hidden_size, embedding_type)}
       | gemma4_blocks<W, FFN>{&c, embedding_type, projection}
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type, c.final_logit_softcapping};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam D of the embeddings and the head  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size),
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma4 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return gemma4_graph<W, FFN>(c, D); }
};

/// google/gemma-4-E2B-it, its text model.
inline constexpr decoder_config gemma4_e2b_config{.model_type = architecture::gemma4,
                                                  .hidden_size = 1536,
                                                  .intermediate_size = 6144,
                                                  .num_hidden_layers = 35,
                                                  .num_attention_heads = 8,
                                                  .num_key_value_heads = 1,
                                                  .head_dim = 256,
                                                  .vocab_size = 262'144,
                                                  .max_position_embeddings = 131'072,
                                                  .rope_theta = 1'000'000.f,
                                                  .rms_norm_eps = 1e-6f,
                                                  .hidden_act = activation::gelu_tanh,
                                                  .sliding_window = 512,
                                                  .sliding_window_pattern = 5,
                                                  .rope_local_base_freq = 10'000.f,
                                                  .attention_multiplier = 1.f,
                                                  .final_logit_softcapping = 30.f,
                                                  .global_head_dim = 512,
                                                  .global_turning_pairs = 64,
                                                  .num_kv_shared_layers = 20,
                                                  .shared_intermediate_size = 12'288,
                                                  .hidden_size_per_layer_input = 256};
/// google/gemma-4-E2B-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma4_e2b : gemma4<gemma4_e2b_config, W> {
  static constexpr std::string_view name = "gemma4_e2b";
};
/// google/gemma-4-E4B-it, its text model.
inline constexpr decoder_config gemma4_e4b_config{.model_type = architecture::gemma4,
                                                  .hidden_size = 2560,
                                                  .intermediate_size = 10'240,
                                                  .num_hidden_layers = 42,
                                                  .num_attention_heads = 8,
                                                  .num_key_value_heads = 2,
                                                  .head_dim = 256,
                                                  .vocab_size = 262'144,
                                                  .max_position_embeddings = 131'072,
                                                  .rope_theta = 1'000'000.f,
                                                  .rms_norm_eps = 1e-6f,
                                                  .hidden_act = activation::gelu_tanh,
                                                  .sliding_window = 512,
                                                  .sliding_window_pattern = 6,
                                                  .rope_local_base_freq = 10'000.f,
                                                  .attention_multiplier = 1.f,
                                                  .final_logit_softcapping = 30.f,
                                                  .global_head_dim = 512,
                                                  .global_turning_pairs = 64,
                                                  .num_kv_shared_layers = 18,
                                                  .hidden_size_per_layer_input = 256};
/// google/gemma-4-E4B-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma4_e4b : gemma4<gemma4_e4b_config, W> {
  static constexpr std::string_view name = "gemma4_e4b";
};
/// google/gemma-4-31B-it, its text model.
inline constexpr decoder_config gemma4_31b_config{.model_type = architecture::gemma4,
                                                  .hidden_size = 5376,
                                                  .intermediate_size = 21'504,
                                                  .num_hidden_layers = 60,
                                                  .num_attention_heads = 32,
                                                  .num_key_value_heads = 16,
                                                  .head_dim = 256,
                                                  .vocab_size = 262'144,
                                                  .max_position_embeddings = 262'144,
                                                  .rope_theta = 1'000'000.f,
                                                  .rms_norm_eps = 1e-6f,
                                                  .hidden_act = activation::gelu_tanh,
                                                  .sliding_window = 1024,
                                                  .sliding_window_pattern = 6,
                                                  .rope_local_base_freq = 10'000.f,
                                                  .attention_multiplier = 1.f,
                                                  .final_logit_softcapping = 30.f,
                                                  .global_head_dim = 512,
                                                  .num_global_key_value_heads = 4,
                                                  .global_turning_pairs = 64,
                                                  .attention_k_eq_v = true};
/// google/gemma-4-31B-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma4_31b : gemma4<gemma4_31b_config, W> {
  static constexpr std::string_view name = "gemma4_31b";
};

/// google/gemma-4-26B-A4B-it, its text model; intermediate_size is config.json's moe_intermediate_size, and
/// shared_expert_intermediate_size its intermediate_size.
inline constexpr decoder_config gemma4_26b_a4b_config = [] {
  decoder_config c = gemma4_31b_config;
  c.hidden_size = 2816;
  c.intermediate_size = 704;
  c.num_hidden_layers = 30;
  c.num_attention_heads = 16;
  c.num_key_value_heads = 8;
  c.num_global_key_value_heads = 2;
  c.num_local_experts = 128;
  c.num_experts_per_tok = 8;
  c.shared_expert_intermediate_size = 2112;
  return c;
}();
/// google/gemma-4-26B-A4B-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma4_26b_a4b : gemma4<gemma4_26b_a4b_config, W> {
  static constexpr std::string_view name = "gemma4_26b_a4b";
};

}  // namespace intaglio::models
