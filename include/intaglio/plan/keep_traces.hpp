// SPDX-License-Identifier: MIT
// Values that a decode pass of traced FFNs keeps: for every layer the gate scores, the features that count and the
// factors of their down vectors. One node after the last layer reports them all.
#pragma once

#include <vector>

#include "intaglio/plan/node.hpp"

namespace intaglio::plan {

/// Inserts a node after the last node of the layers.
constexpr void insert_after_layers(std::vector<node>& nodes, const node& added) {
  std::size_t after = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].where == ir::section::period) after = i + 1;
  nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(after), added);
}

/// Inserts the reporting node and the values that it reads. Does nothing if no FFN is traced.
constexpr void keep_traces(ir::graph& g, std::vector<node>& nodes, text<256>& failure) {
  const auto refuse = [&](auto... parts) {
    if (failure.empty()) failure.append("trace: expected ", parts...);
  };
  const auto width = [&](ir::value_id id) { return g.values[static_cast<std::size_t>(id)].width; };
  const auto in_each_layer = [&](ir::value_id id) { g.values[static_cast<std::size_t>(id)].each_layer = true; };
  const auto added = [&](std::string_view name, std::uint32_t elements) {
    g.values.push_back({dtype::f32, elements, ir::section::period, text<32>{name}, true});
    return static_cast<ir::value_id>(g.values.size()) - 1;
  };
  // All kinds of layers write these values to the same memory.
  const auto replace = [&](ir::value_id from, ir::value_id to) {
    for (node& n : nodes)
      for (ir::value_id* const id : {&n.in, &n.out, &n.choice})
        if (*id == from) *id = to;
  };
  node trace_node{.lowered = true, .kernel = kernels::kernel::walk_trace, .where = ir::section::epilogue};
  std::size_t kinds = 0, first = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].traced == 0 || nodes[i].where != ir::section::period) continue;
    node& up = nodes[i];
    std::size_t down = i + 1;
    while (down < nodes.size() && (nodes[down].in != up.out || nodes[down].block != up.block)) ++down;
    const bool ternary = up.kernel == kernels::kernel::ternary_matmul;
    const bool walks = ternary && up.walk && up.prologue == kernels::prologue::norm_quantize && down < nodes.size() &&
                       nodes[down].walk && nodes[down].prologue == kernels::prologue::norm_quantize;
    if (down == nodes.size() || nodes[down].weight_count != 1 || up.experts != 0 ||
        (!walks && up.kernel != kernels::kernel::matmul && up.kernel != kernels::kernel::walk_up)) {
      refuse("a gated FFN and the product of its down vectors, of ternary weights a walk, found others");
      return;
    }
    const std::uint32_t features = width(up.out), counted = up.choice == ir::none ? features : up.nearest;
    const std::uint32_t top = up.traced < counted ? up.traced : counted;
    if (kinds == 0) {
      first = i;
      trace_node.nearest = counted;
      trace_node.traced = top;
      trace_node.weights[0] = nodes[down].weights[0];
      trace_node.weight_count = 1;
      if (up.choice == ir::none) trace_node.gates = added("gates", features);
      else in_each_layer(trace_node.choice = up.choice);
      if (ternary) trace_node.in = added("values", features);
      else in_each_layer(trace_node.in = up.out);
    } else if (trace_node.nearest != counted || trace_node.traced != top ||
               (trace_node.choice == ir::none) != (up.choice == ir::none) ||
               (nodes[first].kernel == kernels::kernel::ternary_matmul) != ternary) {
      refuse("the same trace of every kind of layer, found another");
      return;
    } else {
      if (up.choice != ir::none) replace(up.choice, trace_node.choice);
      if (!ternary) replace(up.out, trace_node.in);
    }
    if (up.choice == ir::none) up.gates = trace_node.gates;
    if (ternary) nodes[down].values = trace_node.in;
    ++kinds;
  }
  if (kinds == g.pattern.kinds()) insert_after_layers(nodes, trace_node);
  else if (kinds != 0)
    refuse("one traced FFN in every kind of layer, of which there are ", g.pattern.kinds(), ", found ", kinds);
}

}  // namespace intaglio::plan
