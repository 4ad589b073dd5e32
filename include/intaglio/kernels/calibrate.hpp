// SPDX-License-Identifier: MIT
// The kernel calibrate: its computation and its interface.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/interface.hpp"

namespace intaglio::kernels {

/// Does 64 x `rounds` multiplications and additions in each invocation, without memory traffic. Benchmarks use it to
/// warm up a device and to measure its clock. No plan has it.
inline constexpr kernel_interface calibrate_interface{
    "calibrate", {{{"output"}, {"rounds", field_type::u32}}}, {{{"workgroup_size"}}}};

}  // namespace intaglio::kernels
