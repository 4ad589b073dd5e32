// SPDX-License-Identifier: MIT
// The layers of each family, for plans that are made at run time: a row for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/ir/trace.hpp"
#include "intaglio/models/afmoe.hpp"
#include "intaglio/models/apertus.hpp"
#include "intaglio/models/arcee.hpp"
#include "intaglio/models/baichuan.hpp"
#include "intaglio/models/bailingmoe.hpp"
#include "intaglio/models/bert.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/cohere.hpp"
#include "intaglio/models/deepseek.hpp"
#include "intaglio/models/deepseek2.hpp"
#include "intaglio/models/dots1.hpp"
#include "intaglio/models/ernie4_5.hpp"
#include "intaglio/models/ernie4_5_moe.hpp"
#include "intaglio/models/eurobert.hpp"
#include "intaglio/models/exaone.hpp"
#include "intaglio/models/exaone4.hpp"
#include "intaglio/models/falcon.hpp"
#include "intaglio/models/falcon_e.hpp"
#include "intaglio/models/falcon_h1.hpp"
#include "intaglio/models/gemma.hpp"
#include "intaglio/models/gemma2.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/gemma3n.hpp"
#include "intaglio/models/gemma4.hpp"
#include "intaglio/models/gemma_embedding.hpp"
#include "intaglio/models/glm.hpp"
#include "intaglio/models/glm4.hpp"
#include "intaglio/models/glm4moe.hpp"
#include "intaglio/models/gpt2.hpp"
#include "intaglio/models/gptneox.hpp"
#include "intaglio/models/gptoss.hpp"
#include "intaglio/models/granite.hpp"
#include "intaglio/models/granitehybrid.hpp"
#include "intaglio/models/granitemoe.hpp"
#include "intaglio/models/hunyuan_dense.hpp"
#include "intaglio/models/hunyuan_moe.hpp"
#include "intaglio/models/internlm2.hpp"
#include "intaglio/models/lfm2.hpp"
#include "intaglio/models/lfm2moe.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/minicpm.hpp"
#include "intaglio/models/minimax_m2.hpp"
#include "intaglio/models/mistral3.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/models/modern_bert.hpp"
#include "intaglio/models/nemotron.hpp"
#include "intaglio/models/nemotron_h.hpp"
#include "intaglio/models/nomic_bert.hpp"
#include "intaglio/models/olmo.hpp"
#include "intaglio/models/olmo2.hpp"
#include "intaglio/models/olmoe.hpp"
#include "intaglio/models/orion.hpp"
#include "intaglio/models/phi2.hpp"
#include "intaglio/models/phi3.hpp"
#include "intaglio/models/qwen2.hpp"
#include "intaglio/models/qwen2moe.hpp"
#include "intaglio/models/qwen3.hpp"
#include "intaglio/models/qwen35.hpp"
#include "intaglio/models/qwen35moe.hpp"
#include "intaglio/models/qwen3moe.hpp"
#include "intaglio/models/qwen3next.hpp"
#include "intaglio/models/seed_oss.hpp"
#include "intaglio/models/smollm3.hpp"
#include "intaglio/models/stablelm.hpp"
#include "intaglio/models/starcoder.hpp"
#include "intaglio/models/starcoder2.hpp"
#include "intaglio/models/xverse.hpp"

namespace intaglio::families {

/// The type of one matrix in the layers of a set.
struct matrix_type {
  std::string name;  ///< "attn_q.weight"
  dtype type = dtype::f16;
  std::uint8_t set = 0;
  friend bool operator==(const matrix_type&, const matrix_type&) = default;
};

/// How the device holds a model's matrices. The layers of a ternary model are i2_s whatever `layers` says.
struct weight_types {
  dtype layers = dtype::f16, embedding = dtype::f16, head = dtype::f16;
  std::vector<matrix_type> matrices = {};  ///< where layers have several types: the types of each set, one set after
                                           ///< the other; else empty
  std::vector<matrix_type> globals = {};   ///< types of matrices outside of the layers, without embedding and head
  std::vector<std::uint8_t> sets = {};     ///< the set of each layer; empty: all layers have set 0
  friend bool operator==(const weight_types&, const weight_types&) = default;
};

/// Traces the layers of a model into `t`.
using layer_tracer = void (*)(ir::trace& t, const decoder_config& c, const weight_types& types);

/// The codec in the templates' arguments. It is a placeholder: the trace knows the type of each tensor.
inline constexpr dtype any_codec = dtype::f16;

/// Traces layers that `Graph` makes of a config and the types of head and embedding.
template <auto Graph>
void trace_headed(ir::trace& t, const decoder_config& c, const weight_types& types) {
  Graph(c, types.head, types.embedding).forward(t);
}

/// Traces layers that `Graph` makes of a config and the type of the embedding, which is the head too if there is one.
template <auto Graph>
void trace_tied(ir::trace& t, const decoder_config& c, const weight_types& types) {
  Graph(c, types.embedding).forward(t);
}

/// Traces layers that `Graph` makes of a config and the types of the embedding and of matrices in layers.
template <auto Graph>
void trace_by_layers(ir::trace& t, const decoder_config& c, const weight_types& types) {
  Graph(c, types.embedding, types.layers).forward(t);
}

/// Traces layers by `Int8` if their products are ternary and read int8, else by `Plain`.
template <layer_tracer Int8, layer_tracer Plain>
void trace_by_inputs(ir::trace& t, const decoder_config& c, const weight_types& types) {
  (is_ternary(c) && c.activation_type == dtype::i8 ? Int8 : Plain)(t, c, types);
}

/// The layers of a BitNet.
inline constexpr layer_tracer trace_bitnet = trace_by_inputs<trace_tied<models::bitnet_graph<dtype::i2_s, dtype::i8>>,
                                                             trace_tied<models::bitnet_graph<dtype::i2_s, dtype::f32>>>;

/// The layers of a Llama, or of a family that is a Llama with norms or biases.
template <graph::qk_norm Norm = graph::qk_norm::none, graph::qkv_bias Bias = graph::qkv_bias::none>
inline constexpr layer_tracer trace_llama =
    trace_by_inputs<trace_headed<models::llama_graph<any_codec, graph::gated_ffn, Norm, Bias, dtype::i8>>,
                    trace_headed<models::llama_graph<any_codec, graph::gated_ffn, Norm, Bias>>>;

/// The layers of a Gemma 3.
inline constexpr layer_tracer trace_gemma3 =
    trace_by_inputs<trace_tied<models::gemma3_graph<any_codec, graph::gated_ffn, graph::qk_norm::rms, dtype::i8>>,
                    trace_tied<models::gemma3_graph<any_codec>>>;

/// The layers of a Llama, or of a Mixtral, whose files say that they are a Llama.
inline void trace_llama_or_mixtral(ir::trace& t, const decoder_config& c, const weight_types& types) {
  if (c.num_local_experts != 0) models::mixtral_graph<any_codec>(c, types.head, types.embedding).forward(t);
  else trace_llama<>(t, c, types);
}

/// The layers of an OLMo 2 or, with windows, of an OLMo 3.
inline void trace_olmo2(ir::trace& t, const decoder_config& c, const weight_types& types) {
  if (c.sliding_window == 0) models::olmo2_graph<any_codec>(c, types.head, types.embedding).forward(t);
  else models::olmo3_graph<any_codec>(c, graph::full(c), types.head, types.embedding).forward(t);
}

/// The layers of an EXAONE 4. A model without windows has layers of one kind.
inline void trace_exaone4(ir::trace& t, const decoder_config& c, const weight_types& types) {
  if (c.sliding_window == 0)
    models::olmo2_graph<any_codec, graph::gated_ffn, graph::qk_norm::rms>(c, types.head, types.embedding).forward(t);
  else models::exaone4_graph<any_codec>(c, types.head, types.embedding).forward(t);
}

/// The layers of a family.
struct graph_row {
  architecture family;
  layer_tracer trace;
};
/// All families, in the order of `architecture`.
inline constexpr auto graph_rows = std::to_array<graph_row>({
    {architecture::bitnet, trace_bitnet},
    {architecture::llama, trace_llama_or_mixtral},
    {architecture::gemma3, trace_gemma3},
    {architecture::qwen3, trace_llama<graph::qk_norm::rms>},
    {architecture::qwen3moe, trace_headed<models::mixtral_graph<any_codec, dtype::f32, graph::qk_norm::rms>>},
    {architecture::qwen2, trace_llama<graph::qk_norm::none, graph::qkv_bias::added>},
    {architecture::smollm3, trace_llama<>},
    {architecture::granite, trace_llama<>},
    {architecture::olmo2, trace_olmo2},
    {architecture::phi3, trace_llama<>},
    {architecture::lfm2, trace_headed<models::lfm2_graph<any_codec>>},
    {architecture::gemma2, trace_tied<models::gemma2_graph<any_codec>>},
    {architecture::gemma4, trace_by_layers<models::gemma4_graph<any_codec>>},
    {architecture::gemma3n, trace_by_layers<models::gemma3n_graph<any_codec>>},
    {architecture::gptoss, trace_headed<models::gptoss_graph<any_codec, any_codec>>},
    {architecture::qwen35, trace_headed<models::qwen35_graph<any_codec>>},
    {architecture::qwen3next, trace_headed<models::qwen3next_graph<any_codec>>},
    {architecture::granitehybrid, trace_headed<models::granitehybrid_graph<any_codec>>},
    {architecture::nemotron_h, trace_headed<models::nemotron_h_graph<any_codec>>},
    {architecture::bert, trace_tied<models::bert_graph<any_codec>>},
    {architecture::nomic_bert, trace_tied<models::nomic_bert_graph<any_codec>>},
    {architecture::granitemoe, trace_headed<models::mixtral_graph<any_codec>>},
    {architecture::olmoe, trace_headed<models::mixtral_graph<any_codec, dtype::f32, graph::qk_norm::rms_all>>},
    {architecture::qwen35moe, trace_headed<models::qwen3next_graph<any_codec, dtype::f32, graph::delta_gates::apart>>},
    {architecture::lfm2moe, trace_headed<models::lfm2moe_graph<any_codec>>},
    {architecture::gemma, trace_tied<models::gemma_graph<any_codec>>},
    {architecture::arcee, trace_headed<models::llama_graph<any_codec, graph::ungated_ffn>>},
    {architecture::seed_oss, trace_llama<graph::qk_norm::none, graph::qkv_bias::added>},
    {architecture::mistral3, trace_llama<>},
    {architecture::exaone4, trace_exaone4},
    {architecture::qwen2moe,
     trace_headed<models::mixtral_graph<any_codec, dtype::f32, graph::qk_norm::none, graph::qkv_bias::added>>},
    {architecture::ernie4_5, trace_llama<>},
    {architecture::glm4moe, trace_headed<models::glm4moe_graph<any_codec>>},
    {architecture::glm4, trace_headed<models::glm4_graph<any_codec>>},
    {architecture::gemma_embedding, trace_tied<models::gemma_embedding_graph<any_codec>>},
    {architecture::hunyuan_dense,
     trace_headed<models::llama_graph<any_codec, graph::gated_ffn, graph::qk_norm::rms_turned>>},
    {architecture::modern_bert, trace_tied<models::modern_bert_graph<any_codec>>},
    {architecture::ernie4_5_moe, trace_headed<models::ernie4_5_moe_graph<any_codec>>},
    {architecture::eurobert, trace_tied<models::llama_body<any_codec>>},
    {architecture::deepseek2, trace_headed<models::deepseek2_graph<any_codec>>},
    {architecture::chatglm, trace_llama<graph::qk_norm::none, graph::qkv_bias::added>},
    {architecture::exaone, trace_llama<>},
    {architecture::internlm2, trace_llama<>},
    {architecture::deepseek, trace_headed<models::ernie4_5_moe_graph<any_codec>>},
    {architecture::dots1, trace_headed<models::dots1_graph<any_codec>>},
    {architecture::afmoe, trace_headed<models::afmoe_graph<any_codec>>},
    {architecture::minimax_m2, trace_headed<models::mixtral_graph<any_codec, dtype::f32, graph::qk_norm::rms_all>>},
    {architecture::hunyuan_moe, trace_headed<models::mixtral_graph<any_codec, dtype::f32, graph::qk_norm::rms_turned>>},
    {architecture::minicpm, trace_llama<>},
    {architecture::xverse, trace_llama<>},
    {architecture::apertus, trace_headed<models::apertus_graph<any_codec>>},
    {architecture::baichuan, trace_llama<>},
    {architecture::bailingmoe, trace_headed<models::ernie4_5_moe_graph<any_codec>>},
    {architecture::bailingmoe2, trace_headed<models::dots1_graph<any_codec>>},
    {architecture::falcon_h1, trace_headed<models::falcon_h1_graph<any_codec>>},
    {architecture::command_r, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::cohere2, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::starcoder2, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::stablelm, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::nemotron, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::phi2, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::gptneox, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::falcon, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::gpt2, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::olmo, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::starcoder, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
    {architecture::orion, trace_headed<models::layer_norm_decoder_graph<any_codec>>},
});

/// Whether each family has its row, in the order of `architecture`.
constexpr bool has_all_graphs() {
  for (std::size_t i = 0; i < graph_rows.size(); ++i)
    if (graph_rows[i].family != static_cast<architecture>(i)) return false;
  return graph_rows.size() == static_cast<std::size_t>(last_architecture) + 1;
}
static_assert(has_all_graphs(), "expected a row of graph_rows for each architecture, in their order");

}  // namespace intaglio::families
