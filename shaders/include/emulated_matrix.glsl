// SPDX-License-Identifier: MIT
// For tests on devices without cooperative matrices: f16 of 16 x 16 by 16 x 8, with elements distributed over 32
// invocations as on NVIDIA's devices, multiplied through shared memory. All invocations of a workgroup have to reach
// the calls together.
#ifndef INTAGLIO_EMULATED_MATRIX
#define INTAGLIO_EMULATED_MATRIX

#define sums_of float[4]
#define weights_of float16_t[8]
#define tokens_of float16_t[4]
#define no_sums float[4](0.0, 0.0, 0.0, 0.0)

shared float matrix_weights[workgroup_size * 8u], matrix_tokens[workgroup_size * 4u];

// Invocation 4 g + t of 32 has rows g and g + 8 of weights and sums and column g of tokens; of each 8 elements of the
// inner dimension it has those at 2 t and 2 t + 1.
float[4] multiply_add(float16_t w[8], float16_t x[4], float c[4]) {
  uint own = gl_LocalInvocationIndex, first = own & ~31u;
  barrier();
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) matrix_weights[own * 8u + i] = float(w[i]);
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) matrix_tokens[own * 4u + i] = float(x[i]);
  barrier();
  float y[4];
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
    uint row = (own & 31u) / 4u, column = 2u * (own & 3u) + (i & 1u);
    y[i] = c[i];
    LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) {
      uint quarter = k % 8u / 2u, of_eight = k / 8u * 2u + (k & 1u);
      y[i] += matrix_weights[(first + row * 4u + quarter) * 8u + i / 2u * 4u + of_eight] *
              matrix_tokens[(first + column * 4u + quarter) * 4u + of_eight];
    }
  }
  return y;
}

#endif
