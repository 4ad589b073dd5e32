// SPDX-License-Identifier: MIT
// Recognises what follows attention in coded blocks: its projection, and one to three FFNs or a mixture of experts.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/plan/coded_chain.hpp"
#include "intaglio/plan/resident_experts.hpp"

namespace intaglio::plan {

/// The FFNs, or the mixture of experts, that all coded blocks of a model have.
struct coded_ffns {
  kernels::layers::ffns its;
  kernels::layers_coded::mixture experts;
  bool biased_projection = false;  ///< of attention; only beside experts

  /// The FFNs of the first kind of block.
  static constexpr coded_ffns of(const coded_chain& chain) {
    const block_steps& first = chain.blocks[0];
    return {first.ffns(), resident_experts::of(chain.period, first),
            first.is_mixture() && !chain.inner_norms && chain.adds_biased(first.after_projection)};
  }
  /// Whether a kind of block adds attention's projection to the stream as all blocks do.
  constexpr bool projects(const coded_chain& chain, const block_steps& of) const {
    if (biased_projection)
      return of.is_mixture() && chain.adds_biased(of.after_projection) &&
             chain.multiplies(of.projection, false, kernels::epilogue::store, chain.config.q_size(),
                              chain.config.hidden_size);
    if ((of.after_projection != no_step) != chain.inner_norms || (of.after_down != no_step) != chain.inner_norms)
      return false;
    if (chain.inner_norms && (!chain.adds_normalised(of.after_projection) || !chain.adds_normalised(of.after_down)))
      return false;
    return chain.multiplies(of.projection, false, adds(chain), chain.config.q_size(), chain.config.hidden_size);
  }
  /// Whether a kind of block has these FFNs.
  constexpr bool are_in(const coded_chain& chain, const block_steps& of) const {
    using kernels::epilogue;
    const std::uint32_t hidden = chain.config.hidden_size, ffn = chain.config.intermediate_size;
    if (of.ffns() != its || (its.further() != 0 && chain.inner_norms)) return false;
    if (!resident_experts{experts, {}, {}, {}, {}, {}}.are_in(chain.period, of, hidden)) return false;
    if (of.is_mixture() && (chain.inner_norms || its != kernels::layers::ffns{} ||
                            !chain.multiplies(of.router, chain.outer_norms, epilogue::store, hidden, experts.experts)))
      return false;
    for (const auto& [gated, down] : {block_steps::ffn{of.gated, of.down}, of.early, of.late}) {
      if (gated == no_step) continue;
      const bool multiplies =
          experts.biased ? gates_apart(chain, of)
                         : chain.multiplies(gated, chain.outer_norms, epilogue::gated, hidden, 2 * ffn, experts.used);
      const std::size_t activates = experts.biased ? of.activation : gated;
      if (!multiplies || chain.codec_at(gated) != chain.codec_at(of.gated) ||
          chain.period[activates].activation != chain.period[chain.blocks[0].activates()].activation ||
          !chain.multiplies(down, false, of.is_mixture() ? epilogue::store : adds(chain), ffn, hidden, experts.used) ||
          chain.codec_at(down) != chain.codec_at(of.down))
        return false;
    }
    return true;
  }

 private:
  /// Whether gates and ups of a token's experts are two products, which an activation with biases follows.
  constexpr bool gates_apart(const coded_chain& chain, const block_steps& of) const {
    const std::uint32_t hidden = chain.config.hidden_size, ffn = chain.config.intermediate_size;
    const auto c = chain.activation_at(of.activation);
    for (const std::size_t each : {of.gated, of.up})
      if (!chain.multiplies(each, chain.outer_norms, kernels::epilogue::store, hidden, ffn, experts.used) ||
          chain.product_at(each).own_input != 0 || chain.codec_at(each) != chain.codec_at(of.gated))
        return false;
    return c.biased == 1 && c.scale == 1.f && c.experts_used == experts.used && c.width == experts.used * ffn &&
           c.up_stride == c.width;
  }
  static constexpr kernels::epilogue adds(const coded_chain& chain) {
    return chain.inner_norms ? kernels::epilogue::store : kernels::epilogue::add;
  }
};

}  // namespace intaglio::plan
