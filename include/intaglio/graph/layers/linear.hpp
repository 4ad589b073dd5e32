// SPDX-License-Identifier: MIT
// Matrix products: y = W x, and the language model head.
#pragma once

#include "intaglio/graph/layer.hpp"

namespace intaglio::graph {

/// The type of a product's input, unless the model says otherwise: int8 for ternary weights (Wang et al. 2023, BitNet),
/// else f32.
template <dtype W>
inline constexpr dtype input_type = W == dtype::i2_s ? dtype::i8 : dtype::f32;

/// The type of a model's head beside products with weights W, and of an embedding that is the head. As in
/// llama-quantize, coarse codecs leave the head in a finer one. Where `columns` is no multiple of 256 it is q8_0.
constexpr dtype head_type(dtype W, std::uint32_t columns) {
  const bool coarse = info(W).block_elements > 1 && W != dtype::q8_0 && !is_ternary(W);
  return !coarse ? W : columns % 256 == 0 ? dtype::q6_k : dtype::q8_0;
}

/// Appends what makes x the input of a product: x quantised to int8 with one scale for each token, or unchanged.
template <dtype A>
constexpr ir::value_id activations(ir::trace& t, ir::value_id x, std::string_view name) {
  static_assert(A == dtype::i8 || A == dtype::f32, "inputs of a product are i8 or f32");
  if constexpr (A == dtype::i8) return t.quantize(x, name);
  else return x;
}

/// The norm in front of one matrix, which other matrices of the same input do not share: "attn_q_norm_in.weight" for
/// "attn_q.weight".
/// @source microsoft/BitNet, docs/bitnet-embeddings-i2s-guide.md (BitLinear)
constexpr std::string_view projection_norm(std::string_view weight) {
  constexpr std::string_view names[] = {
      "attn_q_norm_in.weight",   "attn_k_norm_in.weight", "attn_v_norm_in.weight",  "attn_output_norm_in.weight",
      "ffn_gate_norm_in.weight", "ffn_up_norm_in.weight", "ffn_down_norm_in.weight"};
  const std::string_view stem = weight.substr(0, weight.find('.'));
  for (const std::string_view each : names)
    if (each.substr(0, each.find("_norm_in")) == stem) return each;
  return {};
}

/// Appends what makes x the input of the product with one matrix, after the matrix's own norm.
/// @param eps epsilon of the norm; 0: the matrix has none
template <dtype A>
constexpr ir::value_id product_input(ir::trace& t, ir::value_id x, std::string_view weight, float eps) {
  return activations<A>(t, eps == 0 ? x : t.rms_norm(x, projection_norm(weight), eps), weight);
}

/// Matrix product y = W x + b; there is no b where no bias is named.
/// @tparam W any float or quantised type
/// @shape  weight: [out, in]; bias: [out] f32; x: [tokens, in] f32; y: [tokens, out] f32
/// @error  does not fit: a bias of a product that is neither added to the stream nor a choice of experts; x is not `in`
/// wide, or `in` is no multiple of W's block
template <dtype W, dtype A = input_type<W>>
struct linear {
  std::string_view weight;  ///< the tensor's name
  std::uint32_t in, out;    ///< its columns and rows
  std::string_view bias{};  ///< the name of the bias; empty: none
  float norm_eps = 0;       ///< epsilon of the matrix's own norm; 0: it has none
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id y = t.matmul(product_input<A>(t, x, weight, norm_eps), weight, out, in, W);
    return bias.empty() ? y : t.bias(y, bias);
  }
};

/// The language model head: logits over the vocabulary. Naming the embedding's tensor ties the two. Where a bias is
/// named, [vocab_size] f32, it is added to the product.
/// @shape  weight: [vocab_size, hidden_size], held as type (f16, bf16, f32); logits: [tokens, vocab_size] f32
struct lm_head {
  std::string_view weight;                ///< the tensor's name
  std::uint32_t vocab_size, hidden_size;  ///< its rows and columns
  dtype type = dtype::f16;                ///< the type in which the device holds the head
  float softcap = 0;                      ///< the logits are softcap * tanh(product / softcap); 0: the product
  std::string_view bias{};                ///< the name of the bias; empty: none
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id product = t.matmul(x, weight, vocab_size, hidden_size, type),
                       biased = bias.empty() ? product : t.head_bias(product, bias),
                       logits = softcap == 0 ? biased : t.softcap(biased, softcap);
    t.output(logits, product);
    return logits;
  }
};

}  // namespace intaglio::graph
