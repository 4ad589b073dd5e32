// SPDX-License-Identifier: MIT
// The tracer that layers write to. It never throws. It keeps the first thing that does not fit as one sentence; later
// ops pass through, and one static_assert refuses the model (plan/engrave.hpp).
#pragma once

#include <concepts>
#include <span>

#include "intaglio/core/array_view.hpp"
#include "intaglio/ir/stream_trace.hpp"

namespace intaglio::ir {

/// The tracer of a model: layers call its functions, and it collects their ops.
class trace : public stream_trace {
 public:
  using stream_trace::stream_trace;

  /// Token embedding: table [vocab, width], held as `type` -> f32 [tokens, width], times scale.
  constexpr value_id embedding(std::string_view name, std::uint32_t rows, std::uint32_t columns,
                               dtype type = dtype::f16, float scale = 1) {
    type = held_as(name, type);
    if (rows == 0 || columns == 0) fail(where(name).view(), "embedding needs a vocabulary and a width, found 0");
    op o{.kind = op_kind::embedding, .weight = weight(name, rows, columns, type), .scale = scale};
    return push(o, "embedding", name, dtype::f32, columns);
  }

  /// Token embedding to which rows of f32 tables are added: the row of the token's kind of text, [kinds, width], and
  /// the row of its position, [positions, width]. A table with 0 rows is left out.
  constexpr value_id embedding(std::string_view name, std::uint32_t rows, std::uint32_t columns, dtype type,
                               std::string_view kind_table, std::uint32_t kinds, std::string_view position_table,
                               std::uint32_t positions) {
    const value_id out = embedding(name, rows, columns, type);
    if (columns % 4 != 0) fail(where(name).view(), "columns in multiples of ", 4, "", columns);
    op& o = graph_.ops.back();
    if (kinds != 0) o.third = weight(kind_table, kinds, columns, dtype::f32);
    if (positions != 0) o.second = weight(position_table, positions, columns, dtype::f32);
    return out;
  }

  /// Root-mean-square norm over the last axis. @param scale factor of the result
  constexpr value_id rms_norm(value_id x, std::string_view name, float eps, float scale = 1) {
    op o{.kind = op_kind::rms_norm, .in = {x, none, none}, .weight = weight(name, 1, width(x), dtype::f32), .eps = eps};
    graph_.weights[static_cast<std::size_t>(o.weight)].scale = scale;
    if (!(eps > 0)) fail(where(name).view(), "rms_norm expects an epsilon above 0, found 0 or less");
    return push(o, "rms_norm", name, dtype::f32, width(x));
  }

  /// Layer norm: (x - mean) / sqrt(variance + eps) * weight + bias, both [width] f32. An empty name means no bias.
  /// @param scale factor of the result
  constexpr value_id layer_norm(value_id x, std::string_view name, std::string_view bias, float eps, float scale = 1) {
    op o{.kind = op_kind::layer_norm,
         .in = {x, none, none},
         .weight = weight(name, 1, width(x), dtype::f32),
         .second = bias.empty() ? none : weight(bias, 1, width(x), dtype::f32),
         .eps = eps};
    for (const weight_id id : {o.weight, o.second})
      if (id != none) graph_.weights[static_cast<std::size_t>(id)].scale = scale;
    if (!(eps > 0)) fail(where(name).view(), "layer_norm expects an epsilon above 0, found 0 or less");
    if (width(x) % 4 != 0) fail(where(name).view(), "a width in multiples of ", 4, "", width(x));
    return push(o, "layer_norm", name, dtype::f32, width(x));
  }

  /// Root-mean-square norm of each head of x, [tokens, heads, head_dim]; weight [head_dim]. An empty name means no
  /// weight.
  /// @param scale factor of the result
  constexpr value_id head_norm(value_id x, std::string_view name, float eps, std::uint32_t head_dim, float scale = 1) {
    if (head_dim == 0 || width(x) % head_dim != 0)
      fail(where(name).view(), "an input in multiples of head_dim ", head_dim, "", width(x));
    op o{.kind = op_kind::rms_norm,
         .in = {x, none, none},
         .weight = name.empty() ? none : weight(name, 1, head_dim, dtype::f32),
         .eps = eps,
         .head_dim = head_dim};
    if (o.weight != none) graph_.weights[static_cast<std::size_t>(o.weight)].scale = scale;
    if (!(eps > 0)) fail(where(name).view(), "rms_norm expects an epsilon above 0, found 0 or less");
    return push(o, "head_norm", name, dtype::f32, width(x));
  }

  /// Root-mean-square norm of each group of x, [tokens, groups, width of a group]; weight [width of x].
  constexpr value_id group_norm(value_id x, std::string_view name, float eps, std::uint32_t groups) {
    if (groups == 1) return rms_norm(x, name, eps);
    if (groups == 0 || width(x) % (4 * groups) != 0)
      fail(where(name).view(), "an input in multiples of four times its groups ", groups, "", width(x));
    op o{.kind = op_kind::rms_norm,
         .in = {x, none, none},
         .weight = weight(name, 1, width(x), dtype::f32),
         .eps = eps,
         .head_dim = groups == 0 ? 0 : width(x) / groups};
    if (!(eps > 0)) fail(where(name).view(), "rms_norm expects an epsilon above 0, found 0 or less");
    return push(o, "group_norm", name, dtype::f32, width(x));
  }

  /// Quantises f32 to int8 with one scale for each token.
  constexpr value_id quantize(value_id x, std::string_view name) {
    op o{.kind = op_kind::quantize, .in = {x, none, none}};
    return push(o, "quantize", name, dtype::i8, width(x));
  }

  /// Matrix product: weight [rows, columns] of `type`; x [tokens, columns] -> f32 [tokens, rows].
  constexpr value_id matmul(value_id x, std::string_view name, std::uint32_t rows, std::uint32_t columns, dtype type) {
    type = held_as(name, type);
    if (width(x) != columns) fail(where(name).view(), "linear input width ", columns, "", width(x));
    if (rows == 0) fail(where(name).view(), "linear expects at least one output, found 0");
    const auto block = intaglio::info(type).block_elements;
    if (block > 1 && columns % block != 0) {
      text<64> unit{" ("};
      unit.append(intaglio::name(type)).append(" blocks)");
      fail(where(name).view(), "columns in multiples of ", block, unit.view(), columns);
    }
    op o{.kind = op_kind::matmul, .in = {x, none, none}, .weight = weight(name, rows, columns, type)};
    return push(o, "matmul", name, dtype::f32, rows);
  }

  /// Adds a bias to x: x + weight; weight [width] f32.
  constexpr value_id bias(value_id x, std::string_view name) {
    op o{.kind = op_kind::bias, .in = {x, none, none}, .weight = weight(name, 1, width(x), dtype::f32)};
    return push(o, "bias", name, dtype::f32, width(x));
  }

  /// Logits plus weight; weight [width] f32.
  constexpr value_id head_bias(value_id x, std::string_view name) {
    if (width(x) % 4 != 0) fail(where(name).view(), "a width in multiples of ", 4, "", width(x));
    return bias(x, name);
  }

  /// Multiplies x by a tensor of one number.
  constexpr value_id scale(value_id x, std::string_view name) {
    op o{.kind = op_kind::scale, .in = {x, none, none}, .weight = weight(name, 1, 1, dtype::f32)};
    return push(o, "scale", name, dtype::f32, width(x));
  }

  constexpr value_id add(value_id a, value_id b) {
    if (width(a) != width(b)) fail(where("residual").view(), "a branch as wide as its input, ", width(a), "", width(b));
    op o{.kind = op_kind::add, .in = {a, b, none}};
    return push(o, "add", "residual", dtype::f32, width(a));
  }

  /// Bounds x softly: bound * tanh(x / bound).
  constexpr value_id softcap(value_id x, float bound) {
    if (width(x) % 4 != 0) fail(where("softcap").view(), "a width in multiples of ", 4, "", width(x));
    op o{.kind = op_kind::gated, .in = {x, x, none}, .scale = bound, .act = shader::softcap{}};
    return push(o, "softcap", "logits", dtype::f32, width(x));
  }
};

/// A whole model as a layer: it computes logits from tokens and reads no activation.
template <class T>
concept source = requires(const T& layer, trace& t) {
  { layer.forward(t) } -> std::same_as<value_id>;
};

/// A type that a plan can be made of: its `static constexpr graph()` gives the layers of a whole model.
template <class Model>
concept traceable = requires {
  { Model::graph() } -> source;
};

/// A model whose weights do not all have the types that its layers say: `held` lists other types, and `sets` the set of
/// each layer.
template <class Model>
concept holds_own = requires {
  array_view<const held_type>(Model::held);
  std::span<const std::uint8_t>(Model::sets);
};
/// The ops that a model's layers append, as a graph.
template <traceable Model>
constexpr ir::graph traced() {
  const auto through = [](trace t) {
    Model::graph().forward(t);
    return t.graph();
  };
  if constexpr (holds_own<Model>) return through(trace(Model::held, Model::sets));
  else return through(trace());
}

}  // namespace intaglio::ir
