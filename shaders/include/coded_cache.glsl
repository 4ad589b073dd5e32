// SPDX-License-Identifier: MIT
// A layer's keys or values stored as codes with factors: kernels/cache_layout.hpp has the layout. The including shader
// has head_dim, context and cache_element. After attention.glsl is included: loads from caches of any element.
#ifndef INTAGLIO_CODED_CACHE
#define INTAGLIO_CODED_CACHE

const uint element_q8_0 = 3u, element_q4_0 = 4u;  // kernels::element
const uint cache_bits = cache_element == element_q8_0 ? 8u : cache_element == element_q4_0 ? 4u : 0u;  // of a code
const bool coded_cache = cache_bits != 0u;
// Words of 8 codes, of the codes of an octet of positions, and of the whole octet.
const uint chunk_words = cache_bits / 4u, code_words = head_dim * chunk_words,
           octet_words = code_words + 8u * ((head_dim + 63u) / 64u);
// Kernels may define the channels of a value where these are not as many as the channels of a key.
#ifdef cached_value_dim
const uint value_code_words = cached_value_dim * chunk_words,
           value_octet_words = value_code_words + 8u * ((cached_value_dim + 63u) / 64u);
#else
#define value_code_words code_words
#define value_octet_words octet_words
#endif

// The word, after an octet's codes, that holds the factors of a chunk's block and of the neighbouring block.
uint factor_word(uint chunk, uint position) { return chunk / 8u * 8u + position; }

#ifdef INTAGLIO_ATTENTION
// Rows of values of a head; rows of codes fill whole octets.
const uint value_rows = coded_cache ? (context + 7u) & ~7u : context;

// Loads 8 codes, then their factor. base: the octet's first word; code_words: of its codes; item: index of the chunk
// among the octet's codes.
uvec4 load_codes(Words from, uint base, uint code_words, uint item, uint chunk, uint position) {
  uint factors = from.at[base + code_words + factor_word(chunk, position)],
       factor = (chunk & 4u) == 0u ? factors & 0xffffu : factors >> 16;
  if (cache_bits == 8u) return uvec4(word_pair(from, base / 2u + item), factor, 0u);
  return uvec4(from.at[base + item], 0u, factor, 0u);
}
// Eight neighbouring channels of a value: [kv_heads, value_rows, value_chunks].
uvec4 load_value_codes(Words values, uint index) {
  uint row = index / value_chunks, chunk = index % value_chunks;
  return load_codes(values, row / 8u * value_octet_words, value_code_words, (row & 7u) * value_chunks + chunk, chunk,
                    row & 7u);
}

// f16_pair() of CPU drivers converts finite numbers only.
float factor_of(uint half_bits) {
  return (half_bits & 0x7c00u) == 0x7c00u ? uintBitsToFloat(0x7fc00000u) : f16_pair(half_bits).x;
}

// Four channels from their codes, exactly: a code has no more than 8 bits and a factor no more than 11.
vec4 decoded(uint word, float factor) {
  ivec4 codes;
  if (cache_bits == 8u)
    codes = ivec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8), bitfieldExtract(int(word), 16, 8),
                  bitfieldExtract(int(word), 24, 8));
  else codes = ivec4(uvec4(word, word >> 4, word >> 8, word >> 12) & 15u) - 8;
  return vec4(codes) * factor;
}

raw_chunk load_cached_key(Words keys, uint index) {
  if (!coded_cache) return load_key(keys, index);
  uint item = index % (8u * chunks);
  return raw_chunk(load_codes(keys, index / (8u * chunks) * octet_words, code_words, item, item / 8u, item & 7u),
                   uvec4(0u));
}
key_chunk widened_key(raw_chunk raw) {
  if (!coded_cache) return widened(raw);
  float factor = factor_of(raw.low.z);
  return key_chunk(decoded(raw.low.x, factor), decoded(cache_bits == 8u ? raw.low.y : raw.low.x >> 16, factor));
}

// Four neighbouring channels of a value: [kv_heads, value_rows, quads].
uvec4 load_cached_value(Words values, uint index) {
  if (!coded_cache) return load_value(values, index);
  uvec4 codes = load_value_codes(values, index / 2u);
  bool second = (index & 1u) != 0u;
  return uvec4(cache_bits == 8u ? (second ? codes.y : codes.x) : codes.x >> (second ? 16 : 0), 0u, codes.z, 0u);
}
vec4 widened_cached_value(uvec4 raw) { return coded_cache ? decoded(raw.x, factor_of(raw.z)) : widened_value(raw); }
#endif

#endif
