// SPDX-License-Identifier: MIT
// Conversions of the values that workgroups of a batch's resident dispatch exchange, so that no value has the bits of
// `unwritten`. The including shader has half_codes.glsl if it exchanges f16 values.
#ifndef INTAGLIO_ROWS_EXCHANGE
#define INTAGLIO_ROWS_EXCHANGE

#define not_a_number uintBitsToFloat(0x7fc00000u)
float written(float a) { return isnan(a) ? not_a_number : a; }
#ifdef INTAGLIO_HALF_CODES
// The bits of a value as f16.
uint half_word(float a) { return isnan(a) ? 0x7e00u : as_word(f16vec2(vec2(a, 0.0))) & 0xffffu; }
// Bits of the scale by which the largest of some columns is in 2^14 to 2^15; by_scale gives the factor for a scale.
uint scale_bits(float most) { return (clamp(floatBitsToUint(most) >> 23, 30u, 240u) - 14u) << 23; }
float by_scale(uint its_scale) { return uintBitsToFloat((254u << 23) - its_scale); }
#endif

#endif
