// SPDX-License-Identifier: MIT
// What a planned dispatch demands of a device, computed from its kernel's modules with the dispatch's constants. Some
// constants are chosen at run time: the subgroup width, whether x is staged, tiles of cooperative matrices. For these
// the largest demand that every device must meet is taken.
#pragma once

#include <span>

#include "intaglio/kernels/declared_modules.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Whether a module may run a dispatch. Modules with batch_matrix have other constants, which are chosen at run time
/// and checked by gpu::check_demands.
constexpr bool may_run(const kernels::declared_module& module, const dispatch& d) {
  if (module.target == kernels::module_target::batch_matrix) return false;
  if (module.target == kernels::module_target::cpu) return d.subgroups == 1;
  if (d.kernel == kernels::kernel::layers)
    return d.subgroups != 1 &&
           (module.name == "layers_long") == (constants_of<kernels::layers_kernel>(d).heads_together != 1);
  if (d.kernel == kernels::kernel::layers_coded)
    return module.name ==
           kernels::name(kernels::layers_coded_kernel::module_of(constants_of<kernels::layers_coded_kernel>(d)));
  return true;
}

/// The constants of a dispatch for subgroups of a given width, as far as its plan sets them.
constexpr auto known_constants(const dispatch& d, std::uint32_t subgroup_width) {
  auto out = d.specialization;
  out[0] = d.subgroups * subgroup_width;
  if (d.kernel == kernels::kernel::matmul) {
    std::uint32_t& staged = out[kernels::constant_id<&kernels::matmul_kernel::constants::staged>];
    if (staged == kernels::staged_where_room) staged = 0;  // it is staged only if shared memory has room
  }
  return out;
}

/// The largest demands of a dispatch's modules, apart for those with and without cooperative matrices.
struct dispatch_demands {
  std::string_view undefined;  ///< a module whose demands these constants leave undefined
  std::uint64_t invocations = 0;
  std::uint64_t shared_memory_bytes = 0;         ///< of modules without matrices
  std::uint64_t matrix_shared_memory_bytes = 0;  ///< of modules with matrices
};

/// The demands of a dispatch's modules. A dispatch that is fitted to a device (plan/fit.hpp) has one module.
constexpr dispatch_demands demands_of(const dispatch& d, std::uint32_t subgroup_width) {
  dispatch_demands out;
  if (is_fitted(d)) {
    for (const kernels::declared_module& module : kernels::declared_modules) {
      if (module.name != kernels::name(d.variant)) continue;
      const kernels::module_use found = kernels::use_of(module, d.specialization);
      if (!found.defined) out.undefined = module.name;
      out.invocations = found.invocations();
      out.shared_memory_bytes = found.shared_memory_bytes;
    }
    return out;
  }
  const auto constants = known_constants(d, subgroup_width);
  for (const kernels::declared_module& module : kernels::declared_modules) {
    if (module.of != d.kernel || !may_run(module, d)) continue;
    const kernels::module_use found = kernels::use_of(module, constants);
    if (!found.defined && out.undefined.empty()) out.undefined = module.name;
    if (found.invocations() > out.invocations) out.invocations = found.invocations();
    std::uint64_t& bytes =
        module.target == kernels::module_target::matrix ? out.matrix_shared_memory_bytes : out.shared_memory_bytes;
    if (found.shared_memory_bytes > bytes) bytes = found.shared_memory_bytes;
  }
  return out;
}

}  // namespace intaglio::plan
