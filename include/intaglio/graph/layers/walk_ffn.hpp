// SPDX-License-Identifier: MIT
// Gated feed-forward unit that decode computes feature by feature (docs/walk.md), instead of gated_ffn.
#pragma once

#include <type_traits>

#include "intaglio/graph/layers/gated_ffn.hpp"

namespace intaglio::graph {

/// A gated feed-forward unit of which decode reads only some features. Passes of several tokens read everything, as
/// gated_ffn does. Device memory holds up and down also as one vector for each feature.
/// Ternary weights, squared ReLU and int8 inputs: the result equals gated_ffn's to the last bit. Decode reads only
/// the up vectors of features whose gate is above 0. The product after the next norm reads only the down vectors of
/// features whose int8 input is not 0.
/// Weights of f32, f16 or bf16: decode computes all gates. It reads the up and down vectors of the K features with the
/// largest |gate score|, the lowest ones where several are equal, and no other vectors. K of 0, or of at least the
/// number of features, is the full walk: it computes what gated_ffn computes, with the sum of the down product in the
/// order of features.
/// @shape  x: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
/// @tparam Trace how many of the features that added most to the stream decode reports; 0: none
/// @error  does not fit: another activation than squared ReLU for ternary weights; does not compile: other weights and
/// inputs
template <dtype W, dtype A, std::uint32_t K, std::uint32_t Trace = 0>
struct feature_ffn {
  /// Whether this is the walk of ternary weights.
  static constexpr bool ternary = W == dtype::i2_s && A == dtype::i8;
  static_assert(ternary || ((W == dtype::f32 || W == dtype::f16 || W == dtype::bf16) && A == dtype::f32),
                "walk_ffn is for ternary weights and int8 inputs, whose sums are exact in any order, and for weights "
                "of f32, f16 and bf16");
  static_assert(!ternary || K == 0, "a walk of ternary weights reads what is on, whose number is the input's");
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of gate and up
  shader::activation_function act;               ///< config.json's; ternary weights need squared ReLU
  float norm_eps = 0;                            ///< as gated_ffn's

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = gated_ffn<W, A>{hidden_size, intermediate_size, act, norm_eps}.forward(t, x);
    if (ternary) t.walk(h);
    else t.walk_nearest(h, K == 0 || K > intermediate_size ? intermediate_size : K);
    if (Trace != 0) t.keep_trace(h, Trace);
    return h;
  }
};

/// A walk through all features: exact for ternary weights, the full walk for others.
template <dtype W, dtype A = input_type<W>>
using walk_ffn = feature_ffn<W, A, 0>;

/// A walk through the K nearest features, in the form that models take: llama<config, W, H, D, sparse_walk<512>::ffn>.
template <std::uint32_t K>
struct sparse_walk {
  /// The layer of this walk.
  template <dtype W, dtype A>
  using ffn = feature_ffn<W, A, K>;
};

/// A walk with a trace: llama<config, W, H, D, traced_walk<32>::ffn> for all features, traced_walk<32, 512>::ffn for
/// the 512 nearest.
template <std::uint32_t Trace, std::uint32_t K = 0>
struct traced_walk {
  /// The layer of this walk.
  template <dtype W, dtype A>
  using ffn = feature_ffn<W, A, K, Trace>;
};

/// gated_ffn with a trace, for any codec whose products take f32 inputs. @shape as feature_ffn
template <dtype W, dtype A, std::uint32_t Trace>
struct traced_ffn {
  static_assert(W != dtype::i2_s && A == dtype::f32,
                "traced is for ternary weights with int8 inputs, and for products of f32 inputs");
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of gate and up
  shader::activation_function act;               ///< config.json's
  float norm_eps = 0;                            ///< as gated_ffn's

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = gated_ffn<W, A>{hidden_size, intermediate_size, act, norm_eps}.forward(t, x);
    t.keep_trace(h, Trace);
    return h;
  }
};

/// A model's own FFNs with a trace, which changes no bits of the result. Ternary weights use the exact walk. Example:
/// bitnet_b158<config, W, A, H, traced<32>::ffn>.
template <std::uint32_t Trace>
struct traced {
  /// The layer of this trace.
  template <dtype W, dtype A>
  using ffn = std::conditional_t<W == dtype::i2_s && A == dtype::i8, feature_ffn<dtype::i2_s, dtype::i8, 0, Trace>,
                                 traced_ffn<W, A, Trace>>;
};

}  // namespace intaglio::graph
