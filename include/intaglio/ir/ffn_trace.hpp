// SPDX-License-Identifier: MIT
// Ops of FFNs: gates, walks, mixtures of experts.
#pragma once

#include <cstdint>
#include <string_view>

#include "intaglio/ir/mixer_trace.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::ir {

/// How the experts of a mixture get their weights from logits.
struct router_gate {
  expert_score score = expert_score::logit;  ///< how experts are scored
  float factor = 1.f;                        ///< factor of each expert's weight
  // Fields for scores that are not logits.
  float added = 0.f;              ///< added to the sum of the chosen scores, by which they are divided
  float least = 0.f;              ///< the smallest sum by which scores are divided
  std::string_view bias = {};     ///< a tensor [experts] f32, added to scores only for the choice; empty: none
  std::uint32_t groups = 0;       ///< equal groups of neighbouring experts; 0: experts are chosen among all
  std::uint32_t groups_used = 0;  ///< groups of which a token's experts are: those with the best expert or, with a
                                  ///< bias, with the largest sum of two experts
};

/// Traces the ops of FFNs.
class ffn_trace : public mixer_trace {
 public:
  using mixer_trace::mixer_trace;

  /// act(gate) times the layer's part of `up`, [tokens, layers, width of gate].
  constexpr value_id gated_by_layer(value_id gate, value_id up, std::uint32_t layers, shader::activation_function act) {
    if (std::uint64_t{width(gate)} * layers != width(up))
      fail(where("inp_gate.weight").view(), "a gate for each layer, in all of width ", width(up), "", width(gate));
    op o{.kind = op_kind::gated, .in = {gate, up, none}, .by_layer = true, .act = act};
    return push(o, "gated", "layer_input", dtype::f32, width(gate));
  }

  constexpr value_id gated(value_id gate, value_id up, shader::activation_function act) {
    if (width(gate) != width(up))
      fail(where("ffn_up.weight").view(), "glu needs gate and up of one width, gate is ", width(gate), "", width(up));
    if (act == shader::activation_function(activation::xielu))
      fail(where("ffn_act").view(), "expected an activation of a unit with a gate, found xIELU");
    op o{.kind = op_kind::gated, .in = {gate, up, none}, .act = act};
    return push(o, "gated", "ffn_act", dtype::f32, width(gate));
  }

  /// act(x), for a unit without a gate. @param parameters name of the layer's four numbers of xIELU; empty: none
  constexpr value_id activated(value_id x, activation act, std::string_view parameters = {}) {
    if ((act == activation::xielu) == parameters.empty())
      fail(where("ffn_act").view(), "expected parameters of xIELU, and of no other activation, found others");
    op o{.kind = op_kind::gated,
         .in = {x, x, none},
         .weight = parameters.empty() ? none : weight(parameters, 1, 4, dtype::f32),
         .act = shader::ungated_function(act)};
    return push(o, "gated", "ffn_act", dtype::f32, width(x));
  }

  /// Marks the gated op that gives h: decode may walk its features. Only an activation that is 0 for gates up to 0 lets
  /// it leave features out.
  constexpr void walk(value_id h) {
    for (op& o : graph_.ops) {
      if (o.out != h) continue;
      o.walk = true;
      if (o.kind != op_kind::gated || o.act != shader::activation_function(activation::relu_squared))
        fail(where("walk_ffn").view(), "expected squared ReLU, which leaves features out, found another activation");
    }
  }

  /// Marks the gated op that gives h: decode uses the `count` features with the largest |gate|, and reads down as one
  /// vector for each feature.
  constexpr void walk_nearest(value_id h, std::uint32_t count) {
    for (op& o : graph_.ops) {
      if (o.out != h) continue;
      o.nearest = count;
      if (o.kind != op_kind::gated) fail(where("walk_ffn").view(), "expected a gated unit, found another op");
    }
  }

  /// Marks the gated op that gives h: decode reports the `top` features that add most to the stream (docs/walk.md).
  constexpr void keep_trace(value_id h, std::uint32_t top) {
    if (top == 0 || top > 64) fail(where("ffn").view(), "a trace of at least 1 and at most ", 64, " features", top);
    for (op& o : graph_.ops) {
      if (o.out != h) continue;
      o.traced = top;
      if (o.kind != op_kind::gated) fail(where("ffn").view(), "expected a gated unit to trace, found another op");
    }
  }

  /// Chooses experts: the top_k largest of logits [tokens, experts], the lowest first where several are equal -> u32
  /// [tokens, 2 * top_k]: their numbers, then the bits of their weights. The weights are a softmax over the chosen ones
  /// or, with over_all, their part of the softmax over all.
  /// @param scale name of a tensor [experts] f32, factors of the weights; empty: none
  /// @param gate how weights are computed where they are no softmax
  constexpr value_id route(value_id logits, std::string_view name, std::uint32_t top_k, bool over_all = false,
                           std::string_view scale = {}, const router_gate& gate = {}) {
    if (top_k == 0 || top_k > width(logits))
      fail(where(name).view(), "a choice of at least 1 and at most num_local_experts ", width(logits),
           " experts a token", top_k);
    if (gate.groups != 0 && (gate.score == expert_score::logit || width(logits) % gate.groups != 0 ||
                             width(logits) / gate.groups * gate.groups_used < top_k))
      fail(where(name).view(), "equal groups of experts with scores, those used with at least ", top_k, " experts",
           gate.groups_used);
    op o{.kind = op_kind::route,
         .in = {logits, none, none},
         .weight = scale.empty() ? none : weight(scale, 1, width(logits), dtype::f32),
         .second = gate.bias.empty() ? none : weight(gate.bias, 1, width(logits), dtype::f32),
         .eps = gate.added,
         .scale = gate.factor,
         .score = gate.score,
         .least = gate.least,
         .groups = gate.groups,
         .groups_used = gate.groups_used,
         .over_all = over_all,
         .experts = width(logits),
         .top_k = top_k};
    return push(o, "route", name, dtype::u32, 2 * top_k);
  }

  /// Chooses all experts in order, each with the weight 1, in the form of `route` -> u32 [tokens, 2 * experts].
  constexpr value_id every_expert(std::string_view name, std::uint32_t experts) {
    if (experts == 0) fail(where(name).view(), "every_expert expects at least one expert, found 0");
    op o{.kind = op_kind::every_expert, .experts = experts, .top_k = experts};
    return push(o, "every_expert", name, dtype::u32, 2 * experts);
  }

  /// Products with the matrices of the experts that `choice` names, one after the other. weight [experts * rows,
  /// columns]; x [tokens, columns], or [tokens, top_k * columns] where each expert has its own input -> f32 [tokens,
  /// top_k * rows].
  constexpr value_id expert_matmul(value_id x, value_id choice, std::string_view name, std::uint32_t experts,
                                   std::uint32_t rows, std::uint32_t columns, dtype type) {
    const std::uint32_t top_k = width(choice) / 2;
    type = held_as(name, type);
    if (rows == 0 || rows % 4 != 0) fail(where(name).view(), "rows of an expert in multiples of ", 4, "", rows);
    if (width(x) != columns && width(x) != top_k * columns)
      fail(where(name).view(), "linear input width ", columns, "", width(x));
    const auto block = intaglio::info(type).block_elements;
    if (block > 1 && columns % block != 0) fail(where(name).view(), "columns in multiples of ", block, "", columns);
    op o{.kind = op_kind::matmul,
         .in = {x, choice, none},
         .weight = weight(name, experts * rows, columns, type),
         .experts = experts,
         .top_k = top_k};
    return push(o, "expert_matmul", name, dtype::f32, top_k * rows);
  }

  /// Adds each expert's bias to its results x, [tokens, top_k * rows]; weight [experts * rows] f32.
  constexpr value_id expert_bias(value_id x, value_id choice, std::string_view name, std::uint32_t experts) {
    const std::uint32_t top_k = width(choice) / 2, rows = top_k == 0 ? 0 : width(x) / top_k;
    op o{.kind = op_kind::bias,
         .in = {x, choice, none},
         .weight = weight(name, 1, experts * rows, dtype::f32),
         .experts = experts,
         .top_k = top_k};
    return push(o, "expert_bias", name, dtype::f32, width(x));
  }

  /// Sum over j of weight j of `choice` times part j of y, [tokens, top_k * width] -> f32 [tokens, width].
  constexpr value_id weigh(value_id y, value_id choice, std::string_view name) {
    const std::uint32_t top_k = width(choice) / 2;
    op o{.kind = op_kind::weigh, .in = {y, choice, none}, .top_k = top_k};
    return push(o, "weigh", name, dtype::f32, top_k == 0 ? width(y) : width(y) / top_k);
  }
};

}  // namespace intaglio::ir
