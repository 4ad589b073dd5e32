// SPDX-License-Identifier: MIT
// Fusion: a list of named rewrite rules over the traced ops. Each rule names the catalogue's kernel that serves the
// merged op; what no rule and no kernel covers is refused with one sentence.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

using kernels::codec_of;

/// A rewrite: what it merges and why it pays. Index 0 stands for an op that has a kernel of its own.
struct rule {
  std::string_view name, merges, reason;
};
inline constexpr std::array rules{
    rule{"", "", ""},
    rule{"norm_quantize", "rms_norm, quantize", "the normalised values are read once and leave as int8"},
    rule{"stack_qkv", "3 matmuls of one input, rope, rope, cache_write",
         "one read of the input; q is rotated and k, v go to the cache where the sums are"},
    rule{"gate_up", "2 matmuls of one input, gated",
         "gate and up of a feature end in one subgroup, so the product needs no memory"},
    rule{"residual_add", "matmul, add", "the stream is updated in place"},
    rule{"norm_head", "rms_norm, matmul", "the last norm is computed by every workgroup of the head"},
    rule{"screened_head", "norm_head in two steps",
         "rows as int8 give bounds of all logits; those that may win are computed exactly"},
    rule{"norm_float", "rms_norm, products of f32 inputs",
         "every workgroup finds the root mean square for itself, so the normalised input needs no memory"},
    rule{"stack_plain", "3 matmuls of one input, or 2",
         "one read of the input; biases, norms or a v of another codec come before q and k are rotated, so the sums go "
         "to memory"},
    rule{"turn", "3 biases, 3 rms_norms, rope, rope, cache_write",
         "a head's bias, norm, rotation and its way to the cache in one workgroup"},
    rule{"norm_add", "rms_norm, add, scale", "the stream is updated in place"},
    rule{"bias_add", "bias, add", "the stream is updated in place"},
    rule{"expert_sum", "weigh, add", "what the experts gave is weighed on its way to the stream"},
    rule{"halves", "rms_norm, in front of products of f32 inputs",
         "in a chunk the product reads activations many times: once as halves, in a dispatch of their own"},
    rule{"norm_prologue", "norm_quantize, ternary_matmul",
         "for one token each workgroup normalises and quantises for itself: a dispatch and a barrier less"},
    rule{"straight", "norm_head and norm_prologue, taken apart",
         "products without loops read memory best on a CPU driver; one workgroup normalises for all of theirs"},
    rule{"nearest", "2 matmuls of one input, gated",
         "for one token the gates alone are computed whole; up vectors are read of the nearest features only"},
    rule{"gated", "gated",
         "gate and up of two codecs are two products, so the sums go to memory; its activation is a kernel's own"},
    rule{"expert_biases", "2 biases, gated; bias, weigh, add",
         "which bias an expert's product has is the token's choice, so the next kernel that reads both adds it"},
    rule{"gate_add", "head_gate, add", "the stream is updated in place"},
    rule{"by_features", "matmul, add", "the down vectors of the features that count, one after the other"},
};
constexpr std::uint8_t rule_index(std::string_view name) {
  for (std::size_t i = 1; i < rules.size(); ++i)
    if (rules[i].name == name) return static_cast<std::uint8_t>(i);
  return 0;
}

/// One or several ops that a single kernel call will do. Values and weights are the graph's.
struct node {
  bool lowered = false;  ///< has a kernel of the catalogue
  kernels::kernel kernel = kernels::kernel::embed;
  ir::section where = ir::section::prologue;
  std::uint8_t block = 0;  ///< in the period: the kind of block
  std::array<std::uint16_t, max_merged_ops> ops{};
  std::uint8_t op_count = 0;
  std::uint8_t rule = 0;
  ir::value_id in = ir::none;                     ///< the input that the kernel transforms
  ir::value_id up_in = ir::none;                  ///< of gated, where `in` is the gate
  ir::value_id k_in = ir::none, v_in = ir::none;  ///< of turn, where these are not stacked behind q in `in`
  ir::value_id stream = ir::none;                 ///< what `add` adds to, overwritten by out
  std::uint32_t out_width = 0;     ///< elements a token of `out` where it holds more than the graph's value, 0: as that
  ir::value_id out = ir::none;     ///< ir::none: the kernel writes to the cache or the state only
  ir::value_id choice = ir::none;  ///< which experts a token has, or which tokens an expert
  std::uint32_t taps = 0;          ///< of short_conv
  bool multiplied = false;         ///< likewise
  delta_net_config delta{};        ///< of delta_net, whose beta and alpha are k_in and v_in
  bool logistic = false;           ///< of head_gate, whose gate is up_in
  std::uint32_t experts = 0, top_k = 0;  ///< top_k of `fixed`: rows of a token, which experts gave
  bool over_all = false;                 ///< of route: the softmax is over all experts
  std::uint32_t columns = 0;             ///< of halves of lists: of a row
  std::uint32_t list_tokens = 0;         ///< `choice` is of lists so long (expert_tiles); 0: of route
  ir::weight_id norm = ir::none;
  std::array<ir::weight_id, 3> weights{ir::none, ir::none, ir::none};
  std::uint8_t weight_count = 0;
  std::array<ir::weight_id, 3> biases{ir::none, ir::none,
                                      ir::none};  ///< of turn: of q, k and v, or none; of norm_add, route and
                                                  ///< expert_sum: one, or none; of gated: of gate and up, or none
  kernels::turn_norms norms = kernels::turn_norms::none;
  bool v_norm = false;              ///< of turn: heads of v are normalised, without a weight
  ir::weight_id factor = ir::none;  ///< of norm_add: the sum is multiplied by this one number
  bool by_layer = false;            ///< of gated: up_in has a place for each layer
  kernels::prologue prologue = kernels::prologue::quantized;
  kernels::epilogue epilogue = kernels::epilogue::store;
  float eps = 0, scale = 0;  ///< scale 0: the kernel's own
  rope_parameters rope{};
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float softcap = 0;               ///< of attention
  ir::weight_id sinks = ir::none;  ///< of attention
  shader::activation_function act{};
  bool walk = false;                    ///< one token's features may be walked: walk_gate_up, walk_down
  ir::weight_id value_norm = ir::none;  ///< of walk_gate_up: the norm that walk_down puts in front of its values
  std::uint32_t parts = 1;              ///< vectors of which walk_sum leaves a sum and norm_add reads one
  std::uint32_t nearest = 0;            ///< features that one token takes; 0: no walk of these
  std::uint32_t traced = 0;             ///< features that one token tells of (plan/keep_traces.hpp)
  ir::value_id gates = ir::none, values = ir::none;  ///< what a traced FFN's products leave besides: gate scores, and
                                                     ///< what down vectors are multiplied with
};

struct fusion_options {
  bool norm_prologue = true;  ///< rule norm_prologue, for one token a pass
  bool walks = false;         ///< rules nearest and by_features, for one token a pass
};

class fuser {
 public:
  constexpr fuser(const ir::graph& g, fusion_options options) : graph_(g), options_(options) {
    for (std::size_t i = 0; i < g.values.size(); ++i)
      uses_.push_back(0);  // resize is no constant expression on clang 16 with libstdc++ 12
    for (const auto& o : g.ops)
      for (const auto id : o.in)
        if (id != ir::none) ++uses_[static_cast<std::size_t>(id)];
    if (g.output != ir::none) ++uses_[static_cast<std::size_t>(g.output)];
    for (std::size_t i = 0; i < g.ops.size(); ++i) taken_.push_back(0);
    codecs_apart_ = finds_codecs_apart();
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
      if (options_.walks && n.kernel == kernels::kernel::matmul && n.experts == 0) walk_features(i, n);
      nodes_.push_back(n);
    }
    if (options_.norm_prologue) merge_norms();
    return nodes_;
  }

 private:
  using kind = ir::op_kind;

  constexpr const ir::op& at(std::size_t i) const { return graph_.ops[i]; }
  constexpr std::uint32_t uses(ir::value_id id) const {
    return id == ir::none ? 0 : uses_[static_cast<std::size_t>(id)];
  }
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// The op of `wanted` kind behind `from` that reads `id` as operand `place` and is not merged yet.
  constexpr std::size_t reader(ir::value_id id, kind wanted, std::size_t from, std::size_t place = 0) const {
    for (std::size_t i = from; i < graph_.ops.size(); ++i)
      if (!taken_[i] && at(i).kind == wanted && at(i).in[place] == id && together(at(i), at(from))) return i;
    return nowhere;
  }
  static constexpr bool together(const ir::op& a, const ir::op& b) { return a.where == b.where && a.block == b.block; }
  constexpr dtype type(ir::value_id id) const { return graph_.values[static_cast<std::size_t>(id)].type; }
  constexpr dtype weight_type(const ir::op& o) const { return graph_.weights[static_cast<std::size_t>(o.weight)].type; }
  /// The head of a model whose weights are no blocks has a kernel of its own, dense_matmul.
  constexpr bool dense_head(const ir::op& o) const {
    const auto& w = graph_.weights[static_cast<std::size_t>(o.weight)];
    return o.kind == kind::matmul && o.out == graph_.head && intaglio::info(w.type).block_elements == 1 &&
           w.columns % 8 == 0;
  }
  /// A product that ternary_matmul, ternary_float or matmul computes.
  constexpr bool product(const ir::op& o) const {
    if (o.kind != kind::matmul || dense_head(o)) return false;
    return weight_type(o) == dtype::i2_s ? o.experts == 0 && (type(o.in[0]) == dtype::i8 || type(o.in[0]) == dtype::f32)
                                         : codec_of(weight_type(o)) && type(o.in[0]) == dtype::f32;
  }
  constexpr bool float_product(const ir::op& o) const { return product(o) && type(o.in[0]) == dtype::f32; }
  /// True for a norm whose readers are all products of f32: each of them computes it.
  constexpr bool joins_readers(std::size_t i) const {
    if (at(i).kind != kind::rms_norm || at(i).head_dim != 0 || at(i).out == graph_.output) return false;
    std::uint32_t readers = 0;
    for (const auto& o : graph_.ops)
      if (o.in[0] == at(i).out && together(o, at(i)) && float_product(o)) ++readers;
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
      case kind::embedding:
        return embed(i, n);
      case kind::rms_norm:
        return norm(i, n);
      case kind::bias:
        if (o.experts != 0) return expert_bias(i, n);
        if (const auto r = reader(o.out, kind::route, i); r != nowhere && uses(o.out) == 1) {
          take(n, i);
          n.biases[0] = o.weight;
          route(r, n);
          return n;
        }
        return bias_add(i, n);
      case kind::cache_write:
      case kind::rope:
        return turn(i, n);
      case kind::matmul:
        return product(o) ? fused_product(i, n) : n;
      case kind::attention: {
        take(n, i);
        n.lowered = true;
        n.kernel = kernels::kernel::attention;
        n.heads = o.heads, n.kv_heads = o.kv_heads, n.head_dim = o.head_dim;
        n.scale = o.scale, n.window = o.window;
        n.softcap = o.softcap, n.sinks = o.weight;
        return n;
      }
      case kind::short_conv:
        take(n, i);
        n.lowered = true;
        n.kernel = kernels::kernel::short_conv;
        n.taps = o.taps, n.multiplied = o.multiplied;
        add_weight(n, o.weight);
        return n;
      case kind::delta_net:
        take(n, i);
        n.lowered = true;
        n.kernel = kernels::kernel::delta_net;
        n.delta = o.delta;
        n.k_in = o.in[1], n.v_in = o.in[2];
        add_weight(n, o.weight), add_weight(n, o.second);
        return n;
      case kind::head_gate:
        return head_gate(i, n);
      case kind::route:
        route(i, n);
        return n;
      case kind::gated: {
        // What decode walks or tells of are features whose gate and up are one product.
        if (o.nearest != 0 || o.traced != 0) return n;
        take(n, i);
        n.lowered = true;
        n.kernel = kernels::kernel::gated;
        n.up_in = o.in[1];
        n.act = o.act;
        n.scale = o.scale;
        n.by_layer = o.by_layer;
        if (o.in[0] != o.in[1]) n.rule = rule_index("gated");
        else if (uses(o.in[0]) == 2) n.stream = o.in[0];  // in its place
        return n;
      }
      case kind::weigh: {
        const auto a = reader(o.out, kind::add, i, 1);
        if (a == nowhere || !may_update(i, a)) return n;
        take(n, i), take(n, a);
        n.lowered = true;
        n.kernel = kernels::kernel::expert_sum;
        n.rule = rule_index("expert_sum");
        n.choice = o.in[1], n.top_k = o.top_k;
        n.stream = at(a).in[0];
        n.out = at(a).out;
        return n;
      }
      default:
        return n;
    }
  }

  constexpr node head_gate(std::size_t i, node n) {
    const ir::op& o = at(i);
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::head_gate;
    n.up_in = o.in[1];
    n.norm = o.weight, n.eps = o.eps, n.head_dim = o.head_dim, n.logistic = o.logistic;
    if (const auto a = reader(o.out, kind::add, i, 1); a != nowhere && may_update(i, a)) {
      take(n, a);
      n.rule = rule_index("gate_add");
      n.stream = at(a).in[0];
      n.out = at(a).out;
    }
    return n;
  }

  constexpr node embed(std::size_t i, node n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::embed;
    n.scale = at(i).scale == 1 ? 0 : at(i).scale;
    add_weight(n, at(i).weight);
    return n;
  }

  constexpr node norm(std::size_t i, node n) {
    const ir::op& o = at(i);
    n.norm = o.weight;
    n.eps = o.eps;
    if (uses(o.out) != 1 || o.weight == ir::none) return n;
    if (const auto q = reader(o.out, kind::quantize, i); q != nowhere) {
      take(n, i), take(n, q);
      n.lowered = true;
      n.kernel = kernels::kernel::norm_quantize;
      n.rule = rule_index("norm_quantize");
      n.out = at(q).out;
    } else if (const auto m = reader(o.out, kind::matmul, i); m != nowhere && dense_head(at(m)) && uses(o.out) == 1) {
      take(n, i), take(n, m);
      n.lowered = true;
      n.kernel = kernels::kernel::dense_matmul;
      n.rule = rule_index("norm_head");
      add_weight(n, at(m).weight);
      n.out = at(m).out;
    } else if (const auto a = reader(o.out, kind::add, i, 1); a != nowhere && may_update(i, a)) {
      take(n, i), take(n, a);
      n.lowered = true;
      n.kernel = kernels::kernel::norm_add;
      n.rule = rule_index("norm_add");
      n.stream = at(a).in[0];
      n.out = at(a).out;
      n.head_dim = o.head_dim;
      if (const auto s = reader(n.out, kind::scale, a); s != nowhere && uses(n.out) == 1 && n.head_dim == 0) {
        take(n, s);
        n.factor = at(s).weight;
        n.out = at(s).out;
      }
    }
    return n;
  }

  constexpr void route(std::size_t i, node& n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::route;
    n.experts = at(i).experts, n.top_k = at(i).top_k;
    n.over_all = at(i).over_all;
    n.out = at(i).out;
  }

  /// Biases of experts: of gate and up in front of the activation, of down in front of the sum.
  constexpr node expert_bias(std::size_t i, node n) {
    const ir::op& o = at(i);
    n.choice = o.in[1], n.top_k = o.top_k;
    n.biases[0] = o.weight;
    n.rule = rule_index("expert_biases");
    if (uses(o.out) != 1) return n;
    if (const auto a = reader(o.out, kind::gated, i); a != nowhere) {
      std::size_t up = nowhere;
      for (std::size_t k = 0; k < graph_.ops.size(); ++k)
        if (at(k).kind == kind::bias && at(k).experts != 0 && at(k).out == at(a).in[1]) up = k;
      if (up == nowhere || up == i || uses(at(up).out) != 1 || at(a).nearest != 0 || at(a).traced != 0) return n;
      for (const auto index : {i, up, a}) take(n, index);
      n.lowered = true;
      n.kernel = kernels::kernel::gated;
      n.biases[1] = at(up).weight;
      n.up_in = at(up).in[0];
      n.act = at(a).act;
      n.scale = at(a).scale;
      n.out = at(a).out;
      return n;
    }
    const auto w = reader(o.out, kind::weigh, i);
    const auto a = w == nowhere ? nowhere : reader(at(w).out, kind::add, w, 1);
    if (a == nowhere || !may_update(w, a)) return n;
    for (const auto index : {i, w, a}) take(n, index);
    n.lowered = true;
    n.kernel = kernels::kernel::expert_sum;
    n.stream = at(a).in[0];
    n.out = at(a).out;
    return n;
  }

  /// The bias of what is added to the stream.
  constexpr node bias_add(std::size_t i, node n) {
    const auto a = reader(at(i).out, kind::add, i, 1);
    if (a == nowhere || !may_update(i, a)) return n;
    take(n, i), take(n, a);
    n.lowered = true;
    n.kernel = kernels::kernel::norm_add;
    n.rule = rule_index("bias_add");
    n.biases[0] = at(i).weight;
    n.stream = at(a).in[0];
    n.out = at(a).out;
    return n;
  }

  /// q, k and v of one input on their way to the cache. What a model does not have is nowhere.
  struct qkv {
    std::array<std::size_t, 3> products{nowhere, nowhere, nowhere}, biases{nowhere, nowhere, nowhere};
    std::size_t q_norm = nowhere, k_norm = nowhere, v_norm = nowhere, q_rope = nowhere, k_rope = nowhere,
                write = nowhere;
    std::size_t stacked = 1;  ///< how many of the three, from q on, one product computes
    bool alone = false;       ///< q, whose keys and values are another layer's
    constexpr bool found() const { return write != nowhere || alone; }
    constexpr bool k_is_v() const { return products[1] == products[2]; }
    constexpr bool biased() const { return biases[0] != nowhere; }
    constexpr bool normalised() const { return q_norm != nowhere; }
  };
  /// The value of op i, or nothing where other ops than one read it.
  constexpr ir::value_id only_for_one(std::size_t i) const {
    return i != nowhere && uses(at(i).out) == 1 ? at(i).out : ir::none;
  }
  constexpr qkv find_qkv(std::size_t q) const {
    qkv out;
    out.products[0] = q;
    out.products[1] = reader_of_input(q);
    if (out.products[1] == nowhere) return find_query(q);
    out.products[2] = reader_of_input(out.products[1]);
    const bool k_is_v = out.products[2] == nowhere && uses(at(out.products[1]).out) == 2;
    if (k_is_v) out.products[2] = out.products[1];
    std::array<ir::value_id, 3> y{};
    for (std::size_t i = 0; i < 3; ++i) {
      y[i] = k_is_v && i != 0 ? at(out.products[i]).out : only_for_one(out.products[i]);
      if (y[i] == ir::none) return out;
      out.biases[i] = reader(y[i], kind::bias, q);
      if ((out.biases[i] == nowhere) == out.biased()) return out;
      if (out.biased()) y[i] = only_for_one(out.biases[i]);
    }
    const auto qn = reader_norm(y[0], q, true), kn = reader_norm(y[1], q, true), vn = reader_norm(y[2], q, false);
    if ((qn == nowhere) != (kn == nowhere)) return out;
    if (vn != nowhere) {
      if (qn == nowhere || at(vn).eps != at(qn).eps || at(vn).head_dim != at(qn).head_dim || at(qn).head_dim == 0)
        return out;
      y[2] = only_for_one(vn);
    }
    if (qn != nowhere) {
      if (at(qn).head_dim != at(kn).head_dim || at(qn).eps != at(kn).eps) return out;
      y[0] = only_for_one(qn), y[1] = only_for_one(kn);
    }
    const auto rq = reader(y[0], kind::rope, q), rk = reader(y[1], kind::rope, q);
    if (rq == nowhere || rk == nowhere || uses(at(rk).out) != 1 || at(rq).rope != at(rk).rope ||
        at(rq).head_dim != at(rk).head_dim)
      return out;
    if (qn != nowhere && at(qn).head_dim != 0 && at(qn).head_dim != at(rq).head_dim) return out;
    const auto w = reader(at(rk).out, kind::cache_write, q);
    if (w == nowhere || at(w).in[1] != y[2] || at(w).head_dim != at(rq).head_dim) return out;
    out.q_norm = qn, out.k_norm = kn, out.v_norm = vn, out.q_rope = rq, out.k_rope = rk, out.write = w;
    return out;
  }
  /// The norm that reads a value, with or without a weight.
  constexpr std::size_t reader_norm(ir::value_id id, std::size_t from, bool weighted) const {
    for (std::size_t i = from; i < graph_.ops.size() && id != ir::none; ++i)
      if (!taken_[i] && at(i).kind == kind::rms_norm && at(i).in[0] == id && (at(i).weight != ir::none) == weighted &&
          together(at(i), at(from)))
        return i;
    return nowhere;
  }
  /// A query whose keys and values are another layer's: normalised, rotated and read by attention alone.
  constexpr qkv find_query(std::size_t q) const {
    qkv out;
    out.products[0] = q;
    const auto n = reader_norm(only_for_one(q), q, true);
    const auto r = reader(n == nowhere ? ir::none : only_for_one(n), kind::rope, q);
    if (r == nowhere || at(n).head_dim != at(r).head_dim || reader(only_for_one(r), kind::attention, q) == nowhere)
      return out;
    out.q_norm = n, out.q_rope = r, out.alone = true;
    return out;
  }

  /// Heads of q, k and v on their way to attention, where their products only store them.
  constexpr node turn(std::size_t i, node n) {
    for (const qkv& each : turned_) {
      if ((each.alone ? each.q_rope : each.write) != i) continue;
      for (const auto index : each.biases)
        if (index != nowhere) take(n, index);
      for (const auto index : {each.q_norm, each.k_norm, each.v_norm, each.q_rope, each.k_rope, each.write})
        if (index != nowhere) take(n, index);
      n.lowered = true;
      n.kernel = kernels::kernel::turn;
      n.rule = rule_index("turn");
      n.in = at(each.products[0]).out;
      if (each.stacked < 2 && !each.alone) n.k_in = at(each.products[1]).out;
      if (each.stacked < 3 && !each.alone) n.v_in = at(each.products[2]).out;
      n.out = at(each.q_rope).out;
      for (std::size_t p = 0; p < 3 && each.biased(); ++p) n.biases[p] = at(each.biases[p]).weight;
      if (each.normalised()) {
        n.norms = at(each.q_norm).head_dim != 0 ? kernels::turn_norms::each_head : kernels::turn_norms::all_heads;
        n.norm = at(each.q_norm).weight;
        if (!each.alone) add_weight(n, at(each.k_norm).weight);
        n.eps = at(each.q_norm).eps;
        n.v_norm = each.v_norm != nowhere;
      }
      n.rope = at(each.q_rope).rope;
      n.head_dim = at(each.q_rope).head_dim;
      n.heads = graph_.values[static_cast<std::size_t>(n.out)].width / n.head_dim;
      if (each.alone) continue;
      n.kv_heads = at(i).kv_heads;
      n.window = at(i).window;
    }
    return n;
  }

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

  /// The next unmerged product behind i that reads the same input.
  constexpr std::size_t reader_of_input(std::size_t i) const {
    for (std::size_t k = i + 1; k < graph_.ops.size(); ++k)
      if (!taken_[k] && together(at(k), at(i)) && at(k).in[0] == at(i).in[0] && at(k).in[1] == at(i).in[1] &&
          product(at(k)))
        return k;
    return nowhere;
  }
  /// The same, by weights of the same type.
  constexpr std::size_t sibling(std::size_t i) const {
    std::size_t k = reader_of_input(i);
    while (k != nowhere && weight_type(at(k)) != weight_type(at(i))) k = reader_of_input(k);
    return k;
  }

  /// How many of q, k and v, from q on, are of one codec.
  constexpr std::size_t of_one_codec(const qkv& of) const {
    const dtype type = weight_type(at(of.products[0]));
    if (type != weight_type(at(of.products[1]))) return 1;
    return type != weight_type(at(of.products[2])) ? 2 : 3;
  }
  /// Whether q, k and v of some layer are of several codecs.
  constexpr bool finds_codecs_apart() const {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      if (product(at(i)) && at(i).where == ir::section::period)
        if (const qkv found = find_qkv(i); found.write != nowhere && of_one_codec(found) != 3) return true;
    return false;
  }

  /// q, k and v of one codec are one product; where v has another, q and k are. Where nothing but the rotation stands
  /// between it and attention, its epilogue does that; else turn does, in all layers where it does in one. Of three
  /// codecs each is a product of its own, and q's is made here; so are ternary ones whose epilogue cannot rotate as
  /// these layers do.
  constexpr bool stack_qkv(std::size_t q, node& n) {
    qkv found = find_qkv(q);
    if (!found.found()) return false;
    if (found.alone) {
      take(n, q), add_weight(n, at(q).weight);
      n.epilogue = kernels::epilogue::store;
      taken_[found.q_norm] = true;
      turned_.push_back(found);
      return true;
    }
    const ir::op& write = at(found.write);
    const bool ternary = n.kernel != kernels::kernel::matmul,
               turns = codecs_apart_ || found.normalised() || found.biased() ||
                       at(found.q_rope).rope.scaling.attention_factor != 1 ||
                       (ternary &&
                        (at(found.q_rope).rope != rope_parameters{at(found.q_rope).rope.theta} || write.window != 0));
    if (!(ternary && turns) && !found.k_is_v()) found.stacked = of_one_codec(found);
    for (std::size_t i = 0; i < found.stacked; ++i)
      take(n, found.products[i]), add_weight(n, at(found.products[i]).weight);
    if (found.stacked != 1) n.head_dim = write.head_dim, n.kv_heads = write.kv_heads;
    if (turns || found.stacked == 1) {
      n.epilogue = kernels::epilogue::store;
      if (found.stacked != 1) n.rule = rule_index("stack_plain");
      for (std::size_t i = 0; i < found.stacked && found.stacked != 1; ++i)
        n.out_width += graph_.values[static_cast<std::size_t>(at(found.products[i]).out)].width;
      for (const auto index : found.biases)
        if (index != nowhere) taken_[index] = true;
      for (const auto index : {found.q_norm, found.k_norm, found.v_norm, found.q_rope, found.k_rope})
        if (index != nowhere) taken_[index] = true;
      turned_.push_back(found);
      return true;
    }
    for (const auto index : {found.q_rope, found.k_rope, found.write}) take(n, index);
    n.rule = rule_index("stack_qkv");
    n.epilogue = kernels::epilogue::rope_cache;
    n.out = at(found.q_rope).out;
    n.rope = at(found.q_rope).rope;
    n.window = write.window;
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
    n.walk = at(a).walk;
    n.nearest = at(a).nearest;
    n.traced = at(a).traced;
    n.out = at(a).out;
    return true;
  }

  /// A gated unit of which some features count becomes three nodes: all gates, the choice of features, the up vectors
  /// of those. The choice lies where the up product's value would. Of the product behind it the weight is read by
  /// features.
  constexpr void walk_features(std::size_t i, node& n) {
    if (n.epilogue == kernels::epilogue::gated && n.nearest != 0) {
      ir::value_id choice = ir::none;
      if (n.nearest < graph_.values[static_cast<std::size_t>(n.out)].width) {
        for (const auto& o : graph_.ops)
          if (o.out == n.out) choice = o.in[1];
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

  /// Whether add op `a` may overwrite its first operand with the sum of it and what op m gives.
  constexpr bool may_update(std::size_t m, std::size_t a) const {
    if (uses(at(m).out) != 1) return false;
    const ir::value_id x = at(a).in[0];
    for (std::size_t i = a + 1; i < graph_.ops.size(); ++i)
      for (const auto id : at(i).in)
        if (id == x || computed_from(id, x)) return false;  // the old stream is still wanted
    return true;
  }

  constexpr bool residual_add(std::size_t m, node& n) {
    const auto a = reader(at(m).out, kind::add, m, 1);
    if (a == nowhere || at(m).experts != 0 || !may_update(m, a)) return false;
    take(n, m), take(n, a);
    add_weight(n, at(m).weight);
    n.rule = rule_index("residual_add");
    n.epilogue = kernels::epilogue::add;
    n.stream = at(a).in[0];
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

  constexpr void explain(std::size_t i, text<256>& failure) const {
    const ir::op& o = at(i);
    failure.append(o.layer.view(), ": no kernel computes ", o.kind, " here; ");
    switch (o.kind) {
      case kind::rms_norm:
        failure.append("expected products as readers, an int8 product or the head, or a sum with the stream, found ",
                       uses(o.out), uses(o.out) == 1 ? " of another kind" : "");
        break;
      case kind::matmul:
        failure.append("expected i2_s weights of int8 or f32 inputs or coded weights of f32 inputs, found ",
                       graph_.weights[static_cast<std::size_t>(o.weight)].type, " weights of ",
                       graph_.values[static_cast<std::size_t>(o.in[0])].type);
        break;
      case kind::add:
        failure.append(
            "expected the product of an output projection as second operand and no later reader of the first");
        break;
      case kind::weigh:
        failure.append("expected a sum with the stream as its only reader (residual)");
        break;
      case kind::quantize:
        failure.append("expected rms_norm in front of it, found another op");
        break;
      case kind::bias:
        failure.append(
            "expected products of q, k and v in front of it and of two others, or a sum with the stream or a route "
            "behind it");
        break;
      case kind::rope:
      case kind::cache_write:
        failure.append("expected q, k and v of one input with one rope each for q and k");
        break;
      case kind::gated:
        failure.append("expected gate and up products of one input and one codec in front of it, to walk or trace");
        break;
      default:
        failure.append("expected gate and up products of one input in front of it");
        break;
    }
  }

  const ir::graph& graph_;
  fusion_options options_;
  std::vector<std::uint32_t> uses_;
  bool codecs_apart_ = false;  ///< of q, k and v in some layer
  std::vector<char> taken_;    // std::vector<bool> of libstdc++ 12 cannot be evaluated by clang 16
  std::vector<node> nodes_;
  std::vector<qkv> turned_;  ///< whose products store them, for turn
  struct walked {
    ir::value_id values = ir::none,
                 choice = ir::none;  ///< of the features that count, and which they are: none where all do
    std::uint32_t count = 0;
  };
  std::vector<walked> walked_;
};

}  // namespace intaglio::plan
