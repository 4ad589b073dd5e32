// SPDX-License-Identifier: MIT
// The sequence of decode with the resident dispatch, where its chain of dispatches allows one.
#pragma once

#include <cstdint>
#include <vector>

#include "intaglio/plan/draft.hpp"
#include "intaglio/plan/resident_coded.hpp"
#include "intaglio/plan/resident_layers.hpp"
#include "intaglio/plan/sequence_kind.hpp"

namespace intaglio::plan {

/// Whether a dispatch is kernel turn with norms that resident kernels lack: of v, after RoPE, or of a latent vector.
constexpr bool has_other_norms(const dispatch& d) {
  if (d.kernel != kernels::kernel::turn) return false;
  const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization);
  return c.v_norm != 0 || c.latent != 0 || c.norms == kernels::turn_norms::each_head_after;
}

/// Whether resident kernels can do all steps of the layers.
constexpr bool has_resident_steps(const drafted_sequence& chain) {
  for (const dispatch& each : chain.period.all())
    if (has_other_norms(each) || (each.kernel == kernels::kernel::norm_add &&
                                  kernels::constants_of<kernels::norm_add_kernel>(each.specialization).scaled != 0))
      return false;
  return true;
}

/// Drafts resident decode. `out` stays empty if no resident kernel can do the model's decode pass.
constexpr void draft_resident(const decoder_config& config, const profile& target, std::uint32_t context,
                              const drafted_sequence& chain, const layer_pattern& pattern, drafted_sequence& out,
                              text<256>& failure) {
  if (!chain.has_sampler) return;
  for (const dispatch& each : chain.epilogue.all())
    if (each.kernel == kernels::kernel::walk_trace) return;  // resident kernels do not keep the gates
  if (!has_resident_steps(chain)) return;
  const auto list = [](const auto& part) { return std::vector<dispatch>(part.all().begin(), part.all().end()); };
  table sizes;
  sizes.config = &config, sizes.context = context, sizes.max_tokens = widest_tokens(target, context);
  const auto take = [&](const one_dispatch& made) {
    out.prologue.assign(made.prologue, "dispatches before the layers", failure);
    out.period.assign(made.period, "dispatches in a period", failure);
    out.epilogue.assign(made.epilogue, "dispatches after the layers", failure);
    out.resident.assign(made.resident, "dispatches of all layers", failure);
    out.resident_long.assign(made.resident_long, "dispatches of all layers over long contexts", failure);
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
  resident_layers ternary{config, target, context, sizes.progress_offset()};
  if (ternary.make(list(chain.prologue), list(chain.period), list(chain.epilogue))) return take(ternary);
  resident_coded_layers coded{config, target, context, sizes.progress_offset(), pattern};
  if (coded.make(list(chain.prologue), list(chain.period), list(chain.epilogue))) take(coded);
}

}  // namespace intaglio::plan
