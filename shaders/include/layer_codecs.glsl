// SPDX-License-Identifier: MIT
// Which codec each matrix of a layer has in shaders/layers_coded.comp, and calls of the code for that codec. The
// including shader has the constants of kinds and codecs, and the variable `apart`.
#ifndef INTAGLIO_LAYER_CODECS
#define INTAGLIO_LAYER_CODECS

// Matrices of a layer by codec: kernels::layers_coded::matrix.
const uint of_heads = 0u, of_values = 1u, of_gate = 2u, of_projection = 3u, of_down = 4u;
// Constants and the layer's number alone say which codecs a layer has, so that branches are uniform.
uint kind_bit(uint first, uint second, uint third, uint layer) {
  return (layer < 32u ? first : layer < 64u ? second : third) >> (layer & 31u) & 1u;
}
uint codecs_of(uint layer) {
  bool bit_1 = kind_bit(kinds_3, kinds_4, kinds_5, layer) != 0u,
       bit_2 = kind_bit(kinds_6, kinds_7, kinds_8, layer) != 0u,
       bit_3 = kind_bit(kinds_9, kinds_10, kinds_11, layer) != 0u;
  uint low = bit_2 ? (bit_1 ? kind_codecs_3 : kind_codecs_2) : (bit_1 ? kind_codecs_1 : kind_codecs_0),
       high = bit_2 ? (bit_1 ? kind_codecs_7 : kind_codecs_6) : (bit_1 ? kind_codecs_5 : kind_codecs_4);
  return (bit_3 ? high : low) >> 16u * kind_bit(kinds_0, kinds_1, kinds_2, layer) & 0xffffu;
}
uint layer_codecs;  // of the current layer
// Codecs that a matrix has in some layer, a bit each.
uint used_by(uint matrix) { return codecs_used >> 4u * matrix & 15u; }
bool values_apart() { return used_by(of_values) != 0u && (layer_codecs >> 10u & 1u) != 0u; }
// Whether v's own matrix has k's rows too, and the number of its rows.
bool keys_apart() { return (codecs_used >> 20u & 1u) != 0u && (layer_codecs >> 11u & 1u) != 0u; }
uint apart_rows() { return keys_apart() ? 2u * kv_size : kv_size; }
// Whether a matrix has codec n in the current layer. The last one of `used` needs no comparison.
bool has_codec(uint used, uint matrix, uint n) {
  return (used >> n & 1u) != 0u && ((layer_codecs >> 2u * matrix & 3u) == n || used >> (n + 1u) == 0u);
}
#define WITH_CODEC(matrix, call)                                  \
  if (has_codec(used_by(matrix), matrix, 0u)) call;               \
  else if (has_codec(used_by(matrix), matrix, 1u)) second_##call; \
  else if (has_codec(used_by(matrix), matrix, 2u)) third_##call;  \
  else if (has_codec(used_by(matrix), matrix, 3u)) fourth_##call
// The same for products after norms. If v has a matrix of its own, the last subgroups multiply with it. Where only v
// has codec n, or v never has it, the product is known.
bool takes_values;
uint normed_used() { return used_by(of_heads) | used_by(of_gate); }
bool is_normed(uint product, uint n) {
  return takes_values ? has_codec(used_by(of_values), of_values, n)
                      : has_codec(normed_used(), product == gate_up ? of_gate : of_heads, n);
}
bool of_values_alone(uint n) { return (normed_used() >> n & 1u) == 0u; }
bool is_values(uint n) { return of_values_alone(n) || ((used_by(of_values) >> n & 1u) != 0u && takes_values); }
#define NORMED_FETCH(call, n)                                                  \
  call(is_values(n) ? v_weight : weight, is_values(n) ? only_values : product, \
       is_values(n) ? sub - (members - apart_members()) : sub)
#define NORMED_MULTIPLY(call, n)                                                   \
  call(is_values(n) ? only_values : product, is_values(n) ? v_weight : weight, to, \
       is_values(n) ? sub - (members - apart_members()) : sub,                     \
       is_values(n) ? apart_members()                                              \
       : apart      ? members - apart_members()                                    \
                    : members,                                                          \
       false)
#define WITH_NORMED_CODEC(FORM, call)                       \
  if (is_normed(product, 0u)) FORM(call, 0u);               \
  else if (is_normed(product, 1u)) FORM(second_##call, 1u); \
  else if (is_normed(product, 2u)) FORM(third_##call, 2u);  \
  else if (is_normed(product, 3u)) FORM(fourth_##call, 3u)

#endif
