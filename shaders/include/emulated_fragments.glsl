// SPDX-License-Identifier: MIT
// For tests on devices without cooperative matrices: f16, or int8 with INT8_FRAGMENTS, of 16 tokens in `staged` by 16
// rows of weights, with elements distributed over 32 invocations as on NVIDIA's devices, multiplied through shared
// memory. All invocations of a workgroup have to reach the calls together.
#ifndef INTAGLIO_EMULATED_FRAGMENTS
#define INTAGLIO_EMULATED_FRAGMENTS

#ifdef INT8_FRAGMENTS

#define sums_of int[8]
#define weights_of int[16]
#define no_sums int[8](0, 0, 0, 0, 0, 0, 0, 0)
#define number_of(byte_) bitfieldExtract(int(byte_), 0, 8)
#define bits_of(sum) uint(sum)
shared int matrix_weights[workgroup_size * 16u];

// Invocation 4 g + t of 32 has rows g and g + 8 of weights, and four of each 16 columns, from 4 t on. Its sums are
// those of tokens g and g + 8, rows 2 t, 2 t + 1 and these + 8.
int[8] multiply_add(uint first_x, int w[16], int c[8]) {
  uint own = gl_LocalInvocationIndex, first = own & ~31u;
  barrier();
  LATER_UNROLLED for (uint i = 0u; i < 16u; ++i) matrix_weights[own * 16u + i] = w[i];
  barrier();
  int y[8];
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint token = (own & 31u) / 4u + 8u * (i / 2u % 2u), row = 2u * (own & 3u) + (i & 1u) + 8u * (i / 4u);
    y[i] = c[i];
    LATER_UNROLLED for (uint k = 0u; k < 32u; ++k) y[i] +=
        bitfieldExtract(int(staged[first_x + token * stride + k / 16u][k % 16u / 4u]), int(8u * (k & 3u)), 8) *
        matrix_weights[(first + row % 8u * 4u + k % 16u / 4u) * 16u + row / 8u * 8u + k / 16u * 4u + (k & 3u)];
  }
  return y;
}

#else

#define sums_of float[8]
#define weights_of float16_t[8]
#define no_sums float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
#define bits_of(sum) floatBitsToUint(sum)
shared float matrix_weights[workgroup_size * 8u];

// Invocation 4 g + t of 32 has rows g and g + 8 of weights, and columns 2 t and 2 t + 1 of each 8. Its sums are those
// of tokens g and g + 8, rows 2 t, 2 t + 1 and these + 8.
float[8] multiply_add(uint first_x, float16_t w[8], float c[8]) {
  uint own = gl_LocalInvocationIndex, first = own & ~31u;
  barrier();
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) matrix_weights[own * 8u + i] = float(w[i]);
  barrier();
  float y[8];
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint token = (own & 31u) / 4u + 8u * (i / 2u % 2u), row = 2u * (own & 3u) + (i & 1u) + 8u * (i / 4u);
    y[i] = c[i];
    LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) {
      vec2 two = unpackHalf2x16(staged[first_x + token * stride + k / 8u][k % 8u / 2u]);
      y[i] += ((k & 1u) == 0u ? two.x : two.y) *
              matrix_weights[(first + row % 8u * 4u + k % 8u / 2u) * 8u + row / 8u * 4u + k / 8u * 2u + (k & 1u)];
    }
  }
  return y;
}

#endif

void store_fragment(uint at, uint pitch, sums_of c) {
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint token = LANE / 4u + 8u * (i / 2u % 2u), row = 2u * (LANE & 3u) + (i & 1u) + 8u * (i / 4u);
    staged[at + token * pitch + row / 4u][row % 4u] = bits_of(c[i]);
  }
}

#define strip_barrier() barrier()

#endif
