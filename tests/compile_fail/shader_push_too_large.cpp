// SPDX-License-Identifier: MIT
// A shader with more push constants than every device has room for.
// expect: tiny: push constants take 136 bytes in the shader, every device has room for 128
#include "../kernels/large_module.hpp"
#include "shader_mistake.hpp"

constexpr kernel_interface tiny = sound_tiny;

#ifdef INTAGLIO_TWIN
static_assert(shader_interface<matches(tiny, tiny_module)>::agrees);
#else
static_assert(shader_interface<matches(tiny, large_module)>::agrees);
#endif
