// SPDX-License-Identifier: MIT
// Rules for norms, biases, gates and experts: the ops between products, and additions to the stream.
#pragma once

#include <cstddef>

#include "intaglio/plan/fusion/graph_reader.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

/// Rules for nodes of one op or few: the embedding, norms, convolutions, delta rules, parallel streams.
class stream_rules : public graph_reader {
 public:
  using graph_reader::graph_reader;

 protected:
  constexpr node embed(std::size_t i, node n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::embed;
    n.scale = at(i).scale == 1 ? 0 : at(i).scale;
    add_weight(n, at(i).weight);
    n.biases[0] = at(i).second, n.biases[1] = at(i).third;
    return n;
  }

  /// LayerNorm, in place if no other op reads its input.
  constexpr node layer_norm(std::size_t i, node n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::rms_norm;
    n.norm = at(i).weight, n.biases[0] = at(i).second;
    n.centered = true;
    n.eps = at(i).eps;
    if (uses(at(i).in[0]) == 1) n.stream = at(i).in[0];
    return n;
  }

  constexpr node streams(std::size_t i, node n) {
    const ir::op& o = at(i);
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::streams;
    n.up_in = o.in[1], n.k_in = o.in[2];
    n.step = o.step, n.streams = o.streams, n.stream_index = o.stream_index;
    n.norm = o.weight, n.eps = o.eps, n.scale = o.scale;
    if (o.second != ir::none) add_weight(n, o.second), add_weight(n, o.third);
    const bool all =
        o.step == ir::stream_step::predict || o.step == ir::stream_step::correct || o.step == ir::stream_step::spread;
    if (all && !is_read_after(i, o.in[0], i)) n.stream = o.in[0];  // updated in place
    return n;
  }

  constexpr node norm(std::size_t i, node n) {
    const ir::op& o = at(i);
    n.norm = o.weight;
    n.eps = o.eps;
    const bool last = uses(o.out) == 0 && o.head_dim == 0;  // an encoder's last norm, which no op follows
    const bool stored = last || only_for_norms(i);
    if ((uses(o.out) != 1 && !stored) || o.weight == ir::none) return n;
    if (const auto q = reader(o.out, kind::quantize, i); q != nowhere) {
      take(n, i), take(n, q);
      n.lowered = true;
      n.kernel = kernels::kernel::norm_quantize;
      n.prologue = kernels::prologue::norm_quantize;
      n.rule = rule_index("norm_quantize");
      n.out = at(q).out;
    } else if (const auto m = reader(o.out, kind::matmul, i); m != nowhere && dense_head(at(m)) && uses(o.out) == 1) {
      take(n, i), take(n, m);
      n.lowered = true;
      n.kernel = kernels::kernel::dense_matmul;
      n.rule = rule_index("norm_head");
      add_weight(n, at(m).weight);
      n.out = at(m).out;
    } else if (const auto a = reader(o.out, kind::add, i, 1); a != nowhere && may_update(i, i, a)) {
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
    } else if (stored || (o.head_dim != 0 && weight_width(o) == graph_.values[static_cast<std::size_t>(o.out)].width) ||
               (o.head_dim == 0 && (reader(o.out, kind::add, i) != nowhere ||  // a sum that is added to another value
                                    reader(o.out, kind::streams, i, 1) != nowhere))) {
      take(n, i);
      n.lowered = true;
      n.kernel = kernels::kernel::rms_norm;
      n.head_dim = o.head_dim;
    }
    return n;
  }

  /// Quantises to int8 an input that no norm precedes.
  constexpr node quantize(std::size_t i, node n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::norm_quantize;
    n.prologue = kernels::prologue::quantize;
    n.eps = 1.f;  // epsilon of a mean that only shows whether all inputs are finite
    return n;
  }

  constexpr void route(std::size_t i, node& n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::route;
    n.experts = at(i).experts, n.top_k = at(i).top_k;
    n.over_all = at(i).over_all;
    n.factor = at(i).weight;
    if (at(i).second != ir::none) n.biases[0] = at(i).second;
    n.score = at(i).score, n.scale = at(i).scale, n.eps = at(i).eps, n.least = at(i).least;
    n.groups = at(i).groups, n.groups_used = at(i).groups_used;
    n.out = at(i).out;
  }

  /// Biases of experts: of gate and up before the activation, of down before the sum.
  constexpr node expert_bias(std::size_t i, node n) {
    const ir::op& o = at(i);
    n.choice = o.in[1], n.top_k = o.top_k;
    n.biases[0] = o.weight;
    n.rule = rule_index("expert_biases");
    if (uses(o.out) != 1) return n;
    if (const auto a = reader(o.out, kind::gated, i); a != nowhere) {
      const std::size_t up = maker(at(a).in[1]);
      if (up == nowhere || at(up).kind != kind::bias || at(up).experts == 0 || up == i || uses(at(up).out) != 1 ||
          at(a).nearest != 0 || at(a).traced != 0)
        return n;
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
    if (a == nowhere || !may_update(i, w, a)) return n;
    for (const auto index : {i, w, a}) take(n, index);
    n.lowered = true;
    n.kernel = kernels::kernel::expert_sum;
    n.stream = at(a).in[0];
    n.out = at(a).out;
    return n;
  }

  /// The bias of logits, in place. It is the kernel gated with an activation that keeps its input.
  constexpr node head_bias(std::size_t i, node n) {
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::gated;
    n.biases = {at(i).weight, at(i).weight, ir::none};
    n.in = n.up_in = n.stream = at(i).in[0];
    n.act = shader::identity{};
    return n;
  }

  /// The bias of a value that is added to the stream, or that is activated without a gate.
  constexpr node bias_add(std::size_t i, node n) {
    if (at(i).out == graph_.output && uses(at(i).in[0]) == 1) return head_bias(i, n);
    if (const auto g = reader(at(i).out, kind::gated, i);
        g != nowhere && at(g).in[1] == at(i).out && uses(at(i).out) == 2 && uses(at(i).in[0]) == 1) {
      take(n, i);
      n.biases = {at(i).weight, at(i).weight, ir::none};
      node out = gated(g, n);
      out.rule = rule_index("bias_act");
      out.in = out.up_in = out.stream = at(i).in[0];
      out.out = at(g).out;
      return out;
    }
    const auto a = reader(at(i).out, kind::add, i, 1);
    if (a == nowhere || !may_update(i, i, a)) return n;
    take(n, i), take(n, a);
    n.lowered = true;
    n.kernel = kernels::kernel::norm_add;
    n.rule = rule_index("bias_add");
    n.biases[0] = at(i).weight;
    n.stream = at(a).in[0];
    n.out = at(a).out;
    return n;
  }

  constexpr node head_gate(std::size_t i, node n) {
    const ir::op& o = at(i);
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::head_gate;
    n.up_in = o.in[1];
    n.norm = o.weight, n.eps = o.eps, n.head_dim = o.head_dim, n.logistic = o.logistic;
    if (const auto a = reader(o.out, kind::add, i, 1); a != nowhere && may_update(i, i, a)) {
      take(n, a);
      n.rule = rule_index("gate_add");
      n.stream = at(a).in[0];
      n.out = at(a).out;
    }
    return n;
  }

  constexpr node attention(std::size_t i, node n) {
    const ir::op& o = at(i);
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::attention;
    n.heads = o.heads, n.kv_heads = o.kv_heads, n.head_dim = o.head_dim, n.value_dim = o.value_dim;
    n.scale = o.scale, n.window = o.window;
    n.softcap = o.softcap, n.sinks = o.weight;
    n.ahead = o.ahead;
    return n;
  }

  constexpr node short_conv(std::size_t i, node n) {
    const ir::op& o = at(i);
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::short_conv;
    n.taps = o.taps, n.multiplied = o.multiplied;
    n.biases[0] = o.second;
    add_weight(n, o.weight);
    return n;
  }

  constexpr node delta_net(std::size_t i, node n) {
    const ir::op& o = at(i);
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::delta_net;
    n.delta = o.delta;
    n.state_space = o.kind == kind::state_space;
    (n.state_space ? n.up_in : n.k_in) = o.in[1], n.v_in = o.in[2];
    add_weight(n, o.weight), add_weight(n, o.second);
    if (n.state_space) add_weight(n, o.third);
    return n;
  }

  constexpr node gated(std::size_t i, node n) {
    const ir::op& o = at(i);
    // Features that decode walks or reports need gate and up in one product.
    if (o.nearest != 0 || o.traced != 0) return n;
    take(n, i);
    n.lowered = true;
    n.kernel = kernels::kernel::gated;
    n.up_in = o.in[1];
    n.act = o.act;
    n.scale = o.scale;
    n.by_layer = o.by_layer;
    n.factor = o.weight;
    if (o.in[0] != o.in[1]) n.rule = rule_index("gated");
    else if (uses(o.in[0]) == 2) n.stream = o.in[0];  // updated in place
    return n;
  }

  constexpr node weigh(std::size_t i, node n) {
    const ir::op& o = at(i);
    const auto a = reader(o.out, kind::add, i, 1);
    const bool updates = a != nowhere && may_update(i, i, a);
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
};

}  // namespace intaglio::plan
