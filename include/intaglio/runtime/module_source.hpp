// SPDX-License-Identifier: MIT
// Where a program has the SPIR-V modules of its kernels. Declarations; runtime/kernel_modules.hpp defines them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "intaglio/kernels/kinds.hpp"

namespace intaglio::runtime {

struct kernel_modules;
/// Where a program has a kernel's module.
using module_source = std::span<const std::byte> (*)(const kernel_modules&, kernels::kernel);
/// That of a program with the kernels of some plans alone (plan::kernels_used): what it does not name is not part of
/// it.
template <std::uint64_t used = ~std::uint64_t{0}>
std::span<const std::byte> modules_of(const kernel_modules& chosen, kernels::kernel which);

}  // namespace intaglio::runtime
