// SPDX-License-Identifier: MIT
// A mixture of experts with a shared expert, which every token uses.
#pragma once

#include <type_traits>

#include "intaglio/core/family.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/moe.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"

namespace intaglio::graph {

/// The input of a shared expert's down projection: act(Wgate h) * (Wup h). Tensors ffn_gate_shexp and ffn_up_shexp.
/// @shape  h: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
template <dtype W>
constexpr ir::value_id shared_gates(ir::trace& t, ir::value_id h, std::uint32_t hidden_size,
                                    std::uint32_t intermediate_size, shader::activation_function act) {
  const ir::value_id gate = t.matmul(h, "ffn_gate_shexp.weight", intermediate_size, hidden_size, W);
  const ir::value_id up = t.matmul(h, "ffn_up_shexp.weight", intermediate_size, hidden_size, W);
  return t.gated(gate, up, act);
}

/// A mixture with a gated shared expert: x + mixture(norm(x)) + sigmoid(w_s norm(x)) shared(norm(x)). Tensors
/// ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp and ffn_gate_inp_shexp, [1, hidden_size] in f32.
/// @shape  x: [tokens, hidden_size]; out: [tokens, hidden_size] f32
/// @source transformers, models/qwen3_next
template <dtype W, class Mixture>
struct residual_moe_with_shared {
  rms_norm norm;                                 ///< norm of the input of mixture and shared expert
  Mixture mixture;                               ///< a moe
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of the shared expert
  shader::activation_function act;               ///< activation of the shared expert

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = norm.forward(t, x);
    const ir::value_id inner = shared_gates<W>(t, h, hidden_size, intermediate_size, act);
    const ir::value_id part = t.matmul(h, "ffn_gate_inp_shexp.weight", 1, hidden_size, dtype::f32);
    const ir::value_id choice = mixture.choose(t, h);
    // Next to the choice, which it does not wait for.
    const ir::value_id y = t.matmul(inner, "ffn_down_shexp.weight", hidden_size, intermediate_size, W);
    const ir::value_id chosen = t.add(x, mixture.sum(t, mixture.experts.forward(t, h, choice), choice));
    return t.add(chosen, t.head_gate(y, part, {}, 0, hidden_size, true));
  }
};

/// A shared expert without its down projection: act(Wgate h) * (Wup h).
/// @shape  h: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
template <dtype W>
struct gated_shared {
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of the matrices
  shader::activation_function act;               ///< activation of the gates

  constexpr ir::value_id forward(ir::trace& t, ir::value_id h) const {
    return shared_gates<W>(t, h, hidden_size, intermediate_size, act);
  }
};

/// A mixture with a shared expert that has no gate for its result: x + Wdown inner(norm(x)) + mixture(norm(x)). Tensors
/// ffn_down_shexp and the tensors of `inner`.
/// @shape  x: [tokens, hidden_size]; out: [tokens, hidden_size] f32
/// @source transformers, models/granitemoeshared and models/nemotron_h
/// @tparam W type of the down projection's matrix
template <dtype W, class Mixture, layer Inner>
struct residual_moe_beside_shared {
  rms_norm norm;    ///< norm of the input of mixture and shared expert
  Mixture mixture;  ///< a moe
  Inner inner;      ///< the shared expert without its down projection: gated_shared, or an ungated_ffn

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = norm.forward(t, x);
    const ir::value_id its = inner.forward(t, h);
    const ir::value_id choice = mixture.choose(t, h), results = mixture.experts.forward(t, h, choice);
    // Next to the chosen experts' down projections, which it does not wait for. x is read until then.
    const ir::value_id shared =
        t.add(x, t.matmul(its, "ffn_down_shexp.weight", inner.hidden_size, inner.intermediate_size, W));
    return t.add(shared, mixture.sum(t, results, choice));
  }
};
/// Deduces the types of the mixture and of the shared expert.
template <dtype W, class Mixture, layer Inner>
constexpr auto moe_beside_shared(const rms_norm& norm, const Mixture& mixture, const Inner& inner) {
  return residual_moe_beside_shared<W, Mixture, Inner>{norm, mixture, inner};
}

/// How the experts of a config get their weights from scores.
constexpr ir::router_gate router_gate_of(const decoder_config& c) {
  const family& of = family_of(c.model_type);
  return {score_of(c),
          c.routed_scaling_factor,
          of.router_added,
          of.router_least,
          c.use_expert_bias ? "exp_probs_b.bias" : "",
          c.n_group,
          c.topk_group};
}

/// The mixture of a config whose experts are gated units. Tensors ffn_gate_inp, ffn_gate_exps, ffn_up_exps and
/// ffn_down_exps. @tparam R type of the router's matrix
template <dtype W, dtype R = dtype::f32>
constexpr auto mixture_of(const decoder_config& c) {
  return moe{linear<R>{"ffn_gate_inp.weight", c.hidden_size, c.num_local_experts},
             gated_experts<W>{c.hidden_size, c.intermediate_size, c.num_local_experts, c.hidden_act},
             c.num_experts_per_tok, !c.norm_topk_prob, router_gate_of(c)};
}

/// The FFN sublayer of a block: a gated unit or, where the config has experts, a mixture. A mixture may have a shared
/// expert, whose result has a gate in some families. Tensors ffn_norm or another norm, ffn_gate, ffn_up and ffn_down,
/// or the tensors of the mixture.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W, dtype R = dtype::f32>
struct ffn_or_mixture {
  const decoder_config* c;                         ///< the model's config
  float eps;                                       ///< epsilon of the norm in front
  bool dense = false;                              ///< no experts; the unit is dense_intermediate_size wide
  std::string_view norm_name = "ffn_norm.weight";  ///< the tensor of the norm in front

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const rms_norm norm{norm_name, eps};
    const std::uint32_t width = dense ? c->dense_intermediate_size : c->intermediate_size;
    if (dense || c->num_local_experts == 0)
      return residual(norm | gated_ffn<W>{c->hidden_size, width, c->hidden_act} |
                      linear<W>{"ffn_down.weight", width, c->hidden_size})
          .forward(t, x);
    const auto experts = mixture_of<W, R>(*c);
    if (c->shared_expert_intermediate_size == 0) return residual(norm | experts).forward(t, x);
    if (has_shared_expert(family_of(c->model_type)))
      return residual_moe_with_shared<W, std::remove_const_t<decltype(experts)>>{
          norm, experts, c->hidden_size, c->shared_expert_intermediate_size, c->hidden_act}
          .forward(t, x);
    const gated_shared<W> shared{c->hidden_size, c->shared_expert_intermediate_size, c->hidden_act};
    return moe_beside_shared<W>(norm, experts, shared).forward(t, x);
  }
};

}  // namespace intaglio::graph
