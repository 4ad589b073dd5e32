// SPDX-License-Identifier: MIT
// Codecs of blocks on the device: one row each, read by C++ and by GLSL alike (kernels/kinds.hpp, shaders/include/codec.glsl).
// What a row says is what kernels compute: value = factor * number(code), plus or minus a least value where there is one.
//
//   name         as in core/dtype.hpp
//   id           of the specialization constant `codec`; 0 to 2 are f16, f32 and bf16
//   bits         of a code; the device has a plane for each power of two in it: 8, 4, 2, 1, and with a table one for each
//                bit (kernels/matmul_layout.hpp)
//   zero         what is subtracted from codes or from a table's numbers, which are not negative; or 0, with signed ones
//   table        0: the number is code - zero; else that of INTAGLIO_VALUE_TABLES in which it is looked up, less zero
//   form         of factors: FACTOR_HALF and FACTOR_BRAIN: an f16 or a bf16; FACTOR_BYTE: an int8 times the f16 of 256
//                columns; FACTOR_SIX: six bits times the f16 of 256 columns
//   per          columns of a factor: 16 or 32
//   least        1: a least value for as many columns: an f16 that is added; with FACTOR_BYTE an u8 times an f16 of 256
//                columns, subtracted; with FACTOR_SIX six bits instead of the u8
#ifndef INTAGLIO_CODECS_ROWS
#define INTAGLIO_CODECS_ROWS

#define FACTOR_HALF 1u
#define FACTOR_BRAIN 2u
#define FACTOR_BYTE 3u
#define FACTOR_SIX 4u

// row(name, id, bits, zero, table, form, per, least)
#define INTAGLIO_BLOCK_CODECS(row)             \
  row(q8_0, 3u, 8u, 0, 0u, FACTOR_HALF, 32u, 0u)    \
  row(q4_0, 4u, 4u, 8, 0u, FACTOR_HALF, 32u, 0u)    \
  row(q4_1, 5u, 4u, 0, 0u, FACTOR_HALF, 32u, 1u)    \
  row(q4_k, 6u, 4u, 0, 0u, FACTOR_SIX, 32u, 1u)     \
  row(q6_k, 7u, 6u, 32, 0u, FACTOR_BYTE, 16u, 0u)   \
  row(q5_0, 8u, 5u, 16, 0u, FACTOR_HALF, 32u, 0u)   \
  row(q5_1, 9u, 5u, 0, 0u, FACTOR_HALF, 32u, 1u)    \
  row(q2_k, 10u, 2u, 0, 0u, FACTOR_BYTE, 16u, 1u)   \
  row(q3_k, 11u, 3u, 4, 0u, FACTOR_BYTE, 16u, 0u)   \
  row(q5_k, 12u, 5u, 0, 0u, FACTOR_BYTE, 32u, 1u)   \
  row(iq4_nl, 13u, 4u, 0, 1u, FACTOR_HALF, 32u, 0u) \
  row(iq4_xs, 14u, 4u, 0, 1u, FACTOR_BYTE, 32u, 0u) \
  row(mxfp4, 15u, 4u, 12, 2u, FACTOR_BRAIN, 32u, 0u) \
  row(nvfp4, 16u, 4u, 12, 2u, FACTOR_HALF, 16u, 0u)  \
  row(q1_0, 17u, 1u, 1, 3u, FACTOR_HALF, 32u, 0u)   \
  row(q2_0, 18u, 2u, 1, 0u, FACTOR_HALF, 32u, 0u)   \
  row(iq2_xxs, 19u, 3u, 0, 4u, FACTOR_BYTE, 32u, 0u)  \
  row(iq2_xs, 20u, 3u, 0, 4u, FACTOR_BYTE, 16u, 0u)   \
  row(iq2_s, 21u, 3u, 0, 4u, FACTOR_BYTE, 16u, 0u)    \
  row(iq3_xxs, 22u, 4u, 31, 5u, FACTOR_BYTE, 32u, 0u) \
  row(iq3_s, 23u, 4u, 15, 6u, FACTOR_BYTE, 32u, 0u)   \
  row(iq1_s, 24u, 2u, 7, 7u, FACTOR_BYTE, 32u, 0u)    \
  row(iq1_m, 25u, 3u, 9, 8u, FACTOR_BYTE, 16u, 0u)

// What of a row kernels compute, and repacking and the reference: a row of something else compiles in neither language.
#define INTAGLIO_KNOWN_ROW(bits, table, form, per, least)                                                      \
  (bits >= 1u && bits <= 8u && table <= 8u && (per == 16u || per == 32u) &&                                    \
   (form == FACTOR_HALF || form == FACTOR_BYTE || (form == FACTOR_BRAIN && per == 32u && least == 0u) ||       \
    (form == FACTOR_SIX && bits == 4u && per == 32u && least == 1u)) &&                                       \
   (form != FACTOR_HALF || per == 32u || least == 0u))

// table(id, unit of its numbers where factors are of FACTOR_BYTE, numbers of codes 0 to 15)
#define INTAGLIO_VALUE_TABLES(table)                                                                        \
  table(1u, 1.0f, -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113) /* IQ4_NL */ \
  table(2u, 1.0f, 12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0)           /* 12 and twice E2M1 */ \
  table(3u, 1.0f, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)                      /* one bit */ \
  table(4u, 0.125f, 8, 25, 43, 0, -8, -25, -43, 0, 0, 0, 0, 0, 0, 0, 0, 0)             /* IQ2: signs above */ \
  table(5u, 0.5f, 33, 37, 41, 45, 49, 53, 57, 62, 29, 25, 21, 17, 13, 9, 5, 0)          /* IQ3_XXS: as well */ \
  table(6u, 1.0f, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)            /* IQ3_S */ \
  table(7u, 0.125f, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)                    /* IQ1_S */ \
  table(8u, 0.125f, 0, 2, 8, 10, 16, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)                  /* IQ1_M */

#endif
