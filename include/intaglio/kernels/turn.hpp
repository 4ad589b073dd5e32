// SPDX-License-Identifier: MIT
// The kernel turn: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The norms of q and k. none: there are none. each_head: each head by its root mean square, before RoPE. all_heads:
/// all heads of q, or of k, by their common root mean square, before RoPE. each_head_after: each head by its root mean
/// square, which RoPE does not change, with the norm's weight applied after RoPE.
enum class turn_norms : std::uint32_t { none = 0, each_head = 1, all_heads = 2, each_head_after = 3 };

/// The ops on q, k and v between their products and attention, where the products' epilogue (rope_cache of matmul) is
/// not enough. biased 1: bias is added. Heads of q and k become rms_norm(head) * q_norm or k_norm as `norms` says, and
/// are rotated; the rotated values are multiplied by rope_factor. q goes to output f32 [tokens, heads, head_dim], k and
/// v to the cache. One workgroup a head (x) of q, then k, then v, and token (y).
/// q, k, v: f32, with q_stride, k_stride and v_stride elements from one token to the next, multiples of 4; they are
/// three values, or parts of one stacked product. q_norm, k_norm: [head_dim], or with all_heads [heads * head_dim] and
/// [kv_heads * head_dim]. bias: f32 [(heads + 2 * kv_heads) * head_dim], of q, then k, then v.
/// latent L above 0, with kv_heads 1, without biases and other norms: v has L channels and becomes the latent vector
/// rms_norm(v) * k_norm. It goes to the values and is the key's first L channels, after which are k's. A head of the
/// output is L channels of latent_query, f32 [tokens, heads, L], and after them q's. L is a multiple of 64.
/// v_norm 1: heads of v become rms_norm(head), without a weight. kv_heads 0: only q, because keys and values belong to
/// another layer. rope and ring: as in matmul.
inline constexpr kernel_interface turn_interface{"turn",
                                                 {{{"q"},
                                                   {"k"},
                                                   {"v"},
                                                   {"q_norm"},
                                                   {"k_norm"},
                                                   {"bias"},
                                                   {"output"},
                                                   {"state"},
                                                   {"keys"},
                                                   {"values"},
                                                   {"rope"},
                                                   {"latent_query"}}},
                                                 {{{"workgroup_size"},
                                                   {"heads"},
                                                   {"kv_heads"},
                                                   {"head_dim"},
                                                   {"eps", field_type::f32},
                                                   {"context"},
                                                   {"ring"},
                                                   {"cache_element"},
                                                   {"subgroup_width"},
                                                   {"slot_words"},
                                                   {"page_size"},
                                                   {"q_stride"},
                                                   {"k_stride"},
                                                   {"v_stride"},
                                                   {"norms"},
                                                   {"biased"},
                                                   {"rope_factor", field_type::f32},
                                                   {"v_norm"},
                                                   {"latent"}}}};

/// Descriptor of the kernel turn, which applies bias, norm and RoPE to q and k and stores k and v in the cache.
struct turn_kernel {
  static constexpr kernel id = kernel::turn;
  static constexpr const kernel_interface& face = turn_interface;
  static constexpr candidate candidates[] = {{variant::turn, {}}};
  template <class T>
  struct push {
    T q, k, v, q_norm, k_norm, bias, output, state, keys, values, rope, latent_query;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t heads{};
    std::uint32_t kv_heads{};
    std::uint32_t head_dim{};
    float eps{};
    std::uint32_t context{};
    std::uint32_t ring{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t q_stride{};
    std::uint32_t k_stride{};
    std::uint32_t v_stride{};
    turn_norms norms{};
    std::uint32_t biased{};
    float rope_factor{};
    std::uint32_t v_norm{};
    std::uint32_t latent{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::cache; }
};

}  // namespace intaglio::kernels
