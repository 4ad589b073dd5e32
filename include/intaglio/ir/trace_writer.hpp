// SPDX-License-Identifier: MIT
// Writes a graph: its ops, values and weights, its repeated blocks, and the first thing that does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/by_pointer.hpp"
#include "intaglio/ir/op.hpp"

namespace intaglio::ir {

/// The type in which a file holds a tensor. A plan made at run time uses it instead of the layer's own.
struct held_type {
  std::string_view name;  ///< the name that layers use: "attn_q.weight" for all blocks
  dtype type;
  std::uint8_t set = 0;  ///< the set of layers that hold it in this type
};

/// Writes a graph. It never throws.
class trace_writer {
 public:
  constexpr trace_writer() = default;
  /// Makes a trace that refers to both arguments, which must outlive it.
  /// @param held types that replace the layers' own
  /// @param sets the set of each layer in `held`; layers of one block and one set are a kind; empty: all layers have
  /// set 0
  constexpr explicit trace_writer(array_view<const held_type> held, std::span<const std::uint8_t> sets = {})
      : held_(held), sets_(sets) {}

  constexpr const ir::graph& graph() const { return graph_; }
  constexpr bool failed() const { return !graph_.failure.empty(); }

  /// Keeps the first failure: "blk.*.ffn_down.weight: linear expects input width 6900, found 6912".
  constexpr void fail(std::string_view layer, std::string_view expects, std::uint64_t expected, std::string_view unit,
                      std::uint64_t found) {
    if (failed()) return;
    graph_.failure.append(layer)
        .append(": expected ")
        .append(expects)
        .append(expected)
        .append(unit)
        .append(", found ")
        .append(found);
  }
  constexpr void fail(std::string_view layer, std::string_view sentence) {
    if (!failed()) graph_.failure.append(layer).append(": ").append(sentence);
  }

  constexpr std::uint32_t width(value_id id) const {
    return id == none ? 0 : graph_.values[static_cast<std::size_t>(id)].width;
  }
  constexpr dtype type(value_id id) const {
    return id == none ? dtype::f32 : graph_.values[static_cast<std::size_t>(id)].type;
  }
  /// A tensor's name as messages print it: "blk.*." is in front of a tensor of the period.
  constexpr text<64> where(std::string_view name) const {
    text<64> out;
    if (section_ == section::period) out.append("blk.*.");
    out.append(name);
    return out;
  }

  /// Traces each kind of block once and notes the kind of each layer. The output of a block is the input of the next
  /// one.
  /// @param body body(kind, x) traces a block of a kind
  template <class Body>
  constexpr value_id repeat_kinds(value_id x, std::uint32_t layers, const layer_pattern& pattern, std::uint32_t kinds,
                                  Body&& body) {
    if (section_ != section::prologue) fail("repeat", "expected one repeat in a model, found a second");
    if (layers == 0) fail("repeat", "expected num_hidden_layers of at least 1, found 0");
    if (pattern.period == 0 || pattern.period > layer_pattern::max_period)
      fail("repeat", "a pattern of at least 1 layer and at most ", layer_pattern::max_period, "", pattern.period);
    else if (pattern.kinds() > kinds)
      fail("repeat", "a block for each kind of the pattern, ", pattern.kinds(), "", kinds);
    section_ = section::period;
    block_ = 0;
    graph_.layers = layers;
    graph_.pattern = pattern;
    graph_.stream_in = x;
    if (sets_.empty())
      for (std::uint8_t kind = 0; kind < kinds; ++kind) one_block(x, [&](value_id in) { return body(kind, in); });
    else in_sets(x, layers, pattern, body);
    graph_.stream_out = x;
    section_ = section::epilogue;
    block_ = 0;
    return x;
  }
  /// Repeats layers of several kinds, with a block for each kind.
  template <class... Blocks>
  constexpr value_id repeat(value_id x, std::uint32_t layers, const layer_pattern& pattern, Blocks&&... blocks) {
    return repeat_kinds(x, layers, pattern, sizeof...(Blocks), [&](std::uint8_t kind, value_id in) {
      value_id out = none;
      std::uint8_t index = 0;
      ((index++ == kind ? void(out = blocks(in)) : void()), ...);
      return out;
    });
  }
  /// Repeats layers that are all of one kind.
  template <class Body>
  constexpr value_id repeat(value_id x, std::uint32_t layers, Body&& body) {
    return repeat(x, layers, layer_pattern{}, body);
  }

  /// Sets the graph's output. @param product the result of the head's matrix product; none: the logits are that result
  constexpr void output(value_id logits, value_id product = none) {
    graph_.output = logits;
    graph_.head = product == none ? logits : product;
  }

 protected:
  constexpr dtype held_as(std::string_view name, dtype type) const {
    for (const held_type& each : held_)
      if (each.name == name && each.set == set_) return each.type;
    return type;
  }

  constexpr weight_id weight(std::string_view name, std::uint32_t rows, std::uint32_t columns, dtype type) {
    if (name.size() >= 48) fail("weight", "expected a tensor name under 48 characters");
    const std::uint64_t kind = section_ == section::period ? std::uint64_t{1} << block_ : 0;
    for (ir::weight& known : by_pointer(graph_.weights)) {
      if (known.name != name || (known.where == section::period) != (section_ == section::period)) continue;
      const bool alike = known.type == type && known.rows == rows && known.columns == columns;
      if (!alike && kind != 0 && (known.kinds & kind) == 0) continue;  // layers of another kind may differ
      if (known.rows != rows || known.columns != columns)
        fail(where(name).view(), "the shape of its first use, rows ", known.rows, "", rows);
      if (known.type != type) {
        text<96> sentence{"expected the type of its first use, "};
        sentence.append(known.type, ", found ", type);
        fail(where(name).view(), sentence.view());
      }
      known.kinds |= kind;
      return static_cast<weight_id>(&known - graph_.weights.data());
    }
    graph_.weights.push_back({text<48>{name}, rows, columns, type, section_, kind});
    return static_cast<weight_id>(graph_.weights.size()) - 1;
  }

  constexpr value_id push(op o, std::string_view layer, std::string_view name, dtype type, std::uint32_t width) {
    o.where = section_;
    o.block = block_;
    o.layer.append(layer).append(' ').append(name.substr(0, 38));
    o.out = static_cast<value_id>(graph_.values.size());
    graph_.values.push_back({type, width, section_, text<32>{layer}});
    graph_.ops.push_back(o);
    return o.out;
  }

  ir::graph graph_;
  section section_ = section::prologue;
  std::uint8_t block_ = 0;

 private:
  /// Traces a block for each pair of a block kind and a set of types that occurs. Each such pair is a kind of layer.
  template <class Body>
  constexpr void in_sets(value_id& x, std::uint32_t layers, const layer_pattern& pattern, Body& body) {
    if (sets_.size() != layers) fail("repeat", "a set of types for each layer, ", layers, "", sets_.size());
    if (layers > layer_pattern::max_period)
      fail("repeat", "layers of several sets of types, at most ", layer_pattern::max_period, "", layers);
    if (failed()) return;
    struct kind {
      std::uint8_t block, set;
    };
    std::vector<kind> found;
    std::vector<std::uint8_t> kinds;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      std::size_t at = 0;
      while (at < found.size() && (found[at].block != pattern(layer) || found[at].set != sets_[layer])) ++at;
      if (at == found.size()) found.push_back({pattern(layer), sets_[layer]});
      kinds.push_back(static_cast<std::uint8_t>(at));
    }
    if (found.size() > layer_pattern::max_kinds)
      return fail("repeat", "layers of several sets of types in at most ", layer_pattern::max_kinds, " kinds",
                  found.size());
    for (const kind& each : found) {
      set_ = each.set;
      one_block(x, [&](value_id in) { return body(each.block, in); });
    }
    set_ = 0;
    graph_.pattern = layer_pattern::of(kinds);
  }

  template <class Body>
  constexpr void one_block(value_id& x, Body&& body) {
    const value_id out = body(x);
    if (width(out) != width(x)) fail("repeat", "a block as wide as its input, ", width(x), "", width(out));
    graph_.block_ends.push_back(out);
    x = out;
    ++block_;
  }

  array_view<const held_type> held_{};
  std::span<const std::uint8_t> sets_{};
  std::uint8_t set_ = 0;
};

}  // namespace intaglio::ir
