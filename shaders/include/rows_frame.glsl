// SPDX-License-Identifier: MIT
// Declarations shared by resident dispatches of a batch: memory that workgroups share, the state, indices of a layer's
// arguments. The including shader has the specialization constants, with INNER_NORMS a window among them.
#ifndef INTAGLIO_ROWS_FRAME
#define INTAGLIO_ROWS_FRAME

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Addresses { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer SharedWords { volatile devicecoherent uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer SharedQuads {
  volatile devicecoherent uvec4 at[];
};
// Volatile reads, which compilers do not move.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer HeldQuads { volatile uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer HeldWords { volatile uint at[]; };
layout(push_constant, scalar) uniform Push {
  Addresses arguments;
  Words progress, state;
};
#define PAGED
#include "slots.glsl"
const uint cache_element = element_f16;
#define attention_scale scale
#ifdef INNER_NORMS
#define attention_window window
#else
#define attention_window 0u
#endif
#define attention_ring 0u
#include "attention.glsl"

// kernels::layers: the words of `progress` in use, and indices of a layer's arguments.
const uint progress_left = 1u, progress_timed_out = 3u;
const uint argument_count = 21u, argument_exchange = 0u, argument_keys = 1u, argument_values = 2u, argument_stream = 3u;
// Argument indices of weights in blocks or of 16 bits. Ternary products have norm weight, weight, scales each.
const uint argument_qkv_norm = 8u, argument_qkv = 9u, argument_rope = 10u, argument_k_norm = 11u,
           argument_projection = 12u, argument_projected_norm = 13u, argument_gate_up_norm = 14u,
           argument_gate_up = 15u, argument_q_norm = 16u, argument_down = 18u, argument_lowered_norm = 19u,
           argument_products = 8u;

const uint qkv = 0u, projection = 1u, gate_up = 2u, down = 3u;  // products; attention follows the first
const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim, qkv_size = q_size + 2u * kv_size;
uint columns_of(uint product) {
  return product == projection ? q_size : product == down ? intermediate_size : hidden_size;
}
uint rows_of(uint product) {
  return product == qkv ? qkv_size : product == gate_up ? 2u * intermediate_size : hidden_size;
}
const uint unwritten = 0xffffffffu;
#define sub gl_SubgroupID

#endif
