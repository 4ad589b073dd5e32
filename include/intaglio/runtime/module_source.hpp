// SPDX-License-Identifier: MIT
// Where a program has the SPIR-V modules of its plans.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/kernels/variant.hpp"

namespace intaglio::runtime {

/// A module's SPIR-V. A program has those that it asks for, and no others (runtime/kernel_modules.hpp).
template <kernels::variant which>
std::span<const std::byte> module_bytes();
#define INTAGLIO_EACH(module, of) \
  template <>                     \
  std::span<const std::byte> module_bytes<kernels::variant::module>();
INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH

/// Where a program has a module; empty where it has not.
using module_source = std::span<const std::byte> (*)(kernels::variant);
/// That of a program with the modules of some plans alone (plan::variants_used): what `used` does not name is not part
/// of it.
template <kernels::variant_set used = kernels::all_variants>
std::span<const std::byte> modules_of(kernels::variant which) {
#define INTAGLIO_EACH(module, of)                   \
  if constexpr (used.has(kernels::variant::module)) \
    if (which == kernels::variant::module) return module_bytes<kernels::variant::module>();
  INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH
  return {};
}

}  // namespace intaglio::runtime
