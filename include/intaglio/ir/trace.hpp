// SPDX-License-Identifier: MIT
// The tracer that layers write to. It never throws: the first thing that does not fit is kept as one sentence, later
// ops pass through, and the model is refused by one static_assert (plan/engrave.hpp).
#pragma once

#include <concepts>
#include <span>

#include "intaglio/ir/op.hpp"

namespace intaglio::ir {

/// How a file holds a tensor, which a plan made at run time follows in the place of what the layer says.
struct held_type {
  std::string_view name;  ///< as layers name it: "attn_q.weight" for all blocks
  dtype type;
  std::uint8_t set = 0;  ///< of layers that hold it so
};

class trace {
 public:
  constexpr trace() = default;
  /// Both outlive the trace. @param held types that go before the layers' own
  /// @param sets of each layer, which of held's sets it has: layers of one block and one set are a kind; empty: all
  /// have set 0
  constexpr explicit trace(std::span<const held_type> held, std::span<const std::uint8_t> sets = {})
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

  /// Name as messages print it: "blk.*." in front of a tensor of the period.
  constexpr text<64> where(std::string_view name) const {
    text<64> out;
    if (section_ == section::period) out.append("blk.*.");
    out.append(name);
    return out;
  }

  /// [vocab, width] table, held as type -> f32 [tokens, width], times scale
  constexpr value_id embedding(std::string_view name, std::uint32_t rows, std::uint32_t columns,
                               dtype type = dtype::f16, float scale = 1) {
    type = held_as(name, type);
    if (rows == 0 || columns == 0) fail(where(name).view(), "embedding needs a vocabulary and a width, found 0");
    op o{.kind = op_kind::embedding, .weight = weight(name, rows, columns, type), .scale = scale};
    return push(o, "embedding", name, dtype::f32, columns);
  }

  /// @param scale of what it gives
  constexpr value_id rms_norm(value_id x, std::string_view name, float eps, float scale = 1) {
    op o{.kind = op_kind::rms_norm, .in = {x, none, none}, .weight = weight(name, 1, width(x), dtype::f32), .eps = eps};
    graph_.weights[static_cast<std::size_t>(o.weight)].scale = scale;
    if (!(eps > 0)) fail(where(name).view(), "rms_norm expects an epsilon above 0, found 0 or less");
    return push(o, "rms_norm", name, dtype::f32, width(x));
  }

  /// Root-mean-square norm of each of x's heads, [tokens, heads, head_dim]; weight [head_dim], none without a name
  /// @param scale of what it gives
  constexpr value_id head_norm(value_id x, std::string_view name, float eps, std::uint32_t head_dim, float scale = 1) {
    if (head_dim == 0 || width(x) % head_dim != 0)
      fail(where(name).view(), "an input in multiples of head_dim ", head_dim, "", width(x));
    op o{.kind = op_kind::rms_norm,
         .in = {x, none, none},
         .weight = name.empty() ? none : weight(name, 1, head_dim, dtype::f32),
         .eps = eps,
         .head_dim = head_dim};
    if (o.weight != none) graph_.weights[static_cast<std::size_t>(o.weight)].scale = scale;
    if (!(eps > 0)) fail(where(name).view(), "rms_norm expects an epsilon above 0, found 0 or less");
    return push(o, "head_norm", name, dtype::f32, width(x));
  }

  /// f32 -> int8 with one scale a token
  constexpr value_id quantize(value_id x, std::string_view name) {
    op o{.kind = op_kind::quantize, .in = {x, none, none}};
    return push(o, "quantize", name, dtype::i8, width(x));
  }

  /// weight [rows, columns] of type; x [tokens, columns] -> f32 [tokens, rows]
  constexpr value_id matmul(value_id x, std::string_view name, std::uint32_t rows, std::uint32_t columns, dtype type) {
    type = held_as(name, type);
    if (width(x) != columns) fail(where(name).view(), "linear input width ", columns, "", width(x));
    if (rows == 0) fail(where(name).view(), "linear expects at least one output, found 0");
    const auto block = intaglio::info(type).block_elements;
    if (block > 1 && columns % block != 0) {
      text<64> unit{" ("};
      unit.append(intaglio::name(type)).append(" blocks)");
      fail(where(name).view(), "columns in multiples of ", block, unit.view(), columns);
    }
    op o{.kind = op_kind::matmul, .in = {x, none, none}, .weight = weight(name, rows, columns, type)};
    return push(o, "matmul", name, dtype::f32, rows);
  }

  /// x + weight; weight [width] f32
  constexpr value_id bias(value_id x, std::string_view name) {
    op o{.kind = op_kind::bias, .in = {x, none, none}, .weight = weight(name, 1, width(x), dtype::f32)};
    return push(o, "bias", name, dtype::f32, width(x));
  }

  /// What experts gave, [tokens, top_k * rows], and the bias of each; weight [experts * rows] f32
  constexpr value_id expert_bias(value_id x, value_id choice, std::string_view name, std::uint32_t experts) {
    const std::uint32_t top_k = width(choice) / 2, rows = top_k == 0 ? 0 : width(x) / top_k;
    op o{.kind = op_kind::bias,
         .in = {x, choice, none},
         .weight = weight(name, 1, experts * rows, dtype::f32),
         .experts = experts,
         .top_k = top_k};
    return push(o, "expert_bias", name, dtype::f32, width(x));
  }

  constexpr value_id rope(value_id x, std::string_view name, std::uint32_t head_dim, const rope_parameters& how) {
    if (head_dim == 0 || head_dim % 4 != 0) fail(where(name).view(), "rope head_dim in multiples of ", 4, "", head_dim);
    if (!(how.theta > 1)) fail(where(name).view(), "rope expects a theta above 1, found 1 or less");
    const rope_scaling_config& scaling = how.scaling;
    if (!(scaling.factor >= 1)) fail(where(name).view(), "rope scaling expects a factor of at least 1, found less");
    if ((scaling.type == rope_type::llama3 || scaling.type == rope_type::yarn) &&
        (!(scaling.high_freq_factor > scaling.low_freq_factor) || !(scaling.low_freq_factor > 0) ||
         scaling.original_max_position_embeddings == 0))
      fail(where(name).view(),
           "rope scaling llama3 or yarn expects high_freq_factor above low_freq_factor above 0 and "
           "original_max_position_embeddings, found others");
    op o{.kind = op_kind::rope, .in = {x, none, none}, .rope = how, .head_dim = head_dim};
    return push(o, "rope", name, type(x), width(x));
  }

  /// @param window positions that attention will see, the token's own among them; 0: all
  constexpr void cache_write(value_id keys, value_id values, std::uint32_t kv_heads, std::uint32_t head_dim,
                             std::uint32_t window = 0) {
    op o{.kind = op_kind::cache_write,
         .in = {keys, values, none},
         .kv_heads = kv_heads,
         .head_dim = head_dim,
         .window = window};
    if (width(keys) != width(values))
      fail(where("self_attention").view(), "values as wide as keys, ", width(keys), "", width(values));
    o.where = section_;
    o.block = block_;
    o.layer = where("kv_cache").view();
    graph_.ops.push_back(o);
  }

  /// @param scale of the scores, 0: 1 / sqrt(head_dim)  @param window as of cache_write
  /// @param softcap bound of scores, 0: none  @param sinks tensor [heads] of what each softmax has besides; empty: none
  constexpr value_id attention(value_id query, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim,
                               float scale = 0, std::uint32_t window = 0, float softcap = 0,
                               std::string_view sinks = {}) {
    if (head_dim == 0 || head_dim % 8 != 0)
      fail(where("self_attention").view(), "head_dim in multiples of ", 8, "", head_dim);
    if (kv_heads == 0 || heads % kv_heads != 0)
      fail(where("self_attention").view(), "num_attention_heads in multiples of num_key_value_heads ", kv_heads, "",
           heads);
    if (width(query) != heads * head_dim)
      fail(where("self_attention").view(), "queries of width num_attention_heads * head_dim = ", heads * head_dim, "",
           width(query));
    op o{.kind = op_kind::attention,
         .in = {query, none, none},
         .weight = sinks.empty() ? none : weight(sinks, 1, heads, dtype::f32),
         .scale = scale,
         .heads = heads,
         .kv_heads = kv_heads,
         .head_dim = head_dim,
         .window = window,
         .softcap = softcap};
    return push(o, "attention", "self_attention", dtype::f32, width(query));
  }

  /// x times a tensor of one number
  constexpr value_id scale(value_id x, std::string_view name) {
    op o{.kind = op_kind::scale, .in = {x, none, none}, .weight = weight(name, 1, 1, dtype::f32)};
    return push(o, "scale", name, dtype::f32, width(x));
  }

  /// act of gate and what `up`, [tokens, layers, width of gate], has for the layer
  constexpr value_id gated_by_layer(value_id gate, value_id up, std::uint32_t layers, shader::activation_function act) {
    if (std::uint64_t{width(gate)} * layers != width(up))
      fail(where("inp_gate.weight").view(), "a gate for each layer, in all of width ", width(up), "", width(gate));
    op o{.kind = op_kind::gated, .in = {gate, up, none}, .by_layer = true, .act = act};
    return push(o, "gated", "layer_input", dtype::f32, width(gate));
  }

  constexpr value_id gated(value_id gate, value_id up, shader::activation_function act) {
    if (width(gate) != width(up))
      fail(where("ffn_up.weight").view(), "glu needs gate and up of one width, gate is ", width(gate), "", width(up));
    op o{.kind = op_kind::gated, .in = {gate, up, none}, .act = act};
    return push(o, "gated", "ffn_act", dtype::f32, width(gate));
  }

  /// Marks the gated op that gives h: decode may walk its features. Only an activation that is 0 for gates up to 0
  /// leaves any out.
  constexpr void walk(value_id h) {
    for (op& o : graph_.ops) {
      if (o.out != h) continue;
      o.walk = true;
      if (o.kind != op_kind::gated || o.act != shader::activation_function(activation::relu_squared))
        fail(where("walk_ffn").view(), "expected squared ReLU, which leaves features out, found another activation");
    }
  }

  /// Marks the gated op that gives h: decode takes the `count` features with the largest |gate| and reads down vectors
  /// by features.
  constexpr void walk_nearest(value_id h, std::uint32_t count) {
    for (op& o : graph_.ops) {
      if (o.out != h) continue;
      o.nearest = count;
      if (o.kind != op_kind::gated) fail(where("walk_ffn").view(), "expected a gated unit, found another op");
    }
  }

  /// Marks the gated op that gives h: decode keeps which `top` of its features add most to the stream (docs/walk.md).
  constexpr void keep_trace(value_id h, std::uint32_t top) {
    if (top == 0 || top > 64) fail(where("ffn").view(), "a trace of at least 1 and at most ", 64, " features", top);
    for (op& o : graph_.ops) {
      if (o.out != h) continue;
      o.traced = top;
      if (o.kind != op_kind::gated) fail(where("ffn").view(), "expected a gated unit to trace, found another op");
    }
  }

  /// y[t] = sum over k of weight[k] z[t - taps + 1 + k], of every channel for itself; 0 in front of the first token.
  /// @param multiplied x is [tokens, 3 width], B, C and h: C y for z = B h; else silu(y) for z = x, [tokens, width]
  constexpr value_id short_conv(value_id x, std::string_view name, std::uint32_t taps, bool multiplied) {
    const std::uint32_t channels = multiplied ? width(x) / 3 : width(x);
    if (taps < 2 || taps > 8)
      fail(where(name).view(), "a convolution over at least 2 and at most ", 8, " tokens", taps);
    if (channels % 4 != 0) fail(where(name).view(), "channels in multiples of ", 4, "", channels);
    op o{.kind = op_kind::short_conv,
         .in = {x, none, none},
         .weight = weight(name, channels, taps, dtype::f32),
         .taps = taps,
         .multiplied = multiplied};
    return push(o, "short_conv", name, dtype::f32, channels);
  }

  /// The gated delta rule (kernels/delta_net.hpp). @param qkv [tokens, delta.qkv_size()]  @param beta, alpha [tokens,
  /// value_heads], or one value of both, [tokens, 2 * value_heads]: of each key head the betas, then the alphas, of its
  /// value heads  @param decay, shift tensors, [value_heads]  -> f32 [tokens, delta.value_size()]
  constexpr value_id delta_net(value_id qkv, value_id beta, value_id alpha, std::string_view decay,
                               std::string_view shift, const delta_net_config& delta) {
    const std::uint32_t gates = beta == alpha ? 2 * delta.value_heads : delta.value_heads;
    if (delta.key_heads == 0 || delta.value_heads == 0 || delta.value_heads % delta.key_heads != 0)
      fail(where(decay).view(), "linear_num_value_heads in multiples of linear_num_key_heads ", delta.key_heads, "",
           delta.value_heads);
    if (delta.key_dim == 0 || delta.key_dim > 256)
      fail(where(decay).view(), "linear_key_head_dim of at least 1 and at most ", 256, "", delta.key_dim);
    if (delta.value_dim == 0 || delta.value_dim % 4 != 0)
      fail(where(decay).view(), "linear_value_head_dim in multiples of ", 4, "", delta.value_dim);
    if (width(qkv) != delta.qkv_size())
      fail(where(decay).view(), "queries, keys and values of ", delta.qkv_size(), "", width(qkv));
    if (width(beta) != gates || width(alpha) != gates)
      fail(where(decay).view(), "a beta and an alpha a head, ", gates, "", width(beta));
    op o{.kind = op_kind::delta_net,
         .in = {qkv, beta, alpha},
         .weight = weight(decay, 1, delta.value_heads, dtype::f32),
         .second = weight(shift, 1, delta.value_heads, dtype::f32),
         .delta = delta};
    return push(o, "delta_net", decay, dtype::f32, delta.value_size());
  }

  /// Heads times an activation of their gates, [tokens, heads, head_dim]; gate as wide, or [tokens, heads]
  /// @param norm of each head, or empty  @param logistic sigmoid, else silu
  constexpr value_id head_gate(value_id x, value_id gate, std::string_view norm, float eps, std::uint32_t head_dim,
                               bool logistic) {
    if (head_dim == 0 || head_dim % 4 != 0 || width(x) % head_dim != 0)
      fail(where("head_gate").view(), "an input in multiples of head_dim, which is one of 4, ", head_dim, "", width(x));
    else if (width(gate) != width(x) && width(gate) != width(x) / head_dim)
      fail(where("head_gate").view(), "a gate as wide as its input or one a head, ", width(x), "", width(gate));
    op o{.kind = op_kind::head_gate,
         .in = {x, gate, none},
         .weight = norm.empty() ? none : weight(norm, 1, head_dim, dtype::f32),
         .eps = eps,
         .head_dim = head_dim,
         .logistic = logistic};
    return push(o, "head_gate", norm.empty() ? std::string_view("gate") : norm, dtype::f32, width(x));
  }

  /// The top_k largest of logits [tokens, experts], of equal ones the lowest first -> u32 [tokens, 2 * top_k]: their
  /// numbers, then the bits of the softmax over them or, with over_all, their part of that over all experts
  constexpr value_id route(value_id logits, std::string_view name, std::uint32_t top_k, bool over_all = false) {
    if (top_k == 0 || top_k > width(logits))
      fail(where(name).view(), "a choice of at least 1 and at most num_local_experts ", width(logits),
           " experts a token", top_k);
    op o{.kind = op_kind::route,
         .in = {logits, none, none},
         .over_all = over_all,
         .experts = width(logits),
         .top_k = top_k};
    return push(o, "route", name, dtype::u32, 2 * top_k);
  }

  /// Products by the experts that `choice` names, one behind the other: weight [experts * rows, columns]; x [tokens,
  /// columns], or [tokens, top_k * columns] where each has its own -> f32 [tokens, top_k * rows]
  constexpr value_id expert_matmul(value_id x, value_id choice, std::string_view name, std::uint32_t experts,
                                   std::uint32_t rows, std::uint32_t columns, dtype type) {
    const std::uint32_t top_k = width(choice) / 2;
    type = held_as(name, type);
    if (rows == 0 || rows % 4 != 0) fail(where(name).view(), "rows of an expert in multiples of ", 4, "", rows);
    if (width(x) != columns && width(x) != top_k * columns)
      fail(where(name).view(), "linear input width ", columns, "", width(x));
    const auto block = intaglio::info(type).block_elements;
    if (block > 1 && columns % block != 0) fail(where(name).view(), "columns in multiples of ", block, "", columns);
    op o{.kind = op_kind::matmul,
         .in = {x, choice, none},
         .weight = weight(name, experts * rows, columns, type),
         .experts = experts,
         .top_k = top_k};
    return push(o, "expert_matmul", name, dtype::f32, top_k * rows);
  }

  /// sum over j of weight j of `choice` times part j of y, [tokens, top_k * width] -> f32 [tokens, width]
  constexpr value_id weigh(value_id y, value_id choice, std::string_view name) {
    const std::uint32_t top_k = width(choice) / 2;
    op o{.kind = op_kind::weigh, .in = {y, choice, none}, .top_k = top_k};
    return push(o, "weigh", name, dtype::f32, top_k == 0 ? width(y) : width(y) / top_k);
  }

  constexpr value_id add(value_id a, value_id b) {
    if (width(a) != width(b)) fail(where("residual").view(), "a branch as wide as its input, ", width(a), "", width(b));
    op o{.kind = op_kind::add, .in = {a, b, none}};
    return push(o, "add", "residual", dtype::f32, width(a));
  }

  /// Traces each kind of block once and notes which layer is of which kind; a block's output takes its input's place.
  /// @param body (kind, x) traces a block of a kind
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
  /// The same, of a block for each kind.
  template <class... Blocks>
  constexpr value_id repeat(value_id x, std::uint32_t layers, const layer_pattern& pattern, Blocks&&... blocks) {
    return repeat_kinds(x, layers, pattern, sizeof...(Blocks), [&](std::uint8_t kind, value_id in) {
      value_id out = none;
      std::uint8_t index = 0;
      ((index++ == kind ? void(out = blocks(in)) : void()), ...);
      return out;
    });
  }
  /// All layers of one kind.
  template <class Body>
  constexpr value_id repeat(value_id x, std::uint32_t layers, Body&& body) {
    return repeat(x, layers, layer_pattern{}, body);
  }

  /// bound * tanh(x / bound)
  constexpr value_id softcap(value_id x, float bound) {
    if (width(x) % 4 != 0) fail(where("softcap").view(), "a width in multiples of ", 4, "", width(x));
    op o{.kind = op_kind::gated, .in = {x, x, none}, .scale = bound, .act = shader::softcap{}};
    return push(o, "softcap", "logits", dtype::f32, width(x));
  }

  /// @param product that gives the logits or what they are made of; none: the logits are its result
  constexpr void output(value_id logits, value_id product = none) {
    graph_.output = logits;
    graph_.head = product == none ? logits : product;
  }

 private:
  constexpr dtype held_as(std::string_view name, dtype type) const {
    for (const held_type& each : held_)
      if (each.name == name && each.set == set_) return each.type;
    return type;
  }

  /// Traces the block of each layer's kind in the set that the layer has, each pair of these once: a kind of its own.
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

  constexpr weight_id weight(std::string_view name, std::uint32_t rows, std::uint32_t columns, dtype type) {
    if (name.size() >= 48) fail("weight", "expected a tensor name under 48 characters");
    const std::uint64_t kind = section_ == section::period ? std::uint64_t{1} << block_ : 0;
    for (std::size_t i = 0; i < graph_.weights.size(); ++i) {
      auto& known = graph_.weights[i];
      if (known.name.view() != name || (known.where == section::period) != (section_ == section::period)) continue;
      const bool alike = known.type == type && known.rows == rows && known.columns == columns;
      if (!alike && kind != 0 && (known.kinds & kind) == 0) continue;  // other layers have another type or shape
      if (known.rows != rows || known.columns != columns)
        fail(where(name).view(), "the shape of its first use, rows ", known.rows, "", rows);
      if (known.type != type) {
        text<96> sentence{"expected the type of its first use, "};
        sentence.append(known.type, ", found ", type);
        fail(where(name).view(), sentence.view());
      }
      known.kinds |= kind;
      return static_cast<weight_id>(i);
    }
    graph_.weights.push_back({text<48>{name}, rows, columns, type, section_, kind});
    return static_cast<weight_id>(graph_.weights.size()) - 1;
  }

  template <class Body>
  constexpr void one_block(value_id& x, Body&& body) {
    const value_id out = body(x);
    if (width(out) != width(x)) fail("repeat", "a block as wide as its input, ", width(x), "", width(out));
    graph_.block_ends.push_back(out);
    x = out;
    ++block_;
  }

  constexpr value_id push(op o, std::string_view layer, std::string_view name, dtype type, std::uint32_t width) {
    o.where = section_;
    o.block = block_;
    o.layer.append(layer).append(" ").append(name.substr(0, 38));
    o.out = static_cast<value_id>(graph_.values.size());
    graph_.values.push_back({type, width, section_, text<32>{layer}});
    graph_.ops.push_back(o);
    return o.out;
  }

  std::span<const held_type> held_{};
  std::span<const std::uint8_t> sets_{};
  std::uint8_t set_ = 0;
  ir::graph graph_;
  section section_ = section::prologue;
  std::uint8_t block_ = 0;
};

/// Anything that a plan can be made of: a type with `static constexpr graph()` giving a layer that produces logits from
/// tokens.
template <class T>
concept source = requires(const T& layer, trace& t) {
  { layer.forward(t) } -> std::same_as<value_id>;
};

template <class Model>
concept traceable = requires {
  { Model::graph() } -> source;
};

/// A model whose weights are not all held as its layers say: `held` and, by layer, which of its sets `sets`.
template <class Model>
concept holds_own = requires {
  std::span<const held_type>(Model::held);
  std::span<const std::uint8_t>(Model::sets);
};
template <traceable Model>
constexpr ir::graph traced() {
  const auto through = [](trace t) {
    Model::graph().forward(t);
    return t.graph();
  };
  if constexpr (holds_own<Model>) return through(trace(Model::held, Model::sets));
  else return through(trace());
}

}  // namespace intaglio::ir
