// SPDX-License-Identifier: MIT
// The kernel residency: what it computes and its interface.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// counters u32 [3]: the first becomes the number of workgroups; the second the number of those that saw all within
/// `turns` looks. shared_words of shared memory are in use meanwhile. In no plan.
inline constexpr kernel_interface residency_interface{
    "residency", {{{"counters"}, {"turns", field_type::u32}}}, {{{"workgroup_size"}, {"shared_words"}}}};

}  // namespace intaglio::kernels
