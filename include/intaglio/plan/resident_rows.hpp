// SPDX-License-Identifier: MIT
// Batch passes with the resident dispatch, beside the chain of dispatches, where the kernel computes each block
// (kernels::layers_rows_interface).
#pragma once

#include <string_view>
#include <vector>

#include "intaglio/plan/draft.hpp"
#include "intaglio/plan/resident.hpp"

namespace intaglio::plan {

/// The common part of the resident batch kernels' sequences.
class resident_batch_layers {
 public:
  constexpr resident_batch_layers(const decoder_config& config, const profile& target, const batch_shape& shape,
                                  std::uint64_t counters_end, const layer_pattern& pattern,
                                  const drafted_sequence& chain)
      : config_(config), target_(target), shape_(shape), counters_end_(counters_end), pattern_(pattern), chain_(chain) {
  }

 protected:
  using kernel = kernels::kernel;

  static constexpr auto at_quantize = kernels::push_ids<kernels::quantize_f16_kernel>;
  static constexpr auto at_product = kernels::push_ids<kernels::matmul_chunk_kernel>;

  constexpr const dispatch& step(std::size_t index) const { return chain_.period.items[index]; }
  /// Whether the profile has resident workgroups, which wait for each other.
  constexpr bool waits() const { return target_.work.layers_parts != 0 && target_.work.layers_subgroups > 1; }

  static constexpr bool attends(const dispatch& d, bool has_window = false) {
    if (d.kernel != kernel::attention_batch || !has_plain_scores(d)) return false;
    const auto c = of_attention(d);
    return c.cache_element == kernels::element::f16 && (c.window != 0) == has_window && c.ring == 0;
  }
  static constexpr kernels::attention_batch_kernel::constants of_attention(const dispatch& d) {
    return constants_of<kernels::attention_batch_kernel>(d);
  }
  /// prepares(): converts a product's input to f16. multiplies(): a product of f16.
  static constexpr bool prepares(const dispatch& d, bool normalises, std::uint32_t width, float eps) {
    if (d.kernel != kernel::quantize_f16) return false;
    const auto c = of_quantize(d);
    return c.width == width && c.prologue == (normalises ? kernels::prologue::norm : kernels::prologue::plain) &&
           (!normalises || c.eps == eps);
  }
  static constexpr bool multiplies(const dispatch& d, kernels::epilogue how, std::uint32_t columns, std::uint32_t rows,
                                   kernels::codec codec) {
    if (d.kernel != kernel::matmul_chunk) return false;
    const auto c = of_product(d);
    return c.epilogue == how && c.columns == columns && c.rows == rows && c.codec == codec;
  }
  static constexpr kernels::quantize_f16_kernel::constants of_quantize(const dispatch& d) {
    return constants_of<kernels::quantize_f16_kernel>(d);
  }
  static constexpr kernels::matmul_chunk_kernel::constants of_product(const dispatch& d) {
    return constants_of<kernels::matmul_chunk_kernel>(d);
  }

  /// The resident dispatch, with the constants that all such kernels have.
  /// @param stream the value that the layers update
  /// @param attention of the chain  @param write_caches of the chain, one of each kind of block
  template <class Kernel>
  constexpr dispatch dispatch_of_all(std::uint32_t subgroups, std::uint32_t parts, const operand& stream,
                                     const dispatch& attention,
                                     const std::vector<const dispatch*>& write_caches) const {
    dispatch d = bare_dispatch(Kernel::id, subgroups, parts, stream, write_caches);
    constexpr auto at = kernels::push_ids<Kernel>;
    d[at.arguments] = {region::arguments};
    d[at.progress] = {region::state, 0, counters_end_};
    d[at.state] = {region::state};
    const auto attends = of_attention(attention);
    change_constants<Kernel>(d, [&](auto& c) {
      c.hidden_size = config_.hidden_size;
      c.intermediate_size = config_.intermediate_size;
      c.layers = config_.num_hidden_layers;
      c.spin_limit = resident_spin_limit;
      c.head_dim = config_.head_dim;
      c.heads = config_.num_attention_heads;
      c.kv_heads = config_.num_key_value_heads;
      c.context = attends.context, c.scale = attends.scale;
      c.slot_words = attends.slot_words, c.page_size = attends.page_size;
      c.parts = parts;
      if constexpr (requires { c.slot_count; }) c.slot_count = shape_.slot_count;
    });
    return d;
  }

  /// The chain's sequence with the resident dispatch, whose workgroups exchange `exchange_bytes` bytes a layer, stored
  /// after the chain's arena.
  constexpr drafted_sequence with(dispatch all, std::vector<operand> arguments, std::uint64_t exchange_bytes,
                                  text<256>& failure) const {
    drafted_sequence out = chain_;
    const std::uint64_t each = aligned(exchange_bytes);
    out.blank_offset = aligned(chain_.arena_bytes);
    out.blank_bytes = each * config_.num_hidden_layers;
    out.arena_bytes = out.blank_offset + out.blank_bytes;
    for (std::size_t kind = 0; kind < arguments.size(); kind += kernels::layers::argument_count)
      arguments[kind] = {region::arena, 0, out.blank_offset, each};
    all.accesses[all.access_count++] = {region::arena, true, 0, out.blank_offset, out.blank_bytes};
    out.arguments.assign(arguments, "arguments of a layer", failure);
    const std::vector<dispatch> dispatches{all};
    out.resident.assign(dispatches, "dispatches of all layers", failure);
    blank_beside(out);
    return out;
  }

  const decoder_config& config_;
  const profile& target_;
  const batch_shape& shape_;
  std::uint64_t counters_end_;
  layer_pattern pattern_;
  const drafted_sequence& chain_;

 private:
  /// The resident dispatch without operands and constants.
  constexpr dispatch bare_dispatch(kernel which, std::uint32_t subgroups, std::uint32_t parts, const operand& stream,
                                   const std::vector<const dispatch*>& write_caches) const {
    dispatch d{.kernel = which, .barrier = true, .subgroups = subgroups};
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    note(region::arguments, false, 0, kernels::layers::argument_bytes(config_.num_hidden_layers));
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, counters_end_);
    note(region::arena, true, stream.offset, std::uint64_t{4} * shape_.slot_count * config_.hidden_size);
    for (const dispatch* writes : write_caches)
      for (std::size_t i = 0; i < writes->access_count; ++i)
        if (const access& a = writes->accesses[i]; a.where == region::pool_keys || a.where == region::pool_values)
          d.accesses[d.access_count++] = {a.where, true, a.slot, 0, a.bytes};
    d.groups = {parts, 1, 1};
    if (has_helpers(d)) d.groups[0] += kernels::layers_batch::helpers(parts, target_.work.layers_parts);
    const std::size_t steps = chain_.period.size / pattern_.kinds();
    for (std::size_t i = 0; i < chain_.period.size; ++i)
      d.weight_bytes +=
          pattern_.count(static_cast<std::uint8_t>(i / steps), config_.num_hidden_layers) * step(i).weight_bytes;
    return d;
  }
  /// Has the embedding fill the exchange with the unwritten pattern, with four times as many workgroups as the resident
  /// dispatch has. For layers_batch it fills only the first layers.
  constexpr void blank_beside(drafted_sequence& of) const {
    dispatch& d = of.prologue.items[0];
    if (of.prologue.size != 1 || d.kernel != kernel::embed) return;
    const std::uint64_t bytes =
        of.blank_bytes / config_.num_hidden_layers * blank_layers(of.resident.items[0], config_.num_hidden_layers);
    d[kernels::push_ids<kernels::embed_kernel>.blank] = {region::arena, 0, of.blank_offset};
    d.accesses[d.access_count++] = {region::arena, true, 0, of.blank_offset, bytes};
    change_constants<kernels::embed_kernel>(d,
                                            [&](auto& c) { c.blank_quads = static_cast<std::uint32_t>(bytes / 16); });
    d.subgroups = kernels::layers_rows::resident_subgroups;
    d.groups[0] = 1 + (4 * of.resident.items[0].groups[0] + shape_.slot_count - 1) / shape_.slot_count;
  }
};

/// The sequence for a Llama with coded products in f16. Up to eight slots use layers_rows; 16 and 32 use layers_batch.
/// More slots than one dispatch takes are refused: a session's bits would depend on the number of other sessions.
class resident_rows_layers : public resident_batch_layers {
 private:
  // In front of what calls it: clang 16 does not take a template in a constant expression before its definition.
  template <class Kernel>
  constexpr dispatch all_layers(std::uint32_t parts) const {
    dispatch all =
        dispatch_of_all<Kernel>(kernels::layers_rows::resident_subgroups, parts, stream(), step(2), {&qkv()});
    change_constants<Kernel>(all,
                             [&](auto& c) { c.eps = of_quantize(step(0)).eps, c.codec = of_product(qkv()).codec; });
    all.activation = gated().activation;
    return all;
  }

 public:
  using resident_batch_layers::resident_batch_layers;

  /// The chain's sequence with the resident dispatch; without one where no kernel fits.
  constexpr drafted_sequence made(text<256>& failure) const {
    if (!waits() || !fits()) return {};
    std::vector<operand> arguments(kernels::layers::argument_count);
    arguments[1] = qkv()[at_product.keys];
    arguments[2] = qkv()[at_product.values];
    arguments[3] = stream();
    arguments[8] = step(0)[at_quantize.norm_weight];
    arguments[9] = qkv()[at_product.weight];
    arguments[10] = qkv()[at_product.rope];
    arguments[12] = projection()[at_product.weight];
    arguments[14] = step(5)[at_quantize.norm_weight];
    arguments[15] = gated()[at_product.weight];
    arguments[18] = down()[at_product.weight];
    const bool large_batch = takes_large_batch(shape_.slot_count);
    const std::uint32_t parts = large_batch ? batch_parts(config_.hidden_size, target_.work.layers_parts)
                                            : rows_parts(config_.hidden_size, target_.work.layers_parts);
    const dispatch all =
        large_batch ? all_layers<kernels::layers_batch_kernel>(parts) : all_layers<kernels::layers_rows_kernel>(parts);
    const decoder_config& c = config_;
    return with(all, arguments,
                large_batch
                    ? kernels::layers_batch::exchange_bytes(
                          shape_.slot_count, parts, c.hidden_size, c.intermediate_size, c.q_size(), c.kv_size(),
                          c.num_attention_heads /
                              kernels::layers_batch::heads_each(c.num_attention_heads, c.num_key_value_heads))
                    : kernels::layers_rows::exchange_bytes(c.hidden_size, c.intermediate_size, c.q_size(), c.kv_size()),
                failure);
  }

 private:
  constexpr const operand& stream() const { return step(0)[at_quantize.input]; }
  constexpr const dispatch& qkv() const { return step(1); }
  constexpr const dispatch& projection() const { return step(4); }
  constexpr const dispatch& gated() const { return step(6); }
  constexpr const dispatch& down() const { return step(8); }

  static constexpr std::size_t steps = 9;
  constexpr bool fits() const {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size, q = config_.q_size();
    if (shape_.coded_products != chunk_arithmetic::f16 || pattern_.period != 1 || chain_.period.size != steps ||
        step(0).kernel != kernel::quantize_f16 || qkv().kernel != kernel::matmul_chunk)
      return false;
    const float eps = of_quantize(step(0)).eps;
    const kernels::codec codec = of_product(qkv()).codec;
    if (!prepares(step(0), true, hidden, eps) ||
        !multiplies(qkv(), epilogue::rope_cache, hidden, q + 2 * config_.kv_size(), codec) || !attends(step(2)) ||
        !prepares(step(3), false, q, eps) || !multiplies(projection(), epilogue::add, q, hidden, codec) ||
        !prepares(step(5), true, hidden, eps) || !multiplies(gated(), epilogue::gated, hidden, 2 * ffn, codec) ||
        !prepares(step(7), false, ffn, eps) || !multiplies(down(), epilogue::add, ffn, hidden, codec))
      return false;
    // The stream is read and written at one offset, which the embedding fills and the head reads.
    for (const dispatch* d : {&projection(), &down()})
      if ((*d)[at_product.output].offset != stream().offset) return false;
    return step(5)[at_quantize.input].offset == stream().offset &&
           slots_fit(config_, codec, shape_.slot_count, target_.work.layers_parts);
  }
};

}  // namespace intaglio::plan
