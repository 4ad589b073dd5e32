// SPDX-License-Identifier: MIT
// Gemma 3n, text. There are several parallel streams; each layer computes one and predicts and corrects the others
// (AltUp). A low-rank branch is beside attention (LAuReL). FFNs of some layers keep only large features. Layers have
// embeddings of their own, and some share keys and values. Norm weights are plain. Source: transformers,
// models/gemma3n; values from the published config.json.
#pragma once

#include "intaglio/models/gemma4.hpp"

namespace intaglio::models {

/// sqrt(1/2), the factor of each part of a layer's sum. The sum is then (x + attention + laurel) / sqrt(2).
inline constexpr float gemma3n_half_root = 0.70710678f;

/// The type of a LAuReL matrix: the other matrices' type, or f16 where its columns are no whole number of blocks.
constexpr dtype laurel_type(dtype others, std::uint32_t columns) {
  return columns % info(others).block_elements == 0 ? others : dtype::f16;
}

/// The attention sublayer with its LAuReL branch: (x + attention + laurel) / sqrt(2). Its input is x / sqrt(2), and the
/// branches are divided in their norms; a norm of x / sqrt(2) equals a norm of x with half its epsilon. laurel is n +
/// rms(right(left(n))) of the normalised input n.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W>
struct gemma3n_mixer {
  const decoder_config* config;  ///< of the model
  bool windowed;                 ///< whether attention sees a window of positions
  bool shares;                   ///< whether the layer reads the keys and values of an earlier layer

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const decoder_config& c = *config;
    const float eps = c.rms_norm_eps / 2, part = gemma3n_half_root;
    const auto normed = [&] { return t.rms_norm(x, "attn_norm.weight", eps, part); };
    const ir::value_id n = normed();
    const ir::value_id left = t.matmul(n, "laurel_l.weight", c.laurel_rank, c.hidden_size, W);
    const ir::value_id heads = gemma4_attention<W>{config, windowed, shares, eps}.forward(t, n);
    const ir::value_id attention =
        t.matmul(heads, "attn_output.weight", c.hidden_size, c.num_attention_heads * c.head_dim, W);
    const ir::value_id right =
        t.matmul(left, "laurel_r.weight", c.hidden_size, c.laurel_rank, laurel_type(W, c.laurel_rank));
    ir::value_id sum = t.add(x, normed());
    sum = t.add(sum, t.rms_norm(right, "laurel_post_norm.weight", eps, part));
    return t.add(sum, t.rms_norm(attention, "post_attention_norm.weight", c.rms_norm_eps, part));
  }
};

/// A gated unit that keeps only the features whose gate is far above the mean of all gates.
/// @shape  x: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
template <dtype W>
struct sparse_ffn {
  std::uint32_t hidden_size;        ///< columns of gate and up
  std::uint32_t intermediate_size;  ///< features: rows of gate and up
  activation act;                   ///< activation of the gates that are kept
  float deviations;                 ///< standard deviations above the mean at which a gate is kept

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id gate = t.matmul(x, "ffn_gate.weight", intermediate_size, hidden_size, W);
    const ir::value_id up = t.matmul(x, "ffn_up.weight", intermediate_size, hidden_size, W);
    return t.gated(t.shrink(gate, deviations), up, act);
  }
};

/// The kind of a layer of Gemma 3n.
struct gemma3n_kind {
  bool windowed;  ///< attention sees a window of positions
  bool shares;    ///< keys and values come from an earlier layer
  bool sparse;    ///< the FFN is a sparse_ffn
  friend constexpr bool operator==(const gemma3n_kind&, const gemma3n_kind&) = default;
};

/// A block of a Gemma 3n. @shape  s, out: [tokens, altup_num_inputs, hidden_size] f32; inputs: of layer_inputs
template <dtype W, template <dtype, dtype> class FFN>
constexpr ir::value_id gemma3n_block(ir::trace& t, const decoder_config& c, ir::value_id s, ir::value_id inputs,
                                     const gemma3n_kind& kind) {
  using namespace intaglio::graph;
  const std::uint32_t streams = c.altup_num_inputs, inner = c.intermediate_size;
  const float eps = c.rms_norm_eps;
  // clang-format off
  const auto ffn =
      residual(rms_norm{"ffn_norm.weight", eps}
             | FFN<W, input_type<W>>{c.hidden_size, inner, c.hidden_act}
             | linear<W>{"ffn_down.weight", inner, c.hidden_size}
             | rms_norm{"post_ffw_norm.weight", eps});
  const auto sparse =
      residual(rms_norm{"ffn_norm.weight", eps}
             | sparse_ffn<W>{c.hidden_size, inner, c.hidden_act, c.sparse_deviations}
             | linear<W>{"ffn_down.weight", inner, c.hidden_size}
             | rms_norm{"post_ffw_norm.weight", eps});
  // clang-format on
  const ir::value_id p = t.predict_streams(
      s, streams, {"altup_router_norm.weight", "altup_router.weight", "altup_predict_coef.weight"}, eps);
  ir::value_id x = t.take_stream(p, streams, 0, gemma3n_half_root);
  x = gemma3n_mixer<W>{&c, kind.windowed, kind.shares}.forward(t, x);
  x = kind.sparse ? sparse.forward(t, x) : ffn.forward(t, x);
  s = t.correct_streams(p, x, streams, {"altup_router_norm.weight", "altup_router.weight", "altup_correct_coef.weight"},
                        eps);
  const ir::value_id scaled = t.weigh_stream(s, streams, 0, "altup_correct_scale.weight");
  return t.spread_to_streams(
      s,
      layer_input_block<W>{c.hidden_size, c.num_hidden_layers, c.hidden_size_per_layer_input, eps}.branch(t, scaled,
                                                                                                          inputs),
      streams);
}

/// Names of the matrices that make streams 1 and up from the embedding; each stream has one.
inline constexpr std::array<std::string_view, ir::most_streams - 1> altup_projections{
    "altup_proj.0.weight", "altup_proj.1.weight", "altup_proj.2.weight", "altup_proj.3.weight",
    "altup_proj.4.weight", "altup_proj.5.weight", "altup_proj.6.weight"};
/// Names of the matrices that transform streams 1 and up before they are summed; each stream has one.
inline constexpr std::array<std::string_view, ir::most_streams - 1> altup_unembed_projections{
    "altup_unembd_proj.0.weight", "altup_unembd_proj.1.weight", "altup_unembd_proj.2.weight",
    "altup_unembd_proj.3.weight", "altup_unembd_proj.4.weight", "altup_unembd_proj.5.weight",
    "altup_unembd_proj.6.weight"};

/// The blocks of a Gemma 3n, of up to six kinds. In front of them the streams are made, after them the streams are
/// summed. The last norm, with epsilon * streams^2, treats the sum as the mean.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma3n_blocks {
  const decoder_config* config;  ///< of the model
  dtype table, projection;       ///< types of the per-layer embeddings, and of the projections to them and to streams

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const decoder_config& c = *config;
    const std::uint32_t streams = c.altup_num_inputs, hidden = c.hidden_size;
    if (streams < 2 || streams > ir::most_streams) {
      t.fail("altup", "at least 2 streams and at most ", ir::most_streams, "", streams);
      return x;
    }
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    const std::uint32_t words = c.vocab_size_per_layer_input != 0 ? c.vocab_size_per_layer_input : c.vocab_size;
    const ir::value_id inputs =
        graph::layer_inputs{words,          hidden, c.num_hidden_layers, c.hidden_size_per_layer_input,
                            c.rms_norm_eps, table,  projection}
            .forward(t, x);
    ir::value_id s = x;
    for (std::uint32_t i = 1; i < streams; ++i)
      s = t.append_stream(s, t.matmul(x, altup_projections[i - 1], hidden, hidden, projection), x, i);
    s = blocks(t, s, inputs);
    x = t.take_stream(s, streams, 0);
    for (std::uint32_t i = 1; i < streams; ++i) {
      const ir::value_id one = t.take_stream(s, streams, i);
      x = t.join_stream(x, t.matmul(one, altup_unembed_projections[i - 1], hidden, hidden, projection), s, streams);
    }
    return x;
  }

 private:
  constexpr ir::value_id blocks(ir::trace& t, ir::value_id s, ir::value_id inputs) const {
    const decoder_config& c = *config;
    const auto kinds = numbered_kinds<gemma3n_kind>::of(c.num_hidden_layers, [&](std::uint32_t layer) {
      return gemma3n_kind{c.is_windowed(layer), c.shares_kv(layer), c.sparse_layers.has(layer)};
    });
    return t.repeat_kinds(s, c.num_hidden_layers, kinds.pattern, kinds.count, [&](std::uint8_t kind, ir::value_id in) {
      return gemma3n_block<W, FFN>(t, c, in, inputs, kinds.traits[kind]);
    });
  }
};

/// The layers of a Gemma 3n, for a model type and for plans that are made at run time. `c` must outlive them.
/// @param projection how the device holds the projections to per-layer embeddings and to streams
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto gemma3n_graph(const decoder_config& c, dtype embedding_type, dtype projection = W) {
  using namespace intaglio::graph;
  const auto streams = static_cast<float>(c.altup_num_inputs);
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   embedding_scale(c.hidden_size, embedding_type)}
       | gemma3n_blocks<W, FFN>{&c, embedding_type, projection}
       | rms_norm{"output_norm.weight", c.rms_norm_eps * streams * streams}
       | lm_head{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type, c.final_logit_softcapping};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam D of the embeddings and the head  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size),
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma3n {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return gemma3n_graph<W, FFN>(c, D); }
};

/// google/gemma-3n-E4B-it, its text model.
inline constexpr decoder_config gemma3n_e4b_config{.model_type = architecture::gemma3n,
                                                   .hidden_size = 2048,
                                                   .intermediate_size = 16'384,
                                                   .num_hidden_layers = 35,
                                                   .num_attention_heads = 8,
                                                   .num_key_value_heads = 2,
                                                   .head_dim = 256,
                                                   .vocab_size = 262'400,
                                                   .max_position_embeddings = 32'768,
                                                   .rope_theta = 1'000'000.f,
                                                   .rms_norm_eps = 1e-6f,
                                                   .hidden_act = activation::gelu_tanh,
                                                   .sliding_window = 512,
                                                   .sliding_window_pattern = 5,
                                                   .rope_local_base_freq = 10'000.f,
                                                   .attention_multiplier = 1.f,
                                                   .final_logit_softcapping = 30.f,
                                                   .num_kv_shared_layers = 15,
                                                   .hidden_size_per_layer_input = 256,
                                                   .vocab_size_per_layer_input = 262'144,
                                                   .altup_num_inputs = 4,
                                                   .laurel_rank = 64,
                                                   .sparse_layers = layer_set::all_but(10),
                                                   .sparse_deviations = 1.6448536f};
/// google/gemma-3n-E4B-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3n_e4b : gemma3n<gemma3n_e4b_config, W> {
  static constexpr std::string_view name = "gemma3n_e4b";
};
/// google/gemma-3n-E2B-it, its text model.
inline constexpr decoder_config gemma3n_e2b_config = [] {
  decoder_config c = gemma3n_e4b_config;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 30;
  c.num_kv_shared_layers = 10;
  return c;
}();
/// google/gemma-3n-E2B-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3n_e2b : gemma3n<gemma3n_e2b_config, W> {
  static constexpr std::string_view name = "gemma3n_e2b";
};

}  // namespace intaglio::models
