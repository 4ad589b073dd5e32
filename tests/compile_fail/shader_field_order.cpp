// SPDX-License-Identifier: MIT
// Two push constants are swapped.
// expect: tiny: push constant 2 is \W+count\W+ at offset 16 in the shader, \W+scale\W+ at offset 16 in the C\+\+ interface
#include "shader_mistake.hpp"

#ifdef INTAGLIO_TWIN
constexpr kernel_interface tiny = sound_tiny;
#else
constexpr kernel_interface tiny{
    "tiny",
    {{{"weight"}, {"output"}, {"scale", field_type::f32}, {"count", field_type::u32}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"rounded", field_type::boolean}}}};
#endif

static_assert(shader_interface<matches(tiny, tiny_module)>::agrees);
