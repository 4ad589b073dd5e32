// SPDX-License-Identifier: MIT
// The interface that fits tests/kernels/tiny_module.hpp; each case gets one field of it wrong.
#pragma once

#include "../kernels/tiny_module.hpp"
#include "intaglio/kernels/reflection.hpp"

using namespace intaglio::kernels;

inline constexpr kernel_interface sound_tiny{
    "tiny",
    {{{"weight"}, {"output"}, {"count", field_type::u32}, {"scale", field_type::f32}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"rounded", field_type::boolean}}}};
