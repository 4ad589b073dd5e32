// SPDX-License-Identifier: MIT
// The kernel calibrate: what it computes, and its interface.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/interface.hpp"

namespace intaglio::kernels {

/// 64 x `rounds` multiplications and additions in each invocation, memory left alone: what benchmarks warm a device by
/// and see its clock. In no plan.
inline constexpr kernel_interface calibrate_interface{
    "calibrate", {{{"output"}, {"rounds", field_type::u32}}}, {{{"workgroup_size"}}}};

}  // namespace intaglio::kernels
