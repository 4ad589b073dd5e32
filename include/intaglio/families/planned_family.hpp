// SPDX-License-Identifier: MIT
// Plans for any config of a known family, made at run time. A tool uses them to run a file of any size without a
// compiler. The table is the one that engraving the same config gives.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/models/arcee.hpp"
#include "intaglio/models/bert.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/ernie4_5.hpp"
#include "intaglio/models/ernie4_5_moe.hpp"
#include "intaglio/models/eurobert.hpp"
#include "intaglio/models/exaone4.hpp"
#include "intaglio/models/falcon_e.hpp"
#include "intaglio/models/gemma.hpp"
#include "intaglio/models/gemma2.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/gemma3n.hpp"
#include "intaglio/models/gemma4.hpp"
#include "intaglio/models/gemma_embedding.hpp"
#include "intaglio/models/glm4.hpp"
#include "intaglio/models/glm4moe.hpp"
#include "intaglio/models/gptoss.hpp"
#include "intaglio/models/granite.hpp"
#include "intaglio/models/granitehybrid.hpp"
#include "intaglio/models/granitemoe.hpp"
#include "intaglio/models/hunyuan_dense.hpp"
#include "intaglio/models/lfm2.hpp"
#include "intaglio/models/lfm2moe.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mistral3.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/models/modern_bert.hpp"
#include "intaglio/models/nemotron_h.hpp"
#include "intaglio/models/nomic_bert.hpp"
#include "intaglio/models/olmo2.hpp"
#include "intaglio/models/olmoe.hpp"
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
#include "intaglio/plan/planned.hpp"

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

/// The layers of a Llama, or of a family that is a Llama with norms or biases. Ternary products may read int8.
template <graph::qk_norm Norm = graph::qk_norm::none, graph::qkv_bias Bias = graph::qkv_bias::none>
void trace_llama(ir::trace& t, const decoder_config& c, const weight_types& types) {
  constexpr dtype any = dtype::f16;
  if (c.ternary && c.activation_type == dtype::i8)
    models::llama_graph<any, graph::gated_ffn, Norm, Bias, dtype::i8>(c, types.head, types.embedding).forward(t);
  else models::llama_graph<any, graph::gated_ffn, Norm, Bias>(c, types.head, types.embedding).forward(t);
}

/// The layers of a Gemma 3. Ternary products may read int8.
inline void trace_gemma3(ir::trace& t, const decoder_config& c, const weight_types& types) {
  constexpr dtype any = dtype::f16;
  if (c.ternary && c.activation_type == dtype::i8)
    models::gemma3_graph<any, graph::gated_ffn, graph::qk_norm::rms, dtype::i8>(c, types.embedding).forward(t);
  else models::gemma3_graph<any>(c, types.embedding).forward(t);
}

/// The names of the matrices in layers. Layers name their tensors; the codec in the templates' arguments is a
/// placeholder.
inline constexpr auto layer_matrices = std::to_array<std::string_view>({"attn_q.weight",
                                                                        "attn_k.weight",
                                                                        "attn_v.weight",
                                                                        "attn_output.weight",
                                                                        "ffn_gate.weight",
                                                                        "ffn_up.weight",
                                                                        "ffn_down.weight",
                                                                        "ffn_gate_exps.weight",
                                                                        "ffn_up_exps.weight",
                                                                        "ffn_down_exps.weight",
                                                                        "shortconv.in_proj.weight",
                                                                        "shortconv.out_proj.weight",
                                                                        "attn_q_gate.weight",
                                                                        "attn_qkv.weight",
                                                                        "attn_gate.weight",
                                                                        "ssm_beta.weight",
                                                                        "ssm_alpha.weight",
                                                                        "ssm_ba.weight",
                                                                        "ssm_in_gate.weight",
                                                                        "ssm_in_xbc.weight",
                                                                        "ssm_in_dt.weight",
                                                                        "ssm_out.weight",
                                                                        "ffn_gate_shexp.weight",
                                                                        "ffn_up_shexp.weight",
                                                                        "ffn_down_shexp.weight",
                                                                        "laurel_l.weight",
                                                                        "laurel_r.weight",
                                                                        "inp_gate.weight",
                                                                        "proj.weight"});

/// The traced layers of a model with this config.
inline ir::graph graph_of(const decoder_config& c, const weight_types& types) {
  std::vector<ir::held_type> held;
  if (c.model_type != architecture::bitnet) {
    for (const matrix_type& each : types.matrices)
      if (!c.ternary) held.push_back({each.name, each.type, each.set});
    if (held.empty())
      for (const std::string_view each : layer_matrices) {
        const bool narrow = each == "laurel_r.weight";
        held.push_back({each, c.ternary ? dtype::i2_s
                              : narrow  ? models::laurel_type(types.layers, c.laurel_rank)
                                        : types.layers});
      }
  }
  for (const matrix_type& each : types.globals) held.push_back({each.name, each.type, each.set});
  constexpr dtype any = dtype::f16;
  ir::trace t(held, types.sets);
  switch (c.model_type) {
    case architecture::bitnet:
      if (c.activation_type == dtype::i8) models::bitnet_graph<dtype::i2_s, dtype::i8>(c, types.embedding).forward(t);
      else models::bitnet_graph<dtype::i2_s, dtype::f32>(c, types.embedding).forward(t);
      break;
    case architecture::llama:
      if (c.num_local_experts != 0) models::mixtral_graph<any>(c, types.head, types.embedding).forward(t);
      else trace_llama(t, c, types);
      break;
    case architecture::phi3:
    case architecture::smollm3:
    case architecture::granite:
    case architecture::mistral3:
    case architecture::ernie4_5:
      trace_llama(t, c, types);
      break;
    case architecture::qwen3:
      trace_llama<graph::qk_norm::rms>(t, c, types);
      break;
    case architecture::hunyuan_dense:
      models::llama_graph<any, graph::gated_ffn, graph::qk_norm::rms_turned>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::olmo2:
      models::olmo2_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::qwen2:
    case architecture::seed_oss:
      trace_llama<graph::qk_norm::none, graph::qkv_bias::added>(t, c, types);
      break;
    case architecture::qwen3moe:
      models::mixtral_graph<any, dtype::f32, graph::qk_norm::rms>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::arcee:
      models::llama_graph<any, graph::ungated_ffn>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::exaone4:
      if (c.sliding_window == 0)
        models::olmo2_graph<any, graph::gated_ffn, graph::qk_norm::rms>(c, types.head, types.embedding).forward(t);
      else models::exaone4_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::gemma:
      models::gemma_graph<any>(c, types.embedding).forward(t);
      break;
    case architecture::qwen2moe:
      models::mixtral_graph<any, dtype::f32, graph::qk_norm::none, graph::qkv_bias::added>(c, types.head,
                                                                                           types.embedding)
          .forward(t);
      break;
    case architecture::granitemoe:
      models::mixtral_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::olmoe:
      models::mixtral_graph<any, dtype::f32, graph::qk_norm::rms_all>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::qwen35moe:
      models::qwen3next_graph<any, dtype::f32, graph::delta_gates::apart>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::qwen35:
      models::qwen35_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::qwen3next:
      models::qwen3next_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::granitehybrid:
      models::granitehybrid_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::nemotron_h:
      models::nemotron_h_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::lfm2:
      models::lfm2_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::lfm2moe:
      models::lfm2moe_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::ernie4_5_moe:
      models::ernie4_5_moe_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::glm4moe:
      models::glm4moe_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::glm4:
      models::glm4_graph<any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::gemma3:
      trace_gemma3(t, c, types);
      break;
    case architecture::gemma_embedding:
      models::gemma_embedding_graph<any>(c, types.embedding).forward(t);
      break;
    case architecture::gptoss:
      models::gptoss_graph<any, any>(c, types.head, types.embedding).forward(t);
      break;
    case architecture::gemma2:
      models::gemma2_graph<any>(c, types.embedding).forward(t);
      break;
    case architecture::eurobert:
      models::llama_body<any>(c, types.embedding).forward(t);
      break;
    case architecture::bert:
      models::bert_graph<any>(c, types.embedding).forward(t);
      break;
    case architecture::nomic_bert:
      models::nomic_bert_graph<any>(c, types.embedding).forward(t);
      break;
    case architecture::modern_bert:
      models::modern_bert_graph<any>(c, types.embedding).forward(t);
      break;
    case architecture::gemma4:
      models::gemma4_graph<any>(c, types.embedding, types.layers).forward(t);
      break;
    case architecture::gemma3n:
      models::gemma3n_graph<any>(c, types.embedding, types.layers).forward(t);
      break;
  }
  return t.graph();
}

/// Makes the plan of a model with this config.
/// @param model its name in messages, or empty  @param context positions, at most max_position_embeddings
/// @param shape of batches; none: one session at a time  @param form of the FFNs in decode
/// @param adapters space for adapters beside the layers' matrices; none: sessions have no adapters
/// @error argument_error with one sentence: a shape that kernels do not take, a codec whose blocks do not divide rows
inline plan::planned planned_of(const decoder_config& c, const weight_types& types, std::string_view model,
                                const plan::profile& target, std::uint32_t context, const plan::batch_shape& shape = {},
                                plan::ffn_form form = {}, const plan::adapter_room& adapters = {}) {
  return plan::planned::of(graph_of(c, types), c, model, target, context, shape, form, adapters);
}

}  // namespace intaglio::families
