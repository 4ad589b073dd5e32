// SPDX-License-Identifier: MIT
// The codecs of the matrices in shaders/layers_coded.comp, which has the constant `codec` and, with several codecs, a
// word for each further one.
#ifndef INTAGLIO_CODEC_CONSTANTS
#define INTAGLIO_CODEC_CONSTANTS

// The fields of the codec's row in one word, as kernels::layers_coded::codec_word packs them: choosing each field among
// all rows would take more declarations than a header holds.
#include "intaglio/codecs/rows.h"
#define ROW_OF(name, id, bits, zero, table, form, per, least) \
  codec == id ? (bits | form << 4u | (per == 16u ? 128u : 0u) | least << 8u | uint(zero) << 9u | table << 15u):
#define NUMBER_OF_ROW(name, id, bits, zero, table, form, per, least) const uint codec_##name = id;
const uint codec_row = INTAGLIO_BLOCK_CODECS(ROW_OF) 0u;
INTAGLIO_BLOCK_CODECS(NUMBER_OF_ROW)
#undef INTAGLIO_BLOCK_CODECS
#undef INTAGLIO_KNOWN_ROW
#define INTAGLIO_KNOWN_ROW(bits, table, form, per, least) true
#define INTAGLIO_BLOCK_CODECS(one)                                                                                  \
  one(any, (codec | 0u), (codec_row & 15u), int(codec_row >> 9u & 63u), (codec_row >> 15u), (codec_row >> 4u & 7u), \
      (32u - (codec_row >> 3u & 16u)), (codec_row >> 8u & 1u))
#include "codec.glsl"
#if MIXED
#define CODEC_AND_ROW(which) const uint which##_codec = codec_##which & 255u, which##_codec_row = codec_##which >> 8u;
CODEC_AND_ROW(second)
CODEC_AND_ROW(third)
CODEC_AND_ROW(fourth)
#endif

#endif
