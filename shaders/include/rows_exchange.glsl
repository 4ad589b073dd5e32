// SPDX-License-Identifier: MIT
// How numbers of a batch's pass in one resident dispatch are exchanged, so that none look unwritten. The including
// shader has half_codes.glsl where it exchanges f16 values.
#ifndef INTAGLIO_FEW_TOLD
#define INTAGLIO_FEW_TOLD

#define not_a_number uintBitsToFloat(0x7fc00000u)
float something(float a) { return isnan(a) ? not_a_number : a; }
#ifdef INTAGLIO_HALF_CODES
// A half as bits.
uint half_word(float a) { return isnan(a) ? 0x7e00u : as_word(f16vec2(vec2(a, 0.0))) & 0xffffu; }
// The scale with which the largest of some columns becomes 2^14 to 2^15, as bits; a number by it.
uint scale_bits(float most) { return (clamp(floatBitsToUint(most) >> 23, 30u, 240u) - 14u) << 23; }
float by_scale(uint its_scale) { return uintBitsToFloat((254u << 23) - its_scale); }
#endif

#endif
