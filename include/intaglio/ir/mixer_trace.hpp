// SPDX-License-Identifier: MIT
// Ops that mix the tokens of a text: rotation, caches, attention, convolutions, delta rules.
#pragma once

#include <cstdint>
#include <string_view>

#include "intaglio/ir/trace_writer.hpp"

namespace intaglio::ir {

/// Traces ops that work across tokens.
class mixer_trace : public trace_writer {
 public:
  using trace_writer::trace_writer;

  constexpr value_id rope(value_id x, std::string_view name, std::uint32_t head_dim, const rope_parameters& how) {
    if (head_dim == 0 || head_dim % 4 != 0) fail(where(name).view(), "rope head_dim in multiples of ", 4, "", head_dim);
    if (!(how.theta > 1)) fail(where(name).view(), "rope expects a theta above 1, found 1 or less");
    const rope_scaling_config& scaling = how.scaling;
    if (!(scaling.factor >= 1)) fail(where(name).view(), "rope scaling expects a factor of at least 1, found less");
    if ((scaling.type == rope_type::llama3 || scaling.type == rope_type::yarn) &&
        (!(scaling.high_freq_factor > scaling.low_freq_factor) || !(scaling.low_freq_factor > 0) ||
         scaling.original_max_position_embeddings == 0))
      fail(where(name).view(),
           "rope scaling llama3 or yarn expects high_freq_factor above low_freq_factor above 0 and "
           "original_max_position_embeddings, found others");
    op o{.kind = op_kind::rope, .in = {x, none, none}, .rope = how, .head_dim = head_dim};
    return push(o, "rope", name, type(x), width(x));
  }

  /// Heads of x, each with the same head of y after it.
  constexpr value_id join(value_id x, value_id y, std::string_view name, std::uint32_t heads) {
    if (heads == 0 || width(x) % (4 * heads) != 0 || width(y) % (4 * heads) != 0)
      fail(where(name).view(), "heads as wide as multiples of 4, of which there are ", heads, "", width(x) + width(y));
    op o{.kind = op_kind::join, .in = {x, y, none}, .heads = heads};
    return push(o, "join", name, dtype::f32, width(x) + width(y));
  }

  /// @param window positions that attention will see, the token's own included; 0: all
  /// @param value_dim channels of a value; 0: head_dim
  constexpr void cache_write(value_id keys, value_id values, std::uint32_t kv_heads, std::uint32_t head_dim,
                             std::uint32_t window = 0, std::uint32_t value_dim = 0) {
    op o{.kind = op_kind::cache_write,
         .in = {keys, values, none},
         .kv_heads = kv_heads,
         .head_dim = head_dim,
         .window = window,
         .value_dim = value_dim};
    if (value_dim != 0 && width(values) != kv_heads * value_dim)
      fail(where("self_attention").view(), "values of width ", kv_heads * value_dim, "", width(values));
    if (value_dim == 0 && width(keys) != width(values))
      fail(where("self_attention").view(), "values as wide as keys, ", width(keys), "", width(values));
    o.where = section_;
    o.block = block_;
    o.layer = where("kv_cache").view();
    graph_.ops.push_back(o);
  }

  /// @param scale of the scores, 0: 1 / sqrt(head_dim)  @param window as for cache_write
  /// @param softcap bound of scores, 0: none  @param sinks tensor [heads] with one more score for each softmax; empty:
  /// none
  /// @param ahead positions of the pass after its own that a token sees; all_ahead: all of them
  /// @param value_dim channels of a value, and of a head of the result; 0: head_dim
  constexpr value_id attention(value_id query, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim,
                               float scale = 0, std::uint32_t window = 0, float softcap = 0,
                               std::string_view sinks = {}, std::uint32_t ahead = 0, std::uint32_t value_dim = 0) {
    if (head_dim == 0 || head_dim % 8 != 0)
      fail(where("self_attention").view(), "head_dim in multiples of ", 8, "", head_dim);
    if (kv_heads == 0 || heads % kv_heads != 0)
      fail(where("self_attention").view(), "num_attention_heads in multiples of num_key_value_heads ", kv_heads, "",
           heads);
    if (width(query) != heads * head_dim)
      fail(where("self_attention").view(), "queries of width num_attention_heads * head_dim = ", heads * head_dim, "",
           width(query));
    op o{.kind = op_kind::attention,
         .in = {query, none, none},
         .weight = sinks.empty() ? none : weight(sinks, 1, heads, dtype::f32),
         .scale = scale,
         .heads = heads,
         .kv_heads = kv_heads,
         .head_dim = head_dim,
         .window = window,
         .value_dim = value_dim,
         .softcap = softcap,
         .ahead = ahead};
    return push(o, "attention", "self_attention", dtype::f32, value_dim != 0 ? heads * value_dim : width(query));
  }

  /// Causal convolution of each channel separately: y[t] = sum over k of weight[k] z[t - taps + 1 + k], where z is 0 in
  /// front of the first token.
  /// @param multiplied true: x is [tokens, 3 width], the parts B, C and h, and the result is C y for z = B h; false: x
  /// is [tokens, width], and the result is silu(y) for z = x
  /// @param bias [channels], added in front of the silu; empty: none
  constexpr value_id short_conv(value_id x, std::string_view name, std::uint32_t taps, bool multiplied,
                                std::string_view bias = {}) {
    const std::uint32_t channels = multiplied ? width(x) / 3 : width(x);
    if (taps < 2 || taps > 8)
      fail(where(name).view(), "a convolution over at least 2 and at most ", 8, " tokens", taps);
    if (channels % 4 != 0) fail(where(name).view(), "channels in multiples of ", 4, "", channels);
    op o{.kind = op_kind::short_conv,
         .in = {x, none, none},
         .weight = weight(name, channels, taps, dtype::f32),
         .second = bias.empty() ? none : weight(bias, 1, channels, dtype::f32),
         .taps = taps,
         .multiplied = multiplied};
    return push(o, "short_conv", name, dtype::f32, channels);
  }

  /// The gated delta rule (kernels/delta_net.hpp) -> f32 [tokens, delta.value_size()].
  /// @param qkv [tokens, delta.qkv_size()]
  /// @param beta, alpha [tokens, value_heads]; or both are one value, [tokens, 2 * value_heads]: for each key head the
  /// betas, then the alphas, of its value heads
  /// @param decay, shift names of tensors, [value_heads]
  constexpr value_id delta_net(value_id qkv, value_id beta, value_id alpha, std::string_view decay,
                               std::string_view shift, const delta_net_config& delta) {
    const std::uint32_t gates = beta == alpha ? 2 * delta.value_heads : delta.value_heads;
    if (delta.key_heads == 0 || delta.value_heads == 0 || delta.value_heads % delta.key_heads != 0)
      fail(where(decay).view(), "linear_num_value_heads in multiples of linear_num_key_heads ", delta.key_heads, "",
           delta.value_heads);
    if (delta.key_dim == 0 || delta.key_dim > 256)
      fail(where(decay).view(), "linear_key_head_dim of at least 1 and at most ", 256, "", delta.key_dim);
    if (delta.value_dim == 0 || delta.value_dim % 4 != 0)
      fail(where(decay).view(), "linear_value_head_dim in multiples of ", 4, "", delta.value_dim);
    if (width(qkv) != delta.qkv_size())
      fail(where(decay).view(), "queries, keys and values of ", delta.qkv_size(), "", width(qkv));
    if (width(beta) != gates || width(alpha) != gates)
      fail(where(decay).view(), "a beta and an alpha a head, ", gates, "", width(beta));
    op o{.kind = op_kind::delta_net,
         .in = {qkv, beta, alpha},
         .weight = weight(decay, 1, delta.value_heads, dtype::f32),
         .second = weight(shift, 1, delta.value_heads, dtype::f32),
         .delta = delta};
    return push(o, "delta_net", decay, dtype::f32, delta.value_size());
  }

  /// Mamba-2's rule and its gate (kernels/delta_net.hpp) -> f32 [tokens, sizes.value_size()].
  /// @param xbc [tokens, sizes.qkv_size()]: values, keys, queries
  /// @param gate [tokens, sizes.value_size()]  @param steps [tokens, value_heads]
  /// @param decay, shift, skip names of tensors, [value_heads]
  constexpr value_id state_space(value_id xbc, value_id gate, value_id steps, std::string_view decay,
                                 std::string_view shift, std::string_view skip, const delta_net_config& sizes) {
    if (sizes.key_heads == 0 || sizes.value_heads == 0 || sizes.value_heads % sizes.key_heads != 0)
      fail(where(decay).view(), "heads in multiples of groups ", sizes.key_heads, "", sizes.value_heads);
    if (sizes.key_dim == 0 || sizes.key_dim > 256)
      fail(where(decay).view(), "a state of at least 1 and at most ", 256, " rows", sizes.key_dim);
    if (sizes.value_dim == 0 || sizes.value_dim % 4 != 0)
      fail(where(decay).view(), "heads as wide as multiples of ", 4, "", sizes.value_dim);
    if (width(xbc) != sizes.qkv_size() || width(gate) != sizes.value_size())
      fail(where(decay).view(), "values, keys and queries of ", sizes.qkv_size(), "", width(xbc));
    if (width(steps) != sizes.value_heads)
      fail(where(decay).view(), "a step a head, ", sizes.value_heads, "", width(steps));
    op o{.kind = op_kind::state_space,
         .in = {xbc, gate, steps},
         .weight = weight(decay, 1, sizes.value_heads, dtype::f32),
         .second = weight(shift, 1, sizes.value_heads, dtype::f32),
         .third = weight(skip, 1, sizes.value_heads, dtype::f32),
         .delta = sizes};
    return push(o, "state_space", decay, dtype::f32, sizes.value_size());
  }

  /// Multiplies heads, [tokens, heads, head_dim], by an activation of their gates; the gate is as wide, or [tokens,
  /// heads].
  /// @param norm of each head, or empty  @param logistic true: sigmoid; false: silu
  constexpr value_id head_gate(value_id x, value_id gate, std::string_view norm, float eps, std::uint32_t head_dim,
                               bool logistic) {
    if (head_dim == 0 || head_dim % 4 != 0 || width(x) % head_dim != 0)
      fail(where("head_gate").view(), "an input in multiples of head_dim, which is one of 4, ", head_dim, "", width(x));
    else if (width(gate) != width(x) && width(gate) != width(x) / head_dim)
      fail(where("head_gate").view(), "a gate as wide as its input or one a head, ", width(x), "", width(gate));
    op o{.kind = op_kind::head_gate,
         .in = {x, gate, none},
         .weight = norm.empty() ? none : weight(norm, 1, head_dim, dtype::f32),
         .eps = eps,
         .head_dim = head_dim,
         .logistic = logistic};
    return push(o, "head_gate", norm.empty() ? std::string_view("gate") : norm, dtype::f32, width(x));
  }
};

}  // namespace intaglio::ir
