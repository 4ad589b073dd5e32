// SPDX-License-Identifier: MIT
// Mixture of experts: a router chooses a few of many gated units for every token.
#pragma once

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// The gated units of a mixture: down_e(act(gate_e x, up_e x)) for the experts e of a token, one result after the
/// other. Tensors ffn_gate_exps, ffn_up_exps and ffn_down_exps hold all experts.
/// @shape  x: [tokens, hidden_size]; choice: [tokens, 2 * top_k] of ir::trace::route; out: [tokens, top_k *
/// hidden_size] f32
template <dtype W>
struct gated_experts {
  std::uint32_t hidden_size, intermediate_size, num_local_experts;  ///< columns, rows, and number of the experts
  shader::activation_function act;                                  ///< of the gates

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x, ir::value_id choice) const {
    const ir::value_id gate =
        t.expert_matmul(x, choice, "ffn_gate_exps.weight", num_local_experts, intermediate_size, hidden_size, W);
    const ir::value_id up =
        t.expert_matmul(x, choice, "ffn_up_exps.weight", num_local_experts, intermediate_size, hidden_size, W);
    return t.expert_matmul(t.gated(gate, up, act), choice, "ffn_down_exps.weight", num_local_experts, hidden_size,
                           intermediate_size, W);
  }
};

/// Experts without a gate: down_e(act(up_e x)) for the experts e of a token, one result after the other. Tensors
/// ffn_up_exps and ffn_down_exps hold all experts.
/// @shape  as gated_experts
/// @source transformers, NemotronHMLP in NemotronHMOE
template <dtype W>
struct ungated_experts {
  std::uint32_t hidden_size, intermediate_size, num_local_experts;  ///< columns, rows, and number of the experts
  activation act;                                                   ///< config.json's activation

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x, ir::value_id choice) const {
    const ir::value_id up =
        t.expert_matmul(x, choice, "ffn_up_exps.weight", num_local_experts, intermediate_size, hidden_size, W);
    return t.expert_matmul(t.activated(up, act), choice, "ffn_down_exps.weight", num_local_experts, hidden_size,
                           intermediate_size, W);
  }
};

/// gated_experts whose products have biases. Tensors ffn_gate_exps.bias, ffn_up_exps.bias and ffn_down_exps.bias hold
/// the biases of all experts, one after the other.
template <dtype W>
struct biased_experts {
  std::uint32_t hidden_size, intermediate_size, num_local_experts;  ///< columns, rows, and number of the experts
  shader::activation_function act;                                  ///< of gates and ups

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x, ir::value_id choice) const {
    const auto product = [&](ir::value_id of, std::string_view name, std::uint32_t rows, std::uint32_t columns) {
      return t.expert_matmul(of, choice, name, num_local_experts, rows, columns, W);
    };
    const auto biased = [&](ir::value_id y, std::string_view name) {
      return t.expert_bias(y, choice, name, num_local_experts);
    };
    const ir::value_id gate = product(x, "ffn_gate_exps.weight", intermediate_size, hidden_size),
                       up = product(x, "ffn_up_exps.weight", intermediate_size, hidden_size);
    const ir::value_id biased_gate = biased(gate, "ffn_gate_exps.bias"), biased_up = biased(up, "ffn_up_exps.bias");
    const ir::value_id h = t.gated(biased_gate, biased_up, act);
    return biased(product(h, "ffn_down_exps.weight", hidden_size, intermediate_size), "ffn_down_exps.bias");
  }
};

/// An expert layer reads a token's choice of experts besides its input.
template <class T>
concept expert_layer = requires(const T& l, ir::trace& t, ir::value_id x) {
  { l.forward(t, x, x) } -> std::same_as<ir::value_id>;
};

/// Mixture of experts: the sum over the top_k experts e with the largest router(x) of weight_e * experts_e(x). The
/// weights are a softmax over the chosen router(x) or, with over_all, over all of them; `gate` describes other weights.
/// @shape  x, out: [tokens, hidden_size] f32
/// @error  does not fit: more experts a token than there are
/// @source Shazeer et al. 2017; Jiang et al. 2024 (Mixtral); transformers, MixtralSparseMoeBlock
template <layer Router, expert_layer Experts>
struct moe {
  Router router;           ///< gives the scores of all experts
  Experts experts;         ///< computes the chosen experts
  std::uint32_t top_k;     ///< number of experts of a token
  bool over_all = false;   ///< whether the softmax is over all experts
  ir::router_gate gate{};  ///< how scores become the experts' weights

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id choice = choose(t, x);
    return sum(t, experts.forward(t, x, choice), choice);
  }
  /// Chooses the experts of a token, for layers with other steps in between; returns what ir::trace::route does.
  constexpr ir::value_id choose(ir::trace& t, ir::value_id x) const {
    return t.route(router.forward(t, x), "ffn_gate_inp.weight", top_k, over_all, {}, gate);
  }
  /// Adds the results of the chosen experts by their weights.
  constexpr ir::value_id sum(ir::trace& t, ir::value_id results, ir::value_id choice) const {
    return t.weigh(results, choice, "ffn_down_exps.weight");
  }
};
/// @{
/// Deduces the types of router and experts.
template <class Router, class Experts>
moe(Router, Experts, std::uint32_t) -> moe<Router, Experts>;
template <class Router, class Experts>
moe(Router, Experts, std::uint32_t, bool) -> moe<Router, Experts>;
template <class Router, class Experts>
moe(Router, Experts, std::uint32_t, bool, ir::router_gate) -> moe<Router, Experts>;
/// @}

}  // namespace intaglio::graph
