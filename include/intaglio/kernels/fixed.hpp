// SPDX-License-Identifier: MIT
// The kernel fixed: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Converts x to fixed-point numbers for matmul_batch: x as for matmul with a codec of blocks. output: u32 [tokens, 7,
/// width / 32, 4]. Of each block of 32 columns it has bits 16 .. 23, four columns a word, then bits 8 .. 15, then bits
/// 0 .. 7, two quads each; then the block's scale, f32, the sum of the upper bits, the sum of the lower 16 bits, and an
/// unused word. width: a multiple of 32. With prologue::norm there is one workgroup a token (y), else any number (x).
/// tiled: for each eight tokens u32 [width / 32, 3, 8, 8], planes as above, of which the lower two hold 127 minus each
/// unsigned byte; then f32 [width / 32, 2, 8], scales and the sums of the integers. In a plan `tiled` says that the
/// product may need this form; the device decides (plan/fit.hpp).
/// rows_per_token: rows of the input and output for each token, which experts computed; they then count as tokens.
inline constexpr kernel_interface fixed_interface{"fixed",
                                                  {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
                                                  {{{"workgroup_size"},
                                                    {"width"},
                                                    {"prologue"},
                                                    {"eps", field_type::f32},
                                                    {"subgroup_width"},
                                                    {"rows_per_token"},
                                                    {"tiled"}}}};
/// Words of the output of `fixed` for a token.
constexpr std::uint32_t fixed_words(std::uint32_t width) { return width / 32 * 28; }

/// Descriptor of the kernel fixed, which converts activations to fixed-point numbers.
struct fixed_kernel {
  static constexpr kernel id = kernel::fixed;
  static constexpr const kernel_interface& face = fixed_interface;
  static constexpr candidate candidates[] = {{variant::fixed, {}}};
  template <class T>
  struct push {
    T input, norm_weight, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    kernels::prologue prologue{};
    float eps{};
    std::uint32_t subgroup_width{};
    std::uint32_t rows_per_token{};
    std::uint32_t tiled{};
  };

  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    const std::uint32_t room = of.groups[1];
    c.tiled = c.tiled != 0 && device.offers().has(demand::narrow_int8) && room % 8 == 0 &&
                      wants_tiles(codec::q8_0, pass.tokens(room))
                  ? 1
                  : 0;
    of.groups[1] = pass.share(room);
    return variant::fixed;
  }
};

}  // namespace intaglio::kernels
