// SPDX-License-Identifier: MIT
// Gated feed-forward unit that decode walks feature by feature (docs/walk.md), in the place of gated_ffn.
#pragma once

#include <type_traits>

#include "intaglio/graph/layers/gated_ffn.hpp"

namespace intaglio::graph {

/// What gated_ffn computes, to the last bit, for squared ReLU and int8 inputs of ternary products: a decode pass reads
/// the up vectors of those features alone whose gate is above 0, and the product behind the next norm the down vectors
/// of those alone whose int8 input is not 0. The memory of both holds vectors by features besides. Passes of several
/// tokens read everything, as gated_ffn does. With weights of f32, f16 or bf16: decode computes all gates and reads the
/// up and down vectors of the K features with the largest |gate score|, of equal ones the lowest, and nothing of the
/// others. K 0, or as many as there are, is the full walk: what gated_ffn computes, its down product summed by
/// features.
/// @shape  x: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
/// Trace: number of features, those that added most to the stream, which decode reports; 0: none.
/// @error  does not fit: another activation than squared ReLU for ternary weights; does not compile: other weights and
/// inputs
template <dtype W, dtype A, std::uint32_t K, std::uint32_t Trace = 0>
struct feature_ffn {
  /// Whether the walk is that of ternary weights.
  static constexpr bool ternary = W == dtype::i2_s && A == dtype::i8;
  static_assert(ternary || ((W == dtype::f32 || W == dtype::f16 || W == dtype::bf16) && A == dtype::f32),
                "walk_ffn is for ternary weights and int8 inputs, whose sums are exact in any order, and for weights "
                "of f32, f16 and bf16");
  static_assert(!ternary || K == 0, "a walk of ternary weights reads what is on, whose number is the input's");
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of gate and up
  shader::activation_function act;               ///< config.json's; of ternary weights squared ReLU

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = gated_ffn<W, A>{hidden_size, intermediate_size, act}.forward(t, x);
    if (ternary) t.walk(h);
    else t.walk_nearest(h, K == 0 || K > intermediate_size ? intermediate_size : K);
    if (Trace != 0) t.keep_trace(h, Trace);
    return h;
  }
};

/// All features: the exact walk of ternary weights, the full walk of others.
template <dtype W, dtype A = input_type<W>>
using walk_ffn = feature_ffn<W, A, 0>;

/// The K nearest features, as models take it: llama<config, W, H, D, sparse_walk<512>::ffn>.
template <std::uint32_t K>
struct sparse_walk {
  /// The layer.
  template <dtype W, dtype A>
  using ffn = feature_ffn<W, A, K>;
};

/// A walk with a trace: llama<config, W, H, D, traced_walk<32>::ffn> for all features, traced_walk<32, 512>::ffn for
/// the K nearest.
template <std::uint32_t Trace, std::uint32_t K = 0>
struct traced_walk {
  /// The layer.
  template <dtype W, dtype A>
  using ffn = feature_ffn<W, A, K, Trace>;
};

/// gated_ffn with a trace, of any codec whose products take f32 inputs. @shape as of feature_ffn
template <dtype W, dtype A, std::uint32_t Trace>
struct traced_ffn {
  static_assert(W != dtype::i2_s && A == dtype::f32,
                "traced is for ternary weights with int8 inputs, and for products of f32 inputs");
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of gate and up
  shader::activation_function act;               ///< config.json's

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = gated_ffn<W, A>{hidden_size, intermediate_size, act}.forward(t, x);
    t.keep_trace(h, Trace);
    return h;
  }
};

/// A model's own FFNs with a trace, the same bits: of ternary weights the exact walk. bitnet_b158<config, W, A, H,
/// traced<32>::ffn>.
template <std::uint32_t Trace>
struct traced {
  /// The layer.
  template <dtype W, dtype A>
  using ffn = std::conditional_t<W == dtype::i2_s && A == dtype::i8, feature_ffn<dtype::i2_s, dtype::i8, 0, Trace>,
                                 traced_ffn<W, A, Trace>>;
};

}  // namespace intaglio::graph
