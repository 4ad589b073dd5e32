// SPDX-License-Identifier: MIT
// Root mean square norm and int8 quantisation of one token's activations. Loads stand together, away from what waits for them.
#ifndef INTAGLIO_NORM
#define INTAGLIO_NORM

// 1 / root mean square of x[4 * first_quad ..], `width` elements.
float inverse_rms(Words x, uint first_quad, uint width, float eps) {
  precise vec4 a[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) a[j] = vec4(0.0);
  for (uint block = 0u; block < width; block += 32u * virtual_width) {
    // The n-th quad of an invocation belongs to its virtual lane n % virtual_count; what is past the width adds 0.
    vec4 v[8];
    LATER_UNROLLED for (uint n = 0u; n < 8u; ++n) {
      uint i = block + 4u * (virtual_lane + n * virtual_width);
      v[n] = float_quad(x, first_quad + min(i, width - 4u) / 4u);
      if (i >= width) v[n] = vec4(0.0);
    }
    LATER_UNROLLED for (uint n = 0u; n < 8u; ++n) {
      precise vec4 square = v[n] * v[n];
      a[n & (virtual_count - 1u)] = a[n & (virtual_count - 1u)] + square;
    }
  }
  float s[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
    precise float sum = (a[j].x + a[j].y) + (a[j].z + a[j].w);
    s[j] = sum;
  }
  precise float mean = virtual_sum(s) / float(width) + eps;
  precise float r = 1.0 / sqrt(mean);
  return r;
}

// Elements 4 * quad .. of the normalised x.
vec4 normalised(Words x, uint first_quad, Words weight, uint quad, float r) {
  precise vec4 y = (float_quad(x, first_quad + quad) * r) * float_quad(weight, quad);
  return y;
}

float greatest(vec4 v) {
  v = abs(v);
  return max(max(v.x, v.y), max(v.z, v.w));
}

shared float from_subgroups[workgroup_size / 4u];

// Largest |y|, at least 1e-5, over the whole token; the invocations of the workgroup share the work.
float largest_activation(Words x, uint first_quad, Words weight, uint width, float r) {
  float m = 1e-5;
  for (uint quad = gl_LocalInvocationIndex; quad < width / 4u; quad += 4u * workgroup_size) {
    vec4 y[4];  // the last quad again instead of what is past the width
    LATER_UNROLLED for (uint n = 0u; n < 4u; ++n) y[n] = normalised(x, first_quad, weight, min(quad + n * workgroup_size, width / 4u - 1u), r);
    LATER_UNROLLED for (uint n = 0u; n < 4u; ++n) m = max(m, greatest(y[n]));
  }
  m = subgroup_max(m);
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) from_subgroups[gl_SubgroupID] = m;
    barrier();
    for (uint g = 0u; g < gl_NumSubgroups; ++g) m = max(m, from_subgroups[g]);
  }
  return m;
}

// Four int8 of y * s, rounded half to even, in one word.
uint quantised(vec4 y, float s) {
  precise vec4 scaled = y * s;
  ivec4 q = clamp(ivec4(roundEven(scaled)), -128, 127);
  return (uint(q.x) & 255u) | (uint(q.y) & 255u) << 8 | (uint(q.z) & 255u) << 16 | uint(q.w) << 24;
}

#endif
