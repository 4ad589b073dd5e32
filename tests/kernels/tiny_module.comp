// SPDX-License-Identifier: MIT
// What tests/kernels/reflection.test.cpp and tests/compile_fail/shader_*.cpp read; tiny_module.hpp holds its SPIR-V.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 64;
layout(constant_id = 2) const float eps = 1e-5;
layout(constant_id = 3) const bool rounded = true;
layout(local_size_x_id = 0) in;
layout(buffer_reference, scalar) buffer Floats { float at[]; };
layout(push_constant, scalar) uniform Push { Floats weight, output_; uint count; float scale; };

void main() {
  for (uint i = gl_LocalInvocationIndex; i < min(width, count); i += workgroup_size) {
    float y = weight.at[i] * scale + eps;
    output_.at[i] = rounded ? round(y) : y;
  }
}
