// SPDX-License-Identifier: MIT
// Lowering: each fused node becomes one dispatch with its push constants, specialization constants, groups and
// accesses; each tensor becomes a weight with its layout and place.
#pragma once

#include <bit>
#include <vector>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/place.hpp"
#include "intaglio/plan/profile.hpp"

namespace intaglio::plan {

/// The weights that nodes ask for, each once, placed behind each other; global ones and those of a layer apart.
class weight_list {
 public:
  std::vector<weight> weights;
  std::uint64_t global_bytes = 0, layer_bytes = 0;

  constexpr std::uint32_t slot(weight w) {
    for (std::uint32_t i = 0; i < weights.size(); ++i) {
      if (!is_same(weights[i], w)) continue;
      weights[i].kinds |= w.kinds;
      return i;
    }
    auto& end = w.per_layer ? layer_bytes : global_bytes;
    w.offset = end;
    end += aligned(w.bytes);
    weights.push_back(w);
    return static_cast<std::uint32_t>(weights.size()) - 1;
  }

 private:
  static constexpr bool is_same(const weight& a, const weight& b) {
    if (a.layout != b.layout || a.per_layer != b.per_layer || a.source_count != b.source_count || a.order != b.order ||
        a.codec != b.codec || a.rope != b.rope || a.head_dim != b.head_dim || a.scale != b.scale || a.rows != b.rows ||
        a.columns != b.columns)
      return false;
    for (std::size_t s = 0; s < a.source_count; ++s)
      if (a.sources[s] != b.sources[s].view()) return false;
    return true;
  }
};

/// What lowering needs to know of the whole: sizes that are not in the node.
struct lowering_context {
  const decoder_config& config;
  const profile& target;
  std::uint32_t tokens;      ///< of this sequence's widest pass
  std::uint32_t max_tokens;  ///< of the widest sequence
  std::uint32_t context;     ///< positions of the cache
  batch_shape batch{};       ///< where a row is a token of a slot

  constexpr bool batched() const { return batch.slot_count != 0; }
  /// Tokens that share one read of the weights.
  constexpr std::uint32_t tile_tokens() const {
    return batched() ? (std::min)(target.tile_tokens, tokens) : target.tile_tokens;
  }
  /// Tokens that share one read of the weights in ternary_matmul: as many whole tiles as there is room for tokens,
  /// whatever their count in the state.
  constexpr std::uint32_t ternary_tile_tokens() const {
    return tokens % target.ternary_tile_tokens == 0 ? target.ternary_tile_tokens : tile_tokens();
  }
  /// Tokens that a workgroup of the sampler sorts.
  constexpr std::uint32_t sample_slice() const {
    const bool many = target.sample_slices && batch.slot_count >= kernels::sample_many_rows;
    return many ? kernels::sample_slice(config.vocab_size, kernels::sample_lists_of_many_rows)
                : kernels::sample_slice(config.vocab_size);
  }
  constexpr std::uint32_t slot_words() const {
    return batched() ? kernels::state::slot_words(context, batch.page_size) : 0;
  }
  /// What stands between a state's first token and its history.
  constexpr std::uint32_t token_words() const {
    return batched() ? 1 + kernels::state::slot_pages(context, batch.page_size) : max_tokens;
  }
  /// The sampler's words behind attention's counters; those of a batch behind its slots.
  constexpr std::uint64_t sample_counters() const {
    return state_bytes() + (batched() ? 0 : kernels::attention_counter_bytes(1, config.num_attention_heads));
  }
  constexpr std::uint64_t state_bytes() const {
    return 4 * (batched() ? kernels::state::batch_words(batch.slot_count, context, batch.page_size)
                          : kernels::state::words(max_tokens, context));
  }

  /// Positions that the cache of a layer with such a window holds, 0 being none: a ring where that is less than the
  /// context.
  constexpr std::uint32_t cache_positions(std::uint32_t window) const {
    return batched()     ? batch.pages * batch.page_size
           : window == 0 ? context
                         : (std::min)(context, kernels::ring_slots(window, max_tokens));
  }
  constexpr bool is_ring(std::uint32_t window) const { return !batched() && cache_positions(window) < context; }
  /// Workgroups that share a head's spans of positions.
  constexpr std::uint32_t splits(std::uint32_t window) const {
    if (!target.attention_splits || tokens != 1) return 1;
    const std::uint32_t all = kernels::attention_spans(context);
    return window == 0 ? all : (std::min)(all, kernels::attention_window_spans(window));
  }
};

constexpr std::uint64_t element_bytes(kernels::element type) { return type == kernels::element::f32 ? 4 : 2; }
/// The cache of a layer that holds so many positions.
constexpr layer_cache cache_for(std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t positions,
                                std::uint32_t window, const profile& target) {
  return {positions, window,
          kernels::key_cache_elements(kv_heads, head_dim, positions) * element_bytes(target.cache_element),
          kernels::value_cache_elements(kv_heads, head_dim, positions) * element_bytes(target.cache_element)};
}

/// Bytes that an op keeps from one pass to the next, beside caches.
constexpr std::uint64_t kept_bytes(const ir::graph& g, const ir::op& o) {
  if (o.kind == ir::op_kind::delta_net) return aligned(std::uint64_t{4} * o.delta.value_size() * o.delta.key_dim);
  if (o.kind != ir::op_kind::short_conv) return 0;
  return aligned(kernels::short_conv_state_bytes(g.weights[static_cast<std::size_t>(o.weight)].rows, o.taps));
}
/// Where they lie in what its layer keeps.
constexpr std::uint64_t kept_offset(const ir::graph& g, std::size_t op) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < op; ++i)
    if (g.ops[i].where == ir::section::period && g.ops[i].block == g.ops[op].block) out += kept_bytes(g, g.ops[i]);
  return out;
}
/// Whether a model's layers keep anything but keys and values.
constexpr bool is_recurrent(const ir::graph& g) {
  for (const ir::op& o : g.ops)
    if (kept_bytes(g, o) != 0) return true;
  return false;
}

/// Adds what each attention's workgroups exchange to the arena.
constexpr void place_partials(const std::vector<node>& nodes, const lowering_context& c, placement& p) {
  p.partials.assign(nodes.size(), 0);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const node& n = nodes[i];
    const std::uint32_t splits = c.splits(n.window);
    if (n.kernel != kernels::kernel::attention || splits == 1) continue;
    placed_value partials{text<32>{"partials"},
                          dtype::f32,
                          n.heads * splits * (n.head_dim + 4),
                          0,
                          kernels::attention_partial_bytes(c.tokens, n.heads, splits, n.head_dim),
                          i,
                          i};
    partials.offset = first_fit(p.values, partials);
    p.partials[i] = partials.offset;
    p.arena_bytes = (std::max)(p.arena_bytes, partials.offset + aligned(partials.bytes));
    p.values.push_back(partials);
  }
}

/// Workgroups of a product of one token. @param weights of the product, in elements
constexpr std::uint32_t enough_groups(const profile& target, std::uint32_t most, std::uint64_t weights) {
  if (target.group_weights == 0) return most;
  return static_cast<std::uint32_t>(
      (std::min<std::uint64_t>)(most, std::bit_floor((std::max<std::uint64_t>)(2, weights / target.group_weights))));
}

/// How the two kernels of an exact walk share out an FFN.
struct walk_shape {
  std::uint32_t features, shares;        ///< walk_gate_up: of a workgroup; workgroups
  std::uint32_t words, stripes, splits;  ///< walk_down
  std::uint32_t sum_words;               ///< zeros between the two
};
constexpr bool is_walked(const node& n, std::uint32_t tokens) {
  return tokens == 1 && n.walk && n.kernel == kernels::kernel::ternary_matmul &&
         n.prologue == kernels::prologue::norm_quantize;
}

constexpr walk_shape walk_shape_of(const profile& target, std::uint32_t features, std::uint32_t hidden_size) {
  const auto parts = [](std::uint64_t whole, std::uint64_t part) {
    return static_cast<std::uint32_t>((whole + part - 1) / part);
  };
  const std::uint32_t row_words = hidden_size / 16,
                      busy = enough_groups(target, target.matmul_groups, std::uint64_t{features} * hidden_size);
  walk_shape out{};
  if (target.group_weights == 0) {
    out.features = (parts(features, busy) + 3) / 4 * 4;
    out.words = row_words < 256 ? 32 : 64;  // of a row 128 or 256 bytes
    out.splits = std::clamp(busy / parts(row_words, out.words), 1u, parts(features, 64));
  } else {
    // CPU drivers: a lane has four groups of rows of gate at a time, so that 128 features are a step of eight lanes;
    // half as many workgroups as the product of gate and up has. Each workgroup of walk_down lists all features, so few
    // of them; a lane of a subgroup of 4 has up to 10 words at a time and reads the list again for more, and llvmpipe
    // leaves it 65,535 turns of its loops.
    out.features = parts(parts(features, 128), (std::max)(2u, busy / 2)) * 128;
    const std::uint32_t most_words = 40 * (std::max)(1u, 45'000 / features);
    out.words = (std::min)(most_words,
                           (parts(row_words, (std::min)((std::max)(busy / 8, 1u), parts(row_words, 16))) + 1) / 2 * 2);
    out.splits = 1;
  }
  out.shares = parts(features, out.features);
  out.stripes = parts(row_words, out.words);
  out.sum_words = kernels::walk_sum_words(out.stripes, out.words);
  return out;
}
constexpr std::uint64_t walk_total_bytes(const walk_shape& shape, std::uint32_t features) {
  return 4 * kernels::walk_total_words(features, shape.shares, shape.sum_words);
}

/// Tells each walk_gate_up which norm follows; what has no walk_down behind it stays dense, and the other way round.
constexpr void join_walks(std::vector<node>& nodes, std::uint32_t tokens) {
  std::vector<std::uint8_t> joined(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t k = i + 1;
         k < nodes.size() && is_walked(nodes[i], tokens) && nodes[i].epilogue == kernels::epilogue::gated; ++k)
      if (is_walked(nodes[k], tokens) && nodes[k].epilogue == kernels::epilogue::add && nodes[k].in == nodes[i].out)
        nodes[i].value_norm = nodes[k].norm, joined[i] = joined[k] = 1;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!joined[i]) nodes[i].walk = false;
}

/// A lane has 16 bytes of a feature's down vector at a time.
constexpr void check_sums(const ir::graph& g, const std::vector<node>& nodes, text<256>& failure) {
  for (const node& n : nodes) {
    if (n.kernel != kernels::kernel::walk_sum || !failure.empty()) continue;
    const ir::weight& down = g.weights[static_cast<std::size_t>(n.weights[0])];
    if (down.type != dtype::f32 && down.type != dtype::f16 && down.type != dtype::bf16) {
      failure.append(down.name.view(), ": expected f32, f16 or bf16 to walk, found ", down.type);
      return;
    }
    const std::uint32_t step = down.type == dtype::f32 ? 4 : 8;
    if (down.rows % step == 0) continue;
    failure.append(down.name.view());
    failure.append(": expected a multiple of ");
    failure.append(step);
    failure.append(" rows to walk in ");
    failure.append(info(down.type).name);
    failure.append(", found ");
    failure.append(down.rows);
  }
}

/// Where a norm is all that reads what features write, the sum over them stops at some vectors, which the norm adds:
/// enough workgroups without waiting for each other.
constexpr void split_sums(const profile& target, const ir::graph& g, std::vector<node>& nodes) {
  constexpr std::uint32_t parts = 4;
  for (node& from : nodes) {
    if (from.kernel != kernels::kernel::walk_sum || from.stream != ir::none || target.group_weights != 0) continue;
    node* reader = nullptr;
    std::uint32_t readers = 0;
    for (node& to : nodes)
      if (to.in == from.out) reader = &to, ++readers;
    if (readers != 1 || reader->kernel != kernels::kernel::norm_add) continue;
    from.parts = reader->parts = parts;
    from.out_width = parts * g.values[static_cast<std::size_t>(from.out)].width;
  }
}

/// Adds what the two kernels of each walk exchange to the arena, behind place_partials.
constexpr void place_walks(const std::vector<node>& nodes, const lowering_context& c, const ir::graph& g,
                           placement& p) {
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].value_norm == ir::none) continue;
    std::uint32_t down = i;
    for (std::uint32_t k = i + 1; k < nodes.size(); ++k)
      if (is_walked(nodes[k], c.tokens) && nodes[k].in == nodes[i].out) down = k;
    const ir::weight& gate = g.weights[static_cast<std::size_t>(nodes[i].weights[0])];
    placed_value totals{text<32>{"walk totals"},
                        dtype::f32,
                        0,
                        0,
                        walk_total_bytes(walk_shape_of(c.target, gate.rows, gate.columns), gate.rows),
                        i,
                        down};
    totals.width = static_cast<std::uint32_t>(totals.bytes / 4);
    totals.offset = first_fit(p.values, totals);
    p.partials[i] = p.partials[down] = totals.offset;
    p.arena_bytes = (std::max)(p.arena_bytes, totals.offset + aligned(totals.bytes));
    p.values.push_back(totals);
  }
}

/// Whether a pass is one over a few tokens, drafts or rows of a batch, whose products have kernels of their own.
constexpr bool is_few(const profile& target, std::uint32_t tokens, bool batched) {
  return target.chunk_tiles && tokens > 1 &&
         (tokens <= (std::max)(target.tile_tokens, target.verify_tokens) || batched);
}

/// Offsets of what a head tells itself and the sampler besides logits.
struct head_places {
  std::uint64_t firsts = 0, y = 0, lowest = 0;
};

class lowering {
 public:
  constexpr lowering(const ir::graph& g, const placement& p, const lowering_context& c, weight_list& weights)
      : graph_(g), placement_(p), c_(c), weights_(weights) {}

  /// @param index of the node among all
  constexpr dispatch lower(const node& n, std::size_t index) {
    dispatch d{.kernel = kernel_of(n), .block = n.block, .rule = n.rule, .op_count = n.op_count, .ops = n.ops};
    d_ = &d;
    face_ = &kernels::interface_of(d.kernel);
    switch (d.kernel) {
      case kernels::kernel::embed:
        embed(n);
        break;
      case kernels::kernel::norm_quantize:
        norm_quantize(n);
        break;
      case kernels::kernel::ternary_matmul:
      case kernels::kernel::ternary_few:
      case kernels::kernel::ternary_chunk:
      case kernels::kernel::ternary_float:
      case kernels::kernel::ternary_rows:
        ternary_product(n);
        break;
      case kernels::kernel::attention:
      case kernels::kernel::attention_few:
      case kernels::kernel::attention_chunk:
      case kernels::kernel::attention_halves:
        attention(n, placement_.partials[index]);
        break;
      case kernels::kernel::dense_matmul:
      case kernels::kernel::dense_few:
      case kernels::kernel::dense_rows:
        dense_matmul(n);
        break;
      case kernels::kernel::rms_norm:
        rms_norm(n);
        break;
      case kernels::kernel::matmul:
      case kernels::kernel::matmul_chunk:
      case kernels::kernel::matmul_few:
        matmul(n);
        break;
      case kernels::kernel::fixed:
        fixed(n);
        break;
      case kernels::kernel::halves:
        halves(n);
        break;
      case kernels::kernel::turn:
        turn(n);
        break;
      case kernels::kernel::gated:
        gated(n);
        break;
      case kernels::kernel::short_conv:
        short_conv(n);
        break;
      case kernels::kernel::delta_net:
        delta_net(n);
        break;
      case kernels::kernel::head_gate:
        head_gate(n);
        break;
      case kernels::kernel::norm_add:
        norm_add(n);
        break;
      case kernels::kernel::walk_gate_up:
        walk_gate_up(n, placement_.partials[index]);
        break;
      case kernels::kernel::walk_down:
        walk_down(n, placement_.partials[index]);
        break;
      case kernels::kernel::walk_select:
        walk_select(n);
        break;
      case kernels::kernel::walk_up:
        walk_up(n);
        break;
      case kernels::kernel::walk_sum:
        walk_sum(n);
        break;
      case kernels::kernel::walk_trace:
        walk_trace(n);
        break;
      case kernels::kernel::route:
        route(n);
        break;
      case kernels::kernel::expert_sum:
        expert_sum(n);
        break;
      case kernels::kernel::expert_tiles:
        expert_tiles(n);
        break;
      case kernels::kernel::head_screen:
      case kernels::kernel::head_rescore:
      case kernels::kernel::sample:
      case kernels::kernel::accept:
      case kernels::kernel::layers:
      case kernels::kernel::layers_coded:
      case kernels::kernel::layers_few:
      case kernels::kernel::layers_ternary_few:
      case kernels::kernel::layers_many:
      case kernels::kernel::layers_few_normed:
      case kernels::kernel::layers_many_normed:
      case kernels::kernel::pages:
        break;
    }
    return d;
  }

  /// The sampler behind the head; it reads the logits at `logits` and, in a pass over drafts, leaves what it draws at
  /// `drawn`.
  /// @param head what computes them
  constexpr dispatch sampler(const dispatch& head, std::uint64_t logits, std::uint64_t scratch, std::uint64_t drawn) {
    dispatch d{.kernel = kernels::kernel::sample};
    d_ = &d;
    face_ = &kernels::sample_interface;
    d.subgroups = (std::max)(c_.target.sample_subgroups, kernels::least_sample_subgroups(c_.config.vocab_size));
    d.label.append("sample");
    const bool drafts = c_.tokens > 1 && !c_.batched();
    bind("logits", {region::arena, 0, logits}, std::uint64_t{4} * c_.config.vocab_size * c_.tokens, false);
    bind("scratch", {region::arena, 0, scratch},
         kernels::sample_scratch_bytes(c_.config.vocab_size, c_.sample_slice()) * c_.tokens, true);
    bind("state", {region::state, 0, 0}, c_.state_bytes(), !drafts);
    if (drafts) bind("drawn", {region::arena, 0, drawn}, std::uint64_t{4} * c_.tokens, true);
    else bind("ring", {region::ring, 0, 0}, std::uint64_t{4} * c_.target.ring_size * c_.tokens, true);
    set("vocab_size", c_.config.vocab_size);
    set("ring_size", c_.target.ring_size);
    set("context", c_.context);
    set("max_tokens", c_.token_words());
    set("draws", drafts ? c_.tokens : 1u);
    set("slot_words", c_.slot_words());
    set("slice", c_.sample_slice());
    if (c_.target.sample_slices)
      bind("counters", {region::state, 0, c_.sample_counters()}, kernels::sample_counter_bytes(c_.tokens), true);
    d.groups = {c_.target.sample_slices ? kernels::sample_lists(c_.config.vocab_size, c_.sample_slice()) : 1u,
                c_.tokens, 1};
    const kernels::kernel_interface& of_head = kernels::interface_of(head.kernel);
    const std::size_t firsts = of_head.push_index("firsts");
    if (firsts < of_head.push_count() && head.push[firsts].where != region::none) {
      bind("firsts", {region::arena, 0, head.push[firsts].offset}, first_bytes(head.groups[0]), false);
      set("first_count", head.groups[0]);
    }
    return d;
  }

  /// What ends a pass over drafts, behind the sampler.
  constexpr dispatch acceptor(std::uint64_t drawn) {
    dispatch d{.kernel = kernels::kernel::accept};
    d_ = &d;
    face_ = &kernels::accept_interface;
    d.label.append("accept");
    bind("drawn", {region::arena, 0, drawn}, std::uint64_t{4} * c_.tokens, false);
    bind("state", {region::state, 0, 0}, counters_offset(), true);
    bind("ring", {region::ring, 0, 0}, kernels::ring_bytes(c_.target.ring_size), true);
    set("ring_size", c_.target.ring_size);
    set("context", c_.context);
    set("max_tokens", c_.max_tokens);
    set("draws", c_.tokens);
    return d;
  }

  /// Of a head: its workgroups leave their first tokens.
  constexpr void keep_firsts(dispatch& head, std::uint64_t firsts) {
    d_ = &head;
    face_ = &kernels::interface_of(head.kernel);
    bind("firsts", {region::arena, 0, firsts}, first_bytes(head.groups[0]), true);
    set("keeps_firsts", 1u);
  }

  /// The same logits in two steps: those of dense_matmul where they are wanted. `head` is its dispatch.
  constexpr std::array<dispatch, 2> screened(const node& n, const dispatch& head, const head_places& at) {
    weight codes = matrix(n.weights[0]), scales = codes;
    codes.layout = weight_layout::row_codes, scales.layout = weight_layout::row_scales;
    codes.bytes = std::uint64_t{codes.rows} * codes.columns, scales.bytes = std::uint64_t{4} * codes.rows;
    std::array<dispatch, 2> out{head, head};
    const std::uint64_t logits_bytes = std::uint64_t{4} * codes.rows;
    const std::uint64_t logits = head.push[kernels::dense_matmul_interface.push_index("output")].offset;
    const auto start = [&](dispatch& d, kernels::kernel kernel) {
      d.kernel = kernel;
      d.rule = rule_index("screened_head");
      d.push = {}, d.specialization = {}, d.accesses = {}, d.access_count = 0, d.weight_bytes = 0;
      d_ = &d;
      face_ = &kernels::interface_of(kernel);
      set("columns", codes.columns);
      set("rows", codes.rows);
    };
    start(out[0], kernels::kernel::head_screen);
    bind_value("input", n.in, false);
    bind_norm(n.norm);
    bind_weight("codes", codes);
    bind_weight("scales", scales);
    bind("bounds", {region::arena, 0, logits}, logits_bytes, true);
    bind("y", {region::arena, 0, at.y}, std::uint64_t{4} * codes.columns, true);
    bind("lowest", {region::arena, 0, at.lowest}, std::uint64_t{4} * head.groups[0], true);
    bind_state();
    set("eps", n.eps);
    start(out[1], kernels::kernel::head_rescore);
    bind("y", {region::arena, 0, at.y}, std::uint64_t{4} * codes.columns, false);
    bind_weight("weight", matrix(n.weights[0]));
    d_->weight_bytes = 0;  // of a few rows, mostly
    bind("bounds", {region::arena, 0, logits}, logits_bytes, true);
    bind("lowest", {region::arena, 0, at.lowest}, std::uint64_t{4} * head.groups[0], false);
    bind("firsts", {region::arena, 0, at.firsts}, first_bytes(head.groups[0]), true);
    bind_state();
    set("weight_element", codes.codec);
    set("lowest_count", head.groups[0]);
    return out;
  }
  /// What moves a slot's positions between the cache of a layer with this op and the pool; every workgroup an octet of
  /// a chunk.
  constexpr dispatch move(const ir::op& o) {
    dispatch d{.kernel = kernels::kernel::pages, .block = o.block};
    d_ = &d;
    face_ = &kernels::pages_interface;
    d.label.append("pages");
    const lowering_context alone{c_.config, c_.target, 1, c_.max_tokens, c_.context};
    const std::uint32_t own = alone.cache_positions(o.window), pool = c_.cache_positions(o.window);
    const layer_cache from = cache_for(o.kv_heads, o.head_dim, own, o.window, c_.target),
                      to = cache_for(o.kv_heads, o.head_dim, pool, o.window, c_.target);
    bind("keys", {region::keys, 0, 0}, from.key_bytes, true);
    bind("values", {region::values, 0, 0}, from.value_bytes, true);
    bind("pool_keys", {region::pool_keys, 0, 0}, to.key_bytes, true);
    bind("pool_values", {region::pool_values, 0, 0}, to.value_bytes, true);
    bind("state", {region::state, 0, 0}, c_.state_bytes(), false);
    set("head_dim", o.head_dim);
    set("positions", own);
    set("context", pool);
    set("cache_element", c_.target.cache_element);
    set("slot_words", c_.slot_words());
    set("page_size", c_.batch.page_size);
    set("slots", c_.batch.slot_count);
    d.subgroups = c_.target.embed_subgroups;
    d.groups = {(c_.max_tokens + kernels::cache_octet - 1) / kernels::cache_octet, o.kv_heads, 1};
    return d;
  }
  static constexpr std::uint64_t first_bytes(std::uint32_t groups) { return std::uint64_t{8} * groups; }

 private:
  /// Chunks have kernels of their own where the profile and the shape allow.
  constexpr kernels::kernel kernel_of(const node& n) const {
    if (is_walked(n, c_.tokens))
      return n.epilogue == kernels::epilogue::gated ? kernels::kernel::walk_gate_up : kernels::kernel::walk_down;
    if (c_.tokens == 1 || !c_.target.chunk_tiles) return n.kernel;
    if (n.kernel == kernels::kernel::attention && n.head_dim > kernels::most_shared_head_dim) return n.kernel;
    if (is_few(c_.target, c_.tokens, c_.batched())) return few_of(n.kernel);
    if (n.kernel == kernels::kernel::ternary_matmul && width(n.in) % kernels::chunk_columns == 0)
      return kernels::kernel::ternary_chunk;
    if (n.kernel == kernels::kernel::attention) return kernels::kernel::attention_chunk;
    return n.kernel;
  }
  /// The form of a product for a few tokens, which share one read of the weights.
  static constexpr kernels::kernel few_of(kernels::kernel which) {
    if (which == kernels::kernel::attention) return kernels::kernel::attention_few;
    return which == kernels::kernel::ternary_matmul ? kernels::kernel::ternary_few : which;
  }
  constexpr std::uint64_t counters_offset() const { return c_.state_bytes(); }
  constexpr const ir::weight& tensor(ir::weight_id id) const { return graph_.weights[static_cast<std::size_t>(id)]; }
  constexpr std::uint32_t width(ir::value_id id) const { return graph_.values[static_cast<std::size_t>(id)].width; }

  constexpr bool has(std::string_view name) const {
    return face_->specialization_index(name) < face_->specialization_count();
  }
  constexpr void set(std::string_view name, std::uint32_t value) {
    d_->specialization[face_->specialization_index(name)] = value;
  }
  constexpr void set(std::string_view name, float value) { set(name, std::bit_cast<std::uint32_t>(value)); }
  template <class Enum>
    requires std::is_enum_v<Enum>
  constexpr void set(std::string_view name, Enum value) {
    set(name, static_cast<std::uint32_t>(value));
  }

  constexpr void note(operand where, std::uint64_t bytes, bool write) {
    d_->accesses[d_->access_count++] = {where.where, write, where.slot, where.offset, bytes, where.layer_stride};
  }
  constexpr void bind(std::string_view name, operand where, std::uint64_t bytes, bool write) {
    d_->push[face_->push_index(name)] = where;
    note(where, bytes, write);
  }
  constexpr void bind_value(std::string_view name, ir::value_id id, bool write) {
    const placed_value& v = placement_.values[placement_.storage[static_cast<std::size_t>(id)]];
    if (v.layer_stride != 0)
      return bind(name, {region::arena, 0, v.offset, v.layer_stride},
                  std::uint64_t{c_.tokens} * v.width * info(v.type).block_bytes, write);
    bind(name, {region::arena, 0, v.offset}, v.type == dtype::i8 ? std::uint64_t{c_.tokens} * v.width : v.bytes, write);
  }
  /// What all layers have of a value, read behind them; words from one to the next.
  constexpr std::uint32_t bind_layers(std::string_view name, ir::value_id id) {
    const placed_value& v = placement_.values[placement_.storage[static_cast<std::size_t>(id)]];
    bind(name, {region::arena, 0, v.offset},
         (graph_.layers - 1) * v.layer_stride + std::uint64_t{c_.tokens} * v.width * info(v.type).block_bytes, false);
    return static_cast<std::uint32_t>(v.layer_stride / 4);
  }
  /// What a value, [tokens, layers, part], has for a layer: to be read.
  constexpr void bind_of_layer(std::string_view name, ir::value_id id, std::uint32_t part) {
    bind(name, {region::arena, 0, placement_.offset(id), std::uint64_t{4} * part},
         std::uint64_t{4} * (std::uint64_t{c_.tokens - 1} * width(id) + part), false);
  }
  constexpr void bind_factors(ir::value_id id, bool write) {
    bind("factors", {region::arena, 0, placement_.offset(id) + factors_offset(c_.tokens, width(id))},
         std::uint64_t{8} * c_.tokens, write);
  }
  constexpr void bind_state() { bind("state", {region::state, 0, 0}, c_.batched() ? c_.state_bytes() : 16 * 4, false); }
  constexpr void bind_weight(std::string_view name, weight w) {
    if (w.per_layer) w.kinds = std::uint64_t{1} << d_->block;
    bind(name, {region::weight, weights_.slot(w), 0}, w.bytes, false);
    d_->weight_bytes += w.bytes;
  }

  /// @param factor one number that is behind the norm's, or none
  constexpr void bind_norm(ir::weight_id id, std::string_view name = "norm_weight", ir::weight_id factor = ir::none) {
    const ir::weight& t = tensor(id);
    if (factor != ir::none) return bind_vectors(name, std::array{id, factor});
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = weight_layout::vector_f32,
             .scale = t.scale,
             .columns = t.columns,
             .bytes = std::uint64_t{4} * t.columns};
    w.sources[0] = t.name;
    w.rows = 1;
    w.source_rows[0] = 1;
    bind_weight(name, w);
  }
  /// Vectors one behind the other.
  template <std::size_t Count>
  constexpr void bind_vectors(std::string_view name, const std::array<ir::weight_id, Count>& ids) {
    weight w{.source_count = Count,
             .per_layer = tensor(ids[0]).where == ir::section::period,
             .layout = weight_layout::vector_f32,
             .rows = 1};
    for (std::size_t i = 0; i < Count; ++i) {
      w.sources[i] = tensor(ids[i]).name;
      w.source_rows[i] = tensor(ids[i]).columns;
      w.columns += w.source_rows[i];
    }
    w.bytes = std::uint64_t{4} * w.columns;
    bind_weight(name, w);
  }

  /// The cache of a layer with such a window.
  constexpr void bind_cache(const node& n, bool write) {
    const std::uint32_t positions = c_.cache_positions(n.window);
    const layer_cache cache = cache_for(n.kv_heads, n.head_dim, positions, n.window, c_.target);
    bind("keys", {c_.batched() ? region::pool_keys : region::keys, 0, 0}, cache.key_bytes, write);
    bind("values", {c_.batched() ? region::pool_values : region::values, 0, 0}, cache.value_bytes, write);
    set_slots();
    set("context", positions);
    set("cache_element", c_.target.cache_element);
    if (has("ring")) set("ring", c_.is_ring(n.window) ? 1u : 0u);
  }
  constexpr void set_slots() {
    if (!c_.batched()) return;
    set("slot_words", c_.slot_words());
    set("page_size", c_.batch.page_size);
  }
  constexpr void bind_rope(const node& n) {
    rope_parameters how = n.rope;
    how.long_context =
        how.scaling.type == rope_type::longrope && c_.context > how.scaling.original_max_position_embeddings;
    bind_weight("rope", {.per_layer = n.rope.no_rope_interval != 0,
                         .layout = weight_layout::rope_turns,
                         .head_dim = n.head_dim,
                         .rope = how,
                         .rows = 1,
                         .columns = n.head_dim / 2,
                         .bytes = std::uint64_t{8} * (n.head_dim / 2)});
  }

  constexpr void label(const node& n) {
    for (std::size_t i = 0; i < n.weight_count; ++i) {
      std::string_view name = tensor(n.weights[i]).name.view();
      if (name.ends_with(".weight")) name.remove_suffix(7);
      d_->label.append(i ? "+" : "").append(name);
    }
  }

  /// One tensor, row-major where its codec has no blocks and its rows need no filling, which row groups are then too.
  constexpr weight matrix(ir::weight_id id) const {
    const ir::weight& t = tensor(id);
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = weight_layout::matrix,
             .codec = codec_of(t.type).value_or(kernels::codec::f16),
             .rows = t.rows,
             .columns = t.columns};
    w.sources[0] = t.name;
    w.source_rows[0] = t.rows;
    if (!kernels::is_dense(w.codec) || t.columns % 8 != 0) w.layout = weight_layout::row_groups;
    w.bytes = w.layout == weight_layout::matrix ? std::uint64_t{t.rows} * t.columns * kernels::info(w.codec).block_bytes
                                                : kernels::matmul_weight_bytes(w.codec, t.rows, t.columns);
    return w;
  }
  /// The tensors of a product, one behind the other in the order that its epilogue wants.
  constexpr weight stacked(const node& n, weight_layout layout) const {
    weight w{.source_count = n.weight_count,
             .per_layer = tensor(n.weights[0]).where == ir::section::period,
             .layout = layout,
             .columns = tensor(n.weights[0]).columns};
    w.order = n.epilogue == kernels::epilogue::rope_cache ? row_order::rope_pairs
              : n.epilogue == kernels::epilogue::gated    ? row_order::gate_up
              : n.weight_count > 1                        ? row_order::stacked
                                                          : row_order::plain;
    w.head_dim = n.head_dim;
    for (std::size_t i = 0; i < n.weight_count; ++i) {
      w.sources[i] = tensor(n.weights[i]).name;
      w.source_rows[i] = tensor(n.weights[i]).rows;
      w.rows += w.source_rows[i];
    }
    return w;
  }

  constexpr void embed(const node& n) {
    label(n);
    const weight w = matrix(n.weights[0]);
    bind_weight("table", w);
    d_->weight_bytes = std::uint64_t{c_.tokens} * (w.bytes / w.rows);
    bind_value("output", n.out, true);
    const bool keeps = n.ops[0] == 0;  // the first embedding writes the history
    if (c_.batched()) {
      bind("state", {region::state, 0, 0}, c_.state_bytes(), keeps);
    } else if (!keeps) {
      bind("state", {region::state, 0, 0}, std::uint64_t{4} * kernels::state::history(c_.max_tokens), false);
    } else {
      bind("state", {region::state, 0, 0}, std::uint64_t{4} * kernels::state::history(c_.max_tokens), false);
      note({region::state, 0, std::uint64_t{4} * kernels::state::history(c_.max_tokens)}, std::uint64_t{4} * c_.context,
           true);
    }
    set("width", w.columns);
    set("vocab_size", w.rows);
    set("table_element", w.codec);
    set("scale", n.scale);
    set("max_tokens", c_.token_words());
    set("context", keeps ? c_.context : 0u);
    set("slot_words", c_.slot_words());
    d_->subgroups = c_.target.embed_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }

  constexpr void norm_quantize(const node& n) {
    d_->label.append(tensor(n.norm).name.view());
    bind_value("input", n.in, false);
    bind_norm(n.norm);
    bind_value("output", n.out, true);
    bind_factors(n.out, true);
    bind_state();
    set("width", width(n.in));
    set("eps", n.eps);
    d_->subgroups = norm_subgroups();
    d_->groups = {1, c_.tokens, 1};
  }

  constexpr void ternary_product(const node& n) {
    label(n);
    weight w = stacked(n, weight_layout::ternary_tiles);
    const std::uint32_t row_groups = (w.rows + 3) / 4;
    w.bytes = std::uint64_t{row_groups} * (w.columns / 16) * 16;
    weight scales = w;
    scales.layout = weight_layout::ternary_scales;
    scales.bytes = std::uint64_t{4} * n.weight_count;

    bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    if (n.prologue == kernels::prologue::quantized) bind_factors(n.in, false);
    bind_weight("weight", w);
    bind_weight("scales", scales);
    if (n.out != ir::none) bind_value("output", n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    if (n.epilogue == kernels::epilogue::rope_cache) {
      bind_cache(n, true);
      set("head_dim", n.head_dim);
      set("q_size", w.source_rows[0]);
      set("kv_size", w.source_rows[1]);
      set("rope_theta", n.rope.theta);
    }
    set("cache_element", c_.target.cache_element);
    set("columns", w.columns);
    set("rows", w.rows);
    set("epilogue", n.epilogue);
    if (n.epilogue == kernels::epilogue::gated) d_->activation = &*n.act;
    if (d_->kernel == kernels::kernel::ternary_chunk) return tile_chunk(w);
    if (d_->kernel == kernels::kernel::ternary_few) return share_columns(w);
    if (d_->kernel == kernels::kernel::ternary_rows) {
      const std::uint32_t together = kernels::ternary_rows_together(w.columns);
      set("groups_together", together);
      d_->subgroups = 1;
      d_->groups = {(row_groups + together - 1) / together, 1, 1};
      return;
    }
    set("prologue", n.prologue);
    set("eps", n.eps);
    const std::uint32_t tile = c_.tokens == 1                                  ? 1
                               : d_->kernel == kernels::kernel::ternary_matmul ? c_.ternary_tile_tokens()
                                                                               : c_.tile_tokens();
    set("tile_tokens", tile);
    d_->subgroups = c_.target.matmul_subgroups;
    // A workgroup of a chunk has its subgroup's lanes, 4 at least, go over all tiles for two groups each, and hands on
    // up to 32 sums a lane then: no more turns than llvmpipe gives.
    const std::uint64_t turns = (std::uint64_t{row_groups} / 8 + 1) * (w.columns / 16 + 48),
                        least = c_.target.straight ? (turns + 59'999) / 60'000 : 1;
    const std::uint32_t wanted = c_.tokens == 1
                                     ? enough_groups(c_.target.matmul_groups, w)
                                     : (std::max)(c_.target.chunk_matmul_groups, static_cast<std::uint32_t>(least));
    d_->groups = {(std::min)(wanted, (row_groups + d_->subgroups - 1) / d_->subgroups), (c_.tokens + tile - 1) / tile,
                  1};
  }

  /// One of a product's ternary tensors by itself.
  constexpr weight one_ternary(const node& n, std::size_t index, weight_layout layout) const {
    const ir::weight& t = tensor(n.weights[index]);
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = layout,
             .rows = t.rows,
             .columns = t.columns,
             .bytes = std::uint64_t{t.rows} * t.columns / 4};
    w.sources[0] = t.name;
    w.source_rows[0] = t.rows;
    return w;
  }
  constexpr void bind_walk(const node& n) {
    label(n);
    bind_value("input", n.in, false);
    bind_norm(n.norm);
    weight scales = stacked(n, weight_layout::ternary_scales);
    scales.bytes = std::uint64_t{4} * n.weight_count;
    bind_weight("scales", scales);
    bind_value("output", n.out, true);
    bind_state();
    set("eps", n.eps);
    d_->subgroups = c_.target.matmul_subgroups;
  }
  constexpr void walk_gate_up(const node& n, std::uint64_t totals) {
    const weight gate = one_ternary(n, 0, weight_layout::ternary_tiles);
    bind_walk(n);
    bind_weight("weight", gate);
    bind_weight("up", one_ternary(n, 1, weight_layout::feature_rows));
    if (n.gates != ir::none) bind_value("gates", n.gates, true);
    const walk_shape shape = walk_shape_of(c_.target, gate.rows, gate.columns);
    bind_norm(n.value_norm, "value_norm");
    bind("totals", {region::arena, 0, totals}, walk_total_bytes(shape, gate.rows), true);
    set("columns", gate.columns);
    set("rows", gate.rows);
    set("features", shape.features);
    set("sum_words", shape.sum_words);
    d_->groups = {shape.shares, 1, 1};
  }
  constexpr void walk_down(const node& n, std::uint64_t totals) {
    const weight down = one_ternary(n, 0, weight_layout::feature_columns);
    bind_walk(n);
    note({region::arena, 0, placement_.offset(n.stream)},
         value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_weight("weight", down);
    if (n.values != ir::none) bind_value("values", n.values, true);
    const walk_shape shape = walk_shape_of(c_.target, down.columns, down.rows);
    bind("totals", {region::arena, 0, totals}, walk_total_bytes(shape, down.columns), true);
    set("columns", down.columns);
    set("rows", down.rows);
    set("words", shape.words);
    set("splits", shape.splits);
    set("shares", shape.shares);
    d_->groups = {shape.stripes, shape.splits, 1};
  }

  constexpr void walk_select(const node& n) {
    d_->label.append("ffn_gate nearest");
    bind_value("input", n.in, false);
    bind_value("choice", n.out, true);
    bind_state();
    set("columns", width(n.in));
    set("count", n.nearest);
    d_->subgroups = c_.target.sample_subgroups;
    d_->groups = {1, 1, 1};
  }
  constexpr void walk_up(const node& n) {
    label(n);
    weight up = matrix(n.weights[0]);
    up.codec = *codec_of(tensor(n.weights[0]).type);
    bind_value("input", n.in, false);
    bind_norm(n.norm);
    bind_weight("weight", up);
    d_->weight_bytes -= up.bytes - up.bytes / up.rows * n.nearest;
    bind_value("choice", n.choice, false);
    bind_value("output", n.out, true);
    bind_state();
    set("columns", up.columns);
    set("rows", up.rows);
    set("count", n.nearest);
    set("weight_element", up.codec);
    set("eps", n.eps);
    d_->activation = &*n.act;
    d_->subgroups = c_.target.matmul_subgroups;
    d_->groups = {(std::min)(c_.target.matmul_groups, (n.nearest + d_->subgroups - 1) / d_->subgroups), 1, 1};
  }
  constexpr void walk_sum(const node& n) {
    label(n);
    const ir::weight& t = tensor(n.weights[0]);
    weight down{.source_count = 1,
                .per_layer = t.where == ir::section::period,
                .layout = weight_layout::turned,
                .codec = *codec_of(t.type),
                .rows = t.rows,
                .columns = t.columns};
    down.sources[0] = t.name;
    down.source_rows[0] = t.rows;
    down.bytes = std::uint64_t{t.rows} * t.columns * kernels::info(down.codec).block_bytes;
    bind_value("input", n.in, false);
    bind_weight("weight", down);
    d_->weight_bytes -= down.bytes - down.bytes / down.columns * n.nearest;
    if (n.choice != ir::none) bind_value("choice", n.choice, false);
    bind_value("output", n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    set("columns", down.columns);
    set("rows", down.rows);
    set("count", n.nearest);
    set("weight_element", down.codec);
    set("listed", n.choice != ir::none ? 1u : 0u);
    set("epilogue", n.epilogue);
    const std::uint32_t stripe = n.parts == 1 ? 32 : 64;
    set("stripe", stripe);
    set("splits", n.parts);
    d_->subgroups = c_.target.sample_subgroups;
    if (n.parts != 1) d_->subgroups = (std::min)(d_->subgroups, 8u);
    d_->groups = {(down.rows + stripe - 1) / stripe, n.parts, 1};
  }

  constexpr void walk_trace(const node& n) {
    d_->label.append("trace");
    const ir::weight& t = tensor(n.weights[0]);
    weight norms{.source_count = 1,
                 .layout = weight_layout::column_norms,
                 .rows = graph_.layers,
                 .columns = t.columns,
                 .bytes = std::uint64_t{4} * graph_.layers * t.columns};
    norms.sources[0] = t.name;
    norms.source_rows[0] = t.rows;
    set("value_stride", bind_layers("values", n.in));
    if (n.choice != ir::none) set("choice_stride", bind_layers("choice", n.choice));
    else bind_layers("gates", n.gates);
    bind_weight("norms", norms);
    bind("trace", {region::trace}, trace_shape{n.traced, c_.target.ring_size, graph_.layers}.bytes(), true);
    bind("state", {region::state, 0, 0}, std::uint64_t{4} * (kernels::state::tokens + 1), false);
    set("columns", n.nearest);
    set("features", t.columns);
    set("layers", graph_.layers);
    set("count", n.traced);
    set("slots", c_.target.ring_size);
    set("listed", n.choice != ir::none ? 1u : 0u);
    d_->subgroups = c_.target.sample_subgroups;
    d_->groups = {graph_.layers, 1, 1};
  }

  /// A workgroup a row group, of as many subgroups (of 32) as leave none idle longer than the others.
  constexpr void share_columns(const weight& w) {
    const std::uint32_t tiles = w.columns / 16, most = 32 * c_.target.matmul_subgroups,
                        rounds = (tiles + most - 1) / most;
    set("tile_tokens", c_.tile_tokens());
    set("tile_rows", 4u);
    d_->subgroups = (tiles + 32 * rounds - 1) / (32 * rounds);
    d_->groups = {(std::min)(w.rows / 4, 65535u), (c_.tokens + c_.tile_tokens() - 1) / c_.tile_tokens(), 1};
  }

  /// Tiles of 64 tokens and as many rows as leave enough tiles, for 4 subgroups.
  constexpr void tile_chunk(const weight& w) {
    const std::uint32_t tile_tokens = 64, token_tiles = (c_.tokens + tile_tokens - 1) / tile_tokens;
    const std::uint32_t tile_rows = (w.rows + 127) / 128 * token_tiles >= c_.target.chunk_groups ? 128 : 64;
    set("tile_tokens", tile_tokens);
    set("tile_rows", tile_rows);
    set("max_tokens", c_.tokens);
    d_->subgroups = 4;
    d_->groups = {(w.rows + tile_rows - 1) / tile_rows, token_tiles, 1};
  }

  /// Tiles of 128 rows and 128 tokens for 4 subgroups, or for 8 where there are not two tiles for each processor. Of a
  /// batch, for devices without matrices (others have few_chunk_tile), an invocation has four rows and four tokens.
  constexpr void tile_halves(const weight& w) {
    const bool few = c_.batched();
    const std::uint32_t tile_rows = few ? 64 : 128,
                        tile_tokens = few               ? kernels::few_chunk_tile(w.rows, c_.tokens).tokens
                                      : c_.tokens < 128 ? 64
                                                        : 128;
    d_->groups = {(c_.tokens + tile_tokens - 1) / tile_tokens, (w.rows + tile_rows - 1) / tile_rows, 1};
    d_->subgroups = few ? tile_tokens / 8
                    : tile_tokens == 128 && 2 * d_->groups[0] * d_->groups[1] <= c_.target.chunk_groups ? 8
                                                                                                        : 4;
    set("tile_tokens", tile_tokens);
    set("tile_rows", tile_rows);
    set("max_tokens", c_.tokens);
  }

  /// Tiles of 128 rows and of as many tokens as a list has.
  constexpr void tile_lists(const node& n, std::uint32_t rows) {
    d_->groups = {lists(n), (rows + 127) / 128, 1};
    d_->subgroups = 4;
    set("tile_tokens", n.list_tokens);
    set("tile_rows", 128u);
    set("max_tokens", lists(n) * n.list_tokens);
  }

  /// As many groups as have enough to do: every group normalises the input for itself. A power of two, since CPU
  /// drivers deal them out to their threads at once.
  constexpr std::uint32_t enough_groups(std::uint32_t most, const weight& w) const {
    return plan::enough_groups(c_.target, most, std::uint64_t{w.rows} * w.columns);
  }

  constexpr void attention(const node& n, std::uint64_t partials) {
    d_->label.append("attention");
    bind_value("query", n.in, false);
    bind_cache(n, false);
    bind_value("output", n.out, true);
    bind_state();
    set("heads", n.heads);
    set("kv_heads", n.kv_heads);
    set("head_dim", n.head_dim);
    set("scale", n.scale);
    set("window", n.window);
    set("softcap", n.softcap);
    if (n.sinks != ir::none) {
      bind_norm(n.sinks, "sinks");
      set("has_sinks", 1u);
    }
    if (d_->kernel == kernels::kernel::attention_chunk || d_->kernel == kernels::kernel::attention_halves) {
      const std::uint32_t tile = d_->kernel == kernels::kernel::attention_chunk
                                     ? kernels::attention_tile
                                     : kernels::attention_halves_tile(n.head_dim);
      set("max_tokens", c_.tokens);
      d_->subgroups = 4;
      d_->groups = {n.heads, (c_.tokens + tile - 1) / tile, 1};
      return;
    }
    const bool few = d_->kernel == kernels::kernel::attention_few;
    // Heads share what they read where there are workgroups enough without.
    const std::uint32_t tokens =
        c_.batched() ? c_.tokens : (std::min)(c_.tokens, c_.target.tile_tokens);  // most passes over drafts have few
    const std::uint32_t most = !few                                        ? c_.target.attention_heads
                               : n.heads * tokens > c_.target.chunk_groups ? kernels::attention_few_heads
                                                                           : 1;
    std::uint32_t together = (std::max)(1u, (std::min)(most, n.heads / n.kv_heads));
    while (n.heads / n.kv_heads % together != 0) --together;
    set("heads_together", together);
    if (few) {  // a position an invocation
      d_->subgroups = 8;
      d_->groups = {n.heads / together, c_.tokens, 1};
      return;
    }
    const std::uint32_t splits = c_.splits(n.window);
    set("splits", splits);
    if (splits > 1) {
      bind("partials", {region::arena, 0, partials},
           kernels::attention_partial_bytes(c_.tokens, n.heads, splits, n.head_dim), true);
      bind("counters", {region::state, 0, counters_offset()}, kernels::attention_counter_bytes(c_.tokens, n.heads),
           true);
    }
    d_->subgroups = c_.target.attention_subgroups;
    d_->groups = {n.heads / together, c_.tokens, splits};
  }

  constexpr void dense_matmul(const node& n) {
    label(n);
    const weight w = matrix(n.weights[0]);
    bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_weight("weight", w);
    bind_value("output", n.out, true);
    bind_state();
    set("columns", w.columns);
    set("rows", w.rows);
    set("weight_element", w.codec);
    if (d_->kernel == kernels::kernel::dense_few) return share_rows(w);
    if (d_->kernel == kernels::kernel::dense_rows) return few_rows(w);
    set("eps", n.eps);
    d_->subgroups = c_.target.head_subgroups;
    d_->groups = {(std::min)(enough_groups(c_.target.head_groups, w), (w.rows + d_->subgroups - 1) / d_->subgroups),
                  c_.tokens, 1};
  }
  /// A subgroup a group of rows: narrow workgroups, since its sums take many registers.
  constexpr void share_rows(const weight& w) {
    const std::uint32_t row_groups = (w.rows + kernels::dense_few_rows - 1) / kernels::dense_few_rows;
    set("tile_tokens", c_.tile_tokens());
    d_->subgroups = 4;
    d_->groups = {(std::min)((row_groups + d_->subgroups - 1) / d_->subgroups, c_.target.head_groups),
                  (c_.tokens + c_.tile_tokens() - 1) / c_.tile_tokens(), 1};
  }

  /// Workgroups of a few rows, more than one dimension has room for.
  constexpr void few_rows(const weight& w) {
    const std::uint32_t together = kernels::dense_rows_together(w.columns), groups = (w.rows + together - 1) / together,
                        planes = (groups + 32767) / 32768;
    set("rows_together", together);
    d_->subgroups = 1;
    d_->groups = {(groups + planes - 1) / planes, planes, 1};
  }

  /// Products of f32 by weights of a codec.
  constexpr void matmul(const node& n) {
    label(n);
    weight w = n.weight_count == 1 ? matrix(n.weights[0]) : stacked(n, weight_layout::row_groups);
    w.codec = *codec_of(tensor(n.weights[0]).type);
    if (w.layout == weight_layout::row_groups || w.rows % 4 != 0) {
      w.layout = weight_layout::row_groups;
      w.bytes = kernels::matmul_weight_bytes(w.codec, w.rows, w.columns);
    }
    const bool chunk = d_->kernel == kernels::kernel::matmul_chunk;
    if (chunk) bind_halves("input", n.in, w.columns, n.list_tokens == 0 ? c_.tokens : lists(n) * n.list_tokens, false);
    else bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_weight("weight", w);
    bind_value("output", n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    if (n.epilogue == kernels::epilogue::rope_cache) {
      bind_cache(n, true);
      bind_rope(n);
      set("head_dim", n.head_dim);
      set("q_size", w.source_rows[0]);
      set("kv_size", w.source_rows[1]);
    }
    const std::uint32_t rows = n.experts == 0 ? w.rows : w.rows / n.experts, outputs = n.experts == 0 ? 1 : n.top_k;
    if (n.experts != 0) {
      const bool few = d_->kernel == kernels::kernel::matmul_few;
      if (n.list_tokens != 0)
        bind(few || chunk ? "tiles" : "choice", {region::arena, 0, placement_.offset(n.choice)}, list_bytes(n), false);
      else bind_value("choice", n.choice, false);
      set("experts_used", n.top_k);
      if (!chunk)
        set("own_input", width(n.in) == (few ? kernels::fixed_words(w.columns) : w.columns) && n.top_k != 1 ? 0u : 1u);
      if (few || chunk) set("list_tokens", n.list_tokens);
      d_->weight_bytes -= w.bytes - w.bytes / n.experts * (std::min)(n.experts, c_.tokens * n.top_k);
    }
    set("columns", w.columns);
    set("rows", rows);
    set("codec", w.codec);
    set("epilogue", n.epilogue);
    if (n.epilogue == kernels::epilogue::gated) d_->activation = &*n.act;
    if (n.gates != ir::none) bind_value("gates", n.gates, true);
    if (chunk && n.experts != 0) return tile_lists(n, rows);
    if (chunk) return tile_halves(w);
    if (d_->kernel == kernels::kernel::matmul_few) return share_tokens(n, rows);
    set("prologue", n.prologue);
    set("eps", n.eps);
    const std::uint32_t tile = c_.tokens == 1 || (n.experts != 0 && n.list_tokens == 0) ? 1
                               : n.list_tokens != 0                                     ? n.list_tokens
                                                                                        : c_.tile_tokens();
    set("tile_tokens", tile);
    // What other devices have no room for is worth it where one has: a down projection of 7B takes 46 KiB.
    set("staged", kernels::matmul_staged_bytes(w.codec, w.columns, tile) <= most_staged_bytes ? 1u
                  : c_.tokens == 1 && c_.target.matmul_subgroups > 1 ? kernels::staged_where_room
                                                                     : 0u);
    const std::uint32_t row_groups = (rows + 3) / 4;
    d_->subgroups = c_.target.matmul_subgroups;
    if (c_.tokens == 1 && d_->subgroups > 1 &&
        !kernels::is_dense(w.codec)) {  // on GPUs: a workgroup prepares x, so fewer and wider ones do so sooner
      d_->subgroups *= 2;
      // Subgroups without rows help to prepare x. Several products fill the device together: each has workgroups
      // enough for that, and for a group of rows a subgroup.
      const std::uint32_t most =
          outputs == 1 ? row_groups
                       : (std::max)((row_groups + d_->subgroups - 1) / d_->subgroups,
                                    (std::min)(row_groups, (c_.target.matmul_groups + outputs - 1) / outputs));
      d_->groups = {(std::min)((c_.target.matmul_groups + 1) / 2, most), outputs, 1};
      return;
    }
    const std::uint32_t wanted =
        c_.tokens == 1 ? enough_groups(c_.target.matmul_groups, w) : c_.target.chunk_matmul_groups;
    d_->groups = {(std::min)(wanted, (row_groups + d_->subgroups - 1) / d_->subgroups),
                  n.list_tokens != 0 ? lists(n) : (c_.tokens + tile - 1) / tile * outputs, 1};
  }
  /// A subgroup a group of rows, which it has for a tile of tokens: fewer of them where there would not be enough
  /// subgroups to keep the device busy.
  constexpr void share_tokens(const node& n, std::uint32_t rows) {
    std::uint32_t tile = c_.tile_tokens();
    const std::uint32_t all = n.list_tokens != 0 ? c_.tokens * n.top_k : c_.tokens;
    while (tile % 4 == 0 && rows / 4 * (all / tile) < busy_subgroups) tile /= 2;
    set("tile_tokens", tile);
    d_->subgroups = 4;
    set("tile_rows", 4 * d_->subgroups);
    d_->groups = {(std::min)((rows / 4 + d_->subgroups - 1) / d_->subgroups, 65535u),
                  n.list_tokens != 0 ? lists(n) * (n.list_tokens / tile) : (c_.tokens + tile - 1) / tile, 1};
  }
  /// Lists of expert_tiles that a product has at most.
  constexpr std::uint32_t lists(const node& n) const {
    return kernels::expert_tile_count(c_.tokens, n.experts, n.top_k, n.list_tokens);
  }
  constexpr std::uint64_t list_bytes(const node& n) const { return std::uint64_t{4} * lists(n) * (n.list_tokens + 2); }
  constexpr void fixed(const node& n) {
    const std::uint32_t rows = (std::max)(1u, n.top_k), columns_of_row = width(n.in) / rows;
    d_->label.append(n.norm != ir::none ? tensor(n.norm).name.view()
                                        : graph_.values[static_cast<std::size_t>(n.in)].name.view());
    bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_value("output", n.out, true);
    bind_state();
    set("width", columns_of_row);
    set("prologue", n.prologue);
    set("eps", n.eps);
    set("rows_per_token", rows);
    set("tiled", n.weights[0] != ir::none && kernels::wants_tiles(*codec_of(tensor(n.weights[0]).type), 8) ? 1u : 0u);
    const std::uint32_t columns = 8 * 32 * c_.target.norm_subgroups;  // of a workgroup at once
    d_->subgroups = n.norm != ir::none ? norm_subgroups() : c_.target.norm_subgroups;
    d_->groups = {n.norm != ir::none ? 1 : (columns_of_row + columns - 1) / columns, c_.tokens * rows, 1};
  }
  /// A few tokens leave most of the device idle: wider workgroups then.
  constexpr std::uint32_t norm_subgroups() const {
    return is_few(c_.target, c_.tokens, c_.batched()) ? 2 * c_.target.norm_subgroups : c_.target.norm_subgroups;
  }

  /// Halves of a value and, behind them, their factors.
  /// @param rows of the input, or of lists of experts
  constexpr void bind_halves(std::string_view name, ir::value_id id, std::uint32_t columns, std::uint32_t rows,
                             bool write) {
    const std::uint64_t at = placement_.offset(id), bytes = std::uint64_t{2} * rows * columns;
    bind(name, {region::arena, 0, at}, bytes, write);
    bind("factors", {region::arena, 0, at + bytes}, std::uint64_t{4} * rows, write);
  }
  constexpr void halves(const node& n) {
    const bool listed = n.list_tokens != 0;
    const std::uint32_t columns = listed ? n.columns : width(n.in),
                        rows = listed ? lists(n) * n.list_tokens : c_.tokens;
    d_->label.append(n.norm != ir::none ? tensor(n.norm).name.view()
                                        : graph_.values[static_cast<std::size_t>(n.in)].name.view());
    bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_halves("output", n.out, columns, rows, true);
    bind_state();
    if (listed) {
      bind("tiles", {region::arena, 0, placement_.offset(n.choice)}, list_bytes(n), false);
      set("experts_used", n.top_k);
      set("own_input", width(n.in) == columns && n.top_k != 1 ? 0u : 1u);
      set("list_tokens", n.list_tokens);
    }
    set("width", columns);
    set("prologue", n.prologue);
    set("eps", n.eps);
    set("tiled", c_.batched() ? c_.tokens % 8 == 0 ? kernels::halves_order::tiles : kernels::halves_order::rows
                 : n.weights[0] != ir::none ? kernels::fragment_order(*codec_of(tensor(n.weights[0]).type))
                                            : kernels::halves_order::rows);
    d_->subgroups = norm_subgroups();
    d_->groups = {1, rows, 1};
  }

  /// Subgroups of matmul_few that an H200 runs at once.
  static constexpr std::uint32_t busy_subgroups = 2112;

  /// Of 32 KiB of shared memory, what a norm in front leaves of it.
  static constexpr std::uint64_t most_staged_bytes = 24576;

  /// q, k and v in three values, or one behind the other in one, or q and k so and v beside them.
  constexpr void bind_qkv(const node& n) {
    const std::uint32_t q = n.heads * n.head_dim, kv = n.kv_heads * n.head_dim;
    bind_value("q", n.in, false);
    if (n.kv_heads == 0) return set("q_stride", q);
    const std::uint32_t stacked = q + (n.k_in == ir::none ? kv : 0) + (n.v_in == ir::none ? kv : 0);
    const std::uint64_t at = placement_.offset(n.in), bytes = std::uint64_t{4} * c_.tokens * stacked;
    const auto bind_next = [&](std::string_view name, std::string_view stride, ir::value_id own, std::uint32_t behind) {
      if (own != ir::none) bind_value(name, own, false);
      else bind(name, {region::arena, 0, at + std::uint64_t{4} * behind}, bytes - std::uint64_t{4} * behind, false);
      set(stride, own != ir::none ? kv : stacked);
    };
    set("q_stride", stacked);
    bind_next("k", "k_stride", n.k_in, q);
    bind_next("v", "v_stride", n.v_in, q + kv);
  }
  /// Biases of q, k and v, one behind the other.
  constexpr void bind_biases(const node& n) {
    if (n.biases[0] == ir::none) return;
    bind_vectors("bias", n.biases);
    set("biased", 1u);
  }
  constexpr void turn(const node& n) {
    d_->label.append(n.norms != kernels::turn_norms::none ? "attn_q_norm+attn_k_norm"
                     : n.biases[0] != ir::none            ? "attn_q.bias+attn_k.bias+attn_v.bias"
                                                          : "rope");
    bind_qkv(n);
    if (n.norms != kernels::turn_norms::none) {
      bind_norm(n.norm, "q_norm");
      if (n.kv_heads != 0) bind_norm(n.weights[0], "k_norm");
    }
    bind_biases(n);
    bind_value("output", n.out, true);
    bind_state();
    if (n.kv_heads != 0) bind_cache(n, true);
    else set_slots();
    bind_rope(n);
    set("v_norm", n.v_norm ? 1u : 0u);
    set("heads", n.heads);
    set("kv_heads", n.kv_heads);
    set("head_dim", n.head_dim);
    set("eps", n.eps);
    set("norms", n.norms);
    set("rope_factor", n.rope.scaling.attention_factor);
    d_->groups = {n.heads + 2 * n.kv_heads, c_.tokens, 1};
  }

  constexpr void route(const node& n) {
    d_->label.append("route");
    bind_value("logits", n.in, false);
    if (n.biases[0] != ir::none) {
      bind_norm(n.biases[0], "bias");
      set("biased", 1u);
    }
    bind_value("choice", n.out, true);
    bind_state();
    set("experts", n.experts);
    set("experts_used", n.top_k);
    set("over_all", n.over_all ? 1u : 0u);
    d_->subgroups = (std::min)(c_.target.norm_subgroups, (n.experts + 31) / 32);
    d_->groups = {1, c_.tokens, 1};
  }

  constexpr void expert_tiles(const node& n) {
    const std::uint32_t tiles = lists(n);
    d_->label.append("expert tiles");
    bind_value("choice", n.in, false);
    bind("output", {region::arena, 0, placement_.offset(n.out)}, list_bytes(n), true);
    bind_state();
    set("experts", n.experts);
    set("experts_used", n.top_k);
    set("list_tokens", n.list_tokens);
    set("tiles", tiles);
    set("max_tokens", c_.tokens);
    d_->subgroups = c_.target.norm_subgroups;
    d_->groups = {n.experts, 1, 1};
  }

  constexpr void expert_sum(const node& n) {
    d_->label.append("experts");
    bind_value("input", n.in, false);
    bind_value("choice", n.choice, false);
    bind_value("output", n.out, true);
    note({region::arena, 0, placement_.offset(n.stream)},
         value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    set("width", width(n.in) / n.top_k);
    set("experts_used", n.top_k);
    if (n.biases[0] != ir::none) {
      bind_norm(n.biases[0], "bias");
      set("biased", 1u);
    }
    d_->subgroups = c_.target.norm_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }

  constexpr void gated(const node& n) {
    d_->label.append(n.by_layer ? "layer_input" : n.up_in != n.in ? "ffn_act" : "softcap");
    d_->activation = &*n.act;
    bind_value("gate", n.in, false);
    if (n.by_layer) bind_of_layer("up", n.up_in, width(n.in));
    else bind_value("up", n.up_in, false);
    bind_value("output", n.out, true);
    bind_state();
    set("width", width(n.in));
    set("up_stride", width(n.up_in));
    set("scale", n.scale == 0 ? 1.f : n.scale);
    set("experts_used", (std::max)(1u, n.top_k));
    if (n.biases[0] != ir::none) {
      bind_value("choice", n.choice, false);
      bind_norm(n.biases[0], "gate_bias");
      bind_norm(n.biases[1], "up_bias");
      set("biased", 1u);
    }
    d_->subgroups = c_.target.norm_subgroups;
    const std::uint32_t columns = 4 * 32 * d_->subgroups;  // of a workgroup at once
    d_->groups = {(width(n.in) + columns - 1) / columns, c_.tokens, 1};
  }

  /// What the first op of a node keeps.
  constexpr void bind_kept(std::string_view name, const node& n) {
    bind(name, {region::kept, 0, kept_offset(graph_, n.ops[0])}, kept_bytes(graph_, graph_.ops[n.ops[0]]), true);
  }
  constexpr void short_conv(const node& n) {
    label(n);
    const ir::weight& t = tensor(n.weights[0]);
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = weight_layout::matrix,
             .codec = kernels::codec::f32,
             .rows = t.rows,
             .columns = t.columns,
             .bytes = std::uint64_t{4} * t.rows * t.columns};
    w.sources[0] = t.name;
    w.source_rows[0] = t.rows;
    bind_value("input", n.in, false);
    bind_weight("weight", w);
    bind_value("output", n.out, true);
    bind_kept("recurrent", n);
    bind_state();
    set("width", t.rows);
    set("taps", n.taps);
    set("multiplied", n.multiplied ? 1u : 0u);
    d_->subgroups = c_.target.norm_subgroups;
    const std::uint32_t columns = 4 * 32 * d_->subgroups;  // of a workgroup at once
    d_->groups = {(t.rows + columns - 1) / columns, kernels::short_conv_kernel::rows(c_.tokens, n.taps), 1};
  }

  constexpr void delta_net(const node& n) {
    d_->label.append("delta_net");
    const delta_net_config& delta = n.delta;
    const std::uint32_t group = delta.value_heads / delta.key_heads;
    const bool together = n.k_in == n.v_in;
    bind_value("qkv", n.in, false);
    bind_value("beta", n.k_in, false);
    if (together) {  // an alpha stands behind the betas of its key head
      const std::uint64_t at = placement_.offset(n.v_in), behind = std::uint64_t{4} * group;
      bind("alpha", {region::arena, 0, at + behind}, std::uint64_t{4} * c_.tokens * width(n.v_in) - behind, false);
    } else {
      bind_value("alpha", n.v_in, false);
    }
    bind_norm(n.weights[0], "decay");
    bind_norm(n.weights[1], "shift");
    bind_value("output", n.out, true);
    bind_kept("recurrent", n);
    bind_state();
    set("key_heads", delta.key_heads);
    set("value_heads", delta.value_heads);
    set("key_dim", delta.key_dim);
    set("value_dim", delta.value_dim);
    set("in_turn", delta.in_turn ? 1u : 0u);
    const std::uint32_t parts = (delta.value_dim + 31) / 32;
    set("parts", parts);
    set("gate_stride", width(n.k_in));
    set("gate_group", together ? 2 * group : group);
    d_->groups = {delta.value_heads * parts, 1, 1};
  }
  constexpr void head_gate(const node& n) {
    d_->label.append(n.norm != ir::none ? tensor(n.norm).name.view() : "gate");
    const std::uint32_t wide = width(n.in);
    bind_value("input", n.in, false);
    bind_value("gate", n.up_in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_value("output", n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    set("heads", wide / n.head_dim);
    set("head_dim", n.head_dim);
    set("normed", n.norm != ir::none ? 1u : 0u);
    set("eps", n.eps);
    set("logistic", n.logistic ? 1u : 0u);
    set("per_head", width(n.up_in) != wide ? 1u : 0u);
    set("adds", n.stream != ir::none ? 1u : 0u);
    if (n.head_dim > 512) d_->subgroups = c_.target.norm_subgroups;
    d_->groups = {wide / n.head_dim, c_.tokens, 1};
  }

  constexpr void rms_norm(const node& n) {
    d_->label.append(tensor(n.norm).name.view());
    bind_value("input", n.in, false);
    bind_norm(n.norm);
    bind_value("output", n.out, true);
    bind_state();
    set("width", width(n.in));
    set("eps", n.eps);
    d_->subgroups = norm_subgroups();
    d_->groups = {1, c_.tokens, 1};
  }

  constexpr void norm_add(const node& n) {
    const bool biased = n.biases[0] != ir::none;
    const ir::weight_id weight = biased ? n.biases[0] : n.norm;
    d_->label.append(tensor(weight).name.view());
    bind_value("input", n.in, false);
    bind_norm(weight, "norm_weight", n.factor);
    bind_value("output", n.out, true);
    note({region::arena, 0, placement_.offset(n.stream)},
         value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    const std::uint32_t heads = n.head_dim != 0 ? width(n.in) / n.head_dim : 1;
    set("width", width(n.in) / heads);
    set("eps", n.eps);
    set("parts", n.parts);
    set("biased", biased ? 1u : 0u);
    set("scaled", n.factor != ir::none ? 1u : 0u);
    d_->subgroups = c_.target.norm_subgroups;
    d_->groups = {heads, c_.tokens, 1};
  }

  const ir::graph& graph_;
  const placement& placement_;
  const lowering_context& c_;
  weight_list& weights_;
  dispatch* d_ = nullptr;
  const kernels::kernel_interface* face_ = nullptr;
};

}  // namespace intaglio::plan
