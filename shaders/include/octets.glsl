// SPDX-License-Identifier: MIT
// Rows of dense weights, eight columns at a time. The including shader has `weight`, `columns` and `weight_element`.
#ifndef INTAGLIO_OCTETS
#define INTAGLIO_OCTETS

const uint octets = columns / 8u;

struct octet {
  vec4 low, high;
};

octet load8(uint row, uint index) {
  uint at = row * octets + index;
  if (weight_element == element_f32) return octet(float_quad(weight, 2u * at), float_quad(weight, 2u * at + 1u));
  uvec4 words = word_quad(weight, at);
  if (weight_element == element_f16)
    return octet(vec4(f16_pair(words.x), f16_pair(words.y)), vec4(f16_pair(words.z), f16_pair(words.w)));
  return octet(vec4(bf16_pair(words.x), bf16_pair(words.y)), vec4(bf16_pair(words.z), bf16_pair(words.w)));
}

// Sum of the eight accumulators: neighbours first.
float sum8(vec4 low, vec4 high) {
  precise float sum = ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
  return sum;
}

#endif
