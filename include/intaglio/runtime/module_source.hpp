// SPDX-License-Identifier: MIT
// Where a program has the SPIR-V modules of its plans. Declarations; runtime/kernel_modules.hpp defines them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/kernels/variant.hpp"

namespace intaglio::runtime {

/// Where a program has a module; empty where it has not.
using module_source = std::span<const std::byte> (*)(kernels::variant);
/// That of a program with the modules of some plans alone (plan::variants_used): what `used` does not name is not part
/// of it.
template <kernels::variant_set used = kernels::all_variants>
std::span<const std::byte> modules_of(kernels::variant which);

}  // namespace intaglio::runtime
