// SPDX-License-Identifier: MIT
// The kernel dense_batch: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// dense_matmul of an input that rms_norm normalised, with one read of the weights for every tile of up to 8 tokens.
/// Grid x strides over groups of dense_batch_rows rows, grid y over tiles. All tokens of a tile must be readable.
inline constexpr kernel_interface dense_batch_interface{
    "dense_batch",
    {{{"input"}, {"weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"tile_tokens"}, {"subgroup_width"}}}};
/// Rows of a group.
inline constexpr std::uint32_t dense_batch_rows = 4;

/// Descriptor of the kernel dense_batch, which multiplies the tokens of a batch by a dense matrix.
struct dense_batch_kernel {
  static constexpr kernel id = kernel::dense_batch;
  static constexpr const kernel_interface& face = dense_batch_interface;
  static constexpr candidate candidates[] = {{variant::dense_batch, {}}};
  template <class T>
  struct push {
    T input, weight, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec weight_element{};
    std::uint32_t tile_tokens{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
