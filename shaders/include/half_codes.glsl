// SPDX-License-Identifier: MIT
// Codes of blocks as halves: what products by cooperative matrices of f16 multiply. The including shader has
// codec.glsl.
#ifndef INTAGLIO_HALF_CODES
#define INTAGLIO_HALF_CODES

uint as_word(f16vec2 pair) { return packFloat2x16(pair); }
f16vec2 as_pair(uint word) { return unpackFloat2x16(word); }
uint rounded(float a, float b) { return as_word(f16vec2(vec2(a, b))); }

// Four columns of f16 or bf16 as halves, in the order 0, 2, 1, 3.
uvec2 dense_halves(uvec2 w) {
  vec2 a = brain_halves(w.x), b = brain_halves(w.y);
  return codec == element_f16 ? uvec2((w.x & 0xffffu) | w.y << 16, (w.x >> 16) | (w.y & 0xffff0000u))
                              : uvec2(rounded(a.x, b.x), rounded(a.y, b.y));
}

// What a block of a group's row r is scaled with, as it lies there; of q6_k two scales and the super-block's d in one
// word.
uvec4 load_factor(Words group, uint r, uint block) {
  if (codec == codec_q4_k) return word_quad(group, 4u * blocks + r * supers + block / 8u);
  uint word = 0u;
  if (codec == codec_q4_0) word = group.at[16u * blocks + 2u * block + r / 2u];
  if (codec == codec_q8_0) word = group.at[32u * blocks + 2u * block + r / 2u];
  if (codec == codec_q4_1) word = group.at[16u * blocks + 4u * block + r];
  if (codec == codec_q6_k) {
    uint scales = group.at[24u * blocks + 2u * block + r / 2u], d = group.at[26u * blocks + 2u * (block / 8u) + r / 2u];
    word = ((scales >> (16u * (r & 1u))) & 0xffffu) | (d >> (16u * (r & 1u))) << 16;
  }
  return uvec4(word, 0u, 0u, 0u);
}

// That as halves: d of the block's first 16 columns and of the others, and what is added to all.
struct block_factors {
  f16vec2 d, upper_d, m;
};
block_factors factors_of(uvec4 factor, uint r, uint block) {
  block_factors by;
  by.d = by.upper_d = by.m = f16vec2(0.0);
  if (codec == codec_q8_0 || codec == codec_q4_0) {
    by.d = by.upper_d = by.m = f16vec2(as_pair(factor.x)[r & 1u]);
  } else if (codec == codec_q4_1) {
    by.d = by.upper_d = f16vec2(as_pair(factor.x).x);
    by.m = f16vec2(as_pair(factor.x).y);
  } else if (codec == codec_q4_k) {
    // As row_factors has it.
    uint k = block & 7u, shift = 8u * (k & 3u), first = factor.y >> shift, second = factor.z >> shift,
         third = factor.w >> shift;
    uint scale = k < 4u ? first & 63u : (third & 15u) | (first >> 2) & 48u;
    uint minimum = k < 4u ? second & 63u : (third >> 4) & 15u | (second >> 2) & 48u;
    vec2 both = unpackHalf2x16(factor.x) * vec2(scale, minimum);
    by.d = by.upper_d = f16vec2(float16_t(both.x));
    by.m = f16vec2(float16_t(-both.y));
  } else if (codec == codec_q6_k) {
    int scales = int(factor.x);
    float super = unpackHalf2x16(factor.x).y;
    by.d = by.m = f16vec2(float16_t(super * float(bitfieldExtract(scales, 0, 8))));
    by.upper_d = f16vec2(float16_t(super * float(bitfieldExtract(scales, 8, 8))));
  }
  return by;
}

// Two codes as halves, less offset: 0x6400 and 10 bits are 1024 and the number.
f16vec2 two_codes(uint bits, float offset) { return as_pair(bits | 0x64006400u) - f16vec2(float16_t(1024.0 + offset)); }

// Four columns, in each byte a code, less offset, times d and plus m: in the order 0, 2, 1, 3.
uvec2 four_columns(uint word, float offset, f16vec2 d, f16vec2 m) {
  uvec2 y;
  LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
    f16vec2 code = two_codes((i == 0u ? word : word >> 8) & 0x00ff00ffu, offset);
    y[i] = as_word(codec == codec_q4_1 || codec == codec_q4_k ? fma(code, d, m) : code * d);
  }
  return y;
}

#endif
