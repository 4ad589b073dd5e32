// SPDX-License-Identifier: MIT
// From a model type to its table: trace, fuse, place, lower, order, verify, all in constant expressions, once for each
// model and profile. A model that does not fit together, or a plan that cannot be proven, is one static_assert with one
// sentence.
#pragma once

#include "intaglio/core/fits_together.hpp"

#include <array>
#include <vector>

#include "intaglio/ir/trace.hpp"
#include "intaglio/plan/coded_in_one.hpp"
#include "intaglio/plan/keep_traces.hpp"
#include "intaglio/plan/lower.hpp"
#include "intaglio/plan/order.hpp"
#include "intaglio/plan/verify.hpp"

namespace intaglio::plan {

/// What a model has besides its graph: a config constant, by reference, whose name errors show. A `name` goes into the
/// table.
template <class Model>
concept engravable = ir::traceable<Model> && requires {
  { Model::config } -> std::convertible_to<const decoder_config&>;
};

inline constexpr std::size_t max_section_dispatches = 64, max_values = 48, max_weights = 64;

/// A list for the way out of a constant evaluation, where it has a fixed capacity. A plan made at run time may have
/// more: all of it is in `more` then.
template <class T, std::size_t Capacity>
struct bounded_list {
  std::array<T, Capacity> items{};
  std::size_t size = 0;
  std::vector<T> more{};
  constexpr std::span<const T> all() const {
    return more.empty() ? std::span<const T>(items).first(size) : std::span<const T>(more);
  }
  constexpr void assign(const std::vector<T>& from, std::string_view what, text<256>& failure) {
    if (from.size() > Capacity) {
      if (!std::is_constant_evaluated()) {
        more = from;
        size = from.size();
        return;
      }
      if (failure.empty()) failure.append("plan: expected at most ", Capacity, " ", what, ", found ", from.size());
      return;
    }
    for (const auto& item : from) items[size++] = item;
  }
};

struct drafted_sequence {
  bounded_list<dispatch, 8> prologue;
  bounded_list<dispatch, max_section_dispatches> period;
  bounded_list<dispatch, 8> epilogue;
  bounded_list<dispatch, 1> in_one, in_one_long;
  std::uint32_t long_from = 0;
  bounded_list<operand, max_section_dispatches / 7 * kernels::layers_coded::argument_count>
      arguments;  // a kind has 7 or more dispatches
  bounded_list<placed_value, max_values> values;
  std::uint64_t arena_bytes = 0, residual_offset = 0, logits_offset = 0, blank_offset = 0, blank_bytes = 0;
  bool has_head = false, has_sampler = false;
};

/// One sequence and what the ones before it asked for: an evaluation of its own each, since what a compiler evaluates
/// at once is limited.
struct draft {
  text<256> failure;
  drafted_sequence sequence;
  bounded_list<weight, max_weights> weights;
  std::uint64_t global_weight_bytes = 0, layer_weight_bytes = 0;
  layer_pattern pattern;
  std::array<layer_cache, layer_pattern::max_kinds> caches{};
};

struct sequence_kind {
  std::uint32_t tokens;
  bool head, sampler;
  batch_shape batch{};
};

/// Tokens of a prefill chunk, of one whose logits are wanted, and of a pass over drafts.
constexpr std::uint32_t chunk_tokens(const profile& target, std::uint32_t context) {
  return (std::min)(target.prefill_tokens, context);
}
constexpr std::uint32_t logits_tokens(const profile& target, std::uint32_t context) {
  return (std::min)(target.logits_tokens, chunk_tokens(target, context));
}
constexpr std::uint32_t verify_tokens(const profile& target, std::uint32_t context) {
  return (std::min)(target.verify_tokens, chunk_tokens(target, context));
}

/// Whether the head's rows can be had as int8: tiles of 16 columns.
constexpr bool screenable(const ir::graph& g, const node& head) {
  return g.weights[static_cast<std::size_t>(head.weights[0])].columns % 16 == 0;
}

/// The product of the head, the last node or in front of what bounds its logits.
constexpr std::size_t head_of(const ir::graph& g, const std::vector<node>& nodes) {
  std::size_t at = nodes.size() - 1;
  while (at != 0 && nodes[at].in == g.head) --at;
  return at;
}
/// Whether the head of dense weights is one that dense_rows can have.
constexpr bool has_rows(const ir::graph& g, const std::vector<node>& nodes) {
  if (nodes.empty() || nodes[head_of(g, nodes)].kernel != kernels::kernel::dense_matmul) return false;
  const ir::weight& w = g.weights[static_cast<std::size_t>(nodes[head_of(g, nodes)].weights[0])];
  return kernels::has_dense_rows(*codec_of(w.type), w.columns);
}

/// A node that makes of what `n` reads, normalised as n would have it, the value that n reads from now on, which goes
/// behind the graph's.
constexpr node insert_in_front(ir::graph& g, node& n, kernels::kernel kernel, const ir::value& value) {
  const node made{.lowered = true,
                  .kernel = kernel,
                  .where = n.where,
                  .block = n.block,
                  .in = n.in,
                  .out = static_cast<ir::value_id>(g.values.size()),
                  .norm = n.norm,
                  .prologue = n.prologue,
                  .eps = n.eps};
  g.values.push_back(value);
  n.in = made.out;
  n.norm = ir::none;
  return made;
}

/// Products of one input by weights of several codecs, which stand one behind the other, read what was made for the
/// first where they want the same: the node that makes it, or nullptr.
/// @param n what a product would have in front of it
/// @param same whether a node's `weights[0]`, whose codec is asked for, means as much as n's
template <class Same>
constexpr const node* made_before(const std::vector<node>& nodes, const node& n, Same&& same) {
  for (const node& each : nodes)
    if (each.kernel == n.kernel && each.where == n.where && each.block == n.block && each.in == n.in &&
        each.norm == n.norm && each.eps == n.eps && each.prologue == n.prologue && each.top_k == n.top_k &&
        same(each.weights[0], n.weights[0]))
      return &each;
  return nullptr;
}
/// Puts in front of n what it reads, or has it read what is there.
template <class Same>
constexpr void push_behind(std::vector<node>& nodes, node& n, const node& made, Same&& same) {
  if (const node* const known = made_before(nodes, made, same)) n.in = known->out;
  else nodes.push_back(made);
}

/// Rows of a product's matrices, which stand together.
constexpr std::uint32_t rows_together(const ir::graph& g, const node& n) {
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < n.weight_count; ++i) rows += g.weights[static_cast<std::size_t>(n.weights[i])].rows;
  return rows;
}
/// In which order a product of this weight wants halves, where it may be one by fragments; `ir::none`: where it may
/// not.
constexpr kernels::halves_order order_of_halves(const ir::graph& g, ir::weight_id id) {
  return id == ir::none ? kernels::halves_order::rows
                        : kernels::fragment_order(*codec_of(g.weights[static_cast<std::size_t>(id)].type));
}

/// Where arithmetic is `halves` each product of coded weights reads what a node of its own in front of it made of the
/// input; in a chunk attention is that of halves too, in a batch a head of dense weights. Experts' products are not,
/// each token has others; nor are those by which they are chosen, which must be the same however a token comes.
constexpr void insert_halves(ir::graph& g, bool chunk, std::vector<node>& nodes) {
  bool coded = false;
  for (const node& n : nodes) coded = coded || (chunk && n.kernel == kernels::kernel::matmul);
  std::vector<node> out;
  for (node& n : nodes) {
    const std::uint32_t rows = rows_together(g, n);
    const bool head = !chunk && n.kernel == kernels::kernel::dense_matmul;
    const std::uint32_t columns =
        n.kernel == kernels::kernel::matmul || head ? g.values[static_cast<std::size_t>(n.in)].width : 0;
    if (n.kernel == kernels::kernel::attention && coded && n.head_dim <= 256 &&
        n.head_dim % (n.head_dim > 128 ? 32 : 16) == 0)
      n.kernel = kernels::kernel::attention_halves;
    bool chooses = false;
    for (const node& other : nodes) chooses = chooses || (other.kernel == kernels::kernel::route && other.in == n.out);
    if (columns == 0 || columns % kernels::chunk_columns != 0 || rows % 4 != 0 || n.experts != 0 || chooses) {
      out.push_back(n);
      continue;
    }
    node made =
        insert_in_front(g, n, kernels::kernel::halves,
                        {dtype::f16, columns + 2, n.where, text<32>{"halves"}});  // two more hold the token's factor
    made.rule = rule_index("halves");
    // Of chunks the codec is asked for, where the product may be one by fragments.
    if (chunk &&
        kernels::takes_fragments(*codec_of(g.weights[static_cast<std::size_t>(n.weights[0])].type), rows, columns))
      made.weights[0] = n.weights[0];
    if (head) made.prologue = kernels::prologue::norm;
    n.kernel = kernels::kernel::matmul_chunk;
    push_behind(out, n, made,
                [&](ir::weight_id a, ir::weight_id b) { return order_of_halves(g, a) == order_of_halves(g, b); });
    out.push_back(n);
  }
  nodes = std::move(out);
}

/// In a pass over a batch or drafts each product of weights of blocks reads what a node of its own made of the input:
/// workgroups that prepared eight tokens for themselves would take longer for that than for the product.
constexpr void insert_fixed(ir::graph& g, std::vector<node>& nodes) {
  std::vector<node> out;
  for (node& n : nodes) {
    const std::uint32_t rows = rows_together(g, n);
    const bool has_blocks = n.kernel == kernels::kernel::matmul &&
                            !kernels::is_dense(*codec_of(g.weights[static_cast<std::size_t>(n.weights[0])].type));
    if (has_blocks && n.experts == 0 && rows % 4 == 0) {
      node made = insert_in_front(g, n, kernels::kernel::fixed,
                                  {dtype::u32, kernels::fixed_words(g.values[static_cast<std::size_t>(n.in)].width),
                                   n.where, text<32>{"fixed"}});
      made.weights[0] = n.weights[0];  // none of its own: the codec is asked for
      n.kernel = kernels::kernel::matmul_few;
      push_behind(out, n, made, [&](ir::weight_id a, ir::weight_id b) {
        const auto tiled = [&](ir::weight_id id) {
          return kernels::wants_tiles(*codec_of(g.weights[static_cast<std::size_t>(id)].type), 8);
        };
        return tiled(a) == tiled(b);
      });
    }
    out.push_back(n);
  }
  nodes = std::move(out);
}

/// Rows of the lists of expert_tiles, where products take tiles of `tile`: longer where experts have enough tokens on
/// the average, for those by cooperative matrices.
constexpr std::uint32_t expert_list_tokens(std::uint32_t tile, std::uint32_t tokens, std::uint32_t experts,
                                           std::uint32_t top_k) {
  while (2 * tile <= 32 && std::uint64_t{2} * tile * experts <= std::uint64_t{tokens} * top_k) tile *= 2;
  return tile;
}

/// The same where arithmetic is `halves`, by whose tiles products take them: a list that is not full costs a tile, one
/// more list another read of the weights.
constexpr std::uint32_t expert_list_halves(std::uint32_t tokens, std::uint32_t experts, std::uint32_t top_k) {
  return std::uint64_t{96} * experts <= std::uint64_t{tokens} * top_k ? 128 : 64;
}

/// In a pass of several tokens an expert's weights are read once for a list of the tokens that have it: each product of
/// a choice reads lists that a node behind `route` makes. Weights of blocks meet what a node of its own made of the
/// input, where the profile has chunks by tiles.
/// @param tile tokens that share one read of the weights
/// @param halves arithmetic of a chunk: products read halves that stand in the lists' order
constexpr void group_by_expert(ir::graph& g, const profile& target, std::uint32_t tokens, std::uint32_t tile,
                               bool halves, std::vector<node>& nodes) {
  if (tokens == 1 || tile == 1) return;
  const auto weight_of = [&](const node& n) { return g.weights[static_cast<std::size_t>(n.weights[0])]; };
  const auto has_blocks = [&](const node& n) {
    return target.chunk_tiles && !kernels::is_dense(*codec_of(weight_of(n).type));
  };
  const auto multiplies = [](const node& n, ir::value_id choice) {
    return n.kernel == kernels::kernel::matmul && n.experts != 0 && n.choice == choice;
  };
  std::vector<node> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    node& n = nodes[i];
    if (n.kernel == kernels::kernel::route) {
      bool all_blocks = true, all_halves = halves;
      for (const node& other : nodes)
        if (multiplies(other, n.out)) {
          const ir::weight& w = weight_of(other);
          all_blocks = all_blocks && has_blocks(other);
          all_halves = all_halves && w.columns % kernels::chunk_columns == 0 && w.rows / n.experts % 4 == 0;
        }
      node lists{.lowered = true,
                 .kernel = kernels::kernel::expert_tiles,
                 .where = n.where,
                 .block = n.block,
                 .in = n.out,
                 .out = static_cast<ir::value_id>(g.values.size()),
                 .experts = n.experts,
                 .top_k = n.top_k,
                 .list_tokens = all_halves   ? expert_list_halves(tokens, n.experts, n.top_k)
                                : all_blocks ? expert_list_tokens(tile, tokens, n.experts, n.top_k)
                                             : tile};
      const std::uint32_t words =
          kernels::expert_tile_count(tokens, n.experts, n.top_k, lists.list_tokens) * (lists.list_tokens + 2);
      g.values.push_back({dtype::u32, (words + tokens - 1) / tokens, n.where, text<32>{"expert tiles"}});
      for (node& other : nodes)
        if (multiplies(other, n.out)) {
          other.choice = lists.out, other.list_tokens = lists.list_tokens;
          if (all_halves) other.kernel = kernels::kernel::matmul_chunk;
        }
      out.push_back(n);
      out.push_back(lists);
      continue;
    }
    if (n.kernel == kernels::kernel::matmul_chunk && n.list_tokens != 0) {
      const ir::weight& w = weight_of(n);
      const std::uint32_t rows = kernels::expert_tile_count(tokens, n.experts, n.top_k, n.list_tokens) * n.list_tokens;
      const std::uint64_t words = std::uint64_t{rows} * (w.columns + 2);  // two more hold the row's factor
      node made = insert_in_front(
          g, n, kernels::kernel::halves,
          {dtype::f16, static_cast<std::uint32_t>((words + tokens - 1) / tokens), n.where, text<32>{"halves"}});
      made.rule = rule_index("halves");
      made.choice = n.choice, made.list_tokens = n.list_tokens;
      made.experts = n.experts, made.top_k = n.top_k, made.columns = w.columns;
      if (kernels::takes_fragments(*codec_of(w.type), rows_together(g, n) / n.experts, w.columns))
        made.weights[0] = n.weights[0];
      push_behind(out, n, made,
                  [&](ir::weight_id a, ir::weight_id b) { return order_of_halves(g, a) == order_of_halves(g, b); });
    } else if (n.list_tokens != 0 && has_blocks(n)) {
      const std::uint32_t columns = weight_of(n).columns,
                          rows = g.values[static_cast<std::size_t>(n.in)].width / columns;
      node made = insert_in_front(g, n, kernels::kernel::fixed,
                                  {dtype::u32, rows * kernels::fixed_words(columns), n.where, text<32>{"fixed"}});
      made.top_k = rows;
      n.kernel = kernels::kernel::matmul_few;
      out.push_back(made);
    }
    out.push_back(n);
  }
  nodes = std::move(out);
}

/// In a pass over a few tokens, and in every pass of a CPU driver, the head of dense weights reads what a node of its
/// own normalised: its subgroups would do so for every four rows.
constexpr void insert_norm(ir::graph& g, std::vector<node>& nodes, kernels::kernel product, std::uint8_t rule) {
  const std::size_t at = nodes.empty() ? 0 : head_of(g, nodes);
  if (nodes.empty() || nodes[at].kernel != kernels::kernel::dense_matmul) return;
  node& head = nodes[at];
  const node made{.lowered = true,
                  .kernel = kernels::kernel::rms_norm,
                  .where = head.where,
                  .block = head.block,
                  .in = head.in,
                  .out = static_cast<ir::value_id>(g.values.size()),
                  .norm = head.norm,
                  .eps = head.eps};
  g.values.push_back(
      {dtype::f32, g.values[static_cast<std::size_t>(head.in)].width, head.where, text<32>{"normalised"}});
  head.kernel = product;
  head.in = made.out;
  head.norm = ir::none;
  if (rule != 0) head.rule = rule;
  nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(at), made);
}

/// Decode of a CPU driver, models that no cache holds: ternary products without loops, of what a node in front
/// quantised.
constexpr void straighten(ir::graph& g, const decoder_config& config, const profile& target, std::vector<node>& nodes) {
  if (std::uint64_t{config.hidden_size} * config.intermediate_size < target.straight_weights) return;
  std::vector<node> out;
  for (node& n : nodes) {
    const bool norms =
        n.kernel == kernels::kernel::ternary_matmul && n.prologue == kernels::prologue::norm_quantize && !n.walk;
    std::uint32_t rows = 0;
    for (std::uint32_t i = 0; norms && i < n.weight_count; ++i)
      rows += g.weights[static_cast<std::size_t>(n.weights[i])].rows;
    if (norms && kernels::has_ternary_rows(g.weights[static_cast<std::size_t>(n.weights[0])].columns, rows)) {
      const std::uint32_t columns = g.weights[static_cast<std::size_t>(n.weights[0])].columns;
      out.push_back(
          insert_in_front(g, n, kernels::kernel::norm_quantize, {dtype::i8, columns, n.where, text<32>{"quantised"}}));
      n.kernel = kernels::kernel::ternary_rows;
      n.rule = rule_index("straight");
      n.prologue = kernels::prologue::quantized;
    }
    out.push_back(n);
  }
  nodes = std::move(out);
}

constexpr void draft_sequence(const ir::graph& traced, const decoder_config& config, const profile& target,
                              std::uint32_t context, sequence_kind kind, weight_list& weights, drafted_sequence& out,
                              text<256>& failure) {
  fuser fusion{traced, {.norm_prologue = target.norm_prologue && kind.tokens == 1, .walks = kind.tokens == 1}};
  std::vector<node> nodes = fusion.run(failure);
  if (!failure.empty()) return;
  if (!kind.head)
    while (!nodes.empty() && nodes.back().where == ir::section::epilogue) nodes.pop_back();
  ir::graph g = traced;
  const bool few = is_few(target, kind.tokens, kind.batch.slot_count != 0);
  // Where the context has no whole tiles, matmul stays.
  const bool batch = kind.batch.slot_count != 0, chunk = !few && !batch &&
                                                         target.coded_chunks == chunk_arithmetic::halves &&
                                                         kind.tokens > target.tile_tokens;
  if (chunk || (batch && kind.batch.coded_products == chunk_arithmetic::halves)) insert_halves(g, chunk, nodes);
  else if (few && (batch || kind.tokens % target.tile_tokens == 0)) insert_fixed(g, nodes);
  const lowering_context c{config, target, kind.tokens, chunk_tokens(target, context), context, kind.batch};
  group_by_expert(g, target, kind.tokens, c.tile_tokens(), chunk, nodes);
  if (few) insert_norm(g, nodes, kernels::kernel::dense_few, 0);
  if (kind.tokens == 1 && kind.sampler) keep_traces(g, nodes, failure);
  if (kind.tokens == 1 && kind.batch.slot_count == 0 && target.straight) {
    straighten(g, config, target, nodes);
    if (has_rows(g, nodes)) insert_norm(g, nodes, kernels::kernel::dense_rows, rule_index("straight"));
  }
  if (!failure.empty()) return;
  join_walks(nodes, kind.tokens);
  check_sums(g, nodes, failure);
  if (!failure.empty()) return;
  if (kind.tokens == 1) split_sums(target, g, nodes);
  placement p = place(g, nodes, kind.tokens, failure);
  if (!failure.empty()) return;

  place_partials(nodes, c, p);
  place_walks(nodes, c, g, p);
  const auto head = static_cast<std::uint32_t>(nodes.size()) - 1;
  const bool decodes = kind.sampler && kind.tokens == 1,
             dense_head = nodes[head].kernel == kernels::kernel::dense_matmul;
  const bool screens = decodes && dense_head && target.head_screen && screenable(g, nodes[head]);
  const bool keeps_firsts =
      decodes && !screens && target.head_firsts && (dense_head || nodes[head].kernel == kernels::kernel::matmul);
  const std::uint32_t sampler = head + (screens ? 2 : 1);
  head_places places;
  const auto room = [&](std::string_view name, dtype type, std::uint32_t width, std::uint64_t bytes,
                        std::uint32_t first, std::uint32_t last) {
    placed_value value{text<32>{name}, type, width, 0, bytes, first, last};
    value.offset = first_fit(p.values, value);
    p.arena_bytes = (std::max)(p.arena_bytes, value.offset + aligned(bytes));
    p.values.push_back(value);
    return value.offset;
  };
  if (screens) {
    p.values[p.storage[static_cast<std::size_t>(g.output)]].last = sampler;
    places.y =
        room("normalised", dtype::f32, config.hidden_size, std::uint64_t{4} * config.hidden_size, head, head + 1);
    places.lowest = room("lowest of the largest", dtype::f32, target.head_groups, std::uint64_t{4} * target.head_groups,
                         head, head + 1);
  }
  if (screens || keeps_firsts)
    places.firsts =
        room("first tokens", dtype::u32, 2 * target.head_groups, std::uint64_t{8} * target.head_groups, head, sampler);
  lowering lower{g, p, c, weights};
  std::vector<dispatch> prologue, period, epilogue;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    (nodes[i].where == ir::section::prologue ? prologue
     : nodes[i].where == ir::section::period ? period
                                             : epilogue)
        .push_back(lower.lower(nodes[i], i));
  if (screens) {
    const auto two = lower.screened(nodes[head], epilogue.back(), places);
    epilogue.pop_back();
    for (const auto& each : two) epilogue.push_back(each);
  } else if (keeps_firsts) {
    lower.keep_firsts(epilogue.back(), places.firsts);
  }
  out.residual_offset = p.offset(g.stream_out);
  if (kind.head) out.logits_offset = p.offset(g.output);
  if (kind.sampler) {
    const bool drafts = kind.tokens > 1 && kind.batch.slot_count == 0;
    const std::uint64_t scratch =
        room("sample scratch", dtype::u32,
             static_cast<std::uint32_t>(kernels::sample_scratch_bytes(config.vocab_size, c.sample_slice()) / 4),
             kernels::sample_scratch_bytes(config.vocab_size, c.sample_slice()) * kind.tokens, sampler, sampler);
    const std::uint64_t drawn =
        drafts ? room("drawn tokens", dtype::u32, 1, std::uint64_t{4} * kind.tokens, sampler, sampler + 1) : 0;
    epilogue.push_back(lower.sampler(epilogue.back(), out.logits_offset, scratch, drawn));
    if (drafts) epilogue.push_back(lower.acceptor(drawn));
  }
  order(prologue, period, epilogue, g.pattern, g.layers);
  out.prologue.assign(prologue, "dispatches before the layers", failure);
  out.period.assign(period, "dispatches in a period", failure);
  out.epilogue.assign(epilogue, "dispatches after the layers", failure);
  out.values.assign(p.values, "values", failure);
  out.arena_bytes = p.arena_bytes;
  out.has_head = kind.head;
  out.has_sampler = kind.sampler;
}

/// False where the layers have steps that no resident dispatch has.
constexpr bool has_resident_steps(const drafted_sequence& chain) {
  for (const dispatch& each : chain.period.all())
    if ((each.kernel == kernels::kernel::turn &&
         kernels::constants_of<kernels::turn_kernel>(each.specialization).v_norm != 0) ||
        (each.kernel == kernels::kernel::norm_add &&
         kernels::constants_of<kernels::norm_add_kernel>(each.specialization).scaled != 0))
      return false;
  return true;
}

/// Leaves `out` empty where the model's decode pass is none that all layers in one dispatch can do.
constexpr void draft_in_one(const decoder_config& config, const profile& target, std::uint32_t context,
                            const drafted_sequence& chain, const layer_pattern& pattern, drafted_sequence& out,
                            text<256>& failure) {
  for (const dispatch& each : chain.epilogue.all())
    if (each.kernel == kernels::kernel::walk_trace) return;  // it keeps no gates
  if (!has_resident_steps(chain)) return;
  const auto list = [](const auto& part) { return std::vector<dispatch>(part.all().begin(), part.all().end()); };
  table sizes;
  sizes.config = &config, sizes.context = context, sizes.max_tokens = chunk_tokens(target, context);
  const auto take = [&](const layers_in_one& made) {
    out.prologue.assign(made.prologue, "dispatches before the layers", failure);
    out.period.assign(made.period, "dispatches in a period", failure);
    out.epilogue.assign(made.epilogue, "dispatches after the layers", failure);
    out.in_one.assign(made.in_one, "dispatches of all layers", failure);
    out.in_one_long.assign(made.in_one_long, "dispatches of all layers over long contexts", failure);
    out.long_from = made.long_from;
    out.arguments.assign(made.arguments, "arguments of a layer", failure);
    out.values.assign(made.values, "values", failure);
    out.arena_bytes = made.arena_bytes;
    out.residual_offset = made.residual_offset;
    out.logits_offset = made.logits_offset;
    out.blank_offset = made.blank_offset;
    out.blank_bytes = made.blank_bytes;
    out.has_head = out.has_sampler = true;
  };
  layers_in_one ternary{config, target, context, sizes.progress_offset()};
  if (ternary.make(list(chain.prologue), list(chain.period), list(chain.epilogue))) return take(ternary);
  coded_layers_in_one coded{config, target, context, sizes.progress_offset(), pattern};
  if (coded.make(list(chain.prologue), list(chain.period), list(chain.epilogue))) take(coded);
}

/// The config's own sense, before any graph is made of it.
constexpr void check_config(const decoder_config& c, std::uint32_t context, const profile& target, text<256>& failure) {
  auto refuse = [&](auto... parts) {
    if (failure.empty()) (failure.append(parts), ...);
  };
  if (context == 0 || context > c.max_position_embeddings)
    refuse("context: expected 1 to max_position_embeddings ", c.max_position_embeddings, ", found ", context);
  if (c.vocab_size > kernels::largest_vocabulary)
    refuse("vocab_size: expected at most ", kernels::largest_vocabulary, ", which the sampler can sum up, found ",
           c.vocab_size);
  if (target.prefill_tokens == 0 || target.logits_tokens == 0)
    refuse("profile ", target.name, ": prefill_tokens and logits_tokens: expected at least 1, found ",
           target.prefill_tokens, " and ", target.logits_tokens);
  if (target.tile_tokens == 0 || target.prefill_tokens % (target.tile_tokens == 0 ? 1 : target.tile_tokens) != 0)
    refuse("profile ", target.name, ": prefill_tokens: expected a multiple of tile_tokens ", target.tile_tokens,
           ", found ", target.prefill_tokens);
  if (target.ternary_tile_tokens == 0 || target.ternary_tile_tokens > kernels::most_ternary_tile_tokens)
    refuse("profile ", target.name, ": ternary_tile_tokens: expected 1 to ", kernels::most_ternary_tile_tokens,
           ", found ", target.ternary_tile_tokens);
}

enum class sequence_id : std::uint8_t { decode, prefill, logits, verify };
constexpr sequence_kind kind_of(sequence_id which, const profile& target, std::uint32_t context) {
  switch (which) {
    case sequence_id::prefill:
      return {chunk_tokens(target, context), false, false};
    case sequence_id::logits:
      return {logits_tokens(target, context), true, false};
    case sequence_id::verify:
      return {verify_tokens(target, context), true, true};
    default:
      return {1, true, true};
  }
}

/// @param before the draft of the sequence before in sequence_id's order; nullptr for the first
constexpr draft draft_graph(const ir::graph& g, const decoder_config& config, const profile& target,
                            std::uint32_t context, sequence_id which, const draft* before) {
  draft out;
  weight_list weights;
  if (before != nullptr) {
    out.failure = before->failure;
    for (const weight& each : before->weights.all()) weights.weights.push_back(each);
    weights.global_bytes = before->global_weight_bytes;
    weights.layer_bytes = before->layer_weight_bytes;
  } else {
    check_config(config, context, target, out.failure);
    if (out.failure.empty()) out.failure = g.failure;
    if (out.failure.empty() && g.output == ir::none)
      out.failure.append("graph: expected an lm_head at its end, found none");
    if (out.failure.empty() && g.layers == 0)
      out.failure.append("graph: expected a repeat around the blocks of a model, found none");
  }
  if (!out.failure.empty()) return out;
  const sequence_kind kind = kind_of(which, target, context);
  // Drafts that are not taken would have to leave no trace in what recurrent layers keep: those models have no pass
  // over any.
  if (which != sequence_id::verify || (kind.tokens > 1 && !is_recurrent(g)))
    draft_sequence(g, config, target, context, kind, weights, out.sequence, out.failure);
  if (!out.failure.empty()) return out;
  out.weights.assign(weights.weights, "weights", out.failure);
  out.global_weight_bytes = weights.global_bytes;
  out.layer_weight_bytes = weights.layer_bytes;
  out.pattern = g.pattern;
  const lowering_context sizes{config, target, 1, chunk_tokens(target, context), context};
  for (const auto& o : g.ops)
    if (o.kind == ir::op_kind::attention && o.head_dim > kernels::most_head_dim && out.failure.empty())
      out.failure.append(o.layer.view(), ": expected heads of at most ", kernels::most_head_dim, " channels, found ",
                         o.head_dim);
  for (const auto& o : g.ops) {  // a layer's attention is behind what writes its cache, where something does
    if (o.kind != ir::op_kind::cache_write && (o.kind != ir::op_kind::attention || out.caches[o.block].positions != 0))
      continue;
    out.caches[o.block] = cache_for(o.kv_heads, o.head_dim, sizes.cache_positions(o.window), o.window, target);
    out.caches[o.block].shared = o.kind == ir::op_kind::attention;
  }
  for (const auto& o : g.ops)
    if (o.where == ir::section::period) out.caches[o.block].kept_bytes += kept_bytes(g, o);
  for (std::uint32_t layer = 0; layer < g.layers; ++layer)
    if (out.caches[g.pattern(layer)].shared && cache_owner(g.pattern, out.caches, layer) == layer &&
        out.failure.empty())
      out.failure.append("self_attention: expected a layer before layer ", layer,
                         " with keys and values as wide and as many as it shares, found none");
  return out;
}

template <engravable Model>
constexpr draft make_draft(const profile& target, std::uint32_t context, sequence_id which, const draft* before) {
  return draft_graph(ir::traced<Model>(), Model::config, target, context, which, before);
}

/// The table but for its sequences, weights and hash.
constexpr table table_of(const draft& from, const decoder_config& config, std::string_view model, const profile& target,
                         std::uint32_t context) {
  table t;
  t.model = model;
  t.profile = target.name;
  t.classes = target.classes;
  t.config = &config;
  t.global_weight_bytes = from.global_weight_bytes;
  t.layer_weight_bytes = from.layer_weight_bytes;
  t.context = context;
  t.max_tokens = chunk_tokens(target, context);
  t.ring_size = target.ring_size;
  t.cache_element = target.cache_element;
  t.pattern = from.pattern;
  t.caches = from.caches;
  return t;
}

/// The name that a model's type has, if any.
template <class Model>
constexpr std::string_view name_of() {
  if constexpr (requires {
                  { Model::name } -> std::convertible_to<std::string_view>;
                })
    return Model::name;
  else return {};
}

/// Arrays of exactly the size that a drafted sequence needs: what the program carries.
template <std::size_t Prologue, std::size_t Period, std::size_t Epilogue, std::size_t Values, std::size_t InOne = 0,
          std::size_t InOneLong = 0, std::size_t Arguments = 0>
struct frozen_sequence {
  std::array<dispatch, Prologue> prologue{};
  std::array<dispatch, Period> period{};
  std::array<dispatch, Epilogue> epilogue{};
  std::array<placed_value, Values> values{};
  std::array<dispatch, InOne> in_one{};
  std::array<dispatch, InOneLong> in_one_long{};
  std::array<operand, Arguments> arguments{};

  constexpr explicit frozen_sequence(const drafted_sequence& from) {
    for (std::size_t i = 0; i < Prologue; ++i) prologue[i] = from.prologue.items[i];
    for (std::size_t i = 0; i < Period; ++i) period[i] = from.period.items[i];
    for (std::size_t i = 0; i < Epilogue; ++i) epilogue[i] = from.epilogue.items[i];
    for (std::size_t i = 0; i < Values; ++i) values[i] = from.values.items[i];
    for (std::size_t i = 0; i < InOne; ++i) in_one[i] = from.in_one.items[i];
    for (std::size_t i = 0; i < InOneLong; ++i) in_one_long[i] = from.in_one_long.items[i];
    for (std::size_t i = 0; i < Arguments; ++i) arguments[i] = from.arguments.items[i];
  }
};

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

/// Changes with anything that changes a pipeline, the recorded commands, or how weights lie in memory; names count for
/// nothing.
constexpr std::uint64_t hash_of(const table& t) {
  std::uint64_t hash = 0;
  const auto mix = [&](auto... words) { ((hash = mixed(hash, static_cast<std::uint64_t>(words))), ...); };
  mix(t.context, t.max_tokens, t.ring_size, t.cache_element, t.global_weight_bytes, t.layer_weight_bytes,
      t.pattern.period);
  for (std::uint32_t i = 0; i < t.pattern.period; ++i) {
    const layer_cache cache = i < t.caches.size() ? t.caches[i] : layer_cache{};
    mix(t.pattern.blocks[i], cache.positions, cache.window, cache.key_bytes, cache.value_bytes);
    if (cache.kept_bytes != 0) mix(cache.kept_bytes);
    if (cache.shared) mix(1);
  }
  const std::uint64_t every_kind = ~std::uint64_t{0} >> (64 - t.pattern.kinds());
  for (const weight& w : t.weights) {
    mix(w.source_count, w.per_layer, w.layout, w.order, w.codec, w.head_dim, w.rows, w.columns, w.offset, w.bytes);
    for (const auto rows : w.source_rows) mix(rows);
    if (w.per_layer && (w.kinds & every_kind) != every_kind) mix(w.kinds);
    if (w.scale != 1.f) mix(std::bit_cast<std::uint32_t>(w.scale));
    if (w.rope.no_rope_interval != 0) mix(w.rope.no_rope_interval);
    if (w.rope.turning_pairs != 0) mix(w.rope.turning_pairs);
    if (!w.rope.scaling.truncate) mix(1);
    if (w.rope.rotary_dim != 0 || w.rope.long_context) mix(w.rope.rotary_dim, w.rope.long_context);
    if (w.layout == weight_layout::rope_turns)
      mix(std::bit_cast<std::uint32_t>(w.rope.theta), w.rope.scaling.type,
          std::bit_cast<std::uint32_t>(w.rope.scaling.factor),
          std::bit_cast<std::uint32_t>(w.rope.scaling.low_freq_factor),
          std::bit_cast<std::uint32_t>(w.rope.scaling.high_freq_factor),
          w.rope.scaling.original_max_position_embeddings);
  }
  for (const sequence* s :
       {&t.decode, &t.prefill, &t.logits, &t.verify, &t.decode_in_one, &t.batch, &t.batch_in_one, &t.moves}) {
    if (s->batched) mix(t.shape.slot_count, t.shape.page_size, t.shape.pages);
    else if (s == &t.batch || s == &t.batch_in_one || s == &t.moves) continue;
    mix(s->max_tokens, s->layers, s->arena_bytes, s->residual_offset, s->logits_offset, s->blank_offset, s->blank_bytes,
        s->long_from, s->has_head, s->has_sampler);
    for (const auto part : {s->prologue, s->period, s->epilogue, s->in_one, s->in_one_long}) {
      mix(part.size());
      for (const auto& d : part) {
        mix(static_cast<std::uint64_t>(d.kernel) | std::uint64_t{d.subgroups} << 8 | std::uint64_t{d.barrier} << 40 |
            std::uint64_t{d.block} << 48);
        mix(d.activation == nullptr ? 0 : d.activation->hash());
        for (const auto word : d.groups) mix(word);
        mix(d.least_groups);
        for (const auto word : d.specialization) mix(word);
        for (const auto& each : d.push)
          mix(static_cast<std::uint64_t>(each.where) | std::uint64_t{each.slot} << 8, each.offset, each.layer_stride);
      }
    }
  }
  return hash;
}

/// A model's plan for one profile. `table` is all that run time needs.
/// @error does not fit: one sentence that names the layer, what was expected and what was found
template <engravable Model, const profile& Profile, std::uint32_t Context = Model::config.max_position_embeddings>
struct engraved {
 private:
  template <engravable, const profile&, batch_shape, std::uint32_t>
  friend struct engraved_batch;

  static constexpr draft decode = make_draft<Model>(Profile, Context, sequence_id::decode, nullptr);
  static constexpr draft prefill = make_draft<Model>(Profile, Context, sequence_id::prefill, &decode);
  static constexpr draft logits = make_draft<Model>(Profile, Context, sequence_id::logits, &prefill);
  static constexpr draft drafted = make_draft<Model>(Profile, Context, sequence_id::verify, &logits);
  static constexpr draft in_one = [] {
    draft out;
    out.failure = drafted.failure;
    if (out.failure.empty())
      draft_in_one(Model::config, Profile, Context, decode.sequence, decode.pattern, out.sequence, out.failure);
    return out;
  }();

  template <const draft& Part>
  static constexpr frozen_sequence<Part.sequence.prologue.size, Part.sequence.period.size, Part.sequence.epilogue.size,
                                   Part.sequence.values.size, Part.sequence.in_one.size, Part.sequence.in_one_long.size,
                                   Part.sequence.arguments.size>
      frozen{Part.sequence};

  static constexpr auto weights = [] {
    std::array<weight, drafted.weights.size> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = drafted.weights.items[i];
    return out;
  }();

  static constexpr sequence view(std::string_view name, std::uint32_t tokens, const drafted_sequence& from,
                                 const auto& f) {
    return {name,
            tokens,
            Model::config.num_hidden_layers,
            drafted.pattern,
            f.prologue,
            f.period,
            f.epilogue,
            f.in_one,
            f.in_one_long,
            from.long_from,
            f.arguments,
            from.blank_offset,
            from.blank_bytes,
            f.values,
            from.arena_bytes,
            from.residual_offset,
            from.logits_offset,
            from.has_head,
            from.has_sampler};
  }

  static constexpr plan::table make_table() {
    plan::table t = table_of(drafted, Model::config, name_of<Model>(), Profile, Context);
    t.weights = weights;
    t.decode = view("decode", 1, decode.sequence, frozen<decode>);
    t.trace = trace_of(t.decode);
    t.prefill = view("prefill", chunk_tokens(Profile, Context), prefill.sequence, frozen<prefill>);
    t.logits = view("logits", logits_tokens(Profile, Context), logits.sequence, frozen<logits>);
    if constexpr (drafted.sequence.has_head)
      t.verify = view("verify", verify_tokens(Profile, Context), drafted.sequence, frozen<drafted>);
    if constexpr (in_one.sequence.in_one.size != 0)
      t.decode_in_one = view("decode_in_one", 1, in_one.sequence, frozen<in_one>);
    t.hash = hash_of(t);
    return t;
  }

  static_assert(fits_together<in_one.failure>::model_fits, "intaglio: the model does not fit together");

 public:
  static constexpr plan::table table = make_table();
  static_assert(proven<verify_weights(table)>::model_fits, "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::decode)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::prefill)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::logits)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::verify)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::decode_in_one)>::model_fits,
                "intaglio: the plan cannot be proven");
};

}  // namespace intaglio::plan
