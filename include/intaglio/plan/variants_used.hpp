// SPDX-License-Identifier: MIT
// The modules that plans may use on any device.
#pragma once

#include <cstddef>
#include <span>

#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The modules of the kernels that plans use, for any device. Some kernels are compiled from one source for several
/// shapes; of these only the modules for the plans' shapes are included.
constexpr kernels::variant_set variants_used(std::span<const table* const> tables) {
  using kernels::variant;
  kernels::variant_set out;
  const auto add = [&](const dispatch& d) {
    for (std::size_t i = 0; i < kernels::variant_count; ++i) {
      const auto which = static_cast<variant>(i);
      if (kernels::kernel_of(which) != d.kernel) continue;
      bool used = true;
      if (which == variant::layers_cpu) used = d.subgroups == 1;
      if (which == variant::layers_long || which == variant::layers)
        used = d.subgroups > 1 && (kernels::constants_of<kernels::layers_kernel>(d.specialization).heads_together !=
                                   1) == (which == variant::layers_long);
      if (d.kernel == kernels::kernel::layers_coded)
        used = which == kernels::layers_coded_kernel::module_of(
                            kernels::constants_of<kernels::layers_coded_kernel>(d.specialization));
      if (which == variant::matmul_chunk_batch)
        used = kernels::constants_of<kernels::matmul_chunk_kernel>(d.specialization).tile_tokens <=
               kernels::most_batch_tokens;
      if (used) out.add(which);
    }
  };
  for (const table* each : tables)
    for (const sequence* list : {&each->decode, &each->prefill, &each->logits, &each->verify, &each->resident_decode,
                                 &each->batch, &each->resident_batch, &each->moves})
      for (const auto part : {list->prologue, list->period, list->epilogue, list->resident, list->resident_long})
        for (const dispatch& d : part) add(d);
  return out;
}

}  // namespace intaglio::plan
