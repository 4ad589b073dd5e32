// SPDX-License-Identifier: MIT
// A push constant has another name in the shader.
// expect: tiny: push constant 0 is \W+weight\W+ at offset 0 in the shader, \W+weights\W+ at offset 0 in the C\+\+ interface
#include "shader_mistake.hpp"

#ifdef INTAGLIO_TWIN
constexpr kernel_interface tiny = sound_tiny;
#else
constexpr kernel_interface tiny{
    "tiny",
    {{{"weights"}, {"output"}, {"count", field_type::u32}, {"scale", field_type::f32}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"rounded", field_type::boolean}}}};
#endif

static_assert(shader_interface<matches(tiny, tiny_module)>::agrees);
