// SPDX-License-Identifier: MIT
// BitNet b1.58: ternary weights, int8 activations, squared ReLU, a norm before each output projection, tied head. By
// its config it also describes the older form (GGUF architecture "bitnet") with SiLU, f32 activations and a separate
// head. Source: microsoft/bitnet-b1.58-2B-4T (config.json), Ma et al. 2025; transformers, models/bitnet.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// The layers of a BitNet b1.58, for a model type and for plans that are made at run time.
template <dtype W, dtype A, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto bitnet_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers,
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | self_attention<W, A>{c}
                    | rms_norm{"attn_sub_norm.weight", c.rms_norm_eps}
                    | linear<W, A>{"attn_output.weight", c.q_size(), c.hidden_size})
           | residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps}
                    | FFN<W, A>{c.hidden_size, c.intermediate_size, c.hidden_act}
                    | rms_norm{"ffn_sub_norm.weight", c.rms_norm_eps}
                    | linear<W, A>{"ffn_down.weight", c.intermediate_size, c.hidden_size}))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 embedding_type};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam A of their inputs  @tparam D of the embedding and the head in device
/// memory
/// @tparam FFN gated_ffn, or walk_ffn (graph/layers/walk_ffn.hpp), which reads less in decode where squared ReLU turns
/// features off
template <const decoder_config& c, dtype W = dtype::i2_s, dtype A = c.activation_type, dtype D = dtype::f16,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct bitnet_b158 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return bitnet_graph<W, A, FFN>(c, D); }
};

/// microsoft/bitnet-b1.58-2B-4T
inline constexpr decoder_config bitnet_2b_4t_config{.model_type = architecture::bitnet,
                                                    .hidden_size = 2560,
                                                    .intermediate_size = 6912,
                                                    .num_hidden_layers = 30,
                                                    .num_attention_heads = 20,
                                                    .num_key_value_heads = 5,
                                                    .head_dim = 128,
                                                    .vocab_size = 128'256,
                                                    .max_position_embeddings = 4096,
                                                    .rope_theta = 500'000.f,
                                                    .rms_norm_eps = 1e-5f};
/// microsoft/bitnet-b1.58-2B-4T.
struct bitnet_2b_4t : bitnet_b158<bitnet_2b_4t_config> {
  static constexpr std::string_view name = "bitnet_2b_4t";
};

/// The story model that ships with the library (examples/tool/fable.gguf).
inline constexpr decoder_config fable_config{.model_type = architecture::bitnet,
                                             .hidden_size = 256,
                                             .intermediate_size = 1024,
                                             .num_hidden_layers = 8,
                                             .num_attention_heads = 4,
                                             .num_key_value_heads = 2,
                                             .head_dim = 64,
                                             .vocab_size = 4096,
                                             .max_position_embeddings = 512,
                                             .rope_theta = 500'000.f,
                                             .rms_norm_eps = 1e-5f};
/// The story model that ships with the library.
struct fable : bitnet_b158<fable_config> {
  static constexpr std::string_view name = "fable";
};

}  // namespace intaglio::models
