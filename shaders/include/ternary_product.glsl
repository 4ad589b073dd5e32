// SPDX-License-Identifier: MIT
// Products of ternary weights and int8 activations for a workgroup's share of the rows: norm and quantisation first,
// then the sums and the scales. The including shader has `columns`, `rows`, the push constants' names, and the number
// of the share: product_part of product_parts.
#ifndef INTAGLIO_TERNARY_PRODUCT
#define INTAGLIO_TERNARY_PRODUCT

#include "quantised_input.glsl"

uvec4 activations(uint first_token, uint t, uint tile) {
  if (quantises) return shared_x[tile];
  return word_quad(input_, (first_token + t) * tiles + tile);
}

// Scales the sums of four rows of codes 0, 1, 2, which mean -1, 0, +1, and passes them to the epilogue.
void finish_sums(uint token, uint group, ivec4 sums, float factor, int activation_sum) {
  precise vec4 y = vec4(sums - activation_sum) * (factor * row_scales(group));
  finish(token, group, y);
}

#if WIDE_LOADS

// On a CPU every lane has groups of its own: no sum crosses lanes, and each activation that is read, from shared memory
// if it fits, is used for `batches` groups of every lane. Loads of weights take most of the time, so many tokens share
// them, and fewer groups share the activations.
const uint most_tokens = 16u, batches = tile_tokens > 8u ? 2u : 4u, all_pairs = tile_tokens * (columns_max / 16u),
           pair_octets = all_pairs <= 768u ? all_pairs : 0u;
shared u64vec4 shared_pairs[pair_octets + 1u];  // llvmpipe reads one of these in as many instructions as a single word

void share_pairs(uint first_token, uint tokens) {
  for (uint i = gl_LocalInvocationIndex; i < tokens * tiles; i += workgroup_size) {
    prepared p = prepare(activations(first_token, i / tiles, i % tiles));
    shared_pairs[i] = u64vec4(pack64(uvec2(p.pair[0], p.pair[1])), pack64(uvec2(p.pair[2], p.pair[3])),
                              pack64(uvec2(p.pair[4], p.pair[5])), pack64(uvec2(p.pair[6], p.pair[7])));
  }
  workgroup_barrier();
}

prepared activation_pairs(uint first_token, uint t, uint tile) {
  if (pair_octets == 0u) return prepare(activations(first_token, t, tile));
  u64vec4 all = shared_pairs[t * tiles + tile];
  uvec2 a = unpack32(all.x), b = unpack32(all.y), c = unpack32(all.z), d = unpack32(all.w);
  return prepared(uint[8](a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y));
}

// With several tokens each lane reads a different token's activations in one load, and all lanes get them by shuffles:
// a load is a loop over the lanes even if they read the same address, and a shuffle from a constant lane is one
// instruction. (A broadcast is not: llvmpipe first looks for the first active lane, in a loop.)
const uint token_vectors =
    subgroup_width == 0u ? (tile_tokens + 3u) / 4u : (tile_tokens + subgroup_width - 1u) / subgroup_width;
prepared of_token(prepared own[token_vectors], uint t) {
  prepared p = own[t / subgroup_size];
  if (tile_tokens > 1u)
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) p.pair[i] = subgroupShuffle(p.pair[i], t % subgroup_size);
  return p;
}

// Reads a word of each cache line of the next step's weights if these exceed a CPU's caches: prefetchers do not follow
// that many parallel streams. The words are not used; they end in a sum of zeros that the compiler cannot know.
#ifndef reads_ahead
#define reads_ahead (rows * columns > 1u << 22)
#endif
uint words_ahead;
void read_ahead(uint first, uint groups_ahead) {
  uint begin = 4u * first * tiles, end = min(begin + 4u * groups_ahead * tiles, rows * tiles);
  for (uint word = begin + 16u * lane; word < end;
       word += 64u * subgroup_size)  // few turns, of which llvmpipe allows 65,535
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) words_ahead |=
        weight.at[min(word + 16u * i * subgroup_size, end - 1u)];
}

void multiply(uint first_token, uint tokens, float factor, int activation_sum) {
  if (pair_octets != 0u) share_pairs(first_token, tokens);
  uint groups = rows / 4u, step = batches * subgroup_size, steps = (groups + step - 1u) / step;
  uint sharers = product_parts * subgroups, share = product_part * subgroups + subgroup_index;
  uint end = min((share + 1u) * steps / sharers * step, groups);
  words_ahead = 0u;
  uvec2 token_factors[token_vectors];  // each lane has another token's
  if (!quantises)
    LATER_UNROLLED for (uint k = 0u; k < token_vectors; ++k) token_factors[k] =
        word_pair(factors, first_token + min(k * subgroup_size + lane, tokens - 1u));
  for (uint first = share * steps / sharers * step; first < end; first += step) {
    if (reads_ahead) read_ahead(first + step, step);
    ivec4 sums[most_tokens][batches];
    uint at[batches];
    LATER_UNROLLED for (uint b = 0u; b < batches; ++b) {
      at[b] = min(first + b * subgroup_size + lane, groups - 1u) * tiles;
      LATER_UNROLLED for (uint t = 0u; t < tile_tokens; ++t) sums[t][b] = ivec4(0);
    }
    for (uint tile = 0u; tile < tiles; ++tile) {
      unpacked_codes codes[batches];
      LATER_UNROLLED for (uint b = 0u; b < batches; ++b) codes[b] = unpack(word_quad(weight, at[b] + tile));
      prepared own[token_vectors];
      LATER_UNROLLED for (uint k = 0u; k < token_vectors; ++k) own[k] =
          activation_pairs(first_token, tile_tokens == 1u ? 0u : min(k * subgroup_size + lane, tokens - 1u), tile);
      LATER_UNROLLED for (uint t = 0u; t < tile_tokens; ++t) if (t < tokens) {
        prepared pairs = of_token(own, t);
        LATER_UNROLLED for (uint b = 0u; b < batches; ++b) accumulate(sums[t][b], codes[b], pairs);
      }
    }
    // Four tokens at a time, one after the other in loops, so that the code exists only once.
    for (uint four = 0u; four < tokens; four += 4u) {
      ivec4 sums_of[4][batches];
      uvec2 factor_of[4];
      LATER_UNROLLED for (uint t = 0u; t < tile_tokens; ++t) if ((t & ~3u) == four) {
        LATER_UNROLLED for (uint b = 0u; b < batches; ++b) sums_of[t & 3u][b] = sums[t][b];
        if (!quantises) factor_of[t & 3u] = subgroupShuffle(token_factors[t / subgroup_size], t % subgroup_size);
      }
      for (uint i = 0u; i < min(tokens - four, 4u) * batches; ++i) {
        ivec4 own = ivec4(0);
        LATER_UNROLLED for (uint t = 0u; t < min(tile_tokens, 4u); ++t)
            LATER_UNROLLED for (uint b = 0u; b < batches; ++b) if (i == t * batches + b) {
          own = sums_of[t][b];
          if (!quantises) {
            factor = uintBitsToFloat(factor_of[t].x);
            activation_sum = int(factor_of[t].y);
          }
        }
        uint group = first + i % batches * subgroup_size + lane + (words_ahead & gl_WorkGroupID.z);
        if (group < groups) finish_sums(first_token + four + i / batches, group, own, factor, activation_sum);
      }
    }
  }
}

#else

// Every lane keeps the sums of one token and group until all lanes have some, then all finish at once; subgroups of 4
// keep two each. Up to 8 tokens.
void multiply_batch(uint first_token, uint tokens, float factor, int activation_sum) {
  ivec4 kept[2];
  uint kept_group[2], kept_token[2], filled = 0u;
  uint room = max(subgroup_size, 8u), groups = rows / 4u, stride = product_parts * subgroups;
  for (uint group = product_part * subgroups + subgroup_index; group < groups; group += stride) {
    ivec4 sums[8];
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) sums[t] = ivec4(0);
    for (uint tile = lane; tile < tiles; tile += subgroup_size) {
      uvec4 codes = word_quad(weight, group * tiles + tile);
      if (tile_tokens == 1u) {
        accumulate_one(sums[0], codes, activations(first_token, 0u, tile));
      } else {
        unpacked_codes unpacked = unpack(codes);
        LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) if (t < tile_tokens && t < tokens)
            accumulate(sums[t], unpacked, prepare(activations(first_token, t, tile)));
      }
    }
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) if (t < tile_tokens && t < tokens) {
      ivec4 all = subgroup_sum4(sums[t]);
      LATER_UNROLLED for (uint k = 0u; k < 2u;
                          ++k) if (k * subgroup_size < room && lane + k * subgroup_size == filled) {
        kept[k] = all;
        kept_group[k] = group;
        kept_token[k] = first_token + t;
      }
      ++filled;
    }
    if (filled + tokens <= room && group + stride < groups) continue;
    LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) if (k * subgroup_size < room && lane + k * subgroup_size < filled) {
      if (!quantises) {
        uvec2 word = word_pair(factors, kept_token[k]);
        factor = uintBitsToFloat(word.x);
        activation_sum = int(word.y);
      }
      finish_sums(kept_token[k], kept_group[k], kept[k], factor, activation_sum);
    }
    filled = 0u;
  }
}

void multiply(uint first_token, uint tokens, float factor, int activation_sum) {
  LATER_UNROLLED for (uint t = 0u; t < tile_tokens; t += 8u) if (t < tokens)
      multiply_batch(first_token + t, min(tokens - t, 8u), factor, activation_sum);
}

#endif

#endif
