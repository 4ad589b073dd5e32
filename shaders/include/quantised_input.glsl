// SPDX-License-Identifier: MIT
// Norm and quantisation before products with int8 activations, by a workgroup: one token as int8 in shared memory, 16
// columns per tile. The including shader has `columns`, `eps`, norm.glsl, the push constants input_ and norm_weight,
// and `quantises`.
#ifndef INTAGLIO_QUANTISED_INPUT
#define INTAGLIO_QUANTISED_INPUT

#define tiles (columns / 16u)

// Activations of the prologue.
shared uvec4 shared_x[quantises ? norm_width_max / 16u : 1u];

// Fills shared_x. @return 1 / s; `sum` becomes shared_sum() of the int8 values
float quantise_input(out int sum) {
  float largest, r = inverse_rms(input_, 0u, norm_weight, eps, largest), m = largest_activation(largest, r);
  precise float s = 127.0 / m;
  sum = 0;
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, 0u, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i)) {
      ivec4 q = quantised(normalised(i, r), s);
      uint quad = norm_quad(chunk, i);
      shared_x[quad / 4u][quad & 3u] = packed(q);
      sum += sum_of(q);
    }
  }
  sum = shared_sum(sum);
  float factor = grid_step(m, r);
  return factor;
}

#endif
