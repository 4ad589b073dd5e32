// SPDX-License-Identifier: MIT
// EXAONE 4: an OLMo 2 that normalises each head of q and k. Large models have windows in three of four layers; the
// fourth sees all positions and has no rotation. Source: transformers, models/exaone4; EXAONE 4.0 report 2025. The
// sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/olmo2.hpp"

namespace intaglio::models {

/// The layers of an EXAONE 4 with windows, for a model type and for plans that are made at run time.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto exaone4_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  attention_reach standing = full(c);
  standing.rope.no_rope_interval = 1;
  return olmo3_graph<W, FFN, qk_norm::rms>(c, standing, head, embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct exaone4 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() {
    if constexpr (c.sliding_window == 0) return olmo2_graph<W, FFN, graph::qk_norm::rms>(c, H, D);
    else return exaone4_graph<W, FFN>(c, H, D);
  }
};

/// LGAI-EXAONE/EXAONE-4.0-1.2B
inline constexpr decoder_config exaone4_12b_config{.model_type = architecture::exaone4,
                                                   .hidden_size = 2048,
                                                   .intermediate_size = 4096,
                                                   .num_hidden_layers = 30,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 64,
                                                   .vocab_size = 102'400,
                                                   .max_position_embeddings = 65'536,
                                                   .rope_theta = 1'000'000.f,
                                                   .rope_scaling = {rope_type::llama3, 16.f, 1.f, 4.f, 8192},
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = true};
/// LGAI-EXAONE/EXAONE-4.0-32B
inline constexpr decoder_config exaone4_32b_config = [] {
  decoder_config c = exaone4_12b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 27'392;
  c.num_hidden_layers = 64;
  c.num_attention_heads = 40;
  c.head_dim = 128;
  c.max_position_embeddings = 131'072;
  c.tie_word_embeddings = false;
  c.sliding_window = 4096;
  c.sliding_window_pattern = 4;
  return c;
}();
/// LGAI-EXAONE/EXAONE-4.0-1.2B with matrices of codec W.
template <dtype W = dtype::bf16>
struct exaone4_12b : exaone4<exaone4_12b_config, W> {
  static constexpr std::string_view name = "exaone4_12b";
};
/// LGAI-EXAONE/EXAONE-4.0-32B with matrices of codec W.
template <dtype W = dtype::bf16>
struct exaone4_32b : exaone4<exaone4_32b_config, W> {
  static constexpr std::string_view name = "exaone4_32b";
};

}  // namespace intaglio::models
