// SPDX-License-Identifier: MIT
// The kernel short_conv: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// A short causal convolution over tokens: y[t, c] = sum over k of weight[c, k] z[t - taps + 1 + k, c], f32, with k in
/// rising order; width: a multiple of 4. biased 1: bias, [width], is added to the sum. multiplied 1: a token's input is
/// B, C and h, [tokens, 3 width]; z = B h, output C y. multiplied 0: z is the input, [tokens, width]; output silu(y).
/// `recurrent`, [taps - 1, width], holds z of the last tokens before the pass, and afterwards of the pass's last
/// tokens. At position 0 it is not read, and z before the first token is 0. Workgroups split quads of channels (x). The
/// first row of workgroups (y) has the tokens that need earlier z, and writes `recurrent`; each other row has one
/// token. In a batch (slot_words not 0) each row has a slot's token, and a slot's `recurrent` is slot_floats floats
/// after the previous slot's.
inline constexpr kernel_interface short_conv_interface{
    "short_conv",
    {{{"input"}, {"weight"}, {"bias"}, {"output"}, {"recurrent"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"taps"}, {"multiplied"}, {"slot_words"}, {"slot_floats"}, {"biased"}}}};

/// Descriptor of the kernel short_conv, which computes a short causal convolution over tokens.
struct short_conv_kernel {
  static constexpr kernel id = kernel::short_conv;
  static constexpr const kernel_interface& face = short_conv_interface;
  static constexpr std::uint32_t proof_tokens = 5;
  static constexpr candidate candidates[] = {{variant::short_conv, {}}};
  template <class T>
  struct push {
    T input, weight, bias, output, recurrent, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    std::uint32_t taps{};
    std::uint32_t multiplied{};
    std::uint32_t slot_words{};
    std::uint32_t slot_floats{};
    std::uint32_t biased{};
  };
  /// Number of rows of workgroups for a pass of `tokens` tokens.
  static constexpr std::uint32_t rows(std::uint32_t tokens, std::uint32_t taps) {
    return tokens < taps ? 1 : tokens - taps + 2;
  }
};
/// Bytes of `recurrent`.
constexpr std::uint64_t short_conv_state_bytes(std::uint32_t width, std::uint32_t taps) {
  return std::uint64_t{4} * (taps - 1) * width;
}

}  // namespace intaglio::kernels
