// SPDX-License-Identifier: MIT
// y[i] = a * x[i] + b, with a from a specialization constant; the one shader of the gpu room's tests. scale_add.hpp
// holds it compiled.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint factor = 1;
layout(buffer_reference, scalar) buffer words { uint at[]; };
layout(push_constant, scalar) uniform arguments {
  words x, y;
  uint count, addend;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) y.at[i] = factor * x.at[i] + addend;
}
