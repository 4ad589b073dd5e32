// SPDX-License-Identifier: MIT
// Device addresses as arrays of words, and elements read from them four at a time.
// `input` and `output` are reserved words of GLSL: push constants of these names are written input_ and output_.
#ifndef INTAGLIO_MEMORY
#define INTAGLIO_MEMORY

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer WordPairs { uvec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer FloatPairs { vec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer WordQuads { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer FloatQuads { vec4 at[]; };

#if WIDE_LOADS
// llvmpipe reads and writes lane by lane and component by component: 64-bit components halve the work. Each has an
// index of its own, and pointers must visibly be the same for all lanes: LLVM then adds one lane's offset to one
// pointer, while otherwise it stores the addresses of all lanes for each lane (512 bits, whose parts an Intel with
// AVX-512 waits 15 cycles for). Values that take_pushed reads before all control flow, and results of
// subgroupBroadcastFirst, are uniform.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { uint64_t at[]; };

uvec2 word_pair(Words from, uint index) { return unpack32(Longs(from).at[index]); }
uvec4 word_quad(Words from, uint index) {
  return uvec4(unpack32(Longs(from).at[2u * index]), unpack32(Longs(from).at[2u * index + 1u]));
}
void store_floats(Words to, uint pair, vec2 x) { Longs(to).at[pair] = pack64(floatBitsToUint(x)); }
void store_floats(Words to, uint quad, vec4 x) {
  Longs(to).at[2u * quad] = pack64(floatBitsToUint(x.xy));
  Longs(to).at[2u * quad + 1u] = pack64(floatBitsToUint(x.zw));
}

// llvmpipe also unpacks f16 bit by bit, which is slow. Weights and caches hold only finite f16 values, for which a
// shift and a product suffice: the exponent's bias differs by 112.
float wide_half(int upper) { return intBitsToFloat((upper >> 3) & int(0x8fffe000)) * 5.192296858534828e33; }
vec2 f16_pair(uint word) { return vec2(wide_half(int(word << 16)), wide_half(int(word & 0xffff0000u))); }
#else
uvec2 word_pair(Words from, uint index) { return WordPairs(from).at[index]; }
uvec4 word_quad(Words from, uint index) { return WordQuads(from).at[index]; }
void store_floats(Words to, uint pair, vec2 x) { FloatPairs(to).at[pair] = x; }
void store_floats(Words to, uint quad, vec4 x) { FloatQuads(to).at[quad] = x; }
vec2 f16_pair(uint word) { return unpackHalf2x16(word); }
#endif
vec4 float_quad(Words from, uint index) { return uintBitsToFloat(word_quad(from, index)); }

// kernels::element
const uint element_f16 = 0u;
const uint element_f32 = 1u;
const uint element_bf16 = 2u;

vec2 bf16_pair(uint word) { return vec2(uintBitsToFloat(word << 16), uintBitsToFloat(word & 0xffff0000u)); }

// Elements 4 * quad .. 4 * quad + 3; `element` is a specialization constant, so one branch remains.
vec4 load4(Words from, uint element, uint quad) {
  if (element == element_f32) return float_quad(from, quad);
  uvec2 words = word_pair(from, quad);
  if (element == element_f16) return vec4(f16_pair(words.x), f16_pair(words.y));
  return vec4(bf16_pair(words.x), bf16_pair(words.y));
}

#endif
