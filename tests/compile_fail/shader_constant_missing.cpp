// SPDX-License-Identifier: MIT
// A specialization constant that the shader does not have.
// expect: tiny: specialization constant 4 is missing or unused in the shader, \W+tile_tokens\W+ in the C\+\+ interface
#include "shader_mistake.hpp"

#ifdef INTAGLIO_TWIN
constexpr kernel_interface tiny = sound_tiny;
#else
constexpr kernel_interface tiny{
    "tiny",
    {{{"weight"}, {"output"}, {"count", field_type::u32}, {"scale", field_type::f32}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"rounded", field_type::boolean}, {"tile_tokens"}}}};
#endif

static_assert(shader_interface<matches(tiny, tiny_module)>::agrees);
