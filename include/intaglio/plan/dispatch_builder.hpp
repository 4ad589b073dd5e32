// SPDX-License-Identifier: MIT
// Builds one dispatch: binds its operands with their accesses, sets its constants and adds its weights.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/kept_state.hpp"
#include "intaglio/plan/lowering_context.hpp"
#include "intaglio/plan/place.hpp"
#include "intaglio/plan/weight_list.hpp"

namespace intaglio::plan {

/// Builds one dispatch; the base of every kernel's lowering.
class dispatch_builder {
 public:
  /// @param index of the node in the sequence, or 0
  constexpr dispatch_builder(const ir::graph& g, const placement& p, const lowering_context& c, weight_list& weights,
                             std::size_t index = 0)
      : graph_(g), placement_(p), c_(c), weights_(weights), index_(index) {}
  constexpr void begin(dispatch& d) { d_ = &d; }

 protected:
  /// Offset of the partial results that the workgroups of this node's dispatch exchange.
  constexpr std::uint64_t partials() const { return placement_.partials[index_]; }
  constexpr std::uint64_t counters_offset() const { return c_.state_bytes(); }
  constexpr const ir::weight& tensor(ir::weight_id id) const { return graph_.weights[static_cast<std::size_t>(id)]; }
  constexpr std::uint32_t width(ir::value_id id) const { return graph_.values[static_cast<std::size_t>(id)].width; }

  constexpr void note(operand where, std::uint64_t bytes, bool write) {
    d_->accesses[d_->access_count++] = {where.where, write, where.slot, where.offset, bytes, where.layer_stride};
  }
  constexpr void bind(kernels::push_id at, operand where, std::uint64_t bytes, bool write) {
    (*d_)[at] = where;
    note(where, bytes, write);
  }
  constexpr void bind_value(kernels::push_id at, ir::value_id id, bool write) {
    const placed_value& v = placement_.values[placement_.storage[static_cast<std::size_t>(id)]];
    if (v.layer_stride != 0)
      return bind(at, {region::arena, 0, v.offset, v.layer_stride},
                  std::uint64_t{c_.tokens} * v.width * info(v.type).block_bytes, write);
    bind(at, {region::arena, 0, v.offset}, v.type == dtype::i8 ? std::uint64_t{c_.tokens} * v.width : v.bytes, write);
  }
  /// Binds a value of all layers that is read after the last layer. @return words from one layer to the next
  constexpr std::uint32_t bind_layers(kernels::push_id at, ir::value_id id) {
    const placed_value& v = placement_.values[placement_.storage[static_cast<std::size_t>(id)]];
    bind(at, {region::arena, 0, v.offset},
         (graph_.layers - 1) * v.layer_stride + std::uint64_t{c_.tokens} * v.width * info(v.type).block_bytes, false);
    return static_cast<std::uint32_t>(v.layer_stride / 4);
  }
  /// Binds the current layer's part, to be read, of a value [tokens, layers, part].
  constexpr void bind_of_layer(kernels::push_id at, ir::value_id id, std::uint32_t part) {
    bind(at, {region::arena, 0, placement_.offset(id), std::uint64_t{4} * part},
         std::uint64_t{4} * (std::uint64_t{c_.tokens - 1} * width(id) + part), false);
  }
  constexpr void bind_factors(kernels::push_id at, ir::value_id id, bool write) {
    bind(at, {region::arena, 0, placement_.offset(id) + factors_offset(c_.tokens, width(id))},
         std::uint64_t{8} * c_.tokens, write);
  }
  constexpr void bind_state(kernels::push_id at) {
    bind(at, {region::state, 0, 0}, c_.batched() ? c_.state_bytes() : 16 * 4, false);
  }
  constexpr void bind_weight(kernels::push_id at, weight w) {
    if (w.per_layer) w.kinds = std::uint64_t{1} << d_->block;
    bind(at, {region::weight, weights_.slot(w), 0}, w.bytes, false);
    d_->weight_bytes += w.bytes;
  }

  /// @param factor a single number that is stored after the norm's weight, or none
  constexpr void bind_norm(kernels::push_id at, ir::weight_id id, ir::weight_id factor = ir::none) {
    const ir::weight& t = tensor(id);
    if (factor != ir::none) return bind_vectors(at, std::array{id, factor});
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = weight_layout::vector_f32,
             .scale = t.scale,
             .columns = t.columns,
             .bytes = std::uint64_t{4} * t.columns};
    w.sources[0] = t.name;
    w.rows = 1;
    w.source_rows[0] = 1;
    bind_weight(at, w);
  }
  /// Binds the norm in front of a product. Kernels without that operand are never given one.
  template <class Push>
  constexpr void bind_norm_before([[maybe_unused]] const Push& at, const node& n) {
    if constexpr (requires { at.norm_weight; })
      if (n.norm != ir::none) bind_norm(at.norm_weight, n.norm);
  }
  /// Binds several vectors that are stored one after the other.
  constexpr void bind_vectors(kernels::push_id at, std::span<const ir::weight_id> ids) {
    weight w{.source_count = static_cast<std::uint8_t>(ids.size()),
             .per_layer = tensor(ids[0]).where == ir::section::period,
             .layout = weight_layout::vector_f32,
             .rows = 1};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      w.sources[i] = tensor(ids[i]).name;
      w.source_rows[i] = tensor(ids[i]).columns;
      w.columns += w.source_rows[i];
    }
    w.bytes = std::uint64_t{4} * w.columns;
    bind_weight(at, w);
  }

  /// Binds the recurrent state of a node's first op; in a batch each slot has its own.
  template <class Constants>
  constexpr void bind_kept(kernels::push_id at, Constants& k, const node& n) {
    const std::uint64_t slot = c_.batched() ? kept_of_block(graph_, graph_.ops[n.ops[0]].block) : 0,
                        after = c_.batched() ? (c_.batch.slot_count - 1) * slot : 0;
    bind(at, {region::kept, 0, kept_offset(graph_, n.ops[0])}, after + kept_bytes(graph_, graph_.ops[n.ops[0]]), true);
    if (!c_.batched()) return;
    k.slot_words = c_.slot_words();
    k.slot_floats = static_cast<std::uint32_t>(slot / 4);
  }

  /// Binds the cache of a layer with the node's window.
  template <class Push, class Constants>
  constexpr void bind_cache(const Push& at, Constants& k, const node& n, bool write) {
    const std::uint32_t positions = c_.cache_positions(n.window);
    // With a latent vector the heads that turn rotates are the last channels of keys.
    const std::uint32_t key_dim = n.head_dim + (n.kernel == kernels::kernel::turn ? n.value_dim : 0);
    const layer_cache cache = cache_for(n.kv_heads, key_dim, n.value_dim, positions, n.window, c_.target);
    bind(at.keys, {c_.batched() ? region::pool_keys : region::keys, 0, 0}, cache.key_bytes, write);
    bind(at.values, {c_.batched() ? region::pool_values : region::values, 0, 0}, cache.value_bytes, write);
    set_slots(k);
    k.context = positions;
    k.cache_element = c_.target.cache_element;
    if constexpr (requires { &Constants::ring; }) k.ring = c_.is_ring(n.window) ? 1u : 0u;
  }
  template <class Constants>
  constexpr void set_slots(Constants& k) {
    if (!c_.batched()) return;
    if constexpr (requires { &Constants::slot_words; }) {
      k.slot_words = c_.slot_words();
      k.page_size = c_.batch.page_size;
    }
  }
  constexpr void bind_rope(kernels::push_id at, const node& n) {
    rope_parameters how = n.rope;
    how.long_context =
        how.scaling.type == rope_type::longrope && c_.context > how.scaling.original_max_position_embeddings;
    bind_weight(at, {.per_layer = n.rope.no_rope_interval != 0,
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

  /// The weight of one tensor. It is row-major if its codec has no blocks and its rows need no padding.
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
  /// The stacked tensors of a product, in the row order that its epilogue needs.
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

  /// The number of workgroups that have enough work, because every one of them normalises the input. It is a power of
  /// two, since CPU drivers assign workgroups to their threads in equal portions.
  constexpr std::uint32_t enough_groups(std::uint32_t most, const weight& w) const {
    return plan::enough_groups(c_.target, most, std::uint64_t{w.rows} * w.columns);
  }

  /// Most lists of expert_tiles that a product reads.
  constexpr std::uint32_t lists(const node& n) const {
    return kernels::expert_tile_count(c_.tokens, n.experts, n.top_k, n.list_tokens);
  }
  constexpr std::uint64_t list_bytes(const node& n) const { return std::uint64_t{4} * lists(n) * (n.list_tokens + 2); }

  /// A small batch leaves most of the device idle, so workgroups are wider.
  constexpr std::uint32_t norm_subgroups() const {
    return is_small_batch(c_.target, c_.tokens, c_.batched()) ? 2 * c_.target.work.norm_subgroups
                                                              : c_.target.work.norm_subgroups;
  }

  /// Binds f16 rows of a value and, stored after them, the rows' factors.
  /// @param rows of the input, or of lists of experts
  constexpr void bind_f16(kernels::push_id values, kernels::push_id factors, ir::value_id id, std::uint32_t columns,
                          std::uint32_t rows, bool write) {
    const std::uint64_t at = placement_.offset(id), bytes = std::uint64_t{2} * rows * columns;
    bind(values, {region::arena, 0, at}, bytes, write);
    bind(factors, {region::arena, 0, at + bytes}, std::uint64_t{4} * rows, write);
  }

  const ir::graph& graph_;
  const placement& placement_;
  const lowering_context& c_;
  weight_list& weights_;
  std::size_t index_;
  dispatch* d_ = nullptr;
};

/// How a node becomes a dispatch of a kernel: a dispatch_builder with `lower(const node&)`, which fills in `k`, the
/// kernel's specialization constants. Each kernel's specialisation is in plan/lowering/.
template <class Kernel>
struct lowering_of;
/// Base of lowerings of kernels whose dispatches are not made from a node.
struct not_of_nodes {};
/// Kernels whose dispatches are made from nodes. A resident kernel's dispatch is made from a chain instead
/// (plan/resident.hpp).
template <class Kernel>
concept of_nodes = !kernels::all_layers<Kernel> && !std::is_base_of_v<not_of_nodes, lowering_of<Kernel>>;

}  // namespace intaglio::plan
