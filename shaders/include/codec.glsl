// SPDX-License-Identifier: MIT
// Weights of a codec in groups of four rows (kernels/matmul_layout.hpp). The including shader has the constants `codec`
// and `columns`. A shader of several codecs includes the codec's code again for each further one (once_more.glsl).
#if !defined(INTAGLIO_CODEC) || defined(ONCE_MORE)
#define INTAGLIO_CODEC

#include "intaglio/codecs/rows.h"
#include "value_tables.glsl"

// Fields of the codec's row; they are constant-folded when a pipeline is made. A codec without a row is dense.
#define BITS_OF(name, id, bits, zero, table, form, per, least) codec == id ? bits:
#define ZERO_OF(name, id, bits, zero, table, form, per, least) codec == id ? zero:
#define TABLE_OF(name, id, bits, zero, table, form, per, least) codec == id ? table:
#define FORM_OF(name, id, bits, zero, table, form, per, least) codec == id ? form:
#define PER_OF(name, id, bits, zero, table, form, per, least) codec == id ? per:
#define LEAST_OF(name, id, bits, zero, table, form, per, least) codec == id ? least:
const uint code_bits = INTAGLIO_BLOCK_CODECS(BITS_OF) 0u, value_table = INTAGLIO_BLOCK_CODECS(TABLE_OF) 0u,
           factor_form = INTAGLIO_BLOCK_CODECS(FORM_OF) 0u;
const int zero_code = INTAGLIO_BLOCK_CODECS(ZERO_OF) 0;
// Each half of a block has factors of its own; a minimum is added to all codes.
const bool by_halves_of_block = (INTAGLIO_BLOCK_CODECS(PER_OF) 32u) == 16u,
           has_least = (INTAGLIO_BLOCK_CODECS(LEAST_OF) 0u) != 0u;
// Codes are signed bytes, or unsigned ones; with unsigned codes `late_zero` is subtracted from sums for each code.
const bool is_subtracted = by_halves_of_block && zero_code != 0, signed_table = value_table != 0u && zero_code == 0,
           signed_numbers = code_bits == 8u || signed_table, signed_codes = signed_numbers || is_subtracted;
const int late_zero = signed_codes ? 0 : zero_code;
// Bytes of a row's codes and factors, per 32 columns, and bytes of the factors that 256 columns share.
const uint factor_each = factor_form == FACTOR_SIX ? 0u : factor_form == FACTOR_BYTE ? 1u : 2u;
const uint row_code_bytes = 4u * code_bits,
           factor_bytes = factor_each * (by_halves_of_block ? 2u : 1u) * (has_least ? 2u : 1u),
           super_bytes = factor_form == FACTOR_SIX    ? 16u
                         : factor_form != FACTOR_BYTE ? 0u
                         : has_least                  ? 4u
                                                      : 2u;
#ifndef ONCE_MORE
#define COUNT_UNKNOWN(name, id, bits, zero, table, form, per, least) \
  +(INTAGLIO_KNOWN_ROW(bits, table, form, per, least) ? 0 : 1)
struct rows_are_known {
  int at[1 - 2 * (0 INTAGLIO_BLOCK_CODECS(COUNT_UNKNOWN))];  // a negative length, and so an error, if one is unknown
};
// Numbers of the codecs that have code of their own beside the general code.
#define NUMBER_OF(name, id, bits, zero, table, form, per, least) const uint codec_##name = id;
INTAGLIO_BLOCK_CODECS(NUMBER_OF)

#define dense (codec <= element_bf16)
#define blocks (columns / 32u)
#define supers (columns / 256u)
// Octets of columns of a dense row, and quads of words per octet.
#define octets ((columns + 7u) / 8u)
#define octet_quads (codec == element_f32 ? 2u : 1u)
// Quads of words of four rows.
#define group_quads \
  (dense ? 4u * octets * octet_quads : (blocks * (row_code_bytes + factor_bytes) + supers * super_bytes + 3u) / 4u)

struct octet {
  vec4 low, high;
};

// An octet of columns of row r of a group, or the codes of a block of columns, as stored, and the factors of a block's
// four rows.
// Planes of 8 or 4 bits are in a (and b), of 2 bits in b.xy, of 1 bit in b.z.
struct raw_codes {
  uvec4 a, b;
};
// FACTOR_SIX: row[r / 2] has six_bit_words of rows r and r ^ 1. Else row[0] has the factors of all rows and, if these
// are f16, the factors that 256 columns share as row[0].zw, or as row[1] if these are two per row.
struct raw_factors {
  uvec4 row[4];
};

// Where a lane's octet or block begins among the quads of words of a group, and among its pairs. Everything after is at
// constant distances, which are part of the loads.
struct lane_addresses {
  uvec2 group, quads, pairs, words;
};
// FACTOR_SIX: what 256 columns of two neighbouring rows share, a word for each row, and the two words that have the
// block's 24 bits. at: index of the first of their eight words, an even number
uvec4 six_bit_words(Words from, uint at, uint block) {
  uint after = 2u + 3u * (block & 7u) / 4u;
  return uvec4(word_pair(from, at / 2u), from.at[at + after], from.at[at + min(after + 1u, 7u)]);
}
// d and the number that is subtracted, of the first row or of the second.
vec2 six_bit_factors(uvec4 words, uint r, uint block) {
  uint shift = 24u * (block & 7u) & 31u;
#ifdef LONG_SHIFTS
  uint bits = uint(packUint2x32(words.zw) >> shift);
#else
  uint bits = words.z >> shift | (words.w << 1u) << (31u - shift);
#endif
  bits >>= 12u * (r & 1u);
  precise vec2 both = f16_pair((r & 1u) == 0u ? words.x : words.y) * vec2(bits & 63u, bits >> 6 & 63u);
  return both;
}
uvec2 advanced(uvec2 from, uint bytes) {
  uint carried, low = uaddCarry(from.x, bytes, carried);
  return uvec2(low, from.y + carried);
}
#endif
lane_addresses addresses_in_group(Words from, uint group, uint block) {
  uint low, high;  // experts' matrices together may take more than 4 GiB
  umulExtended(group, group_quads * 16u, high, low);
  uvec2 first = advanced(uvec2(from), low);
  first.y += high;
  return lane_addresses(first, advanced(first, block * (dense ? octet_quads * 16u : 16u)), advanced(first, block * 8u),
                        advanced(first, block * 4u));
}

raw_codes load_codes(lane_addresses from, uint r) {
  raw_codes raw = raw_codes(uvec4(0u), uvec4(0u));
  if (dense) {
    raw.a = word_quad(Words(from.quads), r * octets * octet_quads);
    if (codec == element_f32) raw.b = word_quad(Words(from.quads), r * octets * octet_quads + 1u);
  } else if (code_bits == 8u) {
    raw.a = word_quad(Words(from.quads), 2u * r * blocks);
    raw.b = word_quad(Words(from.quads), (2u * r + 1u) * blocks);
  } else {
    if ((code_bits & 4u) != 0u) raw.a = word_quad(Words(from.quads), r * blocks);
    if ((code_bits & 2u) != 0u) raw.b.xy = word_pair(Words(from.pairs), (2u * (code_bits & 4u) + r) * blocks);
    if ((code_bits & 1u) != 0u) raw.b.z = Words(from.words).at[(4u * (code_bits & 6u) + r) * blocks];
  }
  return raw;
}

raw_factors load_factors(lane_addresses from, uint block) {
  raw_factors raw;
  [[unroll]] for (uint r = 0u; r < 4u; ++r)
    raw.row[r] = uvec4(0u);
  if (factor_form == FACTOR_SIX) {
    [[unroll]] for (uint pair = 0u; pair < 2u; ++pair)
      raw.row[pair] = six_bit_words(Words(from.group), row_code_bytes * blocks + block / 8u * 16u + 8u * pair, block);
    return raw;
  }
  if (factor_bytes == 4u) raw.row[0] = word_quad(Words(from.quads), row_code_bytes / 4u * blocks);
  if (factor_bytes == 2u) raw.row[0].xy = word_pair(Words(from.pairs), row_code_bytes / 2u * blocks);
  if (factor_bytes == 1u) raw.row[0].x = Words(from.words).at[row_code_bytes * blocks];
  if (super_bytes == 2u)
    raw.row[0].zw = word_pair(Words(from.group), (row_code_bytes + factor_bytes) * blocks / 2u + block / 8u);
  if (super_bytes == 4u)
    raw.row[1] = word_quad(Words(from.group), (row_code_bytes + factor_bytes) * blocks / 4u + block / 8u);
  return raw;
}

octet octet_of(raw_codes raw) {
  if (codec == element_f32) return octet(uintBitsToFloat(raw.a), uintBitsToFloat(raw.b));
  if (codec == element_f16)
    return octet(vec4(f16_pair(raw.a.x), f16_pair(raw.a.y)), vec4(f16_pair(raw.a.z), f16_pair(raw.a.w)));
  return octet(vec4(bf16_pair(raw.a.x), bf16_pair(raw.a.y)), vec4(bf16_pair(raw.a.z), bf16_pair(raw.a.w)));
}

// Codes of a codec with a table are stored as planes of one bit each: bit 8k + e of plane b is bit b of column 4e + k.
#define UNIT_OF(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) \
  value_table == id ? unit:
const float table_unit = INTAGLIO_VALUE_TABLES(UNIT_OF) 1.0;
const uint table_bits_0 = INTAGLIO_VALUE_TABLES(BITS_0) 0u, table_bits_1 = INTAGLIO_VALUE_TABLES(BITS_1) 0u,
           table_bits_2 = INTAGLIO_VALUE_TABLES(BITS_2) 0u, table_bits_3 = INTAGLIO_VALUE_TABLES(BITS_3) 0u;
uvec4 planes_of(raw_codes raw) {
  if (code_bits == 4u) return raw.a;
  return code_bits == 1u ? uvec4(raw.b.z, 0u, 0u, 0u) : uvec4(raw.b.xyz, 0u);
}
// Columns 4e .. 4e + 3 as bytes: the stored codes, of codecs without a table.
uint stored_codes(raw_codes raw, uint e) {
  if (code_bits == 8u) return e < 4u ? raw.a[e & 3u] : raw.b[e & 3u];
  uint word = raw.a[e & 3u], codes = 0u;
  if ((code_bits & 4u) != 0u) codes = (e < 4u ? word : word >> 4) & 0x0f0f0f0fu;
  if ((code_bits & 2u) != 0u) codes |= ((raw.b[e >> 2] >> (2u * (e & 3u))) & 0x03030303u) << (code_bits & 4u);
  if ((code_bits & 1u) != 0u) codes |= (raw.b.z >> e & 0x01010101u) << (code_bits & 6u);
  return codes;
}
// The same, or the table's values.
uint plain_codes(raw_codes raw, uint e) {
  return value_table != 0u ? table_word(value_table, planes_of(raw), e) : stored_codes(raw, e);
}
// Signed values of the codes; if signed_codes is false, the codes, from which late_zero is still to be subtracted.
uint less_zero(uint codes) {
  return is_subtracted ? (codes + uint(128 - zero_code) * 0x01010101u) ^ 0x80808080u : codes;
}
uint code_word(raw_codes raw, uint e) { return less_zero(plain_codes(raw, e)); }
// All words of a block, computed together if they come from a table; then word e of them.
block_words words_ahead(raw_codes raw) {
  block_words words = block_words(uvec4(0u), uvec4(0u));
  if (value_table != 0u)
    words = table_words(uvec4(table_bits_0, table_bits_1, table_bits_2, table_bits_3), planes_of(raw));
  return words;
}
uint plain_codes_at(block_words words, raw_codes raw, uint e) {
  if (value_table != 0u) return e < 4u ? words.low[e & 3u] : words.high[e & 3u];
  return stored_codes(raw, e);
}
uint code_word_at(block_words words, raw_codes raw, uint e) { return less_zero(plain_codes_at(words, raw, e)); }

#ifndef ONCE_MORE
uint half_of(uvec4 words, uint index) { return (words[index >> 1] >> (16u * (index & 1u))) & 0xffffu; }

vec2 signed_bytes_of(uint bits) { return vec2(bitfieldExtract(int(bits), 0, 8), bitfieldExtract(int(bits), 8, 8)); }
#endif

// The factors of a row's codes: d of each half of the block, and the number added in each half.
vec4 f16_factors(raw_factors raw, uint r, uint block) {
  vec4 out_ = vec4(0.0);
  if (factor_form == FACTOR_HALF) {
    if (factor_bytes == 2u) out_.xy = f16_pair(half_of(raw.row[0], r)).xx;
    else if (by_halves_of_block) out_.xy = f16_pair(raw.row[0][r]);
    else out_ = f16_pair(raw.row[0][r]).xxyy;
  } else if (factor_form == FACTOR_BRAIN) {
    out_.xy = bf16_pair(half_of(raw.row[0], r)).xx;
  } else if (factor_form == FACTOR_BYTE) {
    uint scales = factor_bytes == 4u   ? raw.row[0][r]
                  : factor_bytes == 2u ? half_of(raw.row[0], r)
                                       : raw.row[0].x >> (8u * r);
    vec2 super = super_bytes == 4u ? f16_pair(raw.row[1][r]) : f16_pair(half_of(raw.row[0], 4u + r)).xx;
    vec2 of_codes = signed_bytes_of(scales), least = vec2(scales >> 16 & 255u, scales >> 24);
    if (!by_halves_of_block) of_codes.y = of_codes.x, least = vec2(scales >> 8 & 255u);
    precise vec2 d = super.x * of_codes, m = super.y * least;
    out_.xy = d * table_unit;
    if (has_least) out_.zw = -m;
  } else if (factor_form == FACTOR_SIX) {
    vec2 d = six_bit_factors(raw.row[r >> 1], r, block);
    out_ = vec4(d.xx, -d.yy);
  }
  return out_;
}
// For codecs whose blocks have at most one number to add.
vec3 row_factors(raw_factors raw, uint r, uint block) { return f16_factors(raw, r, block).xyz; }

// Columns 4 * quad .. 4 * quad + 3 of a row, as f32.
vec4 load_columns(Words from, uint row, uint quad) {
  if (dense) {
    octet eight = octet_of(load_codes(addresses_in_group(from, row / 4u, quad / 2u), row & 3u));
    return (quad & 1u) == 0u ? eight.low : eight.high;
  }
  uint block = quad / 8u;
  lane_addresses from_lane = addresses_in_group(from, row / 4u, block);
  uint word = code_word(load_codes(from_lane, row & 3u), quad & 7u);
  vec4 factor = f16_factors(load_factors(from_lane, block), row & 3u, block);
  ivec4 codes = ivec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8),
                      bitfieldExtract(int(word), 16, 8), int(word) >> 24);
  precise vec4 y = ((quad & 4u) == 0u ? factor.x : factor.y) * vec4(codes - late_zero);
  if (has_least) y = y + ((quad & 4u) == 0u ? factor.z : factor.w);
  return y;
}

#endif
