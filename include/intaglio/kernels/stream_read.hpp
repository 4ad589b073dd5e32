// SPDX-License-Identifier: MIT
// The kernel stream_read: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// Reads the input once, 8 x `rounds` blocks of 16 bytes for each invocation of the grid. Benchmarks measure the
/// device's streaming rate with it. No plan has it.
inline constexpr kernel_interface stream_read_interface{
    "stream_read", {{{"input"}, {"output"}, {"rounds", field_type::u32}}}, {{{"workgroup_size"}}}};

}  // namespace intaglio::kernels
