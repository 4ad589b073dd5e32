// SPDX-License-Identifier: MIT
// Rules for q, k and v of one input: which of their products are stacked, and the ops on heads before attention and the
// cache.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "intaglio/plan/fusion/stream_rules.hpp"

namespace intaglio::plan {

/// The rules that merge q, k and v with what is around them.
class qkv_rules : public stream_rules {
 public:
  constexpr explicit qkv_rules(const ir::graph& g) : stream_rules(g) {
    codecs_apart_ = finds_codecs_apart();
    for (const ir::op& o : g.ops) always_turns_ = always_turns_ || o.kind == kind::adapter;
  }

 protected:
  bool always_turns_ = false;  ///< kernel turn is used for all layers: adapters add to products' results in memory

  /// Stacks the products of q, k and v. If all three have one codec they become one product; if only v differs, q and k
  /// do; if only q differs, k and v do. If only RoPE follows, the product's epilogue rotates; else kernel turn does,
  /// and then it does so in all layers. With other codecs each is a product of its own, and this node is q's. Ternary
  /// products whose epilogue cannot rotate as these layers need stay separate too.
  constexpr bool stack_qkv(std::size_t q, node& n) {
    if (stack_values(q, n)) return true;
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
               turns = always_turns_ || codecs_apart_ || found.normalised() || found.biased() ||
                       at(found.q_rope).rope.scaling.attention_factor != 1 ||
                       (ternary &&
                        (at(found.q_rope).rope != rope_parameters{at(found.q_rope).rope.theta} || write.window != 0));
    if (!(ternary && turns) && !found.k_is_v() && !found.adapted) found.stacked = of_one_codec(found);
    found.values_after_keys = !ternary && found.stacked == 1 && !found.k_is_v() && !found.adapted &&
                              alike(found.products[1], found.products[2]);
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

  /// Makes the node of kernel turn: biases, norms and RoPE of q, k and v whose products only store them.
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
      n.in = given(each.products[0]);
      if (each.stacked < 2 && !each.alone) n.k_in = given(each.products[1]);
      if (each.stacked < 3 && !each.alone && !each.values_after_keys) n.v_in = given(each.products[2]);
      n.out = at(each.after ? each.q_norm : each.q_rope).out;
      for (std::size_t p = 0; p < 3 && each.biased(); ++p) n.biases[p] = at(each.biases[p]).weight;
      if (each.normalised()) {
        n.norms = each.after                      ? kernels::turn_norms::each_head_after
                  : at(each.q_norm).head_dim != 0 ? kernels::turn_norms::each_head
                                                  : kernels::turn_norms::all_heads;
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

 private:
  /// The ops of q, k and v, of one input or each after a norm of its own, up to the cache; `nowhere` for an op that
  /// the model lacks.
  struct qkv {
    std::array<std::size_t, 3> products{nowhere, nowhere, nowhere}, biases{nowhere, nowhere, nowhere};
    std::size_t q_norm = nowhere, k_norm = nowhere, v_norm = nowhere, q_rope = nowhere, k_rope = nowhere,
                write = nowhere;
    std::size_t stacked = 1;         ///< how many of q, k and v, in this order, one product computes
    bool values_after_keys = false;  ///< one product computes k and v, and q is apart
    bool after = false;              ///< q_norm and k_norm are applied after RoPE
    bool alone = false;              ///< only q: its keys and values belong to another layer
    bool adapted = false;            ///< adapters add to one of the products
    constexpr bool found() const { return write != nowhere || alone; }
    constexpr bool k_is_v() const { return products[1] == products[2]; }
    constexpr bool biased() const { return biases[0] != nowhere; }
    constexpr bool normalised() const { return q_norm != nowhere; }
  };

  constexpr qkv find_qkv(std::size_t q) const {
    if (const auto k = reader_of_input(q); k != nowhere) return find_qkv(q, k, reader_of_input(k));
    if (const auto k = reader_by_own_norm(q); k != nowhere)
      if (const qkv all = find_qkv(q, k, reader_by_own_norm(k)); all.found()) return all;
    return find_query(q);
  }
  constexpr qkv find_qkv(std::size_t q, std::size_t k, std::size_t v) const {
    qkv out;
    out.products = {q, k, v};
    const bool k_is_v = out.products[2] == nowhere && uses(given(out.products[1])) == 2;
    if (k_is_v) out.products[2] = out.products[1];
    std::array<ir::value_id, 3> y{};
    for (std::size_t i = 0; i < 3; ++i) {
      y[i] = given(out.products[i]);
      if (!(k_is_v && i != 0) && uses(y[i]) != 1) return out;
      out.adapted = out.adapted || y[i] != at(out.products[i]).out;
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
    out.q_norm = qn, out.k_norm = kn, out.v_norm = vn, out.q_rope = rq, out.k_rope = rk;
    if (qn == nowhere) find_norms_after(q, out);
    const auto w = reader(at(out.after ? out.k_norm : rk).out, kind::cache_write, q);
    if (w == nowhere || at(w).in[1] != y[2] || at(w).head_dim != at(rq).head_dim) return out;
    out.write = w;
    return out;
  }
  /// Finds the norms of q's and k's heads that follow RoPE, if the rotation keeps the heads' root mean squares.
  constexpr void find_norms_after(std::size_t q, qkv& out) const {
    const ir::op &rq = at(out.q_rope), &rk = at(out.k_rope);
    if (uses(rq.out) != 1 || rq.rope.scaling.attention_factor != 1) return;
    const auto qn = reader_norm(rq.out, q, true), kn = reader_norm(rk.out, q, true);
    if (qn == nowhere || kn == nowhere || at(qn).head_dim != rq.head_dim || at(kn).head_dim != rq.head_dim ||
        at(qn).eps != at(kn).eps || uses(at(kn).out) != 1)
      return;
    out.q_norm = qn, out.k_norm = kn, out.after = true;
  }
  /// Finds a query whose keys and values belong to another layer: it is normalised, rotated and read by attention only.
  constexpr qkv find_query(std::size_t q) const {
    qkv out;
    out.products[0] = q;
    const auto n = reader_norm(uses(given(q)) == 1 ? given(q) : ir::none, q, true);
    const auto r = reader(n == nowhere ? ir::none : only_for_one(n), kind::rope, q);
    if (r == nowhere || at(n).head_dim != at(r).head_dim || reader(only_for_one(r), kind::attention, q) == nowhere)
      return out;
    out.q_norm = n, out.q_rope = r, out.alone = true;
    return out;
  }

  /// Stacks the products of k and v if `k` is the first of the two and q's product is apart.
  constexpr bool stack_values(std::size_t k, node& n) {
    for (const qkv& each : turned_) {
      if (!each.values_after_keys || each.products[1] != k) continue;
      const ir::op& write = at(each.write);
      n.rule = rule_index("stack_plain");
      n.epilogue = kernels::epilogue::store;
      n.head_dim = write.head_dim, n.kv_heads = write.kv_heads;
      for (const std::size_t product : {each.products[1], each.products[2]}) {
        take(n, product), add_weight(n, at(product).weight);
        n.out_width += graph_.values[static_cast<std::size_t>(at(product).out)].width;
      }
      return true;
    }
    return false;
  }
  /// Whether two products share one input and one codec.
  constexpr bool alike(std::size_t a, std::size_t b) const {
    return at(a).in[0] == at(b).in[0] && weight_type(at(a)) == weight_type(at(b));
  }
  /// How many of q, k and v, in this order, share one input and one codec.
  constexpr std::size_t of_one_codec(const qkv& of) const {
    if (!alike(of.products[0], of.products[1])) return 1;
    return weight_type(at(of.products[0])) != weight_type(at(of.products[2])) ? 2 : 3;
  }
  /// Whether q, k and v of any layer have different codecs.
  constexpr bool finds_codecs_apart() const {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i)
      if (product(at(i)) && at(i).where == ir::section::period)
        if (const qkv found = find_qkv(i); found.write != nowhere && of_one_codec(found) != 3) return true;
    return false;
  }

  bool codecs_apart_ = false;  ///< q, k and v of some layer differ in codec
  std::vector<qkv> turned_;    ///< those whose products only store them, for kernel turn
};

}  // namespace intaglio::plan
