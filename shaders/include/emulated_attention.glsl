// SPDX-License-Identifier: MIT
// For tests on devices without cooperative matrices: f16 of 16 tokens, distributed over 32 invocations as on NVIDIA's
// devices, times 16 rows or columns in `staged`, through shared memory. All invocations of a workgroup have to reach
// the calls together.
#ifndef INTAGLIO_EMULATED_ATTENTION
#define INTAGLIO_EMULATED_ATTENTION

#undef LATER_UNROLLED
#define LATER_UNROLLED [[dependency_infinite]]  // kept rolled (tools/embed_shaders), or llvmpipe compiles for minutes
#define sums_of float[8]
#define tokens_of float16_t[8]
#define no_sums float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
shared float matrix_tokens[128u * 8u];

#define token_at(i) (LANE / 4u + 8u * ((i) / 4u))
#define column_at(i) (2u * (LANE & 3u) + (uint(i) & 1u) + 8u * ((i) / 2u % 2u))

// Column `column` of the row that begins at quad row_at of `staged`.
float staged_half(uint row_at, uint column) {
  vec2 two = unpackHalf2x16(staged[row_at + column / 8u][column % 8u / 2u]);
  return (column & 1u) == 0u ? two.x : two.y;
}

tokens_of load_tokens(uint at) {
  float16_t x[8];
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) x[i] =
      float16_t(staged_half(at + token_at(i) * row_stride, column_at(i)));
  return x;
}

// The product plus c. by_rows: it sums over a row of `staged`; else a row is a column of the result.
sums_of times_staged(float16_t x[8], uint at, bool by_rows, float c[8]) {
  uint own = gl_LocalInvocationIndex, first = own & ~31u;
  barrier();
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) matrix_tokens[own * 8u + i] = float(x[i]);
  barrier();
  float y[8];
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint token = token_at(i), column = column_at(i);
    y[i] = c[i];
    LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) y[i] +=
        matrix_tokens[(first + token % 8u * 4u + k % 8u / 2u) * 8u + (k & 1u) + 4u * (token / 8u) + 2u * (k / 8u)] *
        staged_half(at + (by_rows ? k : column) * row_stride, by_rows ? column : k);
  }
  return y;
}

sums_of load_sums(uint at) {
  float y[8];
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) y[i] =
      uintBitsToFloat(staged[at + token_at(i) * row_stride + column_at(i) / 4u][column_at(i) % 4u]);
  return y;
}

void store_sums(uint at, float c[8]) {
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i)
      staged[at + token_at(i) * row_stride + column_at(i) / 4u][column_at(i) % 4u] = floatBitsToUint(c[i]);
}

#define strip_barrier() barrier()

#endif
