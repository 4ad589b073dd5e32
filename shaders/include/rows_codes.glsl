// SPDX-License-Identifier: MIT
// Converts codes of blocks to f16, four columns at a time, in shaders/layers_rows.comp and layers_batch.comp. The
// including shader has codec.glsl and half_codes.glsl.
#ifndef INTAGLIO_ROWS_CODES
#define INTAGLIO_ROWS_CODES

// A lane's codes of a row and their factor.
struct row_part {
  raw_codes raw;
  uvec4 factor;
};

const bool has_sign = codec == codec_q8_0 || codec == codec_q6_k,
           whole_tiles = codec == codec_q4_0 || codec == codec_q4_1;
// 1024 twice as f16, which turns codes into f16; for signed codes it flips the sign bits as well. The shader reads it
// from memory, so that the compiler does not know it and emits one instruction for mask and this.
const uint magic_of_codes = has_sign ? 0x64806480u : 0x64006400u;

// Four neighbouring columns as f16, in the order 0, 2, 1, 3: a code below 2^10 in the mantissa of 1024 is 1024 plus the
// code.
uvec2 four_f16(row_part part, block_factors by, uint j, uint magic) {
  bool upper = whole_tiles && j >= 4u;
  uint word = whole_tiles ? part.raw.a[j & 3u] : code_word(part.raw, j);
  float offset = has_sign ? 128.0 : codec == codec_q4_0 ? 8.0 : 0.0;
  uint mask = !whole_tiles ? 0x00ff00ffu
              : upper      ? 0x00f000f0u
                           : 0x000f000fu;  // codes in the upper four bits of a byte are 16 times as large
  uvec2 y;
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    f16vec2 code = as_pair(((i == 0u ? word : word >> 8) & mask) ^ magic);
    code = upper ? fma(code, f16vec2(float16_t(0.0625)), f16vec2(float16_t(-64.0 - offset)))
                 : code - f16vec2(float16_t(1024.0 + offset));
    f16vec2 d = j < 4u || whole_tiles ? by.d : by.upper_d;
    y[i] = as_word(codec == codec_q4_1 || codec == codec_q4_k ? fma(code, d, by.m) : code * d);
  }
  return y;
}

#endif
