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

  /// The FFNs of the first kind of block.
  static constexpr coded_ffns of(const coded_chain& chain) {
    return {chain.blocks[0].ffns(), resident_experts::of(chain.period, chain.blocks[0])};
  }
  /// Whether a kind of block adds attention's projection to the stream as all blocks do.
  constexpr bool projects(const coded_chain& chain, const block_steps& of) const {
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
    if (!resident_experts{experts, {}, {}, {}}.are_in(chain.period, of, hidden)) return false;
    if (of.is_mixture() && (chain.inner_norms || its != kernels::layers::ffns{} ||
                            !chain.multiplies(of.router, chain.outer_norms, epilogue::store, hidden, experts.experts)))
      return false;
    for (const auto& [gated, down] : {block_steps::ffn{of.gated, of.down}, of.early, of.late}) {
      if (gated == no_step) continue;
      if (!chain.multiplies(gated, chain.outer_norms, epilogue::gated, hidden, 2 * ffn, experts.used) ||
          chain.codec_at(gated) != chain.codec_at(of.gated) ||
          chain.period[gated].activation != chain.period[chain.blocks[0].gated].activation ||
          !chain.multiplies(down, false, of.is_mixture() ? epilogue::store : adds(chain), ffn, hidden, experts.used) ||
          chain.codec_at(down) != chain.codec_at(of.down))
        return false;
    }
    return true;
  }

 private:
  static constexpr kernels::epilogue adds(const coded_chain& chain) {
    return chain.inner_norms ? kernels::epilogue::store : kernels::epilogue::add;
  }
};

}  // namespace intaglio::plan
