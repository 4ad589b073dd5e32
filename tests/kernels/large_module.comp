// SPDX-License-Identifier: MIT
// One device address more than every device has push constants for; large_module.hpp holds its SPIR-V.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x_id = 0) in;
layout(buffer_reference, scalar) buffer Words { uint at[]; };
layout(push_constant, scalar) uniform Push { Words a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q; };

void main() { q.at[0] = a.at[0]; }
