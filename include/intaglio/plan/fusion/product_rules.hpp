// SPDX-License-Identifier: MIT
// Rules for products: the norm before a product, gate and up together, the sum with the stream, walked features.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "intaglio/plan/fusion/qkv_rules.hpp"

namespace intaglio::plan {

/// Rules for products: a node takes in the norm in front of a product, and the addition or the gate after it.
class product_rules : public qkv_rules {
 public:
  using qkv_rules::qkv_rules;

 protected:
  constexpr node fused_product(std::size_t i, node n) {
    n.lowered = true;
    n.kernel = type(at(i).in[0]) == dtype::i8      ? kernels::kernel::ternary_matmul
               : weight_type(at(i)) == dtype::i2_s ? kernels::kernel::ternary_float
                                                   : kernels::kernel::matmul;
    n.choice = at(i).in[1], n.experts = at(i).experts, n.top_k = at(i).top_k;
    if (type(at(i).in[0]) == dtype::f32) take_norm(i, n);
    merge_product(i, n);
    if (n.norm != ir::none) n.rule = rule_index("norm_float");
    return n;
  }

  /// Rewrites a gated unit of which only some features count to three nodes: the gates of all features, the choice of
  /// features, and the up vectors of the chosen features. The choice is stored where the up product's value would be.
  /// The product after it reads its weight by features.
  constexpr void walk_features(std::size_t i, node& n) {
    if (n.epilogue == kernels::epilogue::gated && n.nearest != 0) {
      ir::value_id choice = ir::none;
      if (n.nearest < graph_.values[static_cast<std::size_t>(n.out)].width) {
        choice = at(maker(n.out)).in[1];
        node gates = n;
        gates.epilogue = kernels::epilogue::store;
        gates.weight_count = 1;
        gates.traced = 0;
        gates.out = at(i).out;
        node select{.lowered = true,
                    .kernel = kernels::kernel::walk_select,
                    .where = n.where,
                    .block = n.block,
                    .rule = rule_index("nearest"),
                    .in = at(i).out,
                    .out_width = 2 * n.nearest,
                    .out = choice,
                    .nearest = n.nearest};
        nodes_.push_back(gates);
        nodes_.push_back(select);
        n.kernel = kernels::kernel::walk_up;
        n.rule = rule_index("nearest");
        n.weights[0] = n.weights[1];
        n.weight_count = 1;
        n.choice = choice;
        n.op_count = 0;
      }
      walked_.push_back({n.out, choice, n.nearest});
    }
    for (std::size_t k = 0; k < walked_.size(); ++k) {
      if (n.in != walked_[k].values || n.weight_count != 1 || n.kernel != kernels::kernel::matmul) continue;
      n.kernel = kernels::kernel::walk_sum;
      n.rule = rule_index("by_features");
      n.choice = walked_[k].choice;
      n.nearest = walked_[k].count;
    }
  }

  /// Makes a norm_quantize the prologue of a product that is its only reader.
  constexpr void merge_norms() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      node& source = nodes_[i];
      if (source.kernel != kernels::kernel::norm_quantize ||
          graph_.values[static_cast<std::size_t>(source.in)].width > kernels::prologue_columns)
        continue;
      std::size_t reader = nowhere, readers = 0;
      for (std::size_t k = 0; k < nodes_.size(); ++k)
        if (nodes_[k].in == source.out) reader = k, ++readers;
      if (readers != 1 || nodes_[reader].kernel != kernels::kernel::ternary_matmul) continue;
      node merged = nodes_[reader];
      merged.in = source.in;
      merged.norm = source.norm;
      merged.eps = source.eps;
      merged.prologue = source.prologue;
      merged.rule = rule_index("norm_prologue");
      for (const auto& o : graph_.ops)
        merged.walk = merged.walk || (o.walk && o.out == source.in && merged.epilogue == kernels::epilogue::add);
      std::array<std::uint16_t, max_merged_ops> ops{};
      std::uint8_t count = 0;
      for (std::size_t k = 0; k < source.op_count; ++k) ops[count++] = source.ops[k];
      for (std::size_t k = 0; k < merged.op_count; ++k) ops[count++] = merged.ops[k];
      merged.ops = ops, merged.op_count = count;
      nodes_[reader] = merged;
      nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(i));
      --i;
    }
  }

  std::vector<node> nodes_;

 private:
  /// Takes the norm before a product of f32, if there is one. The norm's first reader counts it among its ops.
  constexpr void take_norm(std::size_t i, node& n) {
    n.prologue = kernels::prologue::plain;
    const std::size_t k = maker(at(i).in[0]);
    if (k == nowhere || !joins_readers(k)) return;
    if (!taken_[k]) take(n, k);
    n.prologue = kernels::prologue::norm;
    n.in = at(k).in[0];
    n.norm = at(k).weight;
    n.eps = at(k).eps;
  }

  constexpr void merge_product(std::size_t i, node& n) {
    if (stack_qkv(i, n) || gate_up(i, n) || residual_add(i, n)) return;
    take(n, i);
    add_weight(n, at(i).weight);
  }

  /// Merges the products of a gated FFN, in whichever order a layer computes them. @param first of the two
  constexpr bool gate_up(std::size_t first, node& n) {
    const auto second = sibling(first);
    if (second == nowhere || uses(at(first).out) != 1 || uses(at(second).out) != 1) return false;
    const bool gate_first = reader(at(first).out, kind::gated, first) != nowhere;
    const auto g = gate_first ? first : second, u = gate_first ? second : first;
    const auto a = reader(at(g).out, kind::gated, first);
    if (a == nowhere || at(a).in[1] != at(u).out) return false;
    for (const auto index : {first, second, a}) take(n, index);
    for (const auto index : {g, u}) add_weight(n, at(index).weight);
    n.rule = rule_index("gate_up");
    n.epilogue = kernels::epilogue::gated;
    n.act = at(a).act;
    n.walk = at(a).walk;
    n.nearest = at(a).nearest;
    n.traced = at(a).traced;
    n.out = at(a).out;
    return true;
  }

  constexpr bool residual_add(std::size_t m, node& n) {
    const auto a = reader(at(m).out, kind::add, m, 1);
    if (a == nowhere || at(m).experts != 0 || !may_update(m, m, a)) return false;
    take(n, m), take(n, a);
    add_weight(n, at(m).weight);
    n.rule = rule_index("residual_add");
    n.epilogue = kernels::epilogue::add;
    n.stream = at(a).in[0];
    n.out = at(a).out;
    return true;
  }

  struct walked {
    ir::value_id values = ir::none,
                 choice = ir::none;  ///< values of the features that count, and their choice; none where all features
                                     ///< count
    std::uint32_t count = 0;
  };
  std::vector<walked> walked_;
};

}  // namespace intaglio::plan
