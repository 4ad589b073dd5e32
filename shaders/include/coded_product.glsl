// SPDX-License-Identifier: MIT
// Products of coded weights and activations of a token: 32 columns at a time in integers, or octets of columns in
// floats (docs/kernels.md, "Product of coded weights"). The including shader has codec.glsl, and EACH_UNROLLED for
// loops of constant length.
#if !defined(INTAGLIO_CODED_PRODUCT) || defined(ONCE_MORE)
#define INTAGLIO_CODED_PRODUCT
#ifndef ONCE_MORE

// 32 activations as integers of 24 bits with a common scale: word e has the upper bytes of columns 4e .. 4e + 3. With
// dot products word 8 + e has the middle bytes and word 16 + e the lower ones; else word 8 + i has the lower two bytes
// of columns 2i and 2i + 1. Also sums of the upper bytes and of the bytes below them.
struct fixed_block {
  uvec4 words[6];
  float scale;
  ivec2 sums;
};

// Adds products of four columns' codes with the upper bytes and with the bytes below them.
void add_products(inout ivec2 sums, uint codes, fixed_block x, uint e) {
  int c = int(codes);
#if INTEGER_DOT
  sums.x += dotPacked4x8EXT(c, int(x.words[e >> 2][e & 3u]));
  sums.y +=
      dotPacked4x8EXT(c, x.words[2u + (e >> 2)][e & 3u]) * 256 + dotPacked4x8EXT(c, x.words[4u + (e >> 2)][e & 3u]);
#else
  int upper = int(x.words[e >> 2][e & 3u]);
  uint low = x.words[2u + (e >> 1)][2u * (e & 1u)], high = x.words[2u + (e >> 1)][2u * (e & 1u) + 1u];
  ivec4 code = ivec4(bitfieldExtract(c, 0, 8), bitfieldExtract(c, 8, 8), bitfieldExtract(c, 16, 8), c >> 24);
  sums.x += sum_of(code * ivec4(bitfieldExtract(upper, 0, 8), bitfieldExtract(upper, 8, 8),
                                bitfieldExtract(upper, 16, 8), upper >> 24));
  sums.y += sum_of(code * ivec4(low & 0xffffu, low >> 16, high & 0xffffu, high >> 16));
#endif
}

// As a float: the part below the upper bytes is rounded first, then the sum.
float whole(ivec2 sums) {
#ifdef sums_by_byte
  precise float sum = fma(float(sums.x), 65536.0, float(sums.y));  // the product is exact, so these are the same bits
#else
  precise float sum = float(sums.x) * 65536.0 + float(sums.y);
#endif
  return sum;
}

#endif
// With sums_by_byte (for codecs with one factor per block) the sums of the three bytes are joined after the block:
// fewer instructions, but more registers until then. Adds a block of a row.
float add_block(float sum, raw_codes raw, vec4 factor, fixed_block x) {
  precise float out_ = sum;
  block_words words = words_ahead(raw);
#ifdef sums_by_byte
  if (sums_by_byte) {
    ivec3 all = ivec3(0);
    EACH_UNROLLED for (uint e = 0u; e < 8u; ++e) {
      int c = int(code_word_at(words, raw, e));
      all.x += dotPacked4x8EXT(c, int(x.words[e >> 2][e & 3u]));
      all.y += dotPacked4x8EXT(c, x.words[2u + (e >> 2)][e & 3u]);
      all.z += dotPacked4x8EXT(c, x.words[4u + (e >> 2)][e & 3u]);
    }
    out_ = out_ + whole(ivec2(all.x, all.y * 256 + all.z) - (codec == codec_q4_0 ? 8 * x.sums : ivec2(0))) *
                      (factor.x * x.scale);
    if (codec != codec_q4_0) out_ = out_ + whole(x.sums) * (factor.z * x.scale);
    return out_;
  }
#endif
  ivec2 low = ivec2(0), high = ivec2(0);
  EACH_UNROLLED for (uint e = 0u; e < 4u; ++e) {
    add_products(low, code_word_at(words, raw, e), x, e);
    add_products(high, code_word_at(words, raw, 4u + e), x, 4u + e);
  }
  if (by_halves_of_block) {
    out_ = out_ + whole(low) * (factor.x * x.scale);
    out_ = out_ + whole(high) * (factor.y * x.scale);
    if (has_least) {
      ivec2 of_low = ivec2(0);
      EACH_UNROLLED for (uint e = 0u; e < 4u; ++e) add_products(of_low, 0x01010101u, x, e);
      out_ = out_ + whole(of_low) * (factor.z * x.scale);
      out_ = out_ + whole(x.sums - of_low) * (factor.w * x.scale);
    }
    return out_;
  }
  out_ = out_ + whole(low + high - late_zero * x.sums) * (factor.x * x.scale);
  if (has_least) out_ = out_ + whole(x.sums) * (factor.z * x.scale);
  return out_;
}
float add_block(float sum, raw_codes raw, vec3 factor, fixed_block x) { return add_block(sum, raw, factor.xyzz, x); }

#ifndef ONCE_MORE
// Sum of the eight accumulators: neighbours first.
float sum8(vec4 low, vec4 high) {
  precise float sum = ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
  return sum;
}

#endif
#endif
