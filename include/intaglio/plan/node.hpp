// SPDX-License-Identifier: MIT
// One or several ops of a graph that one kernel call computes: the result of fusion and the input of lowering.
#pragma once

#include <array>
#include <cstdint>

#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/kinds.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/turn.hpp"
#include "intaglio/plan/dispatch.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::plan {

using kernels::codec_of;

/// One or several ops that one kernel call computes. Values and weights are indices into the graph.
struct node {
  bool lowered = false;  ///< a kernel of the catalogue computes it
  kernels::kernel kernel = kernels::kernel::embed;
  ir::section where = ir::section::prologue;
  std::uint8_t block = 0;  ///< in the period: the kind of block
  std::array<std::uint16_t, max_merged_ops> ops{};
  std::uint8_t op_count = 0;
  std::uint8_t rule = 0;
  ir::value_id in = ir::none;     ///< the input that the kernel transforms
  ir::value_id up_in = ir::none;  ///< of gated: up, where `in` is the gate
  /// The k and v of turn, where they are not stacked after q in `in`, or v not after k in `k_in`.
  ir::value_id k_in = ir::none, v_in = ir::none;
  ir::value_id stream = ir::none;  ///< the value to which `add` adds; `out` overwrites it
  std::uint32_t out_width = 0;     ///< elements a token of `out` if more than the graph's value; 0: the same
  ir::value_id out = ir::none;     ///< ir::none: the kernel writes only to the cache or the state
  ir::value_id choice = ir::none;  ///< the experts of each token, or the tokens of each expert
  std::uint32_t taps = 0;          ///< of short_conv
  bool multiplied = false;         ///< of short_conv
  delta_net_config delta{};        ///< of delta_net, whose beta and alpha are k_in and v_in
  bool state_space = false;        ///< of delta_net: Mamba-2's rule, whose gate is up_in and whose steps are v_in
  bool logistic = false;           ///< of head_gate, whose gate is up_in
  expert_score score = expert_score::logit;      ///< of route, where eps is added to the sum
  float least = 0;                               ///< of route: the smallest sum
  std::uint32_t groups = 0, groups_used = 0;     ///< of route: groups of experts, and number of groups of a token
  ir::stream_step step = ir::stream_step::take;  ///< of streams, whose branch is up_in and whose target is k_in
  std::uint32_t streams = 0, stream_index = 0;   ///< of streams
  std::uint32_t experts = 0, top_k = 0;          ///< top_k of `fixed`: rows of a token that experts computed
  bool over_all = false;                         ///< of route: the softmax covers all experts
  std::uint32_t columns = 0;                     ///< of f16 lists: columns of a row
  std::uint32_t list_tokens = 0;                 ///< length of the lists in `choice` (expert_tiles); 0: no lists
  ir::weight_id norm = ir::none;
  std::array<ir::weight_id, 3> weights{ir::none, ir::none, ir::none};
  std::uint8_t weight_count = 0;
  /// Biases, or none. turn has biases of q, k and v; norm_add, rms_norm, route, short_conv and expert_sum have one;
  /// gated has biases of gate and up; embed has the rows of positions and of token types.
  std::array<ir::weight_id, 3> biases{ir::none, ir::none, ir::none};
  kernels::turn_norms norms = kernels::turn_norms::none;
  bool centered = false;            ///< of rms_norm: the mean is subtracted first (layer norm)
  bool v_norm = false;              ///< of turn: heads of v are normalised, without a weight
  ir::weight_id factor = ir::none;  ///< of norm_add: a single number by which the sum is multiplied; of gated: the
                                    ///< layer's parameters of the activation
  bool by_layer = false;            ///< of gated: up_in has a part for each layer
  kernels::prologue prologue = kernels::prologue::quantized;
  kernels::epilogue epilogue = kernels::epilogue::store;
  float eps = 0, scale = 0;  ///< scale 0: the kernel's default
  rope_parameters rope{};
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  std::uint32_t value_dim = 0;  ///< of attention, and of turn with a latent vector, whose query part is up_in: channels
                                ///< of a value; 0: head_dim
  constexpr std::uint32_t value_width() const { return value_dim != 0 ? value_dim : head_dim; }
  float softcap = 0;               ///< of attention
  std::uint32_t ahead = 0;         ///< of attention
  ir::weight_id sinks = ir::none;  ///< of attention
  shader::activation_function act{};
  bool walk = false;                    ///< for one token, the FFN's features may be walked: walk_gate_up, walk_down
  ir::weight_id value_norm = ir::none;  ///< of walk_gate_up: the norm that walk_down applies to its input
  std::uint32_t parts = 1;              ///< vectors into which walk_sum splits its sum; norm_add adds them
  std::uint32_t nearest = 0;            ///< features that one token uses; 0: no walk of the nearest features
  std::uint32_t traced = 0;             ///< features that are reported for one token (plan/keep_traces.hpp)
  ir::value_id gates = ir::none, values = ir::none;  ///< of a traced FFN: gate scores, and factors of the down vectors,
                                                     ///< that its products also write
};

}  // namespace intaglio::plan
