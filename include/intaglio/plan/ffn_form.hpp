// SPDX-License-Identifier: MIT
// Other forms of a model's FFNs, for plans made while a program runs. They correspond to graph::walk_ffn and
// graph::traced in a model's definition.
#pragma once

#include <cstdint>

#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/catalogue.hpp"

namespace intaglio::plan {

/// Forms of the FFNs in decode.
struct ffn_form {
  bool walk = false;  ///< as graph::walk_ffn: the exact walk for ternary weights after squared ReLU, the full walk for
                      ///< f32, f16 and bf16
  std::uint32_t traced = 0;  ///< as graph::traced: number of features that are reported for each layer and token; for
                             ///< ternary weights the features that the exact walk reads
};

/// Marks the FFN of every layer. @error in the graph's failure: an FFN that cannot have the form
constexpr void shape_ffns(ir::graph& g, ffn_form form) {
  const auto refuse = [&](auto... parts) {
    if (g.failure.empty()) g.failure.append("ffn: expected ", parts...);
  };
  if (form.traced > kernels::most_traced)
    refuse("a trace of at least 1 and at most ", kernels::most_traced, " features, found ", form.traced);
  if (!form.walk && form.traced == 0) return;
  std::uint32_t features = 0;
  for (ir::op& o : g.ops) {
    if (o.kind != ir::op_kind::gated || o.where != ir::section::period || o.by_layer) continue;
    const std::uint32_t found = g.values[static_cast<std::size_t>(o.out)].width;
    if (form.traced != 0 && features != 0 && features != found)
      refuse("FFNs of ", features, " features in all layers to trace, found ", found);
    features = found;
    o.traced = form.traced;
    for (const ir::op& gate : g.ops) {
      if (gate.out != o.in[0] || gate.weight == ir::none) continue;
      const dtype weight = g.weights[static_cast<std::size_t>(gate.weight)].type,
                  input = g.values[static_cast<std::size_t>(gate.in[0])].type;
      if (gate.kind == ir::op_kind::matmul && weight == dtype::i2_s && input == dtype::i8 &&
          o.act == shader::activation_function(activation::relu_squared))
        o.walk = true;
      else if (gate.kind == ir::op_kind::matmul &&
               (weight == dtype::f32 || weight == dtype::f16 || weight == dtype::bf16) && input == dtype::f32)
        o.nearest = form.walk ? g.values[static_cast<std::size_t>(o.out)].width : o.nearest;
      else if (form.walk)
        refuse("ternary weights after squared ReLU, or weights of f32, f16 or bf16, to walk, found ", name(weight));
    }
  }
}

}  // namespace intaglio::plan
