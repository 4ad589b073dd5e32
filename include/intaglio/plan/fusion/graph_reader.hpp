// SPDX-License-Identifier: MIT
// Queries on a graph that all fusion rules share: readers of a value, ops that are merged already, ops that are
// products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "intaglio/core/dtype.hpp"
#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/dense_matmul.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/node.hpp"

namespace intaglio::plan {

/// A graph whose ops are being merged.
class graph_reader {
 public:
  constexpr explicit graph_reader(const ir::graph& g) : graph_(g), ops_(g.ops.data()) {
    // resize() is not a constant expression on clang 16 with libstdc++ 12
    uses_.assign(g.values.size(), 0), makers_.assign(g.values.size(), nowhere);
    first_.assign(g.values.size(), no_operand), next_.assign(g.ops.size() * operands, no_operand);
    taken_.assign(g.ops.size(), 0);
    for (std::size_t i = g.ops.size(); i-- > 0;) {
      if (ops_[i].out != ir::none) makers_[static_cast<std::size_t>(ops_[i].out)] = i;
      for (std::size_t number = operands; number-- > 0;) {
        const ir::value_id id = ops_[i].in[number];
        if (id == ir::none) continue;
        ++uses_[static_cast<std::size_t>(id)];
        next_[i * operands + number] = first_[static_cast<std::size_t>(id)];
        first_[static_cast<std::size_t>(id)] = i * operands + number;
      }
    }
    if (g.output != ir::none) ++uses_[static_cast<std::size_t>(g.output)];
  }

 protected:
  using kind = ir::op_kind;

  constexpr const ir::op& at(std::size_t i) const { return ops_[i]; }
  constexpr std::uint32_t uses(ir::value_id id) const {
    return id == ir::none ? 0 : uses_[static_cast<std::size_t>(id)];
  }
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// The op that makes a value, or `nowhere`.
  constexpr std::size_t maker(ir::value_id id) const {
    return id == ir::none ? nowhere : makers_[static_cast<std::size_t>(id)];
  }
  /// Operand number l % operands of op l / operands is the first that reads a value, in the order of ops; next_reading
  /// gives the others, up to no_operand.
  constexpr std::size_t first_reading(ir::value_id id) const {
    return id == ir::none ? no_operand : first_[static_cast<std::size_t>(id)];
  }
  constexpr std::size_t next_reading(std::size_t l) const { return next_[l]; }
  static constexpr std::size_t operands = std::tuple_size_v<decltype(ir::op::in)>, no_operand = nowhere;

  /// The first op of kind `wanted` after `from` that reads `id` as operand number `number` and is not merged yet.
  constexpr std::size_t reader(ir::value_id id, kind wanted, std::size_t from, std::size_t number = 0) const {
    for (std::size_t l = first_reading(id); l != no_operand; l = next_reading(l)) {
      const std::size_t i = l / operands;
      if (i >= from && l % operands == number && !taken_[i] && at(i).kind == wanted && together(at(i), at(from)))
        return i;
    }
    return nowhere;
  }
  static constexpr bool together(const ir::op& a, const ir::op& b) { return a.where == b.where && a.block == b.block; }
  constexpr dtype type(ir::value_id id) const { return graph_.values[static_cast<std::size_t>(id)].type; }
  constexpr dtype weight_type(const ir::op& o) const { return graph_.weights[static_cast<std::size_t>(o.weight)].type; }
  constexpr std::uint32_t weight_width(const ir::op& o) const {
    return graph_.weights[static_cast<std::size_t>(o.weight)].columns;
  }
  /// Whether an op is the head of a model whose weights have no blocks; it has a kernel of its own, dense_matmul,
  /// unless it is too wide for that, or no RMSNorm precedes it.
  constexpr bool dense_head(const ir::op& o) const {
    const auto& w = graph_.weights[static_cast<std::size_t>(o.weight)];
    return o.kind == kind::matmul && o.out == graph_.head && intaglio::info(w.type).block_elements == 1 &&
           w.columns % 8 == 0 && w.columns <= kernels::dense_matmul::most_columns && !is_layer_norm(o.in[0]);
  }
  /// Whether a value is the result of a LayerNorm.
  constexpr bool is_layer_norm(ir::value_id id) const {
    return maker(id) != nowhere && at(maker(id)).kind == kind::layer_norm;
  }
  /// Whether an op is a product that ternary_matmul, ternary_float or matmul computes.
  constexpr bool product(const ir::op& o) const {
    if (o.kind != kind::matmul || dense_head(o)) return false;
    return weight_type(o) == dtype::i2_s ? o.experts == 0 && (type(o.in[0]) == dtype::i8 || type(o.in[0]) == dtype::f32)
                                         : codec_of(weight_type(o)) && type(o.in[0]) == dtype::f32;
  }
  constexpr bool float_product(const ir::op& o) const { return product(o) && type(o.in[0]) == dtype::f32; }
  /// Whether the value of op i has readers, and all of them are ops of the same layer for which `fits` is true.
  template <class Fits>
  constexpr bool only_read_by(std::size_t i, const Fits& fits) const {
    std::uint32_t readers = 0;
    for (std::size_t l = first_reading(at(i).out); l != no_operand; l = next_reading(l)) {
      const ir::op& o = at(l / operands);
      if (l % operands != 0 || !together(o, at(i)) || !fits(o)) return false;
      ++readers;
    }
    return readers != 0 && readers == uses(at(i).out);
  }
  /// True for a norm whose readers are all products of f32, so that each of them computes it.
  constexpr bool joins_readers(std::size_t i) const {
    return at(i).kind == kind::rms_norm && at(i).head_dim == 0 && at(i).out != graph_.output &&
           only_read_by(i, [&](const ir::op& o) { return float_product(o); });
  }

  /// The value of op i if exactly one op reads it; else none.
  constexpr ir::value_id only_for_one(std::size_t i) const {
    return i != nowhere && uses(at(i).out) == 1 ? at(i).out : ir::none;
  }

  /// The next unmerged product after i that reads the same input.
  constexpr std::size_t reader_of_input(std::size_t i) const {
    for (std::size_t l = first_reading(at(i).in[0]); l != no_operand; l = next_reading(l)) {
      const std::size_t k = l / operands;
      if (k > i && l % operands == 0 && !taken_[k] && together(at(k), at(i)) && at(k).in[1] == at(i).in[1] &&
          product(at(k)))
        return k;
    }
    return nowhere;
  }
  /// What a norm reads that only this product uses; none where the product has no norm of its own.
  constexpr ir::value_id under_own_norm(std::size_t product) const {
    ir::value_id id = at(product).in[0];
    while (uses(id) == 1 && maker(id) < product) {
      const ir::op& o = at(maker(id));
      if (o.kind == kind::rms_norm && o.head_dim == 0) return o.in[0];
      if (o.kind != kind::quantize) return ir::none;
      id = o.in[0];
    }
    return ir::none;
  }
  /// The next unmerged product after i after another norm of the same value.
  constexpr std::size_t reader_by_own_norm(std::size_t i) const {
    const ir::value_id x = under_own_norm(i);
    for (std::size_t k = i + 1; k < graph_.ops.size() && x != ir::none; ++k)
      if (!taken_[k] && together(at(k), at(i)) && product(at(k)) && under_own_norm(k) == x) return k;
    return nowhere;
  }
  /// Whether all readers of a norm are norms: its value is stored.
  constexpr bool only_for_norms(std::size_t i) const {
    return at(i).head_dim == 0 && only_read_by(i, [](const ir::op& o) { return o.kind == kind::rms_norm; });
  }
  /// The next product of the same input whose weight has the same type.
  constexpr std::size_t sibling(std::size_t i) const {
    std::size_t k = reader_of_input(i);
    while (k != nowhere && weight_type(at(k)) != weight_type(at(i))) k = reader_of_input(k);
    return k;
  }

  /// The result of a product including the part that adapters add (plan/adapters.hpp); none for no product.
  constexpr ir::value_id given(std::size_t product) const {
    if (product == nowhere) return ir::none;
    const ir::value_id y = at(product).out;
    if (uses(y) != 1 || first_reading(y) == no_operand || first_reading(y) % operands != 0) return y;
    const ir::op& o = at(first_reading(y) / operands);
    if (o.kind != kind::add) return y;
    const std::size_t k = maker(o.in[1]);
    return k != nowhere && k >= product && at(k).kind == kind::weigh ? o.out : y;
  }

  /// The norm that reads a value, with or without a weight.
  constexpr std::size_t reader_norm(ir::value_id id, std::size_t from, bool weighted) const {
    for (std::size_t l = first_reading(id); l != no_operand; l = next_reading(l)) {
      const std::size_t i = l / operands;
      if (i >= from && l % operands == 0 && !taken_[i] && at(i).kind == kind::rms_norm &&
          (at(i).weight != ir::none) == weighted && together(at(i), at(from)))
        return i;
    }
    return nowhere;
  }

  /// Whether addition op `a` may overwrite its first operand with the sum of that operand and the result of op m.
  /// @param from the op whose position the merged dispatch takes: the first of the ops that it merges
  constexpr bool may_update(std::size_t from, std::size_t m, std::size_t a) const {
    return uses(at(m).out) == 1 && !is_read_after(from, at(a).in[0], a);
  }
  /// Whether an op after op `from`, other than op `except`, reads x, or computes a norm of x.
  constexpr bool is_read_after(std::size_t from, ir::value_id x, std::size_t except) const {
    for (std::size_t l = first_reading(x); l != no_operand; l = next_reading(l)) {
      const std::size_t i = l / operands;
      if (i == except) continue;
      if (i > from) return true;
      if (l % operands != 0 || at(i).kind != kind::rms_norm) continue;
      const ir::value_id read = joins_readers(i) ? at(i).out : quantized_for_one(i);
      for (std::size_t r = first_reading(read); r != no_operand; r = next_reading(r))
        if (r / operands > from) return true;
    }
    return false;
  }
  /// The int8 values of norm i if one op reads them, which may compute both itself; else none.
  constexpr ir::value_id quantized_for_one(std::size_t i) const {
    const std::size_t l = first_reading(only_for_one(i));
    const bool quantizes = l != no_operand && at(l / operands).kind == kind::quantize;
    return quantizes ? only_for_one(l / operands) : ir::none;
  }

  constexpr void take(node& n, std::size_t i) {
    taken_[i] = true;
    n.ops[n.op_count++] = static_cast<std::uint16_t>(i);
  }
  constexpr void add_weight(node& n, ir::weight_id id) { n.weights[n.weight_count++] = id; }

  const ir::graph& graph_;
  const ir::op* ops_;  // a pointer, whose elements cost clang half as many steps as those of a vector
  std::vector<std::uint32_t> uses_;
  std::vector<std::size_t> makers_, first_;  // by value
  std::vector<std::size_t> next_;            // by operand
  std::vector<char> taken_;                  // clang 16 cannot evaluate std::vector<bool> of libstdc++ 12
};

}  // namespace intaglio::plan
