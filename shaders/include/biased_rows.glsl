// SPDX-License-Identifier: MIT
// Biases of rows in shaders/layers_coded.comp: of attention's projection, and of experts, whose gate and up are
// matrices apart. A lane keeps the biases of the rows that its subgroup multiplies in the turn of the lane's number.
#ifndef INTAGLIO_BIASED_ROWS
#define INTAGLIO_BIASED_ROWS

bool has_row_biases(uint product) {
  return biased_experts && (product == gate_up || product == down) || biased_projection && product == projection;
}

// Of an item of gate and up: the workgroup's pair of rows, and whether it is the ups'.
bool is_up(uint item) { return (item / members & 1u) != 0u; }
uint gate_pair(uint item) { return min(item / members / 2u * members + item % members, own_pairs(gate_up) - 1u); }
// The pair of rows, among those of all experts, of one of the workgroup's pairs.
uint expert_pair(uint own) {
  const uint pairs = intermediate_size / 2u;
  uint pair = first_pair(gate_up) + own;
  return chosen_experts[pair / pairs] * pairs + pair % pairs;
}

uint64_t up_weight;  // the layer's matrix of ups
vec4 row_biases;     // of a pair of rows; of gates and of their ups
vec2 gates;          // of the pair of rows whose ups come next

// second: the biases of the ups. All are f32, [experts, rows] or [rows].
void load_row_biases(uint product, uint64_t first, uint64_t second) {
  uint item = lane * members + sub, pair;
  if (product == gate_up) {
    pair = expert_pair(min(item, own_pairs(gate_up) - 1u));
  } else if (product == down) {
    item = min(item, own_pairs(down) * experts_together - 1u);
    pair = chosen_experts[first_choice + item % experts_together] * (hidden_size / 2u) +
           pair_at(down, item / experts_together);
  } else {
    pair = pair_at(product, min(item, own_pairs(product) - 1u));
  }
  row_biases = vec4(FloatPairs(first).at[pair], 0.0, 0.0);
  if (product == gate_up) row_biases.zw = FloatPairs(second).at[pair];
}

// Adds the biases to both sums of an item. Gates wait in their subgroup for their ups.
void finish_biased(uint64_t to, uint product, uint item, vec2 y) {
  uint turn = item / members;
  bool ups = product == gate_up && (turn & 1u) != 0u;
  if (product == gate_up) turn /= 2u;
  vec2 bias = vec2(subgroupShuffle(row_biases.x, turn), subgroupShuffle(row_biases.y, turn));
  if (product == gate_up) {
    vec2 up_bias = vec2(subgroupShuffle(row_biases.z, turn), subgroupShuffle(row_biases.w, turn));
    bias = ups ? up_bias : bias;
  }
  precise vec2 sums = y + bias;
  if (product != gate_up) {
    finish_pair(to, product, item, pair_at(product, item), sums);
  } else {
    if (ups && lane == 0u)
      SharedPairs(to).at[first_pair(gate_up) + gate_pair(item)] =
          written(vec2(gated(gates.x, sums.x), gated(gates.y, sums.y)));
    gates = sums;
  }
}

#endif
