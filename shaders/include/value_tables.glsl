// SPDX-License-Identifier: MIT
// Looks codes of 1 to 4 bits up in a table of codecs/rows.h. A table's number may be a specialization constant, also
// one that differs between the matrices of a layer: functions choose the table, so no constant is declared for each
// entry.
#ifndef INTAGLIO_VALUE_TABLES_LOOKUP
#define INTAGLIO_VALUE_TABLES_LOOKUP

#include "intaglio/codecs/rows.h"

uint chosen(uint mask, uint if_0, uint if_1) { return (if_0 & ~mask) | (if_1 & mask); }

// The values of a table's codes 4k .. 4k + 3, one byte each, for k from 0 to 3.
#define FOUR_BYTES(a, b, c, d) (uint(a) & 255u | (uint(b) & 255u) << 8 | (uint(c) & 255u) << 16 | uint(d) << 24)
#define BYTES_0(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) \
  table == id ? FOUR_BYTES(n0, n1, n2, n3):
#define BYTES_1(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) \
  table == id ? FOUR_BYTES(n4, n5, n6, n7):
#define BYTES_2(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) \
  table == id ? FOUR_BYTES(n8, n9, n10, n11):
#define BYTES_3(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) \
  table == id ? FOUR_BYTES(n12, n13, n14, n15):
uint table_bytes_0(uint table) { return INTAGLIO_VALUE_TABLES(BYTES_0) 0u; }
uint table_bytes_1(uint table) { return INTAGLIO_VALUE_TABLES(BYTES_1) 0u; }
uint table_bytes_2(uint table) { return INTAGLIO_VALUE_TABLES(BYTES_2) 0u; }
uint table_bytes_3(uint table) { return INTAGLIO_VALUE_TABLES(BYTES_3) 0u; }
// Bits 2k and 2k + 1 of the values of the table `value_table`: the first in the lower half, where bit i is that of
// code i.
#define BIT_OF_8(b, n0, n1, n2, n3, n4, n5, n6, n7)                                                         \
  (uint(n0) >> b & 1u | (uint(n1) >> b & 1u) << 1 | (uint(n2) >> b & 1u) << 2 | (uint(n3) >> b & 1u) << 3 | \
   (uint(n4) >> b & 1u) << 4 | (uint(n5) >> b & 1u) << 5 | (uint(n6) >> b & 1u) << 6 | (uint(n7) >> b & 1u) << 7)
#define BIT_OF_16(b, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) \
  (BIT_OF_8(b, n0, n1, n2, n3, n4, n5, n6, n7) | BIT_OF_8(b, n8, n9, n10, n11, n12, n13, n14, n15) << 8)
#define BITS_0(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15)                     \
  value_table == id ? BIT_OF_16(0, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) |         \
                          BIT_OF_16(1, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) << 16 \
                    :
#define BITS_1(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15)                     \
  value_table == id ? BIT_OF_16(2, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) |         \
                          BIT_OF_16(3, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) << 16 \
                    :
#define BITS_2(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15)                     \
  value_table == id ? BIT_OF_16(4, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) |         \
                          BIT_OF_16(5, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) << 16 \
                    :
#define BITS_3(id, unit, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15)                     \
  value_table == id ? BIT_OF_16(6, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) |         \
                          BIT_OF_16(7, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15) << 16 \
                    :

// The one of 16 values, four in each word, that bit masks of codes choose; the same in all bytes.
uint repeated_byte(uint four, uint i) { return (four >> 8u * i & 255u) * 0x01010101u; }
uint chosen_of_4(uint four, uvec4 masks) {
  return chosen(masks.y, chosen(masks.x, repeated_byte(four, 0u), repeated_byte(four, 1u)),
                chosen(masks.x, repeated_byte(four, 2u), repeated_byte(four, 3u)));
}
uint chosen_bytes(uint table, uvec4 masks) {
  return chosen(masks.w,
                chosen(masks.z, chosen_of_4(table_bytes_0(table), masks), chosen_of_4(table_bytes_1(table), masks)),
                chosen(masks.z, chosen_of_4(table_bytes_2(table), masks), chosen_of_4(table_bytes_3(table), masks)));
}
// One bit of the values of 32 codes, of which `planes` has the bits. Bit i of `bits` is that of code i. Vectors keep
// the module short, as it has many copies of this function.
uvec4 chosen(uvec4 mask, uvec4 if_0, uvec4 if_1) { return (if_0 & ~mask) | (if_1 & mask); }
uvec4 every_second(uint bits) { return 0u - (uvec4(bits) >> uvec4(0u, 2u, 4u, 6u) & 1u); }
uint bit_of_16(uint bits, uvec4 planes) {
  uvec4 low = chosen(planes.xxxx, every_second(bits), every_second(bits >> 1)),
        high = chosen(planes.xxxx, every_second(bits >> 8), every_second(bits >> 9)),
        fours = chosen(planes.yyyy, uvec4(low.xz, high.xz), uvec4(low.yw, high.yw)),
        eights = chosen(planes.zzzz, fours.xzxz, fours.ywyw);
  return chosen(planes.w, eights.x, eights.y);
}
struct block_words {
  uvec4 low, high;  // columns 0 .. 15 and 16 .. 31
};
// Values of columns 4e .. 4e + 3, one byte each.
uint table_word(uint table, uvec4 planes, uint e) { return chosen_bytes(table, (planes >> e & 0x01010101u) * 255u); }
void swap_bits(inout uvec4 a, inout uvec4 b, uint distance_, uint mask) {  // mask: the upper bits
  uvec4 first = (a & ~mask) | (b << distance_ & mask), second = (a >> distance_ & ~mask) | (b & mask);
  a = first;
  b = second;
}
// Table values of a block: computes the bits of all 32 values together, then transposes each row of eight words into
// columns. Bits that no value of the table has are constant-folded.
// @param bits those of the table's values, two in a word
block_words table_words(uvec4 bits, uvec4 planes) {
  uint words[8];
  [[dont_unroll]] for (uint b = 0u; b < 8u; ++b)  // drivers unroll this loop (shaders/include/subgroup.glsl)
    words[b] = bit_of_16(bits[b >> 1] >> 16u * (b & 1u), planes);
  uvec4 a = uvec4(words[0], words[1], words[2], words[3]), b = uvec4(words[4], words[5], words[6], words[7]);
  swap_bits(a, b, 4u, 0xf0f0f0f0u);
  uvec4 c = uvec4(a.xy, b.xy), d = uvec4(a.zw, b.zw);
  swap_bits(c, d, 2u, 0xccccccccu);
  a = uvec4(c.x, d.x, c.z, d.z);
  b = uvec4(c.y, d.y, c.w, d.w);
  swap_bits(a, b, 1u, 0xaaaaaaaau);
  return block_words(uvec4(a.x, b.x, a.y, b.y), uvec4(a.z, b.z, a.w, b.w));
}

#endif
