// SPDX-License-Identifier: MIT
// A shader with more push constants than every device has room for.
// expect: tiny: push constants take 136 bytes in the shader, every device has room for 128
#include "../kernels/large_module.hpp"
#include "../kernels/tiny_module.hpp"
#include "intaglio/kernels/reflection.hpp"

using namespace intaglio::kernels;

constexpr interface tiny{"tiny", {{{"weight"}, {"output"}, {"count", field_type::u32}, {"scale", field_type::f32}}},
                         {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"rounded", field_type::boolean}}}};

#ifdef INTAGLIO_TWIN
static_assert(shader_interface<matches(tiny, tiny_module)>::agrees);
#else
static_assert(shader_interface<matches(tiny, large_module)>::agrees);
#endif
