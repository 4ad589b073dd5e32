// SPDX-License-Identifier: MIT
// Weights of a codec in groups of four rows (kernels/matmul_layout.hpp). The including shader has the constants `codec`
// and `columns`.
#ifndef INTAGLIO_CODEC
#define INTAGLIO_CODEC

const uint codec_q8_0 = 3u, codec_q4_0 = 4u, codec_q4_1 = 5u, codec_q4_k = 6u, codec_q6_k = 7u;

#define dense (codec <= element_bf16)
#define blocks (columns / 32u)
#define supers (columns / 256u)
// Octets of columns of a dense row, and what they take.
#define octets ((columns + 7u) / 8u)
#define octet_quads (codec == element_f32 ? 2u : 1u)
// Quads of words of four rows.
#define group_quads                                  \
  (dense                 ? 4u * octets * octet_quads \
   : codec == codec_q8_0 ? (17u * blocks + 1u) / 2u  \
   : codec == codec_q4_0 ? (9u * blocks + 1u) / 2u   \
   : codec == codec_q4_1 ? 5u * blocks               \
   : codec == codec_q4_k ? 4u * blocks + 4u * supers \
                         : (13u * blocks + supers + 1u) / 2u)

struct octet {
  vec4 low, high;
};

// An octet of columns, or the codes of a block of them, of row r of a group as they lie there, and what a block's four
// rows are scaled with.
struct raw_codes {
  uvec4 a, b;
};
struct raw_factors {
  uvec4 row[4];
};

// Where a lane's octet or block begins among the quads of words of a group, and among its pairs: what follows lies at
// distances that are constants, which go into the loads.
struct lane_place {
  uvec2 group, quads, pairs;
};
uvec2 advanced(uvec2 from, uint bytes) {
  uint carried, low = uaddCarry(from.x, bytes, carried);
  return uvec2(low, from.y + carried);
}
lane_place place_in_group(Words from, uint group, uint block) {
  uint low, high;  // experts' matrices together may take more than 4 GiB
  umulExtended(group, group_quads * 16u, high, low);
  uvec2 first = advanced(uvec2(from), low);
  first.y += high;
  return lane_place(first, advanced(first, block * (dense ? octet_quads * 16u : 16u)), advanced(first, block * 8u));
}

raw_codes load_codes(lane_place from, uint r) {
  raw_codes raw = raw_codes(uvec4(0u), uvec4(0u));
  if (dense) {
    raw.a = word_quad(Words(from.quads), r * octets * octet_quads);
    if (codec == element_f32) raw.b = word_quad(Words(from.quads), r * octets * octet_quads + 1u);
  } else if (codec == codec_q8_0) {
    raw.a = word_quad(Words(from.quads), 2u * r * blocks);
    raw.b = word_quad(Words(from.quads), (2u * r + 1u) * blocks);
  } else {
    raw.a = word_quad(Words(from.quads), r * blocks);
    if (codec == codec_q6_k) raw.b.xy = word_pair(Words(from.pairs), (8u + r) * blocks);
  }
  return raw;
}

raw_factors load_factors(lane_place from, uint block) {
  raw_factors raw;
  [[unroll]] for (uint r = 0u; r < 4u; ++r)
    raw.row[r] = uvec4(0u);
  if (codec == codec_q4_k) {
    [[unroll]] for (uint r = 0u; r < 4u; ++r)
      raw.row[r] = word_quad(Words(from.group), 4u * blocks + r * supers + block / 8u);
  } else if (codec == codec_q4_1) {
    raw.row[0] = word_quad(Words(from.quads), 4u * blocks);
  } else if (!dense) {
    raw.row[0].xy = word_pair(Words(from.pairs), (codec == codec_q8_0 ? 16u : codec == codec_q4_0 ? 8u : 12u) * blocks);
    if (codec == codec_q6_k) raw.row[0].zw = word_pair(Words(from.group), 13u * blocks + block / 8u);
  }
  return raw;
}

octet octet_of(raw_codes raw) {
  if (codec == element_f32) return octet(uintBitsToFloat(raw.a), uintBitsToFloat(raw.b));
  if (codec == element_f16)
    return octet(vec4(halves(raw.a.x), halves(raw.a.y)), vec4(halves(raw.a.z), halves(raw.a.w)));
  return octet(vec4(brain_halves(raw.a.x), brain_halves(raw.a.y)), vec4(brain_halves(raw.a.z), brain_halves(raw.a.w)));
}

// Columns 4e .. 4e + 3 as bytes: unsigned codes of q4_0, q4_1 and q4_k, signed ones of the others.
uint code_word(raw_codes raw, uint e) {
  if (codec == codec_q8_0) return e < 4u ? raw.a[e & 3u] : raw.b[e & 3u];
  uint word = raw.a[e & 3u], low = (e < 4u ? word : word >> 4) & 0x0f0f0f0fu;
  if (codec != codec_q6_k) return low;
  uint high = (raw.b[e >> 2] >> (2u * (e & 3u))) & 0x03030303u;
  return ((low | high << 4) + 0x60606060u) ^ 0x80808080u;  // minus 32
}

uint half_of(uvec4 words, uint index) { return (words[index >> 1] >> (16u * (index & 1u))) & 0xffffu; }

// What a row's codes are multiplied with: d of each half of the block, and what is added to all.
vec3 row_factors(raw_factors raw, uint r, uint block) {
  if (codec == codec_q8_0 || codec == codec_q4_0) return vec3(halves(half_of(raw.row[0], r)).xx, 0.0);
  if (codec == codec_q4_1) return halves(raw.row[0][r]).xxy;
  if (codec == codec_q6_k) {
    uint scales = half_of(raw.row[0], r);
    precise vec2 d = halves(half_of(raw.row[0], 4u + r)).x *
                     vec2(bitfieldExtract(int(scales), 0, 8), bitfieldExtract(int(scales), 8, 8));
    return vec3(d, 0.0);
  }
  // q4_k: six bits of bytes 4 + k and 8 + k of the head, k below 4, or four of byte 8 + k and two of those.
  uvec4 head = raw.row[r];
  uint k = block & 7u, shift = 8u * (k & 3u), a = head.y >> shift, b = head.z >> shift, c = head.w >> shift;
  uint scale = k < 4u ? a & 63u : (c & 15u) | (a >> 2) & 48u;
  uint minimum = k < 4u ? b & 63u : (c >> 4) & 15u | (b >> 2) & 48u;
  precise vec2 d = halves(head.x) * vec2(scale, minimum);
  return vec3(d.x, d.x, -d.y);
}

// Columns 4 * quad .. of a row, widened.
vec4 load_columns(Words from, uint row, uint quad) {
  if (dense) {
    octet eight = octet_of(load_codes(place_in_group(from, row / 4u, quad / 2u), row & 3u));
    return (quad & 1u) == 0u ? eight.low : eight.high;
  }
  uint block = quad / 8u;
  lane_place place = place_in_group(from, row / 4u, block);
  uint word = code_word(load_codes(place, row & 3u), quad & 7u);
  vec3 factor = row_factors(load_factors(place, block), row & 3u, block);
  ivec4 codes = ivec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8),
                      bitfieldExtract(int(word), 16, 8), int(word) >> 24);
  precise vec4 y = ((quad & 4u) == 0u ? factor.x : factor.y) * vec4(codec == codec_q4_0 ? codes - 8 : codes);
  if (codec == codec_q4_1 || codec == codec_q4_k) y = y + factor.z;
  return y;
}

#endif
