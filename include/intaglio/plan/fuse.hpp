// SPDX-License-Identifier: MIT
// Fusion: a list of named rewrite rules (plan/rules.hpp) over the traced ops. Each rule names the catalogue's kernel
// that serves the merged op; what no rule and no kernel covers is refused with one sentence.
#pragma once

#include <cstddef>
#include <vector>

#include "intaglio/ir/op.hpp"
#include "intaglio/plan/fusion/explain_unfused.hpp"
#include "intaglio/plan/fusion/product_rules.hpp"
#include "intaglio/plan/node.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

struct fusion_options {
  bool norm_prologue = true;  ///< rule norm_prologue, for one token a pass
  bool walks = false;         ///< rules nearest and by_features, for one token a pass
};

class fuser : public product_rules {
 public:
  constexpr fuser(const ir::graph& g, fusion_options options) : product_rules(g), options_(options) {}

  /// The fused nodes in order, or a sentence in `failure` that names the op without a kernel.
  constexpr std::vector<node> run(text<256>& failure) {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      if (taken_[i] || joins_readers(i)) continue;
      node n = fuse_at(i);
      if (!n.lowered) {
        if (failure.empty()) explain_unfused(graph_, at(i), uses(at(i).out), failure);
        return {};
      }
      if (options_.walks && n.kernel == kernels::kernel::matmul && n.experts == 0) walk_features(i, n);
      nodes_.push_back(n);
    }
    if (options_.norm_prologue) merge_norms();
    return nodes_;
  }

 private:
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
      case kind::quantize:
        return quantize(i, n);
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
        const bool updates = a != nowhere && may_update(i, a);
        if (!updates && reader_norm(o.out, i, true) == nowhere) return n;
        take(n, i);
        n.lowered = true;
        n.kernel = kernels::kernel::expert_sum;
        n.choice = o.in[1], n.top_k = o.top_k;
        if (!updates) return n;
        take(n, a);
        n.rule = rule_index("expert_sum");
        n.stream = at(a).in[0];
        n.out = at(a).out;
        return n;
      }
      default:
        return n;
    }
  }

  fusion_options options_;
};

}  // namespace intaglio::plan
