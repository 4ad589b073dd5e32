// SPDX-License-Identifier: MIT
// Matrices of a batch's products in shaders/layers_rows.comp and layers_batch.comp, filled from registers: weights of
// 16 rows by 16 columns, x of 16 columns by 8 tokens, sums of 16 rows by 8 tokens. A lane has four of the 16 columns,
// in the order 0, 2, 1, 3: a word of two f16 values, and the next word. The including shader has half_codes.glsl.
#ifndef INTAGLIO_ROWS_MATRICES
#define INTAGLIO_ROWS_MATRICES

#define sums_of coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define weights_of coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define tokens_of coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>

// Weights of rows lane / 4 and lane / 4 + 8.
weights_of weights_matrix(uvec2 words, uvec2 later_words) {
  weights_of w;
  f16vec2 low = as_pair(words.x), high = as_pair(words.y), later_low = as_pair(later_words.x),
          later_high = as_pair(later_words.y);
  w[0] = low.x;
  w[1] = low.y;
  w[2] = high.x;
  w[3] = high.y;
  w[4] = later_low.x;
  w[5] = later_low.y;
  w[6] = later_high.x;
  w[7] = later_high.y;
  return w;
}
// x of token lane / 4.
tokens_of tokens_matrix(uvec2 words) {
  tokens_of b;
  f16vec2 low = as_pair(words.x), high = as_pair(words.y);
  b[0] = low.x;
  b[1] = low.y;
  b[2] = high.x;
  b[3] = high.y;
  return b;
}

#endif
