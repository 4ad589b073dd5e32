// SPDX-License-Identifier: MIT
// Composition of layers: the concept of a layer, `|` that pipes layers, `residual` and `repeat`. Braces make a layer,
// parentheses combine layers. The types exist for one block only; Boost.Hana holds them and stops at `forward`.
#pragma once

#include "intaglio/core/fits_together.hpp"

#include <boost/hana/concat.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "intaglio/ir/trace.hpp"

namespace intaglio::graph {

/// A layer reads one activation and gives one: `constexpr ir::value_id forward(ir::trace&, ir::value_id) const`.
template <class T>
concept layer = requires(const T& l, ir::trace& t, ir::value_id x) {
  { l.forward(t, x) } -> std::same_as<ir::value_id>;
};

/// The first layer of a model reads no activation: `forward(ir::trace&)`.
template <class T>
concept source_layer = ir::source<T>;

/// A pipe: layers one after another.
template <class... Layers>
struct pipe {
  boost::hana::tuple<Layers...> layers;  ///< in order

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const
    requires(layer<Layers> && ...)
  {
    boost::hana::for_each(layers, [&](const auto& l) { x = l.forward(t, x); });
    return x;
  }
};

/// The first layer of a model and the layers after it.
template <source_layer Source, class Rest>
struct piped_source {
  Source source;  ///< the first layer
  Rest rest;      ///< one layer, or a pipe

  constexpr ir::value_id forward(ir::trace& t) const { return rest.forward(t, source.forward(t)); }
};

/// True for a pipe of layers.
template <class T>
inline constexpr bool is_pipe = false;
/// Specialisation for pipes: true.
template <class... Layers>
inline constexpr bool is_pipe<pipe<Layers...>> = true;

/// The layers of a pipe, or one layer, as a tuple.
template <class T>
constexpr auto as_tuple(T l) {
  if constexpr (is_pipe<T>) return l.layers;
  else return boost::hana::make_tuple(l);
}

/// Makes a pipe of the layers of a tuple.
template <class... Layers>
constexpr auto as_pipe(boost::hana::tuple<Layers...> layers) {
  return pipe<Layers...>{layers};
}

/// Puts a layer after another one; two pipes are joined into one.
template <layer A, layer B>
constexpr auto operator|(A a, B b) {
  return as_pipe(boost::hana::concat(as_tuple(a), as_tuple(b)));
}

/// Puts a layer after the first layer of a model.
template <source_layer A, layer B>
constexpr auto operator|(A a, B b) {
  return piped_source<A, B>{a, b};
}

/// The reason why a type cannot be on the right of |; empty where it can.
template <class B>
inline constexpr text<> piping_problem = message(
    layer<B> ? "" : "pipe: expected a layer after |, with forward(ir::trace&, ir::value_id) const, found another type");

/// Refuses a type that is no layer by its name, so that compilers do not list every operator|.
template <class A, class B>
  requires((layer<A> || source_layer<A>) && !layer<B>)
constexpr auto operator|(A, B) {
  static_assert(fits_together<piping_problem<B>>::model_fits, "intaglio: the model does not fit together");
}

/// A residual branch: x + body(x).
template <layer Body>
struct residual_layer {
  Body body;  ///< as wide as its input
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const { return t.add(x, body.forward(t, x)); }
};
/// Makes a residual branch: x + body(x). @error does not fit: the branch is not as wide as its input
template <layer Body>
constexpr auto residual(Body body) {
  return residual_layer<Body>{body};
}

/// The repeated blocks of a model: `body` is planned once and runs `layers` times; its tensors are "blk.N.<name>".
template <layer Body>
struct repeated {
  std::uint32_t layers;  ///< number of repetitions
  Body body;             ///< the layers of one block
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    return t.repeat(x, layers, [&](ir::value_id in) { return body.forward(t, in); });
  }
};
/// Makes the repeated blocks of a model, all alike. @param layers config.json's num_hidden_layers
template <layer Body>
constexpr auto repeat(std::uint32_t layers, Body body) {
  return repeated<Body>{layers, body};
}

/// Two kinds of block: every `period`-th layer is a `last`, all others are a `first`.
template <layer First, layer Last>
struct alternating {
  std::uint32_t period;  ///< layers from one `last` to the next
  First first;           ///< block of the other layers
  Last last;             ///< block of every `period`-th layer
};
/// Makes two kinds of block for repeat(). @param period layers from one `last` to the next
template <layer First, layer Last>
constexpr auto every(std::uint32_t period, First first, Last last) {
  return alternating<First, Last>{period, first, last};
}

/// Repeated blocks of two kinds, each planned once. The number of layers need not be a multiple of the period.
template <layer First, layer Last>
struct repeated_alternating {
  std::uint32_t layers;             ///< number of layers of both kinds
  alternating<First, Last> blocks;  ///< the two kinds
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    layer_pattern pattern{blocks.period};
    if (blocks.period != 0 && blocks.period <= layer_pattern::max_period) pattern.blocks[blocks.period - 1] = 1;
    return t.repeat(
        x, layers, pattern, [&](ir::value_id in) { return blocks.first.forward(t, in); },
        [&](ir::value_id in) { return blocks.last.forward(t, in); });
  }
};
/// Makes the repeated blocks of a model, of two kinds. @param layers config.json's num_hidden_layers
template <layer First, layer Last>
constexpr auto repeat(std::uint32_t layers, alternating<First, Last> blocks) {
  return repeated_alternating<First, Last>{layers, blocks};
}

/// Repeated blocks of several kinds in any sequence.
template <layer... Blocks>
struct repeated_in {
  std::uint32_t layers;                  ///< number of layers of all kinds
  layer_pattern pattern;                 ///< the kind of each layer
  boost::hana::tuple<Blocks...> blocks;  ///< by kind
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    return boost::hana::unpack(blocks, [&](const auto&... block) {
      return t.repeat(x, layers, pattern, [&](ir::value_id in) { return block.forward(t, in); }...);
    });
  }
};
/// Makes the repeated blocks of a model, of several kinds in any sequence. @param layers config.json's
/// num_hidden_layers
template <layer... Blocks>
constexpr auto repeat(std::uint32_t layers, const layer_pattern& pattern, Blocks... blocks) {
  return repeated_in<Blocks...>{layers, pattern, boost::hana::make_tuple(blocks...)};
}

}  // namespace intaglio::graph
