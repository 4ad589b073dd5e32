// SPDX-License-Identifier: MIT
// Fusion: a list of named rewrite rules over the traced ops. Each rule names the catalogue's kernel that serves the merged op;
// what no rule and no kernel covers is refused with one sentence.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// A rewrite: what it merges and why it pays. Index 0 stands for an op that has a kernel of its own.
struct rule {
  std::string_view name, merges, reason;
};
inline constexpr std::array rules{
    rule{"", "", ""},
    rule{"norm_quantize", "rms_norm, quantize", "the normalised values are read once and leave as int8"},
    rule{"stack_qkv", "3 matmuls of one input, rope, rope, cache_write", "one read of the input; q is rotated and k, v go to the cache where the sums are"},
    rule{"gate_up", "2 matmuls of one input, gated", "gate and up of a feature end in one subgroup, so the product needs no memory"},
    rule{"residual_add", "matmul, add", "the stream is updated in place"},
    rule{"norm_head", "rms_norm, matmul", "the last norm is computed by every workgroup of the head"},
    rule{"screened_head", "norm_head in two steps", "rows as int8 give bounds of all logits; those that may win are computed as ever"},
    rule{"norm_float", "rms_norm, products of f32 inputs by ternary weights", "every workgroup finds the root mean square for itself, so the normalised input needs no memory"},
    rule{"norm_prologue", "norm_quantize, ternary_matmul", "for one token each workgroup normalises and quantises for itself: a dispatch and a barrier less"},
};
constexpr std::uint8_t rule_index(std::string_view name) {
  for (std::size_t i = 1; i < rules.size(); ++i)
    if (rules[i].name == name) return static_cast<std::uint8_t>(i);
  return 0;
}

/// One or several ops that a single kernel call will do. Values and weights are the graph's.
struct node {
  bool lowered = false;                      ///< has a kernel of the catalogue
  kernels::kernel kernel = kernels::kernel::embed;
  ir::section where = ir::section::prologue;
  std::uint8_t block = 0;                    ///< in the period: the kind of block
  std::array<std::uint16_t, max_merged_ops> ops{};
  std::uint8_t op_count = 0;
  std::uint8_t rule = 0;
  ir::value_id in = ir::none;                ///< the input that the kernel transforms
  ir::value_id stream = ir::none;            ///< what `add` adds to, overwritten by out
  ir::value_id out = ir::none;               ///< ir::none: the kernel writes to the cache or the state only
  ir::weight_id norm = ir::none;
  std::array<ir::weight_id, 3> weights{ir::none, ir::none, ir::none};
  std::uint8_t weight_count = 0;
  kernels::prologue prologue = kernels::prologue::quantized;
  kernels::epilogue epilogue = kernels::epilogue::store;
  float eps = 0;
  rope_parameters rope{};
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  activation act = activation::relu_squared;
};

struct fusion_options {
  bool norm_prologue = true;  ///< rule norm_prologue, for one token a pass
};

class fuser {
 public:
  constexpr fuser(const ir::graph& g, fusion_options options) : graph_(g), options_(options) {
    for (std::size_t i = 0; i < g.values.size(); ++i) uses_.push_back(0);  // resize is no constant expression on clang 16 with libstdc++ 12
    for (const auto& o : g.ops)
      for (const auto id : o.in)
        if (id != ir::none) ++uses_[static_cast<std::size_t>(id)];
    if (g.output != ir::none) ++uses_[static_cast<std::size_t>(g.output)];
    for (std::size_t i = 0; i < g.ops.size(); ++i) taken_.push_back(0);
  }

  /// The fused nodes in order, or a sentence in `failure` that names the op without a kernel.
  constexpr std::vector<node> run(text<256>& failure) {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      if (taken_[i] || joins_readers(i)) continue;
      node n = fuse_at(i);
      if (!n.lowered) {
        if (failure.empty()) explain(i, failure);
        return {};
      }
      nodes_.push_back(n);
    }
    if (options_.norm_prologue) merge_norms();
    return nodes_;
  }

 private:
  using kind = ir::op_kind;

  constexpr const ir::op& at(std::size_t i) const { return graph_.ops[i]; }
  constexpr std::uint32_t uses(ir::value_id id) const { return id == ir::none ? 0 : uses_[static_cast<std::size_t>(id)]; }
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// The op of `wanted` kind behind `from` that reads `id` as operand `place` and is not merged yet.
  constexpr std::size_t reader(ir::value_id id, kind wanted, std::size_t from, std::size_t place = 0) const {
    for (std::size_t i = from; i < graph_.ops.size(); ++i)
      if (!taken_[i] && at(i).kind == wanted && at(i).in[place] == id && together(at(i), at(from))) return i;
    return nowhere;
  }
  static constexpr bool together(const ir::op& a, const ir::op& b) { return a.where == b.where && a.block == b.block; }
  constexpr dtype type(ir::value_id id) const { return graph_.values[static_cast<std::size_t>(id)].type; }
  constexpr bool ternary(const ir::op& o) const {
    return o.kind == kind::matmul && graph_.weights[static_cast<std::size_t>(o.weight)].type == dtype::i2_s &&
           (type(o.in[0]) == dtype::i8 || type(o.in[0]) == dtype::f32);
  }
  /// True for a norm whose readers are all ternary products of f32: each of them computes it.
  constexpr bool joins_readers(std::size_t i) const {
    if (at(i).kind != kind::rms_norm || at(i).out == graph_.output) return false;
    std::uint32_t readers = 0;
    for (const auto& o : graph_.ops)
      if (o.in[0] == at(i).out && together(o, at(i)) && ternary(o)) ++readers;
    return readers != 0 && readers == uses(at(i).out);
  }
  constexpr void take(node& n, std::size_t i) {
    taken_[i] = true;
    n.ops[n.op_count++] = static_cast<std::uint16_t>(i);
  }
  constexpr void add_weight(node& n, ir::weight_id id) { n.weights[n.weight_count++] = id; }

  constexpr node fuse_at(std::size_t i) {
    const ir::op& o = at(i);
    node n{.where = o.where, .block = o.block, .in = o.in[0], .out = o.out};
    switch (o.kind) {
      case kind::embedding: return embed(i, n);
      case kind::rms_norm: return norm(i, n);
      case kind::matmul: return ternary(o) ? product(i, n) : n;
      case kind::attention: {
        if (o.window != 0 || o.scale != 0) return n;
        take(n, i);
        n.lowered = true;
        n.kernel = kernels::kernel::attention;
        n.heads = o.heads, n.kv_heads = o.kv_heads, n.head_dim = o.head_dim;
        return n;
      }
      default: return n;
    }
  }

  constexpr node embed(std::size_t i, node n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::embed;
    add_weight(n, at(i).weight);
    return n;
  }

  constexpr node norm(std::size_t i, node n) {
    const ir::op& o = at(i);
    n.norm = o.weight;
    n.eps = o.eps;
    if (uses(o.out) != 1) return n;
    if (const auto q = reader(o.out, kind::quantize, i); q != nowhere) {
      take(n, i), take(n, q);
      n.lowered = true;
      n.kernel = kernels::kernel::norm_quantize;
      n.rule = rule_index("norm_quantize");
      n.out = at(q).out;
    } else if (const auto m = reader(o.out, kind::matmul, i); m != nowhere && at(m).out == graph_.output) {
      take(n, i), take(n, m);
      n.lowered = true;
      n.kernel = kernels::kernel::dense_matmul;
      n.rule = rule_index("norm_head");
      add_weight(n, at(m).weight);
      n.out = at(m).out;
    }
    return n;
  }

  constexpr node product(std::size_t i, node n) {
    n.lowered = true;
    n.kernel = type(at(i).in[0]) == dtype::i8 ? kernels::kernel::ternary_matmul : kernels::kernel::ternary_float;
    if (n.kernel == kernels::kernel::ternary_float) take_norm(i, n);
    merge_product(i, n);
    if (n.norm != ir::none) n.rule = rule_index("norm_float");
    return n;
  }

  /// True for the value of a norm that its readers compute, from x.
  constexpr bool computed_from(ir::value_id id, ir::value_id x) const {
    for (std::size_t i = 0; i < graph_.ops.size() && id != ir::none; ++i)
      if (at(i).out == id) return at(i).in[0] == x && joins_readers(i);
    return false;
  }

  /// The norm in front of a product of f32, if there is one; the first of its readers counts it among its ops.
  constexpr void take_norm(std::size_t i, node& n) {
    n.prologue = kernels::prologue::plain;
    for (std::size_t k = 0; k < i; ++k) {
      if (at(k).out != at(i).in[0] || !joins_readers(k)) continue;
      if (!taken_[k]) take(n, k);
      n.prologue = kernels::prologue::norm;
      n.in = at(k).in[0];
      n.norm = at(k).weight;
      n.eps = at(k).eps;
    }
  }

  constexpr void merge_product(std::size_t i, node& n) {
    if (stack_qkv(i, n) || gate_up(i, n) || residual_add(i, n)) return;
    take(n, i);
    add_weight(n, at(i).weight);
  }

  /// The next unmerged ternary product behind i that reads the same input.
  constexpr std::size_t sibling(std::size_t i) const {
    for (std::size_t k = i + 1; k < graph_.ops.size(); ++k)
      if (!taken_[k] && together(at(k), at(i)) && at(k).in[0] == at(i).in[0] && ternary(at(k))) return k;
    return nowhere;
  }

  constexpr bool stack_qkv(std::size_t q, node& n) {
    const auto k = sibling(q);
    const auto v = k == nowhere ? nowhere : sibling(k);
    if (v == nowhere) return false;
    const auto rq = reader(at(q).out, kind::rope, q), rk = reader(at(k).out, kind::rope, q);
    if (rq == nowhere || rk == nowhere || uses(at(q).out) != 1 || uses(at(k).out) != 1 || uses(at(v).out) != 1) return false;
    const auto w = reader(at(rk).out, kind::cache_write, q);
    if (w == nowhere || at(w).in[1] != at(v).out || uses(at(rk).out) != 1) return false;
    if (at(rq).rope.scaling.type != rope_type::plain || at(rq).rope != at(rk).rope || at(rq).head_dim != at(rk).head_dim || at(w).head_dim != at(rq).head_dim) return false;
    for (const auto index : {q, k, v, rq, rk, w}) take(n, index);
    for (const auto index : {q, k, v}) add_weight(n, at(index).weight);
    n.rule = rule_index("stack_qkv");
    n.epilogue = kernels::epilogue::rope_cache;
    n.out = at(rq).out;
    n.rope = at(rq).rope;
    n.head_dim = at(rq).head_dim;
    n.kv_heads = at(w).kv_heads;
    return true;
  }

  constexpr bool gate_up(std::size_t g, node& n) {
    const auto u = sibling(g);
    if (u == nowhere || uses(at(g).out) != 1 || uses(at(u).out) != 1) return false;
    const auto a = reader(at(g).out, kind::gated, g);
    if (a == nowhere || at(a).in[1] != at(u).out) return false;
    for (const auto index : {g, u, a}) take(n, index);
    for (const auto index : {g, u}) add_weight(n, at(index).weight);
    n.rule = rule_index("gate_up");
    n.epilogue = kernels::epilogue::gated;
    n.act = at(a).act;
    n.out = at(a).out;
    return true;
  }

  constexpr bool residual_add(std::size_t m, node& n) {
    const auto a = reader(at(m).out, kind::add, m, 1);
    if (a == nowhere || uses(at(m).out) != 1) return false;
    const ir::value_id x = at(a).in[0];
    for (std::size_t i = a + 1; i < graph_.ops.size(); ++i)
      for (const auto id : at(i).in)
        if (id == x || computed_from(id, x)) return false;  // the old stream is still wanted: it may not be overwritten
    take(n, m), take(n, a);
    add_weight(n, at(m).weight);
    n.rule = rule_index("residual_add");
    n.epilogue = kernels::epilogue::add;
    n.stream = x;
    n.out = at(a).out;
    return true;
  }

  /// A norm_quantize that one product alone reads becomes that product's prologue.
  constexpr void merge_norms() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      node& source = nodes_[i];
      if (source.kernel != kernels::kernel::norm_quantize) continue;
      std::size_t reader = nowhere, readers = 0;
      for (std::size_t k = 0; k < nodes_.size(); ++k)
        if (nodes_[k].in == source.out) reader = k, ++readers;
      if (readers != 1 || nodes_[reader].kernel != kernels::kernel::ternary_matmul) continue;
      node merged = nodes_[reader];
      merged.in = source.in;
      merged.norm = source.norm;
      merged.eps = source.eps;
      merged.prologue = kernels::prologue::norm_quantize;
      merged.rule = rule_index("norm_prologue");
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

  constexpr void explain(std::size_t i, text<256>& failure) const {
    const ir::op& o = at(i);
    failure.append(o.layer.view(), ": no kernel computes ", o.kind, " here; ");
    switch (o.kind) {
      case kind::rms_norm: failure.append("expected one reader, an int8 product or the head, or products by ternary weights, found ", uses(o.out), uses(o.out) == 1 ? " of another kind" : ""); break;
      case kind::matmul: failure.append("expected ternary (i2_s) weights of int8 or f32 inputs, found ", graph_.weights[static_cast<std::size_t>(o.weight)].type, " weights of ",
                                        graph_.values[static_cast<std::size_t>(o.in[0])].type); break;
      case kind::add: failure.append("expected the product of an output projection as second operand and no later reader of the first"); break;
      case kind::quantize: failure.append("expected rms_norm in front of it, found another op"); break;
      case kind::rope: case kind::cache_write: failure.append("expected q, k and v of one input with one rope each for q and k"); break;
      default: failure.append("expected gate and up products of one input in front of it"); break;
    }
  }

  const ir::graph& graph_;
  fusion_options options_;
  std::vector<std::uint32_t> uses_;
  std::vector<char> taken_;  // std::vector<bool> of libstdc++ 12 cannot be evaluated by clang 16
  std::vector<node> nodes_;
};

}  // namespace intaglio::plan
