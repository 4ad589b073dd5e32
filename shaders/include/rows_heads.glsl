// SPDX-License-Identifier: MIT
// Norms of heads and rotations in shaders/layers_rows.comp and layers_batch.comp with INNER_NORMS. The including shader
// has heads_each, heads_of_key, query_at, head_squares, fresh, fresh_words, cache_offsets and half_word.
#ifndef INTAGLIO_ROWS_HEADS
#define INTAGLIO_ROWS_HEADS

// Reads the query heads of a task of attention, and key and value of the pass's own token, as the products wrote them.
// Normalises and rotates them here and converts them to f16; one task also writes key and value to the caches.
void bring_heads(uint layer, uint row, uint first_head, bool writes) {
  const uint half_dim = head_dim / 2u;
  uint t = gl_LocalInvocationIndex, item = t / half_dim, p = t % half_dim, kv_head = first_head / heads_of_key;
  bool is_there = item < heads_each + 2u, is_value = item == heads_each + 1u;
  SharedWords from = SharedWords(address(layer, argument_exchange) + uint64_t(query_at + row * qkv_size * 4u));
  vec2 y = vec2(0.0), weight = vec2(1.0);
  uvec2 turns = uvec2(0u);
  if (is_there) {
    uint at = (item < heads_each ? first_head + item : heads + kv_head + (is_value ? kv_heads : 0u)) * head_dim + p;
    if (!is_value) {
      Floats norm = Floats(address(layer, item < heads_each ? argument_q_norm : argument_k_norm));
      weight = vec2(norm.at[p], norm.at[p + half_dim]);
      turns = WordPairs(address(layer, argument_rope)).at[p];
    }
    uint low = from.at[at], high = from.at[at + half_dim];
    y = uintBitsToFloat(uvec2(awaited(from, at, low), awaited(from, at + half_dim, high)));
  }
  precise float square = y.x * y.x + y.y * y.y;
  [[unroll]] for (uint d = 1u; d < 32u; d <<= 1) {
    precise float both = square + subgroupShuffleXor(square, d);
    square = both;
  }
  if (lane == 0u) head_squares[sub] = square;
  barrier();
  if (is_there && !is_value) {
    precise float sum = 0.0;
    [[unroll]] for (uint i = 0u; i < half_dim / 32u; ++i)
      sum = sum + head_squares[item * (half_dim / 32u) + i];
    precise float mean = sum / float(head_dim) + eps;
    precise vec2 its = y * weight * (1.0 / sqrt(mean));
    vec2 turn = rope_from_turns(positions[row], turns);
    precise float first = its.x * turn.y - its.y * turn.x, second = its.y * turn.y + its.x * turn.x;
    y = vec2(first, second);
  }
  // Even lanes have a pair of neighbouring channels of the head's first half, odd lanes one of its second half.
  uint low_half = half_word(y.x), high_half = half_word(y.y), other_low = subgroupShuffleXor(low_half, 1u),
       other_high = subgroupShuffleXor(high_half, 1u);
  bool odd = (lane & 1u) != 0u;
  uint word = odd ? other_high | high_half << 16 : low_half | other_low << 16, channel = odd ? half_dim + p - 1u : p;
  if (!is_there) return;
  if (item < heads_each) {
    uint index = item * half_dim + channel / 2u;
    fresh[index / 4u][index & 3u] = word;
  } else {
    uint index = (is_value ? half_dim : 0u) + channel / 2u, cache_offset = cache_offsets[row];
    fresh_words[index / 4u][index & 3u] = word;
    if (!writes || first_head % heads_of_key != 0u || row >= rows || cache_offset >= context) return;
    uint element = is_value ? (kv_head * context + cache_offset) * head_dim + channel
                            : key_index(kv_head, cache_offset, channel / 8u) * 8u + channel % 8u;
    Words(address(layer, is_value ? argument_values : argument_keys)).at[element / 2u] = word;
  }
}

#endif
