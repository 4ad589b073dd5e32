// SPDX-License-Identifier: MIT
// Feed-forward unit without a gate, without its down projection.
#pragma once

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// act(Wup x + b); there is no b where no bias is named. Tensor ffn_up, or the one that `weight` names. xIELU has the
/// parameters ffn_act: factors above and up to 0, the factor of x itself, and the limit of the exponent.
/// @shape  x: [tokens, hidden_size]; bias: [intermediate_size] f32; out: [tokens, intermediate_size] f32
/// @source Vaswani et al. 2017; transformers, BertIntermediate and NemotronHMLP
template <dtype W, dtype A = input_type<W>>
struct ungated_ffn {
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of the matrix
  activation act;                                ///< config.json's activation
  std::string_view bias{};                       ///< the name of the bias; empty: none
  std::string_view weight = "ffn_up.weight";     ///< the name of the matrix
  float norm_eps = 0;                            ///< epsilon of the norm ffn_up_norm_in; 0: there is none

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = product_input<A>(t, x, weight, norm_eps);
    const ir::value_id up = t.matmul(h, weight, intermediate_size, hidden_size, W);
    return t.activated(bias.empty() ? up : t.bias(up, bias), act,
                       act == activation::xielu ? std::string_view("ffn_act.weight") : std::string_view());
  }
};

}  // namespace intaglio::graph
