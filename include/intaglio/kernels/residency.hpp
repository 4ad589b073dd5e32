// SPDX-License-Identifier: MIT
// The kernel residency: its computation and its interface.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// Counts the workgroups that run at once. counters u32 [3]: the first becomes the number of workgroups; the second
/// becomes the number of workgroups that saw all others within `turns` reads. Each uses shared_words of shared memory.
/// No plan has it.
inline constexpr kernel_interface residency_interface{
    "residency", {{{"counters"}, {"turns", field_type::u32}}}, {{{"workgroup_size"}, {"shared_words"}}}};

}  // namespace intaglio::kernels
