// SPDX-License-Identifier: MIT
// Batch passes of a Gemma-3 with the resident dispatch, beside the chain of dispatches, where the kernel computes each
// block. Up to eight sessions use layers_rows_normed; 16 and 32 use layers_batch_normed.
#pragma once

#include <string_view>
#include <vector>

#include "intaglio/plan/resident_rows.hpp"

namespace intaglio::plan {

/// Recognises blocks with norms before additions (Gemma 3) and makes the resident dispatch of a batch.
class resident_rows_normed_layers : public resident_batch_layers {
 private:
  // In front of what calls it: clang 16 does not take a template in a constant expression before its definition.
  template <class Kernel>
  constexpr dispatch all_layers(std::uint32_t subgroups, std::uint32_t parts,
                                const std::vector<const dispatch*>& write_caches) const {
    dispatch all = dispatch_of_all<Kernel>(subgroups, parts, stream(), at(0, attends_), write_caches);
    change_constants<Kernel>(all, [&](auto& c) {
      c.eps = eps(), c.codec = codec();
      c.window = pattern_.kinds() == 2 ? of_attention(at(0, attends_)).window : 0;
      c.full_every = pattern_.period;
    });
    all.activation = at(0, gated).activation;
    return all;
  }

 public:
  using resident_batch_layers::resident_batch_layers;

  /// The chain's sequence with the resident dispatch; without one where no kernel fits.
  constexpr drafted_sequence made(text<256>& failure) const {
    if (!waits() || !fits()) return {};
    const bool large_batch = takes_large_batch(shape_.slot_count);
    std::vector<operand> arguments;
    std::vector<const dispatch*> write_caches;
    for (std::uint32_t kind = 0; kind < pattern_.kinds(); ++kind) {
      std::vector<operand> of_kind(kernels::layers::argument_count);
      of_kind[1] = at(kind, heads)[at_turn.keys];
      of_kind[2] = at(kind, heads)[at_turn.values];
      of_kind[3] = at(kind, 0)[at_quantize.input];
      of_kind[8] = at(kind, 0)[at_quantize.norm_weight];
      of_kind[9] = at(kind, qkv)[at_product.weight];
      of_kind[10] = at(kind, heads)[at_turn.rope];
      of_kind[11] = at(kind, heads)[at_turn.k_norm];
      of_kind[12] = at(kind, projection)[at_product.weight];
      of_kind[13] = at(kind, projection + 1)[at_add.norm_weight];
      of_kind[14] = at(kind, gated - 1)[at_quantize.norm_weight];
      of_kind[15] = at(kind, gated)[at_product.weight];
      of_kind[16] = at(kind, heads)[at_turn.q_norm];
      of_kind[18] = at(kind, down)[at_product.weight];
      of_kind[19] = at(kind, down + 1)[at_add.norm_weight];
      arguments.insert(arguments.end(), of_kind.begin(), of_kind.end());
      write_caches.push_back(&at(kind, heads));
    }
    const decoder_config& c = config_;
    const std::uint32_t parts = large_batch ? batch_normed_parts(c.hidden_size, target_.work.layers_parts)
                                            : rows_normed_parts(c.hidden_size, target_.work.layers_parts);
    const dispatch all =
        large_batch ? all_layers<kernels::layers_batch_normed_kernel>(kernels::layers_batch::resident_subgroups, parts,
                                                                      write_caches)
                    : all_layers<kernels::layers_rows_normed_kernel>(rows_normed_subgroups(c), parts, write_caches);
    return with(
        all, arguments,
        large_batch
            ? kernels::layers_batch_normed::exchange_bytes(
                  shape_.slot_count, parts, c.hidden_size, c.intermediate_size, c.q_size(), c.kv_size(),
                  kernels::layers_batch_normed::slices_of_row(c.head_dim, c.num_attention_heads, c.num_key_value_heads))
            : kernels::layers_rows_normed::exchange_bytes(c.hidden_size, c.intermediate_size, c.q_size(), c.kv_size()),
        failure);
  }

 private:
  static constexpr auto at_add = kernels::push_ids<kernels::norm_add_kernel>;
  static constexpr auto at_turn = kernels::push_ids<kernels::turn_kernel>;

  /// The value that the layers update, the epsilon of all norms, and the codec of all products.
  constexpr const operand& stream() const { return at(0, 0)[at_quantize.input]; }
  constexpr float eps() const { return of_quantize(at(0, 0)).eps; }
  constexpr kernels::codec codec() const { return of_product(at(0, qkv)).codec; }

  /// Indices of a block's dispatches.
  static constexpr std::size_t steps = 12, qkv = 1, heads = 2, attends_ = 3, projection = 5, gated = 8, down = 10;
  constexpr const dispatch& at(std::uint32_t kind, std::size_t step) const {
    return chain_.period.items[kind * steps + step];
  }

  constexpr bool adds_normalised(const dispatch& d) const {
    if (d.kernel != kernel::norm_add) return false;
    const auto c = constants_of<kernels::norm_add_kernel>(d);
    return c.biased == 0 && c.width == config_.hidden_size && c.eps == eps() && c.parts == 1 &&
           d[at_add.output].offset == stream().offset;
  }
  /// Whether a dispatch reads the stream at the offset that the embedding fills and the head reads.
  constexpr bool reads_stream(const dispatch& d) const { return d[at_quantize.input].offset == stream().offset; }
  constexpr bool fits() const {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size, q = config_.q_size(),
                        kinds = pattern_.kinds();
    if (shape_.coded_products != chunk_arithmetic::f16 || kinds > 2 || chain_.period.size != kinds * steps ||
        !pattern_.ends_each_period())
      return false;
    if (at(0, 0).kernel != kernel::quantize_f16 || at(0, qkv).kernel != kernel::matmul_chunk ||
        at(0, attends_).kernel != kernel::attention_batch)
      return false;
    const auto prepares_ = [&](const dispatch& d, bool normalises, std::uint32_t width) {
      return prepares(d, normalises, width, eps());
    };
    const auto multiplies_ = [&](const dispatch& d, epilogue how, std::uint32_t columns, std::uint32_t rows) {
      return multiplies(d, how, columns, rows, codec());
    };
    for (std::uint32_t kind = 0; kind < kinds; ++kind) {
      const bool sees_all = kind + 1 == kinds;  // the last layer of a pattern; the others have a window
      const dispatch& norms = at(kind, heads);
      if (!prepares_(at(kind, 0), true, hidden) ||
          !multiplies_(at(kind, qkv), epilogue::store, hidden, q + 2 * config_.kv_size()) || !normalises_heads(norms) ||
          constants_of<kernels::turn_kernel>(norms).eps != eps() ||
          constants_of<kernels::turn_kernel>(norms).ring != 0 || !attends(at(kind, attends_), !sees_all) ||
          !prepares_(at(kind, projection - 1), false, q) ||
          !multiplies_(at(kind, projection), epilogue::store, q, hidden) ||
          !adds_normalised(at(kind, projection + 1)) || !prepares_(at(kind, gated - 1), true, hidden) ||
          !multiplies_(at(kind, gated), epilogue::gated, hidden, 2 * ffn) ||
          !prepares_(at(kind, down - 1), false, ffn) || !multiplies_(at(kind, down), epilogue::store, ffn, hidden) ||
          !adds_normalised(at(kind, down + 1)))
        return false;
      const auto own = of_attention(at(kind, attends_)), first = of_attention(at(0, attends_));
      if (own.context != first.context || own.scale != first.scale || own.slot_words != first.slot_words ||
          own.page_size != first.page_size)
        return false;
      if (!reads_stream(at(kind, 0)) || !reads_stream(at(kind, gated - 1)) ||
          at(kind, gated).activation != at(0, gated).activation)
        return false;
    }
    return normed_slots_fit(config_, codec(), shape_.slot_count, target_.work.layers_parts);
  }
};

}  // namespace intaglio::plan
