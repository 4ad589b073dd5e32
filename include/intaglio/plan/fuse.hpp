// SPDX-License-Identifier: MIT
// Fusion: a list of named rewrite rules (plan/rules.hpp) over the traced ops. Each rule names the catalogue's kernel
// that computes the merged op. An op that no rule and no kernel covers is refused with one sentence.
#pragma once

#include <cstddef>
#include <vector>

#include "intaglio/ir/op.hpp"
#include "intaglio/plan/fusion/explain_unfused.hpp"
#include "intaglio/plan/fusion/latent_rules.hpp"
#include "intaglio/plan/node.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

/// Fusions that depend on the profile and on the kind of pass.
struct fusion_options {
  bool norm_prologue = true;  ///< rule norm_prologue, for passes of one token
  bool walks = false;         ///< rules nearest and by_features, for passes of one token
  bool coded_cache = false;   ///< blocks of a head's channels share a factor, so that kernel turn writes all caches
};

/// Makes the nodes of a graph: each joins the ops that one kernel call computes (plan/rules.hpp).
class fuser : public latent_rules {
 public:
  constexpr fuser(const ir::graph& g, fusion_options options) : latent_rules(g), options_(options) {
    always_turns_ = options.coded_cache;
  }

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
        return latent_turn(i, n) ? n : norm(i, n);
      case kind::layer_norm:
        return layer_norm(i, n);
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
      case kind::quantize:
        return quantize(i, n);
      case kind::head_gate:
        return head_gate(i, n);
      case kind::route:
      case kind::adapter:
      case kind::every_expert:
        route(i, n);
        n.over_all = n.over_all || o.kind == kind::every_expert;
        return n;
      case kind::attention:
        return attention(i, n);
      case kind::short_conv:
        return short_conv(i, n);
      case kind::delta_net:
      case kind::state_space:
        return delta_net(i, n);
      case kind::gated:
        return gated(i, n);
      case kind::streams:
        return streams(i, n);
      case kind::weigh:
        return weigh(i, n);
      default:
        return n;
    }
  }

  fusion_options options_;
};

}  // namespace intaglio::plan
