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

  static constexpr std::uint32_t constant(const dispatch& d, std::string_view name) {
    return d.specialization[kernels::interface_of(d.kernel).specialization_index(name)];
  }
  static constexpr const operand& push(const dispatch& d, std::string_view name) {
    return d.push[kernels::interface_of(d.kernel).push_index(name)];
  }
  constexpr const dispatch& step(std::size_t index) const { return chain_.period.items[index]; }
  /// Whether the profile has resident workgroups, which wait for each other.
  constexpr bool waits() const { return target_.layers_parts != 0 && target_.layers_subgroups > 1; }

  static constexpr bool attends(const dispatch& d, bool has_window = false) {
    return d.kernel == kernel::attention_batch &&
           constant(d, "cache_element") == static_cast<std::uint32_t>(kernels::element::f16) &&
           (constant(d, "window") != 0) == has_window && constant(d, "ring") == 0 && has_plain_scores(d);
  }
  /// prepares(): converts a product's input to f16. multiplies(): a product of f16.
  static constexpr bool prepares(const dispatch& d, bool normalises, std::uint32_t width, std::uint32_t eps) {
    return d.kernel == kernel::quantize_f16 && constant(d, "width") == width &&
           constant(d, "prologue") ==
               static_cast<std::uint32_t>(normalises ? kernels::prologue::norm : kernels::prologue::plain) &&
           (!normalises || constant(d, "eps") == eps);
  }
  static constexpr bool multiplies(const dispatch& d, kernels::epilogue how, std::uint32_t columns, std::uint32_t rows,
                                   std::uint32_t codec) {
    return d.kernel == kernel::matmul_chunk && constant(d, "epilogue") == static_cast<std::uint32_t>(how) &&
           constant(d, "columns") == columns && constant(d, "rows") == rows && constant(d, "codec") == codec;
  }

  /// The resident dispatch.
  /// @param attention of the chain  @param write_caches of the chain, one of each kind of block
  constexpr dispatch dispatch_of_all(kernel which, std::uint32_t subgroups, std::uint32_t parts,
                                     const dispatch& attention,
                                     const std::vector<const dispatch*>& write_caches) const {
    dispatch d{.kernel = which, .barrier = true, .subgroups = subgroups};
    const kernels::kernel_interface& face = kernels::interface_of(which);
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    const auto set = [&](std::string_view name, std::uint32_t value) {
      d.specialization[face.specialization_index(name)] = value;
    };
    d.push[face.push_index("arguments")] = {region::arguments};
    d.push[face.push_index("progress")] = {region::state, 0, counters_end_};
    d.push[face.push_index("state")] = {region::state};
    note(region::arguments, false, 0, kernels::layers::argument_bytes(config_.num_hidden_layers));
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, counters_end_);
    note(region::arena, true, push(step(0), "input").offset,
         std::uint64_t{4} * shape_.slot_count * config_.hidden_size);
    for (const dispatch* writes : write_caches)
      for (std::size_t i = 0; i < writes->access_count; ++i)
        if (const access& a = writes->accesses[i]; a.where == region::pool_keys || a.where == region::pool_values)
          d.accesses[d.access_count++] = {a.where, true, a.slot, 0, a.bytes};
    set("hidden_size", config_.hidden_size);
    set("intermediate_size", config_.intermediate_size);
    set("layers", config_.num_hidden_layers);
    set("spin_limit", resident_spin_limit);
    set("head_dim", config_.head_dim);
    set("heads", config_.num_attention_heads);
    set("kv_heads", config_.num_key_value_heads);
    for (const auto name : {"context", "scale", "slot_words", "page_size"}) set(name, constant(attention, name));
    set("parts", parts);
    d.groups = {parts, 1, 1};
    if (has_helpers(d)) {
      set("slots", shape_.slot_count);
      d.groups[0] += kernels::layers_batch::helpers(parts, target_.layers_parts);
    }
    const std::size_t steps = chain_.period.size / pattern_.kinds();
    for (std::size_t i = 0; i < chain_.period.size; ++i)
      d.weight_bytes +=
          pattern_.count(static_cast<std::uint8_t>(i / steps), config_.num_hidden_layers) * step(i).weight_bytes;
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
  /// Has the embedding fill the exchange with the unwritten pattern, with four times as many workgroups as the resident
  /// dispatch has. For layers_batch it fills only the first layers.
  constexpr void blank_beside(drafted_sequence& of) const {
    dispatch& d = of.prologue.items[0];
    if (of.prologue.size != 1 || d.kernel != kernel::embed) return;
    const std::uint64_t bytes =
        of.blank_bytes / config_.num_hidden_layers * blank_layers(of.resident.items[0], config_.num_hidden_layers);
    d.push[kernels::embed_interface.push_index("blank")] = {region::arena, 0, of.blank_offset};
    d.accesses[d.access_count++] = {region::arena, true, 0, of.blank_offset, bytes};
    d.specialization[kernels::embed_interface.specialization_index("blank_quads")] =
        static_cast<std::uint32_t>(bytes / 16);
    d.subgroups = kernels::layers_rows::resident_subgroups;
    d.groups[0] = 1 + (4 * of.resident.items[0].groups[0] + shape_.slot_count - 1) / shape_.slot_count;
  }
};

/// The sequence for a Llama with coded products in f16. Up to eight slots use layers_rows; 16 and 32 use layers_batch.
/// More slots than one dispatch takes are refused: a session's bits would depend on the number of other sessions.
class resident_rows_layers : public resident_batch_layers {
 public:
  using resident_batch_layers::resident_batch_layers;

  /// The chain's sequence with the resident dispatch; without one where no kernel fits.
  constexpr drafted_sequence made(text<256>& failure) const {
    if (!waits() || !fits()) return {};
    std::vector<operand> arguments(kernels::layers::argument_count);
    arguments[1] = push(qkv(), "keys");
    arguments[2] = push(qkv(), "values");
    arguments[3] = push(step(0), "input");
    arguments[8] = push(step(0), "norm_weight");
    arguments[9] = push(qkv(), "weight");
    arguments[10] = push(qkv(), "rope");
    arguments[12] = push(projection(), "weight");
    arguments[14] = push(step(5), "norm_weight");
    arguments[15] = push(gated(), "weight");
    arguments[18] = push(down(), "weight");
    const bool large_batch = takes_large_batch(shape_.slot_count);
    const kernel which = large_batch ? kernel::layers_batch : kernel::layers_rows;
    const std::uint32_t parts = large_batch ? batch_parts(config_.hidden_size, target_.layers_parts)
                                            : rows_parts(config_.hidden_size, target_.layers_parts);
    dispatch all = dispatch_of_all(which, kernels::layers_rows::resident_subgroups, parts, step(2), {&qkv()});
    const auto set = [&](std::string_view name, std::uint32_t value) {
      all.specialization[kernels::interface_of(which).specialization_index(name)] = value;
    };
    set("eps", constant(step(0), "eps"));
    set("codec", constant(qkv(), "codec"));
    all.activation = gated().activation;
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
    const std::uint32_t eps = constant(step(0), "eps"), codec = constant(qkv(), "codec");
    if (!prepares(step(0), true, hidden, eps) ||
        !multiplies(qkv(), epilogue::rope_cache, hidden, q + 2 * config_.kv_size(), codec) || !attends(step(2)) ||
        !prepares(step(3), false, q, eps) || !multiplies(projection(), epilogue::add, q, hidden, codec) ||
        !prepares(step(5), true, hidden, eps) || !multiplies(gated(), epilogue::gated, hidden, 2 * ffn, codec) ||
        !prepares(step(7), false, ffn, eps) || !multiplies(down(), epilogue::add, ffn, hidden, codec))
      return false;
    // The stream is read and written at one offset, which the embedding fills and the head reads.
    for (const dispatch* d : {&projection(), &down()})
      if (push(*d, "output").offset != push(step(0), "input").offset) return false;
    return push(step(5), "input").offset == push(step(0), "input").offset &&
           slots_fit(config_, static_cast<kernels::codec>(constant(qkv(), "codec")), shape_.slot_count,
                     target_.layers_parts);
  }
};

}  // namespace intaglio::plan
