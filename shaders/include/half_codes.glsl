// SPDX-License-Identifier: MIT
// Converts codes of blocks to f16, for products by cooperative matrices of f16. The including shader has codec.glsl.
#ifndef INTAGLIO_HALF_CODES
#define INTAGLIO_HALF_CODES

uint as_word(f16vec2 pair) { return packFloat2x16(pair); }
f16vec2 as_pair(uint word) { return unpackFloat2x16(word); }
uint rounded(float a, float b) { return as_word(f16vec2(vec2(a, b))); }

// Four columns of f16 or bf16 as f16, in the order 0, 2, 1, 3.
uvec2 dense_f16(uvec2 w) {
  vec2 a = bf16_pair(w.x), b = bf16_pair(w.y);
  return codec == element_f16 ? uvec2((w.x & 0xffffu) | w.y << 16, (w.x >> 16) | (w.y & 0xffff0000u))
                              : uvec2(rounded(a.x, b.x), rounded(a.y, b.y));
}

// The factors of a block of a group's row r, as stored. FACTOR_SIX: six_bit_words. Else x has its factors; if blocks
// have one f16 or bf16 factor, x is the word of two rows' factors. With FACTOR_BYTE the factor that 256 columns share
// is in x, above the block's 8 or 16 bits, or in y.
const bool wide_factor = factor_form == FACTOR_SIX || super_bytes == 4u;  // x is not all of it
uvec4 load_factor(Words group, uint r, uint block) {
  if (factor_form == FACTOR_SIX)
    return six_bit_words(group, row_code_bytes * blocks + block / 8u * 16u + r / 2u * 8u, block);
  uint word = 0u, super = 0u;
  if (factor_bytes == 4u) word = group.at[row_code_bytes * blocks + 4u * block + r];
  if (factor_bytes == 2u) word = group.at[row_code_bytes * blocks + 2u * block + r / 2u];
  if (factor_bytes == 1u) word = group.at[row_code_bytes * blocks + block] >> (8u * r) & 0xffu;
  if (factor_form != FACTOR_BYTE) return uvec4(word, 0u, 0u, 0u);
  uint supers_at = (row_code_bytes + factor_bytes) * blocks;
  if (factor_bytes == 2u) word = (word >> (16u * (r & 1u))) & 0xffffu;
  if (super_bytes == 4u) super = group.at[supers_at + 4u * (block / 8u) + r];
  if (super_bytes == 2u) word |= group.at[supers_at + 2u * (block / 8u) + r / 2u] >> (16u * (r & 1u)) << 16;
  return uvec4(word, super, 0u, 0u);
}

// The factors as f16: d of the block's first 16 columns and of the others, and the number added in each.
struct block_factors {
  f16vec2 d, upper_d, m, upper_m;
};
f16vec2 two_of(float number) { return f16vec2(float16_t(number)); }
block_factors factors_of(uvec4 factor, uint r, uint block) {
  block_factors by;
  by.d = by.upper_d = by.m = by.upper_m = f16vec2(0.0);
  if (factor_form == FACTOR_HALF) {
    if (factor_bytes == 2u) {
      by.d = by.upper_d = by.m = f16vec2(as_pair(factor.x)[r & 1u]);
    } else {
      by.d = f16vec2(as_pair(factor.x).x);
      by.upper_d = by_halves_of_block ? f16vec2(as_pair(factor.x).y) : by.d;
      by.m = by.upper_m = f16vec2(as_pair(factor.x).y);
    }
  } else if (factor_form == FACTOR_BRAIN) {
    by.d = by.upper_d = two_of(bf16_pair(factor.x)[r & 1u]);
  } else if (factor_form == FACTOR_BYTE) {
    int scales = int(factor.x);
    vec2 super = unpackHalf2x16(super_bytes == 4u ? factor.y : factor.x >> 16);
    super.x *= table_unit;
    by.d = by.upper_d = by.m = two_of(super.x * float(bitfieldExtract(scales, 0, 8)));
    if (by_halves_of_block) by.upper_d = two_of(super.x * float(bitfieldExtract(scales, 8, 8)));
    if (has_least) {
      by.m = by.upper_m = two_of(-super.y * float(factor.x >> (by_halves_of_block ? 16u : 8u) & 255u));
      if (by_halves_of_block) by.upper_m = two_of(-super.y * float(factor.x >> 24));
    }
  } else if (factor_form == FACTOR_SIX) {
    vec2 both = six_bit_factors(factor, r, block);
    by.d = by.upper_d = two_of(both.x);
    by.m = by.upper_m = two_of(-both.y);
  }
  return by;
}

// Two codes as f16, minus offset: 0x6400 with 10 bits of mantissa is 1024 plus the number.
f16vec2 two_codes(uint bits, float offset) { return as_pair(bits | 0x64006400u) - f16vec2(float16_t(1024.0 + offset)); }

// Four columns, one code per byte, minus offset, times d, plus m: in the order 0, 2, 1, 3.
uvec2 four_columns(uint word, float offset, f16vec2 d, f16vec2 m) {
  uvec2 y;
  LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
    f16vec2 code = two_codes((i == 0u ? word : word >> 8) & 0x00ff00ffu, offset);
    y[i] = as_word(has_least ? fma(code, d, m) : code * d);
  }
  return y;
}

// Columns 4e .. 4e + 3 as unsigned bytes, of which each is code_offset more than its number.
#define code_offset (signed_numbers ? 128.0 : float(zero_code))
uint as_unsigned(uint plain) { return signed_numbers ? plain ^ 0x80808080u : plain; }
uint unsigned_word(raw_codes raw, uint e) { return as_unsigned(plain_codes(raw, e)); }

#endif
