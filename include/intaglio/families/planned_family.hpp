// SPDX-License-Identifier: MIT
// Plans for any config of a known family, made at run time. A tool uses them to run a file of any size without a
// compiler. The table is the one that engraving the same config gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/families/graph_rows.hpp"
#include "intaglio/plan/planned.hpp"

namespace intaglio::families {

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
                                                                        "proj.weight",
                                                                        "attn_q_a.weight",
                                                                        "attn_q_nope.weight",
                                                                        "attn_q_rope.weight",
                                                                        "attn_kv_latent.weight",
                                                                        "attn_k_rope.weight",
                                                                        "attn_k_b.weight",
                                                                        "attn_v_b.weight"});

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
  ir::trace t(held, types.sets);
  graph_rows[static_cast<std::size_t>(c.model_type)].trace(t, c, types);
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
