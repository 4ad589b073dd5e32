// SPDX-License-Identifier: MIT
// Norms over all heads of q and of k in shaders/layers_coded.comp; every workgroup that may compute attention finds
// both.
#ifndef INTAGLIO_NORMS_OF_HEADS
#define INTAGLIO_NORMS_OF_HEADS

const uint norms_none = 0u, norms_each_head = 1u, norms_all_heads = 2u;  // kernels::turn_norms
vec2 r_of_all_heads;                                                     // of q, of k
void find_norms_of_all_heads(uint64_t qkv_) {
  touched_most = 0u;
  take_in(qkv_, q_size / 4u, 0u);
  r_of_all_heads.x = inverse_rms(0u, q_size);
  take_in(qkv_ + uint64_t(4u * q_size), kv_size / 4u, 0u);
  r_of_all_heads.y = inverse_rms(1u, kv_size);
}

#endif
