// SPDX-License-Identifier: MIT
// The kernel stream_read: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// Reads input once, 8 x `rounds` blocks of 16 bytes for each invocation of the grid: the device's streaming rate, the
/// yardstick of benchmarks. In no plan.
inline constexpr kernel_interface stream_read_interface{
    "stream_read", {{{"input"}, {"output"}, {"rounds", field_type::u32}}}, {{{"workgroup_size"}}}};

}  // namespace intaglio::kernels
