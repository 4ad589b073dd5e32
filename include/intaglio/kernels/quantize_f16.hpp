// SPDX-License-Identifier: MIT
// The kernel quantize_f16: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Converts x to f16 for matmul_chunk: x as for matmul, f16 [tokens, width], in which each four neighbouring columns
/// have the order 0, 2, 1, 3. x is multiplied by a power of two that brings the token's largest |x| to 2^14 .. 2^15.
/// factors f32 [tokens] undo that; they are NaN where an x is not finite. One workgroup a token (y).
/// tiled: an f16_order. In tiles each eight tokens are [width / 8, 8, 8]: eight columns of a token, then eight of the
/// next one. In a plan it says that the product may need this order; the device decides (plan/fit.hpp). width: for
/// tiles a multiple of 8, for fragments of 64.
/// Experts: with experts_used above 0 row y is one of the lists of list_tokens that expert_tiles wrote to `tiles`. It
/// is made from its pair's row of the input with own_input 1, else from its token's row. Rows without a pair are not
/// written.
inline constexpr kernel_interface quantize_f16_interface{
    "quantize_f16",
    {{{"input"}, {"norm_weight"}, {"output"}, {"factors"}, {"state"}, {"tiles"}}},
    {{{"workgroup_size"},
      {"width"},
      {"prologue"},
      {"eps", field_type::f32},
      {"subgroup_width"},
      {"tiled"},
      {"experts_used"},
      {"own_input"},
      {"list_tokens"}}}};

/// Descriptor of the kernel quantize_f16, which converts activations to f16.
struct quantize_f16_kernel {
  static constexpr kernel id = kernel::quantize_f16;
  static constexpr const kernel_interface& face = quantize_f16_interface;
  static constexpr candidate candidates[] = {{variant::quantize_f16, {}}};
  template <class T>
  struct push {
    T input, norm_weight, output, factors, state, tiles;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    kernels::prologue prologue{};
    float eps{};
    std::uint32_t subgroup_width{};
    std::uint32_t tiled{};
    std::uint32_t experts_used{};
    std::uint32_t own_input{};
    std::uint32_t list_tokens{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::f16; }

  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    auto wanted = static_cast<f16_order>(c.tiled);
    if (wanted == f16_order::tiles_or_octets || wanted == f16_order::tiles_or_blocks)
      wanted = !device.offers().has(demand::f16_fragments) || pass.tokens(of.groups[1]) <= most_batch_tokens
                   ? f16_order::tiles
               : wanted == f16_order::tiles_or_octets ? f16_order::octets
                                                      : f16_order::blocks;
    c.tiled = static_cast<std::uint32_t>(wanted);
    const demand needs = wanted == f16_order::tiles ? demand::narrow_f16 : demand::f16_fragments;
    if (!device.offers().has(needs)) c.tiled = static_cast<std::uint32_t>(f16_order::rows);
    if (c.experts_used == 0) of.groups[1] = pass.share(of.groups[1]);
    else if (const std::uint32_t most = pass.rows * c.experts_used * c.list_tokens; pass.rows != 0)
      of.groups[1] = (std::min)(of.groups[1], most);
    return variant::quantize_f16;
  }
};

}  // namespace intaglio::kernels
